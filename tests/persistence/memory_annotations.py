"""What was said about messages, in the model of a store: plain dictionaries, judged when read."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from msgspec.structs import replace

from engine.core.admin_log.log import Deletion
from engine.core.emoji import without_selectors
from engine.core.ids import DeliveryState, MessageId, ParticipantId, Position
from engine.core.records import AnnotationRecord, DeliveryRecord, MessageRecord
from engine.core.stored import StoredReaction
from engine.persistence import rules

DeliveryOf = Callable[[MessageId], DeliveryRecord | None]


def _newest(records: Iterable[AnnotationRecord], most: int) -> list[AnnotationRecord]:
    return sorted(records, key=lambda record: record.position)[-most:]


def _key(edit: AnnotationRecord) -> tuple[MessageId, ParticipantId, Position]:
    return edit.target_id, edit.sender_id, edit.position


def _first_others(
    several: Sequence[AnnotationRecord], muted: set[ParticipantId]
) -> tuple[ParticipantId, ...]:
    others = [one.sender_id for one in several if not one.is_own]
    looked_at = others[: rules.MAX_REACTORS_NAMED + rules.MAX_MUTED_AMONG_NAMED]
    return tuple(one for one in looked_at if one not in muted)[: rules.MAX_REACTORS_NAMED]


class MemoryAnnotations:
    def __init__(self) -> None:
        self._reactions: dict[tuple[MessageId, ParticipantId, str], AnnotationRecord] = {}
        self._versions: dict[tuple[MessageId, ParticipantId, str], list[AnnotationRecord]] = {}
        self.deletions: dict[Deletion, ParticipantId] = {}
        """By whom."""
        self._erased_rows: set[MessageId] = set()
        self._erased: set[tuple[MessageId, ParticipantId, Position]] = set()
        """Edits of retracted rows."""

    def put(self, record: AnnotationRecord) -> None:
        target_id, sender_id = record.target_id, record.sender_id
        if record.kind == "reaction":
            key = (target_id, sender_id, without_selectors(record.emoji))
            known = self._reactions.get(key)
            if known is None or known.position < record.position:
                self._reactions[key] = record
            mine = [
                one for key, one in self._reactions.items() if key[:2] == (target_id, sender_id)
            ]
            kept = _newest(mine, rules.MAX_EMOJI_EACH)
            for key, one in [*self._reactions.items()]:
                if key[:2] == (target_id, sender_id) and one not in kept:
                    del self._reactions[key]
            return
        several = self._versions.setdefault((target_id, sender_id, record.kind), [])
        if all(one.position != record.position for one in several):
            several.append(record)
            self._erased.discard(_key(record))
        most = rules.MAX_VERSIONS if record.kind == "edit" else 1
        several[:] = _newest(several, most)

    def counting(self, positions: Sequence[Position]) -> frozenset[MessageId]:
        counted = {one.position for one in self._reactions.values() if not one.removed}
        return frozenset(position.message_id for position in positions if position in counted)

    def remove(self, position: Position) -> set[MessageId]:
        """Returns the messages that it may have changed."""
        for key in [key for key, one in self._reactions.items() if one.position == position]:
            del self._reactions[key]
        changed = set()
        for (target_id, *_), several in self._versions.items():
            left = [one for one in several if one.position != position]
            if len(left) < len(several):
                several[:] = left
                changed.add(target_id)
        return changed

    def row_came(self, record: MessageRecord) -> None:
        self._erased_rows.discard(record.position.message_id)
        self.judge(record)

    def judge(self, record: MessageRecord) -> None:
        """What its author retracted is erased for good."""
        if record.kind in rules.SAID_KINDS and self._of(record, "retraction"):
            self._erased_rows.add(record.position.message_id)
            self._erased |= {_key(edit) for edit in self._of(record, "edit")}

    def _of(self, record: MessageRecord, kind: str) -> list[AnnotationRecord]:
        if record.kind not in rules.SAID_KINDS:
            return []
        return self._versions.get((record.position.message_id, record.sender_id, kind), [])

    def shown(self, record: MessageRecord) -> tuple[MessageRecord, AnnotationRecord | None]:
        """The record with the text that counts, and what decides it."""
        own = self.original(record)
        if retractions := self._of(record, "retraction"):
            return own, retractions[-1]
        if self.deleted_by(record) is not None:
            bare = replace(own, text="", spans=(), mentions_me=False, file=None)
            return bare, self._deletion(record)
        if edits := self._of(record, "edit"):
            edit = self._text_of(edits[-1])
            changed = replace(own, text=edit.text, spans=edit.spans, mentions_me=edit.mentions_me)
            return changed, edit
        return own, None

    def deleted_by(self, record: MessageRecord) -> ParticipantId | None:
        """The admin who did it, unless its author did."""
        if record.kind not in rules.SAID_KINDS or self._of(record, "retraction"):
            return None
        return self.deletions.get(Deletion(record.position.message_id, record.sender_id))

    def _deletion(self, record: MessageRecord) -> AnnotationRecord:
        return AnnotationRecord(
            conversation_id=record.conversation_id,
            position=record.position,
            kind="deletion",
            target_id=record.position.message_id,
            sender_id=record.sender_id,
            is_own=False,
            sent_ms=record.sent_ms,
            received_ms=record.received_ms,
        )

    def _text_of(self, edit: AnnotationRecord) -> AnnotationRecord:
        erased = _key(edit) in self._erased
        return replace(edit, text="", spans=(), mentions_me=False) if erased else edit

    def original(self, record: MessageRecord) -> MessageRecord:
        erased = record.position.message_id in self._erased_rows
        if not erased:
            return record
        return replace(record, text="", spans=(), mentions_me=False, file=None)

    def edits(self, record: MessageRecord) -> list[AnnotationRecord]:
        return [self._text_of(one) for one in self._of(record, "edit")]

    def reactors(self, target_id: MessageId, muted: set[ParticipantId]) -> list[AnnotationRecord]:
        found = (
            one
            for one in self._reactions.values()
            if one.target_id == target_id and not one.removed and one.sender_id not in muted
        )
        return sorted(found, key=lambda one: one.position)

    def reactions(
        self, target_id: MessageId, muted: set[ParticipantId], delivery_of: DeliveryOf
    ) -> list[StoredReaction]:
        def emoji_key(one: AnnotationRecord) -> str:
            return without_selectors(one.emoji)

        every = sorted(self.reactors(target_id, set()), key=emoji_key)
        together = [[*several] for _, several in groupby(every, key=emoji_key)]
        counted = [
            (several, [one for one in several if one.sender_id not in muted])
            for several in together
        ]
        counted.sort(key=lambda both: (-len(both[1]), both[0][0].position))
        return [
            StoredReaction(
                emoji=max(one.emoji for one in several),
                count=len(left),
                participant_ids=_first_others(several, muted),
                mine=any(one.is_own for one in left),
                pending=any(
                    (delivery := delivery_of(one.position.message_id)) is not None
                    and delivery.state in {DeliveryState.SAVED, DeliveryState.FAILED}
                    for one in left
                    if one.is_own
                ),
            )
            for several, left in counted
            if left
        ]

    def target_of_own(self, message_id: MessageId) -> set[MessageId]:
        every = [*self._reactions.values(), *(o for each in self._versions.values() for o in each)]
        return {
            one.target_id for one in every if one.is_own and one.position.message_id == message_id
        }

    def newest_first(self) -> list[AnnotationRecord]:
        every = [*self._reactions.values(), *(o for each in self._versions.values() for o in each)]
        return sorted(every, key=lambda one: one.position, reverse=True)
