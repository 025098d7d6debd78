"""The admin log of a governed group on this device: who is a member, who may what, what is void.

Entries travel as content, each in a message of its author.  What is in force is a function of their
set (``engine.core.admin_log``), and so is everything here, whatever came first.  Messages are taken
from everybody whom the log ever named, whether that counts or not: what some members have in their
logs, others have to have, too, or their messages would wait for it for ever.  Whether such a
message is *shown* is another matter (``engine.session.group.void_messages``).
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from engine.core.admin_log.acts import MAX_ENTRIES, Act, Entry, EntryId, Remove, Role
from engine.core.admin_log.judging import Verdict
from engine.core.admin_log.log import AdminLog, AdminState
from engine.core.content import AdminEntry
from engine.core.errors import CommandError, CommandRefusal, RemoteProtocolError
from engine.core.governed import PutEntry
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.invite import group_id_of
from engine.crypto.admin_entry import SignedEntry, read_entry, sign_entry, verify_entry
from engine.crypto.identity import Identity
from engine.session.transitions import LoadEntries, TransitionBuilder

AT_ONCE: Final = 200
"""Entries that are judged within 4 ms; what comes to a larger log is judged together, soon."""
SOON_MS: Final = 250


class Governance:
    def __init__(
        self,
        conversation_id: ConversationId,
        first: EntryId,
        entries: Iterable[bytes],
        identity: Identity,
    ) -> None:
        """``entries``: verified when they came, in the order in which they did."""
        self._conversation_id = conversation_id
        self._group_id = group_id_of(conversation_id)
        self._identity = identity
        self.first = first
        """Id of the entry that the group began with."""
        self._log = AdminLog(first, size=MAX_ENTRIES)
        self._kept: dict[EntryId, bytes] = {}
        self.recall(self._read(data) for data in entries)
        self._state = self._log.state
        self._is_behind = False

    def _read(self, data: bytes) -> SignedEntry:
        return SignedEntry(entry=read_entry(data, group_id=self._group_id), data=data)

    def recall(self, entries: Iterable[SignedEntry]) -> None:
        """Take those of them that are of use; all were on disk."""
        found = {one.entry.entry_id: one for one in entries}
        self._log.take(one.entry for one in found.values())
        self._kept |= {name: one.data for name, one in found.items() if self._log.has(name)}
        self._is_behind = True

    # --- what is in force -----------------------------------------------------------------------

    @property
    def state(self) -> AdminState:
        """As of the last ``settle``."""
        return self._state

    @property
    def is_behind(self) -> bool:
        """Whether entries came that ``state`` does not know of."""
        return self._is_behind

    @property
    def is_large(self) -> bool:
        return len(self._kept) > AT_ONCE

    @property
    def to_recall(self) -> LoadEntries | None:
        """Entries that are on disk and not here, and that are of use now."""
        wanted, authors = self._log.wanted_again, self._log.wanted_of
        return LoadEntries(wanted=wanted, authors=authors) if wanted or authors else None

    def settle(self) -> bool:
        """Judge what came; whether that changed anything that is in force."""
        if not self._is_behind:
            return False
        self._is_behind = False
        before, self._state = self._state, self._log.state
        return self._state != before

    def role(self, who: ParticipantId) -> Role:
        return self._state.roles.get(who, Role.NOBODY)

    def is_known(self, who: ParticipantId) -> bool:
        """Whether the log ever named them, so that messages of theirs are taken."""
        return who in self._log.people

    def entries(self) -> tuple[bytes, ...]:
        """As received: those that have room, and those that these name, which come before them."""
        return tuple(self._kept[name] for name in self._log.needed())

    # --- entries --------------------------------------------------------------------------------

    def find(self, entry_id: EntryId) -> Entry | None:
        """One that has its place in the log, and room."""
        return self._log.find(entry_id)

    def knew(self, later: EntryId, earlier: EntryId) -> bool:
        """Whether the author of one entry knew the other."""
        return self._log.knew(later, earlier)

    def was_removed_before(self, entry_id: EntryId, who: ParticipantId) -> bool:
        """Whether the author of that entry knew of a removal of theirs, or that they left."""
        found = ((name, self._log.find(name)) for name in self._state.verdicts)
        return who in self._state.removed_at and any(
            isinstance(one.act, Remove) and one.act.member == who and self.knew(entry_id, name)
            for name, one in found
            if one is not None
        )

    def take(
        self, body: AdminEntry, sender_id: ParticipantId, builder: TransitionBuilder
    ) -> EntryId:
        """Raises RemoteProtocolError, CryptoError."""
        entry = verify_entry(body.data, group_id=self._group_id)
        if entry.author != sender_id:
            raise RemoteProtocolError("foreign_entry")
        self._add(entry, body.data, builder)
        return entry.entry_id

    def id_of(self, body: AdminEntry) -> EntryId:
        """Of one that is valid."""
        return read_entry(body.data, group_id=self._group_id).entry_id

    def take_verified(self, entries: Iterable[bytes], builder: TransitionBuilder) -> None:
        """Those of an admission."""
        for data in entries:
            with suppress(RemoteProtocolError):
                self._add(read_entry(data, group_id=self._group_id), data, builder)

    def _add(self, entry: Entry, data: bytes, builder: TransitionBuilder) -> None:
        """What is refused goes to the disk, too: others may name it later.

        Raises RemoteProtocolError.
        """
        if self._log.has(entry.entry_id):
            return
        is_new = not self._log.was_refused(entry.entry_id)
        try:
            self._is_behind |= self._log.add(entry)
            self._kept[entry.entry_id] = data
        finally:
            if is_new and (self._log.has(entry.entry_id) or self._log.was_refused(entry.entry_id)):
                put = PutEntry(conversation_id=self._conversation_id, data=data)
                builder.writes.append(put)

    def entry(self, act: Act, *, clock_ms: UnixMs) -> AdminEntry:
        """An entry of ours.  Raises CommandError for one that would not count."""
        self.settle()
        if self.role(self._identity.participant_id) is Role.NOBODY:
            raise CommandError(CommandRefusal.NOT_IN_GROUP)
        heads = self._log.heads_for(self._identity.participant_id)
        signed = sign_entry(
            self._identity,
            act,
            group_id=self._group_id,
            lamport_timestamp=self._log.lamport_of(heads) + 1,
            sent_ms=clock_ms,
            heads=heads,
        )
        verdict = self._log.verdict_on(signed.entry)
        if verdict is not Verdict.COUNTS:
            raise CommandError(_REFUSALS.get(verdict, CommandRefusal.ROLE_TOO_LOW))
        return AdminEntry(signed.data)


_REFUSALS: Final = {
    None: CommandRefusal.LOG_FULL,
    Verdict.OUTRANKED: CommandRefusal.OUTRANKED,
    Verdict.TOO_OFTEN: CommandRefusal.TOO_OFTEN,
    Verdict.SPENT: CommandRefusal.INVITATION_OVER,
    Verdict.EXPIRED: CommandRefusal.INVITATION_OVER,
    Verdict.REVOKED: CommandRefusal.INVITATION_OVER,
    Verdict.NO_INVITATION: CommandRefusal.INVITATION_OVER,
}
