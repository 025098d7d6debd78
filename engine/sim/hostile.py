"""Hostile members of a simulated group, and a relay that replays messages.

Each member runs the real machine, so it hears, acknowledges and answers like the others; its lies
are made by hand.  It signs only as itself: signatures prevent impersonation elsewhere.  Members
with a wrong clock need no class here, they are ``ChannelParticipant`` with an offset.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from engine.core.faults import SeededRandom
from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, UnixMs
from engine.core.sds.config import MINUTE_MS, SdsConfig
from engine.core.sds.inputs import SendContent
from engine.core.sds.log import head_of
from engine.core.sds.vocabulary import (
    Broadcast,
    BroadcastRepair,
    Claim,
    HistoryEntry,
    Holdings,
    Message,
    SendPurpose,
    SequenceRange,
)
from engine.sim.channel_participant import (
    CHANNEL,
    ID_CHARACTERS,
    ChannelParticipant,
    content_of,
    frame,
    instance_of,
    message_id_of,
    open_payload,
    sign,
)
from engine.sim.network import Outgoing, SimNetwork

_FAR = 2**40
_LYING_CLAIMS = 0.2
"""Each makes all others resend what the liar seems to miss, a simulation's largest cost."""


class HostileMember(ChannelParticipant):
    """Sends handmade messages that the machine never would, to any subset of members."""

    def __init__(  # noqa: PLR0913 - as its base
        self,
        participant_id: ParticipantId,
        *,
        members: frozenset[ParticipantId],
        config: SdsConfig,
        seed: int,
        now_ms: UnixMs,
        clock_offset_ms: int = 0,
    ) -> None:
        super().__init__(
            participant_id,
            members=members,
            config=config,
            seed=seed,
            now_ms=now_ms,
            clock_offset_ms=clock_offset_ms,
        )
        self.later: Callable[[int, Outgoing], None] | None = None
        """Transmits after this many ms; set by the owner of the network."""
        self._choose = SeededRandom(seed, f"lies of {participant_id}")
        self._others = tuple(sorted(members - {participant_id}))
        self._said_by_hand = 0
        self.lies = True
        """Whether its holdings may be false."""

    def misbehave(self, *, now_ms: UnixMs) -> list[Outgoing]:
        raise NotImplementedError

    def _make(  # noqa: PLR0913 - keyword-only: what there is to lie about
        self,
        text: str,
        *,
        lamport: int,
        history: Sequence[HistoryEntry] = (),
        previous_id: MessageId | None = None,
        replaces: MessageId | None = None,
        requests: Sequence[HistoryEntry] = (),
    ) -> Message:
        self._said_by_hand += 1
        instance_id = instance_of(ParticipantId(f"{self.participant_id} by hand"))
        author = AuthorSequence(instance_id, self._said_by_hand)
        content = content_of(author, text.encode(), previous_id=previous_id, replaces=replaces)
        return Message(
            sender_id=self.participant_id,
            message_id=self._id(lamport, history, content),
            channel_id=CHANNEL,
            lamport_timestamp=lamport,
            causal_history=tuple(history),
            repair_request=tuple(requests),
            content=content,
        )

    def _id(self, lamport: int, history: Sequence[HistoryEntry], content: bytes) -> MessageId:
        ids = [entry.message_id for entry in history]
        return message_id_of(self.participant_id, CHANNEL, lamport, ids, content)

    def _tell(
        self, message: Message, only: frozenset[str] | None, *, claim: Claim | None = None
    ) -> Outgoing:
        """Send it to these members, and again later because much is lost."""
        raw = sign(message, claim, UnixMs(0))
        outgoing = Outgoing(payload=frame(raw, None), only=only)
        for delay_ms in (20_000, 90_000):
            if self.later is not None:
                self.later(delay_ms, outgoing)
        return outgoing

    def _some(self) -> frozenset[str]:
        """Some of the others: at least one, not all."""
        chosen = {name for name in self._others if self._choose() < 0.5}  # noqa: PLR2004
        one, another = self._one(), self._one()
        return frozenset((chosen | {one}) - ({another} - {one}))

    def _one(self) -> str:
        return self._others[self._choose.between(0, len(self._others) - 1)]

    def _is(self, probability: float) -> bool:
        return self._choose() < probability

    def _phantom(self) -> MessageId:
        return MessageId(f"{int(self._choose() * 2**52):013x}".rjust(ID_CHARACTERS, "0"))

    def _newest(self) -> list[MessageId]:
        return self.store.log_ids()[-4:]


class Equivocator(HostileMember):
    """Tells different members different things, and replaces its messages in several versions."""

    _heads: tuple[MessageId, ...] = ()
    """The last message of each branch."""
    _audience: frozenset[str] | None = None
    """Who receives the current message; None = all."""
    _told: Mapping[MessageId, frozenset[str] | None] = MappingProxyType({})

    def _say(self, text: bytes, replaces: MessageId | None, *, now_ms: UnixMs) -> list[Outgoing]:
        """One message, or two with one number; each continues an earlier branch."""
        author, _ = self._own_chain.next()
        heads = self._heads or (None,)
        two = self._is(0.4)
        self._audience = self._some() if two else None
        content = content_of(author, text, previous_id=heads[0], replaces=replaces)
        sent = self.handle(SendContent(content, author, replaces), now_ms=now_ms)
        first_id = self.seen.sent[-1]
        if not two:
            # successor of either branch
            self._heads = (first_id,)
            return sent
        said = open_payload(frame(self.store.raw[first_id], None)).message
        other = content_of(author, text + b", or not", previous_id=heads[-1], replaces=replaces)
        lamport = (said.lamport_timestamp or 0) + self._choose.between(0, 1)
        history = said.causal_history if self._is(0.5) else ()
        twin = replace(
            said,
            message_id=self._id(lamport, history, other),
            lamport_timestamp=lamport,
            causal_history=history,
            content=other,
        )
        rest = frozenset(self._others) - (self._audience or frozenset())
        sent.append(self._tell(twin, rest))
        self._heads = (first_id, twin.message_id)
        if self._is(0.5):
            self._heads = self._heads[::-1]
        return sent

    def _outgoing(self, send: Broadcast | BroadcastRepair, now_ms: UnixMs) -> Outgoing:
        """A member who was told one version never gets the other, not even on request."""
        outgoing = super()._outgoing(send, now_ms)
        if isinstance(send, Broadcast) and send.purpose is SendPurpose.CONTENT:
            self._told = {send.message_id: self._audience, **self._told}
        return replace(outgoing, only=self._told.get(send.message_id))

    def sign(self, message: Message, claim: Claim | None, now_ms: UnixMs) -> bytes:
        """Sign with the heads of either branch."""
        lies = self.lies and self._is(_LYING_CLAIMS)
        if claim is not None and claim.holdings and self._heads and lies:
            mine = instance_of(self.participant_id)
            holdings = dict(claim.holdings)
            holdings[mine] = tuple(
                replace(item, head=head_of(self._heads[0])) for item in holdings.get(mine, ())
            )
            claim = replace(claim, holdings=holdings)
        return sign(message, claim, now_ms)

    def misbehave(self, *, now_ms: UnixMs) -> list[Outgoing]:
        """Replace an own message, in conflicting ways, or deny another member's."""
        if self._is(0.5):
            return self.send("a story", now_ms=now_ms)
        clock_ms = now_ms + MINUTE_MS  # not far enough ahead to be held aside
        if self._is(0.3):
            target = self._newest()[-1:]
            if target:
                denial = self._make("she never said that", lamport=clock_ms, replaces=target[0])
                return [self._tell(denial, None)]
        history = [HistoryEntry(item) for item in self._newest()[:1]]
        first = self._make("first", lamport=clock_ms + 180_000, history=history)
        second = self._make(
            "second", lamport=clock_ms + self._choose.between(0, 210_000), replaces=first.message_id
        )
        third = self._make(
            "third",
            lamport=clock_ms + self._choose.between(0, 210_000),
            replaces=second.message_id if self._is(0.5) else first.message_id,
        )
        said = [self._tell(each, self._some()) for each in (first, second, third)]
        return sorted(said, key=lambda item: item.payload)


class PhantomNamer(HostileMember):
    """Names messages that do not exist, makes false claims, and signs several forms of one id."""

    _claim = Claim()
    """The last true claim."""

    def sign(self, message: Message, claim: Claim | None, now_ms: UnixMs) -> bytes:
        self._claim = claim or self._claim
        lies = self.lies and self._is(_LYING_CLAIMS)
        return sign(message, self._lie(claim) if claim and lies else claim, now_ms)

    def _lie(self, claim: Claim) -> Claim:
        if self._is(0.1):
            return Claim({}, ())  # makes others resend everything
        holdings: Holdings = {
            instance_id: (SequenceRange(first=1, last=self._last(items), head=self._head(items)),)
            for instance_id, items in (claim.holdings or {}).items()
        }
        if self._is(0.5):
            nobody = InstanceId(self._phantom().encode()[:16])
            holdings[nobody] = (SequenceRange(first=1, last=_FAR, head=b"8 bytes!"),)
        return Claim(holdings, (self._phantom(),))

    def _last(self, items: Sequence[SequenceRange]) -> int:
        last = items[-1].last if items else 1
        return last + self._choose.between(0, 2)

    def _head(self, items: Sequence[SequenceRange]) -> bytes:
        true = items[-1].head if items else b""
        return true if self._is(0.5) else head_of(self._phantom())

    def misbehave(self, *, now_ms: UnixMs) -> list[Outgoing]:
        """One of the lies, at random."""
        lies = (self._depend, self._name_in_sync, self._two_forms, self._two_histories)
        return lies[self._choose.between(0, len(lies) - 1)](now_ms)

    def _entries(self, number: int) -> list[HistoryEntry]:
        hint = b"no message hash" if self._is(0.5) else None
        sender = ParticipantId(self._one()) if self._is(0.5) else None
        return [HistoryEntry(self._phantom(), hint, sender) for _ in range(number)]

    def _true(self) -> list[HistoryEntry]:
        return [HistoryEntry(item) for item in self._newest()]

    def _depend(self, now_ms: UnixMs) -> list[Outgoing]:
        """Depend on, and succeed, messages that do not exist."""
        history = self._entries(self._choose.between(0, 3)) + self._true()
        message = self._make(
            "after a phantom",
            lamport=now_ms,
            history=history,
            previous_id=self._phantom(),
            requests=self._entries(3),
        )
        return [self._tell(message, self._some() if self._is(0.5) else None)]

    def _name_in_sync(self, now_ms: UnixMs) -> list[Outgoing]:
        """Name different phantoms to each member: ids do not cover sync messages."""
        return [
            self._tell(
                Message(
                    sender_id=self.participant_id,
                    message_id=MessageId(f"sync-{now_ms}"),
                    channel_id=CHANNEL,
                    lamport_timestamp=now_ms,
                    causal_history=tuple(self._entries(4)),
                    repair_request=tuple(self._entries(2) + self._true()[:1]),
                ),
                frozenset({name}),
                claim=self._lie(self._claim),
            )
            for name in self._others
        ]

    def _two_forms(self, now_ms: UnixMs) -> list[Outgoing]:
        """One id, with different hints, requests and claims for different members."""
        history = self._true()
        message = self._make("in two forms", lamport=now_ms, history=history)
        other = replace(
            message,
            causal_history=tuple(
                HistoryEntry(item.message_id, b"elsewhere", ParticipantId(self._one()))
                for item in history
            ),
            repair_request=tuple(self._entries(3)),
        )
        some = self._some()
        return [
            self._tell(message, some),
            self._tell(other, frozenset(self._others) - some, claim=Claim({}, ())),
        ]

    def _two_histories(self, now_ms: UnixMs) -> list[Outgoing]:
        """One id with two causal histories: the second is another message, or refused."""
        message = self._make("with two histories", lamport=now_ms, history=self._true())
        some = self._some()
        other = replace(message, causal_history=tuple(self._entries(20)))
        return [
            self._tell(message, some),
            self._tell(other, frozenset(self._others) - some),
        ]


class ReplayingRelay:
    """Keeps part of the traffic, and delivers it again to any member at any time."""

    def __init__(self, random: SeededRandom, *, share: float, room: int = 20_000) -> None:
        self._random = random
        self._share = share
        self._room = room
        self._kept: list[bytes] = []
        self.replayed = 0

    def overhear(self, payload: bytes) -> None:
        if self._random() < self._share and len(self._kept) < self._room:
            self._kept.append(payload)

    def replay(
        self, name: str, participant: ChannelParticipant, count: int
    ) -> Callable[[SimNetwork], None]:
        """Replay some of what it has by then to one member."""

        def act(network: SimNetwork) -> None:
            for _ in range(min(count, len(self._kept))):
                payload = self._kept[self._random.between(0, len(self._kept) - 1)]
                self.replayed += network.is_online(name)
                network.deliver(name, participant, payload)

        return act
