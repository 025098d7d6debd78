"""One conversation of the memory store: the channel's state and the timeline, as plain dicts.

A pair has a ``MemoryPair`` instead of channel and members, which then stay empty.  Dicts keep the
order of first insertion, which the port promises for buffers and holders.  ``MemoryProfileStore``
checks a batch before applying it, so nothing here can fail.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from engine.core.governed import (
    AddEpochKey,
    BecomeGoverned,
    GovernedState,
    GovernedWrite,
    NameGroup,
    PutDeed,
    PutDeletion,
    PutEntry,
    PutPrekey,
    SaveOwnPrekeys,
)
from engine.core.ids import (
    DeliveryState,
    InstanceId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.inspection import PlacedMessage
from engine.core.ports import PutFileHolder
from engine.core.records import (
    AnnotationRecord,
    ContactRecord,
    DeliveryRecord,
    GroupRecord,
    LoggedMessage,
    MemberRecord,
    MessageRecord,
    OwnSequence,
    TransferRecord,
    TransferState,
)
from engine.core.sds.vocabulary import (
    ChannelState,
    HolderEntry,
    LogEntry,
    RemoveFromLog,
    Write,
)
from engine.core.stored import (
    ConversationSummary,
    StoredAnnotation,
    StoredMessage,
    StoredPage,
    StoredQuote,
    StoredReactor,
    StoredTransfer,
    StoredVersion,
)
from engine.persistence import rules
from engine.persistence.rules import (
    FILE_KIND,
    SAID_KINDS,
    ConversationRow,
    page,
    page_limit,
)
from tests.persistence.memory_annotations import MemoryAnnotations
from tests.persistence.memory_channel import MemoryChannel
from tests.persistence.memory_history import MemoryHistory
from tests.persistence.memory_pair import MemoryPair

_Place: TypeAlias = tuple[bool, int, MessageId]
"""(waiting, lamport, message id): the order of rows.  Code points order as UTF-8 bytes do."""


GONE = frozenset(["retraction", "deletion"])


class MemoryConversation:
    def __init__(self, about: ConversationRow, lamport_timestamp: int = 0) -> None:
        self.about = about
        self.members: dict[ParticipantId, MemberRecord] = {}
        keys = about.epoch_keys if isinstance(about, GroupRecord) else ()
        self.governed = GovernedState(known_ms=dict.fromkeys(keys, about.created_ms))
        self._prekeys: dict[ParticipantId, bytes] = {}
        self.own_sequences: dict[InstanceId, OwnSequence] = {}
        self.channel = MemoryChannel(lamport_timestamp)
        self.pair = MemoryPair()
        self.history = MemoryHistory()
        self._messages: dict[MessageId, MessageRecord] = {}
        self._file_holders: dict[MessageId, dict[ParticipantId, PutFileHolder]] = {}
        self._data: dict[MessageId, bytes] = {}
        self.came: dict[MessageId, UnixMs] = {}
        """Of those that had to wait for their place."""
        self._hidden: set[MessageId] = set()
        self.muted_members: set[ParticipantId] = set()
        self.annotations = MemoryAnnotations()
        self._deliveries: dict[MessageId, DeliveryRecord] = {}
        self._unsettled: set[MessageId] = set()
        self._places: list[_Place] = []
        """Places of the visible rows, ascending."""

    def channel_state(self) -> ChannelState:
        return self.channel.state(
            {m.participant_id for m in self.members.values() if m.left_ms is None}
        )

    def placed(self, entry: LogEntry) -> PlacedMessage:
        """A message of the log, with what its row says."""
        record = self._messages.get(entry.position.message_id)
        delivery = self._deliveries.get(entry.position.message_id)
        is_named_else = record is not None and record.sender_id != entry.sender_id
        has_state = delivery is not None and (record is None or record.is_own)
        return PlacedMessage(
            position=entry.position,
            sender_id=entry.sender_id,
            row_sender_id=record.sender_id if record is not None and is_named_else else None,
            is_shown=record is not None and self._is_visible(record),
            late=record is not None and record.late,
            sent_ms=record.sent_ms if record else None,
            received_ms=record.received_ms if record else None,
            delivery=delivery.state if delivery is not None and has_state else None,
            came_ms=self.came.get(entry.position.message_id),
        )

    # --- writes ---------------------------------------------------------------------------------

    def replace(self, about: ConversationRow) -> None:
        """Replace the record, except for the user's own settings."""
        old = self.about
        self.about = replace(
            about,
            muted=old.muted,
            muted_until_ms=old.muted_until_ms,
            draft=old.draft,
            read_up_to=old.read_up_to,
        )

    def govern(self, write: GovernedWrite) -> None:  # noqa: C901 - a table of writes
        state, group = self.governed, self.about
        match write:
            case PutEntry(data=data):
                self.governed = replace(state, entries=(*state.entries, data))
            case AddEpochKey(key=key) if isinstance(group, GroupRecord):
                if key not in group.epoch_keys:
                    self.about = replace(group, epoch_keys=(*group.epoch_keys, key))
                    known_ms = {**state.known_ms, key: write.known_ms}
                    self.governed = replace(state, known_ms=known_ms)
            case SaveOwnPrekeys(prekeys=prekeys):
                self.governed = replace(state, own_prekeys=prekeys)
            case PutPrekey(participant_id=who, data=data):
                self._prekeys[who] = data
                ordered = tuple(self._prekeys[each] for each in sorted(self._prekeys))
                self.governed = replace(state, prekeys=ordered)
            case PutDeed(deed=deed):
                deeds = {one.entry_id: one for one in (*state.deeds, deed)}
                self.governed = replace(state, deeds=tuple(deeds[each] for each in sorted(deeds)))
            case BecomeGoverned(first_entry=first_entry) if isinstance(group, GroupRecord):
                topic_name = write.topic_name
                self.about = replace(group, first_entry=first_entry, topic_name=topic_name)
            case NameGroup(name=name):
                self.about = replace(self.about, name=name)
            case PutDeletion(deletion=deletion, deleted_by=deleted_by):
                deleted = self.annotations.deletions
                deleted.pop(deletion, None)
                if deleted_by is not None:
                    deleted[deletion] = deleted_by
                self.governed = replace(state, deleted=dict(deleted))
            case _:
                raise AssertionError(write)

    def remove_row(self, position: Position) -> None:
        for target in map(self._messages.get, self.annotations.remove(position)):
            if target is not None:
                self.annotations.judge(target)
        self._remove_message(position.message_id)

    def put_member(self, member: MemberRecord) -> None:
        """Only the first insert sets since when the member is known."""
        known = self.members.get(member.participant_id, member)
        self.members[member.participant_id] = replace(member, known_ms=known.known_ms)

    def apply_channel(self, write: Write) -> None:
        if isinstance(write, RemoveFromLog):
            position = self.channel.position(write.message_id)
            changed = self.annotations.remove(position) if position else ()
            for target in map(self._messages.get, changed):
                if target is not None:
                    self.annotations.judge(target)
        self.channel.apply(write)
        if isinstance(write, RemoveFromLog):
            self._remove_message(write.message_id)

    def put_annotation(self, annotation: AnnotationRecord) -> None:
        self.annotations.put(annotation)
        target = self._messages.get(annotation.target_id)
        if target is not None:
            self.annotations.judge(target)

    def put_message(self, record: MessageRecord, data: bytes, came_ms: UnixMs | None) -> None:
        message_id = record.position.message_id
        self.came.pop(message_id, None)
        if came_ms is not None:
            self.came[message_id] = came_ms
        self._data[message_id] = data
        old = self._messages.get(message_id)
        if record.file and record.file.transfer and old and old.file and old.file.transfer:
            record = replace(record, file=replace(record.file, transfer=old.file.transfer))
        self._messages[message_id] = record
        if old is not None and self._is_visible(old):
            self._take_out(_place_of_row(old))
        if self._is_visible(record):
            insort(self._places, _place_of_row(record))
        self.annotations.row_came(record)

    def put_transfer(self, message_id: MessageId, *, state: TransferState, fault: str) -> None:
        transfer = self._transfer(message_id)
        if transfer is not None:
            self._change_transfer(message_id, replace(transfer, state=state, fault=fault))

    def put_file_holder(self, said: PutFileHolder) -> None:
        transfer = self._transfer(said.message_id)
        if transfer is None:
            return
        of_file = self._file_holders.setdefault(said.message_id, {})
        known = of_file.get(said.participant_id)
        if known is None or (said.as_of, known.held) > (known.as_of, said.held):
            of_file[said.participant_id] = said
        holders = tuple(sorted(who for who, each in of_file.items() if each.held))
        self._change_transfer(said.message_id, replace(transfer, holders=holders))

    def _transfer(self, message_id: MessageId) -> TransferRecord | None:
        record = self._messages.get(message_id)
        return None if record is None or record.file is None else record.file.transfer

    def _change_transfer(self, message_id: MessageId, transfer: TransferRecord) -> None:
        record = self._messages[message_id]
        assert record.file is not None
        self._messages[message_id] = replace(record, file=replace(record.file, transfer=transfer))

    def transfers(self) -> list[StoredTransfer]:
        return [
            StoredTransfer(
                conversation_id=record.conversation_id,
                message_id=message_id,
                is_own=record.is_own,
                transfer=replace(
                    transfer, manifest=replace(transfer.manifest, thumbnail=b""), holders=()
                ),
            )
            for message_id, record in self._messages.items()
            if message_id not in self._hidden
            and (file := self.annotations.shown(record)[0].file) is not None
            and (transfer := file.transfer) is not None
        ]

    def set_member_muted(self, participant_id: ParticipantId, *, muted: bool) -> None:
        if muted:
            self.muted_members.add(participant_id)
        else:
            self.muted_members.discard(participant_id)
        visible = filter(self._is_visible, self._messages.values())
        self._places = sorted(map(_place_of_row, visible))

    def _is_visible(self, record: MessageRecord) -> bool:
        return (
            record.position.message_id not in self._hidden
            and record.sender_id not in self.muted_members
        )

    def hide_message(self, message_id: MessageId) -> None:
        record = self._messages.get(message_id)
        if record is None:
            return
        if self._is_visible(record):
            self._take_out(_place_of_row(record))
        self._hidden.add(message_id)

    def _remove_message(self, message_id: MessageId) -> None:
        record = self._messages.pop(message_id, None)
        self._file_holders.pop(message_id, None)
        if record is not None and self._is_visible(record):
            self._take_out(_place_of_row(record))
        self._hidden.discard(message_id)
        self._deliveries.pop(message_id, None)
        self._unsettled.discard(message_id)

    def put_delivery(self, message_id: MessageId, delivery: DeliveryRecord) -> None:
        self._deliveries[message_id] = delivery
        if delivery.state in (DeliveryState.SAVED, DeliveryState.FAILED):
            self._unsettled.add(message_id)
        else:
            self._unsettled.discard(message_id)

    def save_read_mark(self, up_to: Position) -> None:
        mark = self.about.read_up_to
        if mark is None or mark < up_to:
            self.about = replace(self.about, read_up_to=up_to)

    # --- reads ----------------------------------------------------------------------------------

    def message(self, message_id: MessageId) -> StoredMessage | None:
        record = self._messages.get(message_id)
        if record is None or not self._is_visible(record):
            return None
        shown, changed_by = self.annotations.shown(record)
        shown_id = changed_by.position.message_id if changed_by else None
        is_retracted = changed_by is not None and changed_by.kind in GONE
        reactions = (
            []
            if is_retracted
            else self.annotations.reactions(message_id, self.muted_members, self._deliveries.get)
        )
        said_by = shown_id or message_id
        return StoredMessage(
            record=shown,
            delivery=self._deliveries.get(said_by) if record.is_own else None,
            holders=tuple(self.channel.holders(said_by)) if record.is_own else (),
            shown_id=None if shown_id == message_id else shown_id,
            deleted_by=self.annotations.deleted_by(record),
            edited_ms=changed_by.sent_ms if changed_by and not is_retracted else None,
            retracted=is_retracted,
            quote=None if record.reply_to is None else self.quote(record.reply_to),
            quotes_before=self._is_kept_from_us(record.reply_to),
            reactions=tuple(reactions[: rules.MAX_REACTIONS_SHOWN]),
            more_reactions=max(len(reactions) - rules.MAX_REACTIONS_SHOWN, 0),
        )

    def quote(self, message_id: MessageId) -> StoredQuote | None:
        record = self._messages.get(message_id)
        if record is None:
            return None
        shown, changed_by = self.annotations.shown(record)
        is_said = record.kind in SAID_KINDS
        text = shown.text or (shown.file.name if shown.file else "")
        hidden = not self._is_visible(record)
        return StoredQuote(
            position=record.position,
            sender_id=record.sender_id,
            is_own=record.is_own,
            text=text[: 2 * rules.QUOTED_CHARACTERS] if is_said and not hidden else "",
            spans=shown.spans if is_said and not hidden else (),
            retracted=changed_by is not None and changed_by.kind in GONE,
            hidden=hidden,
            file=None if hidden else shown.file,
        )

    def _is_kept_from_us(self, message_id: MessageId | None) -> bool:
        missing = None if message_id is None else self.channel.tables.missing.get(message_id)
        is_here = message_id in self._messages
        return missing is not None and missing.is_from_before and not is_here

    def file_data(self, message_id: MessageId) -> bytes | None:
        record = self._messages.get(message_id)
        if record is None or self.annotations.shown(record)[0].file is None:
            return None
        return self._data[message_id]

    def with_files(self, before: Position | None, limit: int) -> list[StoredMessage]:
        rows = [self.message(message_id) for _, _, message_id in self._places]
        files = [row for row in rows if row and row.record.kind == FILE_KIND and not row.retracted]
        files.sort(key=lambda row: row.record.position, reverse=True)
        if before is not None:
            files = [row for row in files if row.record.position < before]
        return files[: page_limit(limit)]

    def targets(self, message_ids: Sequence[MessageId]) -> list[MessageId]:
        found = (self.annotations.target_of_own(each) for each in message_ids)
        return list({target for targets in found for target in targets})

    def quoting(self, message_ids: Sequence[MessageId]) -> list[MessageId]:
        return [
            message_id
            for message_id, record in self._messages.items()
            if record.reply_to in message_ids
        ]

    def versions(self, message_id: MessageId) -> list[StoredVersion]:
        record = self._messages.get(message_id)
        if record is None or record.kind not in SAID_KINDS:
            return []
        _, changed_by = self.annotations.shown(record)
        shown_id = changed_by.position.message_id if changed_by else message_id
        texts: list[MessageRecord | AnnotationRecord] = [self.annotations.original(record)]
        texts += self.annotations.edits(record)
        if self.annotations.deleted_by(record) is not None:
            texts = [replace(each, text="", spans=()) for each in texts]
        return [
            StoredVersion(
                message_id=each.position.message_id,
                text=each.text,
                spans=each.spans,
                sent_ms=each.sent_ms,
                received_ms=each.received_ms,
                is_own=each.is_own,
                is_shown=each.position.message_id == shown_id,
                delivery=self._own_delivery(each),
                holders=self._own_holders(each),
            )
            for each in texts
        ]

    def reactors(self, message_id: MessageId) -> list[StoredReactor]:
        quoted = self.quote(message_id)
        if quoted is not None and quoted.retracted:
            return []
        return [
            StoredReactor(
                message_id=each.position.message_id,
                participant_id=each.sender_id,
                emoji=each.emoji,
                sent_ms=each.sent_ms,
                is_own=each.is_own,
                delivery=self._own_delivery(each),
                holders=self._own_holders(each),
            )
            for each in self.annotations.reactors(message_id, self.muted_members)
        ]

    def _own_delivery(self, each: MessageRecord | AnnotationRecord) -> DeliveryRecord | None:
        return self._deliveries.get(each.position.message_id) if each.is_own else None

    def _own_holders(self, each: MessageRecord | AnnotationRecord) -> tuple[HolderEntry, ...]:
        return tuple(self.channel.holders(each.position.message_id)) if each.is_own else ()

    def _last_annotation(self, after: Position) -> StoredAnnotation | None:
        for each in self.annotations.newest_first():
            target = self.message(each.target_id)
            if target is None or each.position <= after:
                continue
            if each.kind == "reaction":
                counts = (
                    not each.removed
                    and not target.retracted
                    and each.sender_id not in self.muted_members
                )
            else:
                counts = (
                    target.shown_id == each.position.message_id
                    and target.record.sender_id == each.sender_id
                )
            quote = self.quote(each.target_id)
            if counts and quote is not None:
                return StoredAnnotation(
                    kind=each.kind,
                    message_id=each.position.message_id,
                    target_id=each.target_id,
                    sender_id=each.sender_id,
                    is_own=each.is_own,
                    sent_ms=each.sent_ms,
                    emoji=each.emoji,
                    target=quote,
                )
        return None

    def logged(self, after: Position | None) -> list[LoggedMessage]:
        """Rows with a place after this one, hidden or not."""
        if not isinstance(self.about, ContactRecord):
            places = [(entry.position, entry.sender_id) for entry in self.channel.log()]
        else:
            placed = (record for record in self._messages.values() if not record.waiting)
            places = [(record.position, record.sender_id) for record in placed]
        return [
            LoggedMessage(position=place, sender_id=sender_id, sent_ms=self._sent_ms(place))
            for place, sender_id in sorted(places)
            if after is None or place > after
        ]

    def _sent_ms(self, position: Position) -> UnixMs:
        record = self._messages.get(position.message_id)
        return UnixMs(position.lamport_timestamp) if record is None else record.sent_ms

    def latest_page(self, limit: int) -> StoredPage:
        total = len(self._places)
        return self._page(total - page_limit(limit), total)

    def page_before(self, position: Position, limit: int) -> StoredPage:
        end = bisect_left(self._places, self._place_of(position))
        return self._page(end - page_limit(limit), end)

    def page_after(self, position: Position, limit: int) -> StoredPage:
        start = bisect_right(self._places, self._place_of(position))
        return self._page(start, start + page_limit(limit))

    def summary(self) -> ConversationSummary:
        unread = self._unread()
        unsettled = [
            self._deliveries[message_id].state
            for message_id in self._unsettled
            if (stored := self.message(message_id)) is not None
            and stored.record.is_own
            and stored.record.kind in SAID_KINDS
        ]
        shown = (self.annotations.shown(self._messages[each.message_id])[0] for each in unread)
        mentions = [record.position for record in shown if record.mentions_me]
        last = self.message(self._places[-1][2]) if self._places else None
        return ConversationSummary(
            unread=len(unread),
            first_unread=unread[0] if unread else None,
            last_message=last,
            waiting_to_send=unsettled.count(DeliveryState.SAVED),
            failed=unsettled.count(DeliveryState.FAILED),
            mentions=len(mentions),
            first_mention=mentions[0] if mentions else None,
            last_annotation=self._last_annotation(last.record.position) if last else None,
        )

    def _unread(self) -> list[Position]:
        mark = self.about.read_up_to
        start = 0
        if mark is not None:
            place = (False, mark.lamport_timestamp, mark.message_id)
            start = bisect_right(self._places, place)
        after_mark = (self._messages[message_id] for _, _, message_id in self._places[start:])
        return [
            record.position
            for record in after_mark
            if not record.is_own
            and record.kind in SAID_KINDS
            and (mark is None or record.position > mark)
        ]

    def _page(self, start: int, end: int) -> StoredPage:
        start = max(start, 0)
        stored = (self.message(message_id) for _, _, message_id in self._places[start:end])
        rows = tuple(row for row in stored if row is not None)
        return page(rows, older_count=start, total=len(self._places))

    def _place_of(self, position: Position) -> _Place:
        record = self._messages.get(position.message_id)
        if record is not None and record.position == position:
            return _place_of_row(record)
        return (False, position.lamport_timestamp, position.message_id)

    def _take_out(self, place: _Place) -> None:
        del self._places[bisect_left(self._places, place)]


def _place_of_row(record: MessageRecord) -> _Place:
    return (record.waiting, record.position.lamport_timestamp, record.position.message_id)
