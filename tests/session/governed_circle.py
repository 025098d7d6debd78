"""A small governed group of whole sessions, on a network that can be cut in two."""

from collections.abc import Callable, Sequence

from engine.codec.waku import decode_waku_message, encode_waku_message
from engine.core.admin_log.acts import Act, Add, Promote, Remove, Role
from engine.core.content import Text
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.waku import WakuMessage
from engine.session.group.governed import GovernedPart
from engine.sim.network import Outgoing
from engine.sim.session_participant import SessionParticipant

NOW = UnixMs(1_800_000_000_000)
NAMES = ("Olga", "Anna", "Ben", "Cem")


class Circle:
    """Olga's group; whatever somebody sends reaches those who are not cut off from them."""

    def __init__(self, seed: int = 5, names: Sequence[str] = NAMES) -> None:
        self.now = NOW
        self.people = {name: SessionParticipant(name, seed=seed, now_ms=NOW) for name in names}
        self.removed_ms = NOW
        """When somebody was removed last."""
        self.apart: frozenset[str] = frozenset()
        """Cut off from the others, and together."""
        self.inside = {"Olga"}
        self.is_lost: Callable[[str, bytes], bool] = lambda _name, _payload: False
        """To whom which payload does not come."""
        self.unheard: frozenset[str] = frozenset()
        """Whatever they send is taken by nobody, and they hear nothing."""
        self.sent: list[tuple[str, bytes]] = []
        self.mail: list[tuple[str, Outgoing]] = []
        self.begin()

    def begin(self) -> None:
        self.send("Olga", self["Olga"].create_governed_group("Walks", now_ms=self.now))
        for name in NAMES[1:]:
            self.admit(name)
        self.govern("Olga", Promote(member=self.id("Anna")))
        self.govern("Olga", Promote(member=self.id("Ben")))
        self.live(90)

    def __getitem__(self, name: str) -> SessionParticipant:
        return self.people[name]

    def id(self, name: str) -> ParticipantId:
        return self[name].participant_id

    def part(self, name: str) -> GovernedPart:
        part = self[name].session.governed
        assert part is not None
        return part

    def admit(self, name: str, by: str = "Olga", *, reads_from: int | None = 1) -> None:
        self.govern(by, Add(member=self.id(name), reads_from=reads_from))
        self.inside.add(name)
        self.send(name, self[name].let_in(self.part(by).admission(self.id(name)), now_ms=self.now))

    def govern(self, who: str, act: Act) -> None:
        self.send(who, self[who].govern(act, now_ms=self.now))

    def say(self, who: str, text: str) -> MessageId:
        self.send(who, self[who].say(Text(text=text), now_ms=self.now))
        return self[who].seen.sent[-1]

    def prekeys(self, name: str) -> tuple[int, ...]:
        """The numbers of those kept on disk."""
        state = self[name].store.governed(self[name].session.record.conversation_id)
        return tuple(one.number for one in state.own_prekeys)

    def replay(self, name: str, payload: bytes) -> None:
        message = WakuMessage(
            payload=payload,
            content_topic=self[name].session.content_topic,
            timestamp_ns=self.now * 1_000_000,
        )
        answers = self[name].receive(encode_waku_message(message), now_ms=self.now)
        self.send(name, list(answers))

    def remove(self, who: str, by: str) -> None:
        self.removed_ms = self.now
        self.govern(by, Remove(member=self.id(who)))

    def send(self, sender: str, sent: Sequence[Outgoing]) -> None:
        self.mail += [(sender, out) for out in sent]
        self.deliver()

    def deliver(self) -> None:
        while self.mail:
            sender, out = self.mail.pop(0)
            if sender in self.unheard:
                continue
            payload = decode_waku_message(out.payload).payload
            self.sent.append((sender, payload))
            if out.accepted is not None:
                self.mail += [(sender, more) for more in out.accepted(1, self.now)]
            for name, person in self.people.items():
                hears = (name in self.apart) == (sender in self.apart)
                if name == sender or not hears or name not in self.inside - self.unheard:
                    continue
                if not self.is_lost(name, payload):
                    self.mail += [
                        (name, answer) for answer in person.receive(out.payload, now_ms=self.now)
                    ]

    def live(self, seconds: int) -> None:
        self.live_but("", seconds)

    def live_but(self, absent: str, seconds: int) -> None:
        end = UnixMs(self.now + seconds * 1000)
        while self.now < end:
            self.now = UnixMs(self.now + 250)
            for name, person in self.people.items():
                deadline = person.next_deadline()
                is_due = deadline is not None and deadline <= self.now
                if is_due and name != absent:
                    self.send(name, person.advance(now_ms=self.now))

    def shown(self, name: str) -> list[str]:
        return [one.text for one in self[name].observation().shown]

    def roles(self, name: str) -> dict[str, Role]:
        by_id = {self.id(each): each for each in self.people}
        return {by_id[who]: role for who, role in self.part(name).governance.state.roles.items()}

    def counted(self, name: str) -> set[str]:
        """Who is counted in "held by k of n", and named in the list of members."""
        members = self[name].session.members().values()
        return {one.name for one in members if one.left_ms is None}
