"""Which messages of a governed group count for nothing, and what becomes of their rows.

They are in the log of every member, so that others can name them, and in nobody's timeline: what
the removed wrote beyond the cut of their removal (``engine.core.admin_log.cuts``), and all by
people whose admission never counted.  For the cut, the chain of an author's messages has to be
known; it is read from disk when it is first needed, a few messages at a time.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Final

from msgspec import Struct

from engine.core.admin_log.acts import LastMessage
from engine.core.admin_log.cuts import Written, void_messages
from engine.core.admin_log.log import AdminState
from engine.core.content import Attachment, Content, Text
from engine.core.governed import RemoveRow
from engine.core.ids import ConversationId, InstanceId, MessageId, ParticipantId, Position
from engine.core.sds.vocabulary import Message
from engine.session.group.author_binding import bound_author
from engine.session.transitions import (
    GovernanceNoted,
    LoadWritten,
    RowRemoved,
    TransitionBuilder,
)

READ_TOGETHER: Final = 64
NOTHING: Final[frozenset[MessageId]] = frozenset()


class _Rule(Struct, frozen=True):
    """What decides which of one author's messages are void."""

    last_messages: Mapping[InstanceId, LastMessage] | None
    is_member: bool
    was_member: bool


_ALL_COUNTS: Final = _Rule(last_messages=None, is_member=True, was_member=True)


class VoidMessages:
    """``said_by``: the places of an author's messages in the log, in any order."""

    def __init__(
        self,
        conversation_id: ConversationId,
        said_by: Callable[[ParticipantId], Iterable[Position]],
        state: AdminState,
    ) -> None:
        self._conversation_id = conversation_id
        self._said_by = said_by
        self._state = state
        self._before: dict[ParticipantId, _Rule] = {}
        """By whose rule has changed: the one by which their rows are on disk."""
        self._written: dict[ParticipantId, dict[MessageId, Written]] = {}
        """Of those whose chain was needed: all that is in the log."""
        self._places: dict[MessageId, Position] = {}
        self._to_read: dict[ParticipantId, list[Position]] = {}
        self._void: dict[ParticipantId, set[MessageId]] = {}

    def counts(self) -> dict[ParticipantId, int]:
        """How many texts and files of each author are void, of those of whom any is."""
        counts = {
            who: sum(self._written[who][message_id].is_said for message_id in ids)
            for who, ids in self._void.items()
        }
        return {who: count for who, count in counts.items() if count}

    def look_at(self, who: ParticipantId) -> None:
        """Some of theirs may be void, and nobody has looked since the start.

        Their rows may still be there: the program ended before they were taken out, or the group
        has its log only since now.
        """
        self._before.setdefault(who, _ALL_COUNTS)
        self._read(who)

    # --- what changes ---------------------------------------------------------------------------

    def follow(self, state: AdminState, authors: Iterable[ParticipantId]) -> None:
        """The log says something else; ``authors``: everybody who wrote anything.

        Strangers whose messages members name are none of them, and may be let in now.
        """
        before, self._state = self._state, state
        for who in {*authors, *self._void, *self._to_read}:
            old, new = _rule_of(before, who), _rule_of(state, who)
            if old != new:
                self._before.setdefault(who, old)
                self._read(who)

    def is_void(self, message: Message, content: Content) -> bool:
        """Of one that gets its place, or is shown before it has one."""
        who = message.sender_id
        rule = _rule_of(self._state, who)
        is_followed = who in self._written or who in self._to_read
        if rule.was_member and rule.last_messages is None and not is_followed:
            return False
        written = Written(
            message_id=message.message_id,
            author=who,
            instance_id=bound_author(who, content.author).instance_id,
            sequence=content.author.sequence,
            previous_id=content.previous_id,
            is_said=isinstance(content.body, Text | Attachment),
        )
        is_void = bool(_void_by(rule, who, (written,)))
        if is_followed:
            self._note(written, Position(message.lamport_timestamp or 0, message.message_id))
        if _needs_chain(written, rule) or (is_void and who not in self._void):
            self._before.setdefault(who, rule)
            self._read(who)
        elif is_void and who not in self._before:  # It changes nothing for the others.
            self._void[who].add(written.message_id)
        return is_void

    # --- chains ---------------------------------------------------------------------------------

    def _read(self, who: ParticipantId) -> None:
        if who not in self._written and who not in self._to_read:
            self._to_read[who] = list(self._said_by(who))

    def next_load(self) -> LoadWritten | None:
        """What to read next; None while something is read, or if there is nothing."""
        for who, places in self._to_read.items():
            part = tuple(places[-READ_TOGETHER:])
            return LoadWritten(sender_id=who, places=part)
        return None

    def take(self, load: LoadWritten, written: Iterable[Written]) -> None:
        who = load.sender_id
        left = self._to_read.get(who)
        if left is None:
            return
        del left[len(left) - len(load.places) :]
        places = {place.message_id: place for place in load.places}
        for one in written:
            self._written.setdefault(who, {})[one.message_id] = one
            self._places[one.message_id] = places[one.message_id]
        if not left:
            del self._to_read[who]
            self._written.setdefault(who, {})

    def _note(self, written: Written, place: Position) -> None:
        self._written.setdefault(written.author, {})[written.message_id] = written
        self._places[written.message_id] = place

    @property
    def is_due(self) -> bool:
        """Whether ``settle`` has something to do that it can do."""
        return any(who in self._written and who not in self._to_read for who in self._before)

    def settle(
        self, builder: TransitionBuilder, *, keep: Container[MessageId] = ()
    ) -> tuple[Position, ...]:
        """Take out the rows of what is void now, but those to ``keep``.

        Returns what is void no more.
        """
        again: list[Position] = []
        for who in [*self._before]:
            if who not in self._written or who in self._to_read:
                continue
            written = self._written[who].values()
            known = self._void.get(who)
            old = _void_by(self._before[who], who, written) if known is None else {*known}
            new = _void_by(_rule_of(self._state, who), who, written)
            del self._before[who]
            if new != (known or NOTHING):
                builder.notes.append(GovernanceNoted())
            self._void[who] = set(new)
            for message_id in sorted(new - old):
                if message_id in keep:
                    continue
                builder.writes.append(
                    RemoveRow(
                        conversation_id=self._conversation_id, position=self._places[message_id]
                    )
                )
                builder.notes.append(RowRemoved(message_id=message_id))
            again += [self._places[message_id] for message_id in sorted(old - new)]
        return tuple(again)


def _rule_of(state: AdminState, who: ParticipantId) -> _Rule:
    return _Rule(state.last_messages.get(who), who in state.roles, who in state.ever)


def _needs_chain(written: Written, rule: _Rule) -> bool:
    """Whether what is void depends on the messages between it and the cut."""
    last = (rule.last_messages or {}).get(written.instance_id)
    return rule.was_member and last is not None and written.sequence <= last.sequence


def _void_by(rule: _Rule, who: ParticipantId, written: Iterable[Written]) -> frozenset[MessageId]:
    if not rule.was_member:
        return frozenset(one.message_id for one in written)
    if rule.last_messages is None:
        return NOTHING
    members = frozenset((who,)) if rule.is_member else frozenset[ParticipantId]()
    return void_messages({who: rule.last_messages}, members, written)
