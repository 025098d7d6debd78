"""What one transaction adds to a log and to a timeline, written many rows at a time.

Backfilled history comes by the hundred, and one statement per row would cost more than the row.
Rows wait here, in order, until another step of the transaction might read them, or until the
commit.  Nothing outlives the transaction.
"""

import sqlite3

from engine.core.ports import PutMessage
from engine.core.records import AnnotationRecord
from engine.core.sds.vocabulary import AppendToLog
from engine.persistence.annotation_tables import put_annotations
from engine.persistence.channel_tables import append_to_log
from engine.persistence.timeline_tables import put_messages


class PendingRows:
    """Rows of one conversation at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._conversation = 0
        self._logged: list[AppendToLog] = []
        self._messages: list[PutMessage] = []
        self._annotations: list[AnnotationRecord] = []

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
        if self._logged:
            append_to_log(self._connection, self._conversation, self._logged)
            self._logged.clear()
        if self._messages:
            put_messages(self._connection, self._conversation, self._messages)
            self._messages.clear()
        if self._annotations:
            put_annotations(self._connection, self._conversation, self._annotations)
            self._annotations.clear()

    def forget(self) -> None:
        """Call when the transaction has failed."""
        self._logged.clear()
        self._messages.clear()
        self._annotations.clear()

    def _turn_to(self, conversation: int) -> None:
        if conversation != self._conversation:
            self.write()
            self._conversation = conversation
