"""A channel's durable state as a model: writes go in, ``ChannelState`` comes out.

It is what a crash leaves behind in a simulation, and the plainest statement of what each write
means.  SQLite is compared with it (``tests/persistence/memory_conversation.py``).  It is strict: a
write that changes what is not there raises KeyError, because then the machine is wrong.
"""

from collections.abc import Iterable
from typing import assert_never

from msgspec.structs import replace

from engine.core.ids import HolderSource, InstanceId, MessageId, ParticipantId, UnixMs
from engine.core.sds.floods import (
    ForgetSetAside,
    PutSetAside,
    PutSpent,
    RemoveSetAside,
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
    ReplaceRaw,
    SaveClock,
    SaveRetrievalHint,
    SaveStoreQueried,
    Write,
)


class ChannelStore:
    """Tables of one channel, in memory.  Dicts keep the order of first insertion, as SQLite does.

    What is public is to be read, not to be changed.
    """

    def __init__(self, lamport_timestamp: int = 0) -> None:
        self.raw: dict[MessageId, bytes] = {}
        self.log: dict[MessageId, LogEntry] = {}
        """Unordered."""
        self.outgoing: dict[MessageId, OutgoingEntry] = {}
        self.incoming: dict[MessageId, IncomingEntry] = {}
        self.missing: dict[MessageId, MissingEntry] = {}
        self.set_aside: dict[MessageId, PutSetAside] = {}
        self._lamport_timestamp = lamport_timestamp
        self._store_queried_ms: UnixMs | None = None
        self._holders: dict[tuple[MessageId, ParticipantId], HolderEntry] = {}
        self._holders_of: dict[MessageId, list[ParticipantId]] = {}
        self._replaced: dict[MessageId, Replacement] = {}
        self._forks: dict[InstanceId, Fork] = {}
        self._spent: dict[tuple[ParticipantId, int, bool], Spent] = {}
        self._newest_claims: dict[ParticipantId, NewestClaim] = {}

    def apply(self, writes: Iterable[Write]) -> None:
        """Apply all writes of one transition, in order."""
        for write in writes:
            self._apply_one(write)

    def __len__(self) -> int:
        """The number of messages in the log."""
        return len(self.log)

    def __contains__(self, message_id: object) -> bool:
        """Whether it is in the log."""
        return message_id in self.log

    def holders(self, message_id: MessageId) -> list[HolderEntry]:
        holders = self._holders_of.get(message_id, ())
        return [self._holders[message_id, participant_id] for participant_id in holders]

    def log_ids(self) -> list[MessageId]:
        """In the log's order."""
        positions = sorted(entry.position for entry in self.log.values())
        return [position.message_id for position in positions]

    def state(self) -> ChannelState:
        """The state from which a new machine would start."""
        return ChannelState(
            lamport_timestamp=self._lamport_timestamp,
            log=tuple(sorted(self.log.values(), key=lambda entry: entry.position)),
            outgoing=tuple(self.outgoing.values()),
            incoming=tuple(self.incoming.values()),
            missing=tuple(self.missing.values()),
            holders=tuple(self._holders.values()),
            store_queried_ms=self._store_queried_ms,
            replaced=tuple(self._replaced.values()),
            forks=tuple(self._forks.values()),
            set_aside=tuple(put.entry for put in self.set_aside.values()),
            spent=tuple(
                sorted(self._spent.values(), key=lambda one: (one.day, one.sender_id, one.fetched))
            ),
            newest_claims=tuple(self._newest_claims.values()),
        )

    def _apply_one(self, write: Write) -> None:  # noqa: C901, PLR0912 - one case per kind of write
        match write:
            case SaveClock(lamport_timestamp=lamport_timestamp):
                self._lamport_timestamp = lamport_timestamp
            case SaveStoreQueried(store_queried_ms=queried_ms):
                self._store_queried_ms = queried_ms
            case AppendToLog(entry=logged, raw=raw):
                self.log[logged.position.message_id] = logged
                newest = logged.position.lamport_timestamp
                self._lamport_timestamp = max(self._lamport_timestamp, newest)
                self.raw[logged.position.message_id] = raw
            case RemoveFromLog(message_id=message_id):
                self._remove_from_log(message_id)
            case PutReplacement(replacement=new):
                self._replaced.setdefault(new.by, new)
            case PutFork(fork=fork):
                self._forks.setdefault(fork.instance_id, fork)
            case PutSetAside():
                self.set_aside[write.entry.message_id] = write
            case RemoveSetAside(message_id=message_id):
                self.set_aside.pop(message_id, None)
            case ForgetSetAside(sender_id=sender_id):
                self._forget_set_aside(sender_id)
            case PutSpent(spent=spent):
                self._spent[spent.sender_id, spent.day, spent.fetched] = spent
            case PutNewestClaims(claims=claims):
                self._newest_claims |= {each.participant_id: each for each in claims}
            case SaveRetrievalHint(message_id=message_id, retrieval_hint=hint):
                self.log[message_id] = replace(self.log[message_id], retrieval_hint=hint)
            case ReplaceRaw(message_id=message_id, raw=raw):
                self.raw[message_id] = raw
            case PutOutgoing(entry=outgoing):
                self.outgoing[outgoing.message_id] = outgoing
            case MarkAccepted(message_id=message_id):
                self.outgoing[message_id] = replace(self.outgoing[message_id], accepted=True)
            case RemoveOutgoing(message_id=message_id):
                del self.outgoing[message_id]
            case PutIncoming(entry=incoming):
                self.incoming[incoming.message.message_id] = incoming
            case RemoveIncoming(message_id=message_id):
                del self.incoming[message_id]
            case PutMissing(entry=missing):
                self.missing[missing.entry.message_id] = missing
            case RemoveMissing(message_id=message_id):
                del self.missing[message_id]
            case PutHolder(entry=holder):
                self._put_holder(holder)
            case _:
                assert_never(write)

    def _put_holder(self, new: HolderEntry) -> None:
        """What is certain stays."""
        key = (new.message_id, new.participant_id)
        old = self._holders.get(key)
        if old is None:
            self._holders[key] = new
            self._holders_of.setdefault(new.message_id, []).append(new.participant_id)
        elif old.source is HolderSource.BLOOM and new.source is not HolderSource.BLOOM:
            self._holders[key] = new

    def _forget_set_aside(self, sender_id: ParticipantId) -> None:
        for message_id, put in [*self.set_aside.items()]:
            if put.entry.sender_id == sender_id and not put.entry.size:
                del self.set_aside[message_id]

    def _remove_from_log(self, message_id: MessageId) -> None:
        self.log.pop(message_id, None)
        self.raw.pop(message_id, None)
        self.outgoing.pop(message_id, None)
        for participant_id in self._holders_of.pop(message_id, ()):
            del self._holders[message_id, participant_id]
