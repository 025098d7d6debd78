"""A channel's durable state as a model: writes go in, ``ChannelState`` comes out.

It is what a crash leaves behind in a simulation, and the plainest statement of what each write
means. The real stores are tested with the same writes.
"""

from collections.abc import Iterable
from typing import assert_never

from msgspec.structs import replace

from engine.core.ids import InstanceId, MessageId, ParticipantId, UnixMs
from engine.core.sds.floods import (
    ForgetSetAside,
    PutSetAside,
    PutSpent,
    RemoveSetAside,
    SetAside,
    Spent,
)
from engine.core.sds.forks import Fork, PutFork
from engine.core.sds.vocabulary import (
    AppendToLog,
    ChannelState,
    HolderEntry,
    IncomingEntry,
    LogEntry,
    MarkAccepted,
    MissingEntry,
    NewestClaim,
    OutgoingEntry,
    PutHolder,
    PutIncoming,
    PutMissing,
    PutNewestClaims,
    PutOutgoing,
    PutReplacement,
    RemoveFromLog,
    RemoveIncoming,
    RemoveMissing,
    RemoveOutgoing,
    Replacement,
    SaveClock,
    SaveRetrievalHint,
    SaveStoreQueried,
    Write,
)


class ChannelStore:
    """Tables of one channel, in memory."""

    def __init__(self) -> None:
        self.raw: dict[MessageId, bytes] = {}
        self._lamport_timestamp = 0
        self._store_queried_ms: UnixMs | None = None
        self._log: dict[MessageId, LogEntry] = {}
        self._outgoing: dict[MessageId, OutgoingEntry] = {}
        self._incoming: dict[MessageId, IncomingEntry] = {}
        self._missing: dict[MessageId, MissingEntry] = {}
        self._holders: dict[tuple[MessageId, ParticipantId], HolderEntry] = {}
        self._replaced: dict[MessageId, Replacement] = {}
        self._forks: dict[InstanceId, Fork] = {}
        self._set_aside: dict[MessageId, SetAside] = {}
        self._spent: dict[tuple[ParticipantId, int, bool], Spent] = {}
        self._newest_claims: dict[ParticipantId, NewestClaim] = {}

    def apply(self, writes: Iterable[Write]) -> None:
        """Apply all writes of one transition, in order."""
        for write in writes:
            self._apply_one(write)

    def __len__(self) -> int:
        """The number of messages in the log."""
        return len(self._log)

    def __contains__(self, message_id: object) -> bool:
        """Whether it is in the log."""
        return message_id in self._log

    def log_ids(self) -> list[MessageId]:
        """In the log's order."""
        positions = sorted(entry.position for entry in self._log.values())
        return [position.message_id for position in positions]

    def state(self) -> ChannelState:
        """The state from which a new machine would start."""
        return ChannelState(
            lamport_timestamp=self._lamport_timestamp,
            log=tuple(sorted(self._log.values(), key=lambda entry: entry.position)),
            outgoing=tuple(self._outgoing.values()),
            incoming=tuple(self._incoming.values()),
            missing=tuple(self._missing.values()),
            holders=tuple(self._holders.values()),
            store_queried_ms=self._store_queried_ms,
            replaced=tuple(self._replaced.values()),
            forks=tuple(self._forks.values()),
            set_aside=tuple(self._set_aside.values()),
            spent=tuple(self._spent.values()),
            newest_claims=tuple(self._newest_claims.values()),
        )

    def _apply_one(self, write: Write) -> None:  # noqa: C901, PLR0912 - one case per kind of write
        match write:
            case SaveClock(lamport_timestamp=lamport_timestamp):
                self._lamport_timestamp = lamport_timestamp
            case SaveStoreQueried(store_queried_ms=queried_ms):
                self._store_queried_ms = queried_ms
            case AppendToLog(entry=logged, raw=raw):
                self._log[logged.position.message_id] = logged
                newest = logged.position.lamport_timestamp
                self._lamport_timestamp = max(self._lamport_timestamp, newest)
                self.raw[logged.position.message_id] = raw
            case RemoveFromLog(message_id=message_id):
                self._remove_from_log(message_id)
            case PutReplacement(replacement=new):
                self._replaced[new.by] = new
            case PutFork(fork=fork):
                self._forks.setdefault(fork.instance_id, fork)
            case PutSetAside():
                self._set_aside[write.entry.message_id] = write.entry
            case RemoveSetAside(message_id=message_id):
                self._set_aside.pop(message_id, None)
            case ForgetSetAside(sender_id=sender_id):
                self._forget_set_aside(sender_id)
            case PutSpent(spent=spent):
                self._spent[spent.sender_id, spent.day, spent.fetched] = spent
            case PutNewestClaims(claims=claims):
                self._newest_claims |= {each.participant_id: each for each in claims}
            case SaveRetrievalHint(message_id=message_id, retrieval_hint=hint):
                self._log[message_id] = replace(self._log[message_id], retrieval_hint=hint)
            case PutOutgoing(entry=outgoing):
                self._outgoing[outgoing.message_id] = outgoing
            case MarkAccepted(message_id=message_id):
                self._outgoing[message_id] = replace(self._outgoing[message_id], accepted=True)
            case RemoveOutgoing(message_id=message_id):
                del self._outgoing[message_id]
            case PutIncoming(entry=incoming):
                self._incoming[incoming.message.message_id] = incoming
            case RemoveIncoming(message_id=message_id):
                del self._incoming[message_id]
            case PutMissing(entry=missing):
                self._missing[missing.entry.message_id] = missing
            case RemoveMissing(message_id=message_id):
                del self._missing[message_id]
            case PutHolder(entry=holder):
                self._holders[holder.message_id, holder.participant_id] = holder
            case _:
                assert_never(write)

    def _forget_set_aside(self, sender_id: ParticipantId) -> None:
        for message_id, entry in [*self._set_aside.items()]:
            if entry.sender_id == sender_id and not entry.size:
                del self._set_aside[message_id]

    def _remove_from_log(self, message_id: MessageId) -> None:
        self._log.pop(message_id, None)
        self.raw.pop(message_id, None)
        self._outgoing.pop(message_id, None)
        for key in [key for key in self._holders if key[0] == message_id]:
            del self._holders[key]
