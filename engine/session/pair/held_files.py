"""Which files of the other we have as a whole, and said so; and what the other says of ours.

A claim is content like any other: MVDS brings it, once, and it makes no row.  So is the statement
that a file was let go.  Both sides of it are
stored, so a restart says nothing again.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from engine.core.content import MAX_FILES_HELD, FilesHeld
from engine.core.ids import MessageId, UnixMs
from engine.core.ports import PutFileHolder, SaveValue
from engine.core.records import ContactRecord
from engine.session.transitions import RowChanged, TransitionBuilder

MAX_REMEMBERED = 4 * MAX_FILES_HELD
"""More than are named at once; what is forgotten may be said again, which changes nothing."""
_AS_OF: Final = "="
"""Before a number, which no id begins with."""


class HeldFiles:
    """``said``: what we said so far, the newest last; ``as_of``: the number of the last statement.

    These numbers grow, because MVDS brings statements in any order.
    """

    def __init__(self, key: str, saved: str) -> None:
        self._key = key
        said = saved.split()
        numbers = [each for each in said if each.startswith(_AS_OF)]
        self._as_of = max((int(each.removeprefix(_AS_OF)) for each in numbers), default=0)
        self._said = tuple(MessageId(each) for each in said if not each.startswith(_AS_OF))

    def news(
        self, held: Sequence[MessageId], builder: TransitionBuilder, now_ms: UnixMs
    ) -> FilesHeld | None:
        """What is to be said of the files that are here; noted as said."""
        fresh = tuple(each for each in held if each not in self._said)[-MAX_FILES_HELD:]
        if not fresh:
            return None
        self._said = (*self._said, *fresh)[-MAX_REMEMBERED:]
        return self._say(fresh, builder, now_ms, let_go=False)

    def gone(
        self, let_go: Sequence[MessageId], builder: TransitionBuilder, now_ms: UnixMs
    ) -> Iterator[FilesHeld]:
        """What is to be said of files that are here no more."""
        self._said = tuple(each for each in self._said if each not in {*let_go})
        for start in range(0, len(let_go), MAX_FILES_HELD):
            part = tuple(let_go[start : start + MAX_FILES_HELD])
            yield self._say(part, builder, now_ms, let_go=True)

    def _say(
        self,
        message_ids: tuple[MessageId, ...],
        builder: TransitionBuilder,
        now_ms: UnixMs,
        *,
        let_go: bool,
    ) -> FilesHeld:
        self._as_of = max(now_ms, self._as_of + 1)
        value = "\n".join((f"{_AS_OF}{self._as_of}", *self._said))
        builder.writes.append(SaveValue(key=self._key, value=value))
        return FilesHeld(message_ids, let_go=let_go, as_of=self._as_of)

    def hear(self, claim: FilesHeld, who: ContactRecord, builder: TransitionBuilder) -> None:
        """The other has these, or no more; what is no file of this conversation is passed over."""
        for message_id in claim.message_ids:
            builder.writes.append(
                PutFileHolder(
                    conversation_id=who.conversation_id,
                    message_id=message_id,
                    participant_id=who.participant_id,
                    held=not claim.let_go,
                    as_of=claim.as_of,
                )
            )
            builder.notes.append(RowChanged(message_id=message_id))
