"""One seed's conversation with replies, reactions, edits, deletions, mentions and files.

Whole sessions with their stores talk on a bad network.  What they say crosses, comes before what it
speaks of, comes from members who pretend to be the author, and speaks of messages that never were.
One member sends files that are not what it says, and claims files that it has not.  Members crash
and are cut off.  In the end every member shows the same, and it is what the rules say: they are
applied here once more, to all that was said.  ``python -m engine.sim.annotated_trial 17`` repeats a
failed test's seed.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import Struct

from engine.codec.content import decode_content
from engine.codec.envelope import decode_signed_part
from engine.codec.sds import decode_message
from engine.core.blobs.manifest import Manifest
from engine.core.content import Attachment, Body, Edit, Reaction, Retraction, Text
from engine.core.emoji import without_selectors
from engine.core.faults import FaultSpec, SeededRandom
from engine.core.ids import MessageId, ParticipantId, Position, UnixMs
from engine.sim.judge import ShownFile, ShownMessage, Verdict, judge
from engine.sim.network import SimNetwork
from engine.sim.session_participant import SessionParticipant, seeded_bytes
from engine.sim.shared_files import Lie, SharedFiles
from engine.sim.world import START_MS, random_loss

MEMBERS = 4
LIAR = MEMBERS - 1
"""Which member sends files that are not what it says, and claims what it has not."""
FETCHES = 80
SAYINGS = 160
GAP_MS = 1_500
CRASHES = 8
PARTITIONS = 6
HEALING_MS = 3 * 3_600_000
EMOJI = ("👍", "❤", "❤\ufe0f", "😂", "🎉")
NOWHERE = MessageId("A" * 22)
TEXTS, FILES, REACTIONS, EDITS = 0.28, 0.1, 0.32, 0.23
"""Shares of what is said; the rest are retractions."""
TAKEN_BACK = 0.3
ANSWERS = 0.4
FORWARDED = 0.1
OF_NOTHING = 0.04
"""Annotations of what never was."""


class AnnotatedOutcome(Struct, frozen=True, kw_only=True):
    """The result of a trial; ``problems`` is empty if all held."""

    seed: int
    loss: float
    crashes: int
    said: dict[str, int]
    """How often each kind was said, and how often by somebody who is not the author."""
    early: int
    """How many annotations were delivered somewhere before what they speak of."""
    claims: int
    """How many files members said they have, all together."""
    verdict: Verdict
    problems: tuple[str, ...]


@dataclass(slots=True)
class AnnotatedWorld:
    seed: int
    network: SimNetwork = field(init=False)
    people: dict[str, SessionParticipant] = field(init=False, default_factory=dict)
    texts: list[tuple[MessageId, ParticipantId]] = field(init=False, default_factory=list)
    """All that were said, whether they came anywhere or not, with their authors."""
    said: Counter[str] = field(init=False, default_factory=Counter)
    files: dict[MessageId, tuple[Manifest, Lie | None]] = field(init=False, default_factory=dict)
    """All that were sent, and what is wrong with them."""
    held: dict[str, list[MessageId]] = field(init=False)
    """What each member claims to have as a whole."""
    believed: int = field(init=False, default=0)
    """How often a lie was fetched as what it was not, and a true file was not."""
    shared: SharedFiles = field(init=False)

    def __post_init__(self) -> None:
        loss = random_loss(self.seed)
        spec = FaultSpec(loss=loss, delay_ms=(50, 3_000), dup=0.05, reorder=0.2, seed=self.seed)
        self.network = SimNetwork(spec, start_ms=START_MS)
        self.shared = SharedFiles(seeded_bytes(self.seed, "files"))
        self.held = {f"member-{number}": [] for number in range(MEMBERS)}
        now_ms = self.network.now_ms
        for number in range(MEMBERS):
            name = f"member-{number}"
            self.people[name] = SessionParticipant(name, seed=self.seed, now_ms=now_ms)
        first, *others = self.people.values()
        opening = first.create_group("Trial", now_ms=now_ms)
        self.network.add(first.name, first)
        self.network.broadcast(first.name, opening)
        for person in others:
            joining = person.join_group(first.invite_link(), now_ms=now_ms)
            self.network.add(person.name, person)
            self.network.broadcast(person.name, joining)

    # --- what they say ---

    def talk(self) -> UnixMs:
        """Plan everything; returns when it ends."""
        random, names, at_ms = SeededRandom(self.seed, "users"), list(self.people), START_MS
        for number in range(SAYINGS):
            at_ms = UnixMs(at_ms + random.between(0, 2 * GAP_MS))
            name = names[random.between(0, MEMBERS - 1)]
            self.network.at(at_ms, self._saying(name, number, random))
        fetching = SeededRandom(self.seed, "fetches")
        for _ in range(FETCHES):
            name = names[fetching.between(0, MEMBERS - 1)]
            self.network.at(
                UnixMs(fetching.between(START_MS, at_ms)), self._fetching(name, fetching)
            )
        for name in names:
            # A crash forgets what was claimed: a device says it again at its start.  Nothing else
            # is said by then, so a claim that is lost must come again by itself.
            self.network.at(UnixMs(at_ms + 61_000), self._saying_goodbye(name))
            self.network.at(UnixMs(at_ms + 20 * 60_000), self._claiming(name))
        return at_ms

    def _fetching(self, name: str, random: SeededRandom) -> Callable[[SimNetwork], None]:
        def act(network: SimNetwork) -> None:
            person, held = self.people[name], self.held[name]
            if not network.is_up(name) or not self.files:
                return
            message_id = list(self.files)[random.between(0, len(self.files) - 1)]
            manifest, lie = self.files[message_id]
            if name == list(self.people)[LIAR]:
                held += [message_id, NOWHERE]
            elif message_id in person.holders_of_files() and message_id not in person.seen.sent:
                is_whole = self.shared.fetch(manifest)
                self.believed += is_whole is not (lie is None)
                if not is_whole:
                    return
                held.append(message_id)
            self._claiming(name)(network)

        return act

    def _claiming(self, name: str) -> Callable[[SimNetwork], None]:
        def act(network: SimNetwork) -> None:
            if network.is_up(name):
                held = tuple(dict.fromkeys(self.held[name]))
                person = self.people[name]
                network.broadcast(name, person.hold_files(held, now_ms=network.now_ms))

        return act

    def _saying(self, name: str, number: int, random: SeededRandom) -> Callable[[SimNetwork], None]:
        def act(network: SimNetwork) -> None:
            if not network.is_up(name):
                return
            person = self.people[name]
            lie = (
                list(Lie)[random.between(0, len(Lie) - 1)]
                if name == list(self.people)[LIAR]
                else None
            )
            body = self._body(person.participant_id, number, random, lie)
            sent = person.say(body, now_ms=network.now_ms)
            if isinstance(body, Text | Attachment):
                self.texts.append((person.seen.sent[-1], person.participant_id))
            if isinstance(body, Attachment) and body.manifest is not None:
                self.files[person.seen.sent[-1]] = body.manifest, lie
            network.broadcast(name, sent)

        return act

    def _saying_goodbye(self, name: str) -> Callable[[SimNetwork], None]:
        def act(network: SimNetwork) -> None:
            person = self.people[name]
            sent = person.say(Text(text=f"{name} leaves"), now_ms=network.now_ms)
            self.texts.append((person.seen.sent[-1], person.participant_id))
            network.broadcast(name, sent)

        return act

    def _body(
        self, sender_id: ParticipantId, number: int, random: SeededRandom, lie: Lie | None
    ) -> Body:
        """Anything about anything: also about what did not come here yet, or is somebody else's."""
        chance = random()
        if chance < TEXTS or not self.texts:
            return self._text(number, random)
        if chance < TEXTS + FILES:
            return self._file(number, random, lie)
        target_id, author_id = self.texts[random.between(0, len(self.texts) - 1)]
        if random() < OF_NOTHING:
            target_id, author_id = NOWHERE, sender_id
        other = "" if author_id == sender_id else " of another"
        if chance < TEXTS + FILES + REACTIONS:
            self.said["reaction"] += 1
            emoji = EMOJI[random.between(0, len(EMOJI) - 1)]
            return Reaction(target_id=target_id, emoji=emoji, removed=random() < TAKEN_BACK)
        if chance < TEXTS + FILES + REACTIONS + EDITS:
            self.said[f"edit{other}"] += 1
            return Edit(target_id=target_id, text=Text(text=f"edit {number}"))
        self.said[f"retraction{other}"] += 1
        return Retraction(target_id=target_id)

    def _file(self, number: int, random: SeededRandom, lie: Lie | None) -> Attachment:
        self.said["file" if lie is None else f"file, lie about its {lie}"] += 1
        return Attachment(
            name=f"{number}.bin",
            media_type="x/y",
            data=b"",
            caption=Text(text=f"file {number}"),
            manifest=self.shared.make(random.between(1, 1_000), lie),
        )

    def _text(self, number: int, random: SeededRandom) -> Text:
        self.said["text"] += 1
        quoted = None
        if self.texts and random() < ANSWERS:
            quoted, _ = self.texts[random.between(0, len(self.texts) - 1)]
        people = list(self.people.values())
        meant = people[random.between(0, MEMBERS - 1)].participant_id
        return Text(
            text=f"@somebody text {number}",
            reply_to=quoted,
            mentions=(meant,),
            mention_places=((0, 9),),
            forwarded=random() < FORWARDED,
        )

    # --- what befalls them ---

    def befall(self, end_ms: UnixMs) -> None:
        random, names = SeededRandom(self.seed, "hazards"), list(self.people)
        for _ in range(CRASHES):
            name = names[random.between(0, MEMBERS - 1)]
            at_ms = random.between(START_MS, end_ms)
            down_ms = random.between(500, 30_000)
            self.network.plan_crash(name, self.people[name], at_ms, down_ms=down_ms)
        for _ in range(PARTITIONS):
            middle = random.between(1, MEMBERS - 1)
            at_ms = random.between(START_MS, end_ms)
            islands = (names[:middle], names[middle:])
            self.network.at(UnixMs(at_ms), _partition(*islands))
            self.network.at(UnixMs(at_ms + random.between(2_000, 60_000)), SimNetwork.heal)
        self.network.at(UnixMs(end_ms + 60_000), SimNetwork.heal)

    # --- what came of it ---

    def have_all(self) -> bool:
        logs = [set(person.observation().log) for person in self.people.values()]
        return all(log == logs[0] for log in logs) and logs[0] >= {one for one, _ in self.texts}

    def all_claims_heard(self) -> bool:
        return self.have_all() and not self.holders_wrong()

    def holders_wrong(self) -> int:
        """Of how many files a member shows others as holders than those who said so."""
        by_id = {person.participant_id: name for name, person in self.people.items()}
        wrong = 0
        for person in self.people.values():
            senders = dict(self.texts)
            for message_id, holders in person.holders_of_files().items():
                said = {who for who, name in by_id.items() if message_id in self.held[name]}
                wrong += holders != said - {person.participant_id, senders[message_id]}
        return wrong

    def early(self) -> int:
        """Annotations that were delivered before their target, over all members."""
        targets = {
            said.position.message_id: said.body.target_id
            for said in said_by_all(next(iter(self.people.values())))
            if isinstance(said.body, Reaction | Edit | Retraction)
        }
        early = 0
        for person in self.people.values():
            places = {message_id: at for at, (message_id, _) in enumerate(person.seen.deliveries)}
            early += sum(
                places[one] < places[target]
                for one, target in targets.items()
                if one in places and target in places
            )
        return early


class Said(Struct, frozen=True, kw_only=True):
    position: Position
    sender_id: ParticipantId
    body: Body


def said_by_all(person: SessionParticipant) -> list[Said]:
    """Everything in this member's log, in its order, decoded from the signed bytes."""
    (group,) = person.store.groups()
    found = []
    for entry in person.session.channel.snapshot().log:
        raw = person.store.raw(group.conversation_id, entry.position.message_id)
        message = decode_message(decode_signed_part(raw or b"").sds_message)
        body = decode_content(message.content or b"").body
        found.append(Said(position=entry.position, sender_id=entry.sender_id, body=body))
    return found


def by_the_rules(said: list[Said]) -> list[ShownMessage]:
    """What is to be shown, of all that was said, in the log's order."""
    shown: list[ShownMessage] = []
    now: dict[MessageId, str] = {}
    for one in said:
        if not isinstance(one.body, Text | Attachment):
            continue
        first = one.body.caption if isinstance(one.body, Attachment) else one.body
        about = [
            other for other in said
            if isinstance(other.body, Reaction | Edit | Retraction)
            and other.body.target_id == one.position.message_id
        ]  # fmt: skip
        own = [other.body for other in about if other.sender_id == one.sender_id]
        edits = [body for body in own if isinstance(body, Edit)]
        retracted = any(isinstance(body, Retraction) for body in own)
        text = "" if retracted else (edits[-1].text if edits else first).text
        now[one.position.message_id] = text
        newest = {
            (without_selectors(other.body.emoji), other.sender_id): other.body.removed
            for other in about if isinstance(other.body, Reaction)
        }  # fmt: skip
        chosen = sorted(key for key, removed in newest.items() if not removed)
        message = ShownMessage(
            message_id=one.position.message_id,
            text=text,
            is_edited=bool(edits) and not retracted,
            retracted=retracted,
            reactions=() if retracted else tuple(chosen),
            quoted_id=first.reply_to,
            file=None if retracted else _file_in(one.body),
        )
        shown.append(message)
    return [_with_quote(message, now) for message in shown]


def _with_quote(message: ShownMessage, now: dict[MessageId, str]) -> ShownMessage:
    quoted = None if message.quoted_id is None else now.get(message.quoted_id)
    return ShownMessage(
        message_id=message.message_id,
        text=message.text,
        is_edited=message.is_edited,
        retracted=message.retracted,
        reactions=message.reactions,
        quoted_id=message.quoted_id,
        quoted_text=quoted,
        file=message.file,
    )


def _file_in(body: Text | Attachment) -> ShownFile | None:
    if isinstance(body, Text) or body.manifest is None:
        return None
    manifest = body.manifest
    return ShownFile(name=body.name, size=manifest.size, root=manifest.root)


def annotated_trial(seed: int) -> AnnotatedOutcome:
    """Run a whole trial; the same seed gives the same outcome."""
    world = AnnotatedWorld(seed)
    network = world.network
    end_ms = world.talk()
    world.befall(end_ms)
    network.run_until(UnixMs(end_ms + 60_000))
    healed = network.run_until(UnixMs(end_ms + HEALING_MS), stop=world.all_claims_heard)
    people = list(world.people.values())
    seen = [person.observation() for person in people]
    verdict = judge(seen)
    rules = by_the_rules(said_by_all(people[0]))
    expected = {
        "everybody holds everything": (healed, True),
        "logs identical": (verdict.converged, True),
        "members who show something else": (verdict.shown_differently, 0),
        "members who show something else than the rules say": (
            sum(item.shown != rules for item in seen),
            0,
        ),
        "files with other holders than those who said so": (world.holders_wrong(), 0),
        "lies believed, and true files refused": (world.believed, 0),
        "causal violations": (verdict.causal_violations, 0),
    }
    return AnnotatedOutcome(
        seed=seed,
        loss=random_loss(seed),
        crashes=world.network.crashes,
        said=dict(sorted(world.said.items())),
        early=world.early(),
        claims=sum(len({*held}) for held in world.held.values()),
        verdict=verdict,
        problems=tuple(
            f"seed {seed}: {what}: {found}, not {wanted}"
            for what, (found, wanted) in expected.items()
            if found != wanted
        ),
    )


def _partition(*islands: list[str]) -> Callable[[SimNetwork], None]:
    return lambda network: network.partition(*islands)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(annotated_trial(int(argument)))  # noqa: T201 - that is what it is started for
