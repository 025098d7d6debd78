"""Which files of the other we have as a whole, and said so; and what the other says of ours.

A claim is content like any other: MVDS brings it, once, and it makes no row.  Both sides of it are
stored, so a restart says nothing again.
"""

from collections.abc import Sequence

from engine.core.content import MAX_FILES_HELD, FilesHeld
from engine.core.ids import MessageId
from engine.core.ports import PutFileHolder, SaveValue
from engine.core.records import ContactRecord
from engine.session.transitions import RowChanged, TransitionBuilder

MAX_REMEMBERED = 4 * MAX_FILES_HELD
"""More than are named at once; what is forgotten may be said again, which changes nothing."""


class HeldFiles:
    """``said``: what we said so far, the newest last."""

    def __init__(self, key: str, said: Sequence[MessageId]) -> None:
        self._key = key
        self._said = tuple(said)

    def news(self, held: Sequence[MessageId], builder: TransitionBuilder) -> FilesHeld | None:
        """What is to be said of the files that are here; noted as said."""
        fresh = tuple(each for each in held if each not in self._said)[-MAX_FILES_HELD:]
        if not fresh:
            return None
        self._said = (*self._said, *fresh)[-MAX_REMEMBERED:]
        builder.writes.append(SaveValue(key=self._key, value="\n".join(self._said)))
        return FilesHeld(fresh)

    def hear(self, claim: FilesHeld, who: ContactRecord, builder: TransitionBuilder) -> None:
        """The other has these; what is no file of this conversation is passed over."""
        for message_id in claim.message_ids:
            builder.writes.append(
                PutFileHolder(
                    conversation_id=who.conversation_id,
                    message_id=message_id,
                    participant_id=who.participant_id,
                )
            )
            builder.notes.append(RowChanged(message_id=message_id))
