"""What every other member last claimed to hold, and who is level with us.

Holdings go beyond the specification: ranges of sequence numbers per author instance, signed by the
claimant, each with the first bytes of its last message's id.  If these differ from our message's,
the author sent different people different messages, and the claim counts only up to the number
before.  Newer claims replace older ones.  A claim at the limit of instances or ranges is partial:
silence beyond the limit means nothing.  Holders, repairs and sync messages that follow from a claim
are decided elsewhere.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from engine.core.errors import RemoteProtocolError
from engine.core.ids import InstanceId, MessageId, ParticipantId
from engine.core.sds.bloom import ReceivedBloom, base_hashes
from engine.core.sds.config import SdsConfig
from engine.core.sds.log import LogIndex, head_of
from engine.core.sds.sequences import SequenceSet
from engine.core.sds.vocabulary import Claim, Holdings, SequenceRange

MAX_INSTANCES = 1_024
MAX_RANGES = 4_096
MAX_SEQUENCE = 2**53
HEAD_BYTES = 8


class _Heard:
    """The newest claim of one member."""

    __slots__ = (
        "bloom_filter",
        "disputed",
        "held_aside",
        "held_from",
        "holdings",
        "lamport_timestamp",
        "received",
        "sets",
    )

    def __init__(
        self,
        lamport_timestamp: int,
        claim: Claim,
        disputed: dict[InstanceId, list[int]],
        bloom_filter: bytes | None,
    ) -> None:
        self.lamport_timestamp = lamport_timestamp
        self.holdings = claim.holdings or {}
        self.held_aside = frozenset(claim.held_aside)
        self.held_from: int | None = None
        """The smallest Lamport timestamp known to be too far ahead of the member's clock."""
        self.disputed = disputed
        """Numbers where the member holds another message than we do."""
        self.sets = {
            instance_id: SequenceSet(ranges) for instance_id, ranges in self.holdings.items()
        }
        for instance_id, numbers in disputed.items():
            for number in numbers:
                self.sets[instance_id].remove(number)
        self.bloom_filter = bloom_filter
        self.received: ReceivedBloom | None = None
        """The filter that came with it, unless it is not trusted."""


def _received(bloom_filter: bytes | None) -> ReceivedBloom | None:
    if not bloom_filter:
        return None
    try:
        return ReceivedBloom(bloom_filter)
    except RemoteProtocolError:
        return None  # Counted where the filter is reviewed.


def check_holdings(holdings: Holdings) -> None:
    """Raises RemoteProtocolError ``bad_holdings`` if out of shape or beyond a bound."""
    if len(holdings) > MAX_INSTANCES:
        raise RemoteProtocolError("bad_holdings", "too many instances")
    if sum(map(len, holdings.values())) > MAX_RANGES:
        raise RemoteProtocolError("bad_holdings", "too many ranges")
    for ranges in holdings.values():
        after = 0
        for item in ranges:
            if not after < item.first <= item.last < MAX_SEQUENCE:
                raise RemoteProtocolError("bad_holdings", "ranges out of order")
            if len(item.head) not in {0, HEAD_BYTES}:
                raise RemoteProtocolError("bad_holdings", "a head of another length")
            after = item.last


class Claims:
    """The newest claim of every member."""

    def __init__(self, log: LogIndex, config: SdsConfig) -> None:
        self._log = log
        self._config = config
        self._claims: dict[ParticipantId, _Heard] = {}
        self._mistaken: dict[ParticipantId, set[MessageId]] = {}
        """Ids in a member's filter that the member still asks for: false positives, likely for
        long."""
        self.repeated = False
        """Whether the last claim is its sender's first, or adds nothing to the one before but the
        sender's own messages."""

    def hear(
        self,
        participant_id: ParticipantId,
        lamport_timestamp: int,
        claim: Claim,
        bloom_filter: bytes | None = None,
        *,
        is_news: bool = True,
    ) -> Iterator[tuple[InstanceId, SequenceRange]]:
        """Take a claim; yields what it adds to the previous one, except what is disputed.

        ``is_news``: it is later than all before it; otherwise it replaces none.
        """
        previous = self._claims.get(participant_id)
        disputed = self._disputed(claim.holdings or {})
        new = _Heard(lamport_timestamp, claim, disputed, bloom_filter)
        new.held_from = min(
            (
                entry.position.lamport_timestamp
                for entry in map(self._log.get, new.held_aside)
                if entry is not None
            ),
            default=None,
        )
        self.repeated = previous is None or self._says_nothing_new(participant_id, previous, new)
        if is_news:
            # A filter may err, so it is not used against a member that keeps sending the same one.
            stuck = previous is not None and self.repeated and previous.bloom_filter == bloom_filter
            new.received = None if stuck else _received(bloom_filter)
            self._claims[participant_id] = new
        return (
            (instance_id, item)
            for instance_id, numbers in new.sets.items()
            if instance_id not in disputed
            and numbers != (before := _believed(previous, instance_id))
            for item in before.holes(numbers)
        )

    def _disputed(self, holdings: Holdings) -> dict[InstanceId, list[int]]:
        disputed: dict[InstanceId, list[int]] = {}
        for instance_id, ranges in holdings.items():
            for item in ranges:
                ours = self._log.id_of(instance_id, item.last) if item.head else None
                if ours is not None and head_of(ours) != item.head:
                    disputed.setdefault(instance_id, []).append(item.last)
        return disputed

    def _says_nothing_new(self, participant_id: ParticipantId, old: _Heard, new: _Heard) -> bool:
        if old.held_aside != new.held_aside:
            return False
        return all(
            ranges == old.holdings.get(instance_id)
            or self._author_of(instance_id) == participant_id
            for instance_id, ranges in new.holdings.items()
        )

    def _author_of(self, instance_id: InstanceId) -> ParticipantId | None:
        """The author of an instance, if we hold any of its messages."""
        held = self._log.held(instance_id)
        newest = self._log.id_of(instance_id, held.lasts[-1]) if held else None
        return None if newest is None else self._log.sender_of(newest)

    def holds(self, participant_id: ParticipantId, instance_id: InstanceId, sequence: int) -> bool:
        """Whether the member's newest claim covers this message."""
        claim = self._claims.get(participant_id)
        return claim is not None and sequence in claim.sets.get(instance_id, _NOTHING)

    def holds_aside(self, participant_id: ParticipantId, lamport_timestamp: int) -> bool:
        """Whether the member cannot deliver messages so dated, because its clock is behind.

        It names a few of them; any message at least as far ahead as one of these is too far as
        well.
        """
        claim = self._claims.get(participant_id)
        if claim is None or claim.held_from is None:
            return False
        return lamport_timestamp >= claim.held_from

    def perhaps_received(self, participant_id: ParticipantId, message_id: MessageId) -> bool:
        """Whether the filter beside the member's newest claim has it; waiting messages count."""
        claim = self._claims.get(participant_id)
        if claim is None or claim.received is None:
            return False
        if message_id in self._mistaken.get(participant_id, ()):
            return False
        return claim.received.may_contain(base_hashes(message_id))

    def asked(self, participant_id: ParticipantId, message_ids: Iterable[MessageId]) -> None:
        """The member asks for these, so they are missing there whatever its filter says."""
        self._mistaken.pop(participant_id, None)
        mistaken = {item for item in message_ids if self.perhaps_received(participant_id, item)}
        if mistaken:
            self._mistaken[participant_id] = mistaken

    def retain(self, members: frozenset[ParticipantId]) -> None:
        """Forget everyone who is not a member."""
        for participant_id in self._claims.keys() - members:
            del self._claims[participant_id]
            self._mistaken.pop(participant_id, None)

    def forget(self) -> None:
        """Forget all claims: we were away."""
        self._claims.clear()
        self._mistaken.clear()

    def are_level(self, participant_ids: Iterable[ParticipantId]) -> bool:
        """Whether all these members claimed exactly what we hold."""
        mine = self.own()
        return all(self._equals(participant_id, mine) for participant_id in participant_ids)

    def own(self) -> Holdings:
        """What we claim ourselves."""
        return self._log.holdings(
            max_instances=self._config.holdings_max_instances,
            max_ranges=self._config.holdings_max_ranges,
        )

    def _equals(self, participant_id: ParticipantId, mine: Holdings) -> bool:
        claim = self._claims.get(participant_id)
        if claim is None:
            return False
        if not mine.keys() >= {key for key, ranges in claim.holdings.items() if ranges}:
            return False
        return all(
            _agree(claim.holdings.get(key, ()), ranges)
            or self._said_since(participant_id, claim, key)
            for key, ranges in mine.items()
        )

    def _said_since(
        self, participant_id: ParticipantId, claim: _Heard, instance_id: InstanceId
    ) -> bool:
        """Whether all that the claim is missing of an author was written by the claimant later."""
        if instance_id in claim.disputed:
            return False
        held, theirs = self._log.held(instance_id), claim.sets.get(instance_id, _NOTHING)
        holes = theirs.holes(held) if held else []
        if (
            not held
            or len(holes) != 1
            or not held.covers(theirs)
            or holes[0].last != held.lasts[-1]
        ):
            return False
        message_id = self._log.id_of(instance_id, holes[0].first)
        entry = None if message_id is None else self._log.get(message_id)
        return (
            entry is not None
            and entry.sender_id == participant_id
            and entry.position.lamport_timestamp >= claim.lamport_timestamp
        )

    def lacking(self, participant_id: ParticipantId) -> Iterator[Iterator[tuple[InstanceId, int]]]:
        """What we hold and the member's newest claim is missing: per author, oldest first.

        What the claim disputes comes first: the member holds another message under that number.
        """
        claim = self._claims.get(participant_id)
        if claim is None:
            return
        for instance_id, numbers in claim.disputed.items():
            yield ((instance_id, number) for number in numbers)
        complete = len(claim.sets) < self._config.holdings_max_instances
        # A member can make up any number of instances, so the comparison is bounded.
        known = islice(self._log.instances(), MAX_INSTANCES)
        recent = self._log.recent_instances(self._config.holdings_max_instances)
        for instance_id in dict.fromkeys(chain(known, recent, claim.sets)):
            theirs = claim.sets.get(instance_id)
            mine = self._log.held(instance_id)
            if mine is None or mine == theirs or (theirs is None and not complete):
                continue
            yield self._holes(instance_id, theirs or _NOTHING, mine)

    def _holes(
        self, instance_id: InstanceId, theirs: SequenceSet, mine: SequenceSet
    ) -> Iterator[tuple[InstanceId, int]]:
        partial = len(theirs) >= self._config.holdings_max_ranges
        for item in theirs.holes(mine):
            for sequence in range(item.first, item.last + 1):
                if partial and sequence > theirs.lasts[-1]:
                    return
                yield instance_id, sequence


def _agree(theirs: tuple[SequenceRange, ...], mine: tuple[SequenceRange, ...]) -> bool:
    """Whether the numbers agree, and the last message of each range where its head is given."""
    return len(theirs) == len(mine) and all(
        one.first == other.first and one.last == other.last and one.head in {b"", other.head}
        for one, other in zip(theirs, mine, strict=True)
    )


def _believed(claim: _Heard | None, instance_id: InstanceId) -> SequenceSet:
    if claim is None or instance_id in claim.disputed:
        return _NOTHING
    return claim.sets.get(instance_id, _NOTHING)


_NOTHING = SequenceSet()
