"""The blobs of a profile's messages: the state of each, and the progress of transfers.

``FileBook`` is asked by whatever shows a message, so that a row that is read from the disk shows
what is true at the moment.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec.structs import replace

from engine.core.blobs.manifest import ChunkName
from engine.core.ids import ConversationId, MessageId, ParticipantId
from engine.core.problems import FileProblem
from engine.core.records import TransferState
from engine.core.stored import StoredMessage, StoredTransfer
from engine.events import EngineEvent, MessageAdded, MessageChanged, MessagesAdded, MessageView
from engine.file_views import FetchView, FileState, FileView
from engine.runtime.files.transfer import Rate, Transfer

LET_GO: Final = "let_go"
"""Stored where a fault would be: it was here, and is not fetched again by itself."""
FileKey: TypeAlias = tuple[ConversationId, MessageId]


@dataclass(slots=True)
class Blob:
    """One blob.  ``transfer`` is set while one runs."""

    stored: StoredTransfer
    transfer: Transfer | None = None
    problem: FileProblem | None = None
    """Of a failure, with more than is stored."""
    rate: Rate = field(default_factory=Rate)
    base: FileView | None = None
    """Its view without what changes."""
    reached_bytes: int = 0
    """How far it had come when its transfer ended, which a paused one shows."""
    fetch: FetchView | None = None
    """What was seen last of peers that get it from here."""
    thrown_away_bytes: int = 0
    """That had come when the user cancelled it, until it is asked for again."""
    held_by: frozenset[ParticipantId] = frozenset()
    """Who said that they have all of it, beside its sender."""
    shown: tuple[FileState, FileProblem | None] | None = None
    """What was told of it last."""

    @property
    def key(self) -> FileKey:
        return self.stored.conversation_id, self.stored.message_id

    @property
    def state(self) -> TransferState:
        return self.stored.transfer.state

    @property
    def may_go(self) -> bool:
        """It is here as a whole, and somebody else's."""
        return self.state is TransferState.COMPLETE and not self.stored.is_own

    @property
    def is_new(self) -> bool:
        """It was never here, nor asked for."""
        return self.state is TransferState.OFFERED and self.stored.transfer.fault != LET_GO

    def become(self, state: TransferState, problem: FileProblem | None, note: str = "") -> None:
        fault = note if problem is None else problem.fault
        transfer = replace(self.stored.transfer, state=state, fault=fault)
        self.stored = replace(self.stored, transfer=transfer)
        self.problem = problem
        if state is not TransferState.OFFERED:
            self.thrown_away_bytes = 0

    def stop(self) -> None:
        """Its transfer has ended."""
        if self.transfer is not None:
            self.reached_bytes = self.transfer.done_bytes
        self.transfer = None

    def done_bytes(self, size: int) -> int:
        """Of a file of ``size`` bytes."""
        if self.transfer is not None:
            return self.transfer.done_bytes
        if self.state is TransferState.COMPLETE:
            return size
        return self.reached_bytes if self.state is TransferState.PAUSED else 0

    def file_state(self) -> FileState:
        match self.state:
            case TransferState.WANTED:
                is_waiting = self.transfer is None or self.transfer.problem is not None
                return FileState.WAITING if is_waiting else FileState.RUNNING
            case TransferState.OFFERING:
                is_running = self.transfer is not None and self.transfer.is_running
                return FileState.RUNNING if is_running else FileState.COMPLETE
            case state:
                return FileState(state)

    def file_problem(self) -> FileProblem | None:
        if self.transfer is not None:
            return self.transfer.problem
        return self.problem if self.state is TransferState.FAILED else None


class FileBook:
    def __init__(self) -> None:
        self.blobs: dict[FileKey, Blob] = {}
        self._own: dict[ChunkName, FileKey] = {}
        """By root."""

    def add(self, blob: Blob) -> None:
        self.blobs[blob.key] = blob
        if blob.stored.is_own:
            self._own[blob.stored.transfer.manifest.root] = blob.key

    def remove(self, key: FileKey) -> Blob | None:
        blob = self.blobs.pop(key, None)
        if blob is not None:
            root = blob.stored.transfer.manifest.root
            if self._own.get(root) == key:  # Others can name the root of our file in theirs.
                del self._own[root]
        return blob

    def own(self, root: ChunkName) -> Blob | None:
        """The file of ours that has this root."""
        key = self._own.get(root)
        return None if key is None else self.blobs.get(key)

    def shown(self, message: MessageView) -> MessageView:
        """The message with its file as it is at the moment."""
        file = message.file
        if file is None or file.state is FileState.INLINE:
            return message
        blob = self.blobs.get((message.conversation_id, message.message_id))
        return message if blob is None else replace(message, file=self.view(blob, file))

    def hear(self, message: MessageView) -> None:
        """Let what is on its way be asked for again as soon as somebody says that they have it."""
        blob = self.blobs.get((message.conversation_id, message.message_id))
        if blob is None or message.file is None:
            return
        held_by = frozenset(message.file.held_whole_by)
        if blob.transfer is not None and held_by - blob.held_by:
            blob.transfer.held_by_another()
        if held_by != blob.held_by:
            blob.held_by, blob.base = held_by, None

    def differs(self, message: MessageView) -> bool:
        """Whether the message has a file that is not in the book, or none but it is."""
        is_blob = message.file is not None and message.file.state is not FileState.INLINE
        return is_blob != ((message.conversation_id, message.message_id) in self.blobs)

    def view(self, blob: Blob, file: FileView) -> FileView:
        state, transfer = blob.file_state(), blob.transfer
        done = blob.done_bytes(file.size)
        return replace(
            file,
            state=state,
            done_bytes=done,
            rate=blob.rate.add(done) if state is FileState.RUNNING else 0,
            fetch=blob.fetch,
            thrown_away_bytes=blob.thrown_away_bytes,
            problem=blob.file_problem() or (file.problem if transfer is None else None),
        )

    def event_as_shown(self, event: EngineEvent) -> EngineEvent:
        if isinstance(event, MessageAdded | MessageChanged):
            return replace(event, message=self.shown(event.message))
        if isinstance(event, MessagesAdded) and any(each.file for each in event.messages):
            return replace(event, messages=tuple(map(self.shown, event.messages)))
        return event


def is_of_others(row: StoredMessage | None) -> bool:
    """Also what the user forwarded: somebody else may have made it."""
    return row is None or not row.record.is_own or row.record.forwarded
