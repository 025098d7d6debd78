"""What one transaction adds to a log and to a timeline, written many rows at a time.

Backfilled history comes by the hundred, and one statement per row would cost more than the row.
Rows wait here, in order, until another step of the transaction might read them, or until the
commit.  Those that were written last need not be read again.  Nothing outlives the transaction.
"""

import sqlite3
from collections.abc import Sequence

from engine.core.ids import MessageId
from engine.core.ports import PutMessage
from engine.core.records import AnnotationRecord, MessageRecord
from engine.core.sds.vocabulary import AppendToLog
from engine.core.stored import StoredMessage
from engine.persistence.annotation_tables import put_annotations
from engine.persistence.channel_tables import append_to_log
from engine.persistence.timeline_reads import TimelineReader
from engine.persistence.timeline_tables import put_messages


class PendingRows:
    """Rows of one conversation at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._conversation = 0
        self._logged: list[AppendToLog] = []
        self._messages: list[PutMessage] = []
        self._annotations: list[AnnotationRecord] = []
        self._as_written: dict[MessageId, MessageRecord] = {}

    def log(self, conversation: int, appended: AppendToLog) -> None:
        self._turn_to(conversation)
        self._logged.append(appended)

    def put(self, conversation: int, message: PutMessage) -> None:
        self._turn_to(conversation)
        self._messages.append(message)

    def annotate(self, conversation: int, annotation: AnnotationRecord) -> None:
        self._turn_to(conversation)
        self._annotations.append(annotation)

    def write(self) -> None:
        self._as_written = {}  # What comes between two calls may change the rows of the first.
        if self._logged:
            append_to_log(self._connection, self._conversation, self._logged)
            self._logged.clear()
        if self._messages:
            self._as_written = put_messages(self._connection, self._conversation, self._messages)
            self._messages.clear()
        if self._annotations:
            put_annotations(self._connection, self._conversation, self._annotations)
            for annotation in self._annotations:
                self._as_written.pop(annotation.target_id, None)
            self._annotations.clear()

    def read(
        self, timeline: TimelineReader, message_ids: Sequence[MessageId]
    ) -> dict[MessageId, StoredMessage]:
        """Rows; those of the last ``write`` that would be read as written need no reading."""
        found: dict[MessageId, StoredMessage] = {}
        for message_id in message_ids:
            record = self._as_written.get(message_id)
            if record is not None and record.conversation_id == timeline.conversation_id:
                found[message_id] = StoredMessage(record=record, delivery=None, holders=())
        others = [message_id for message_id in message_ids if message_id not in found]
        return found | timeline.messages(others)

    def forget(self) -> None:
        """Call when the transaction is over."""
        self._logged.clear()
        self._messages.clear()
        self._annotations.clear()
        self._as_written = {}

    def _turn_to(self, conversation: int) -> None:
        if conversation != self._conversation:
            self.write()
            self._conversation = conversation
