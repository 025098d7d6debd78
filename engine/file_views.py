"""Read models of files that came with messages, and the event that tells how far one has come.

The file of a message is part of its ``MessageView``; a larger one changes on its own, because its
bytes travel apart from the message.
"""

from enum import StrEnum

from msgspec import Struct

from engine.core.ids import ConversationId, MessageId, ParticipantId
from engine.core.problems import FileProblem


class FileState(StrEnum):
    """Where the bytes of a message's file are, for this device."""

    INLINE = "inline"
    """They came with the message, as those of every small file do."""
    OFFERED = "offered"
    """Others have them; nobody here asked for them."""
    WAITING = "waiting"
    """They are wanted, and nobody can be asked just now: ``FileView.problem`` says why."""
    RUNNING = "running"
    """They are on their way, to or from this device."""
    PAUSED = "paused"
    COMPLETE = "complete"
    """All of them are on this device, verified."""
    FAILED = "failed"
    """``FileView.problem`` says why; ``api.Files.fetch`` tries again."""


class FetchView(Struct, frozen=True, kw_only=True):
    """Of a file of ours: connected peers are getting it from this device."""

    peers: int
    """Connections: one member can have several."""
    done_bytes: int
    """Sent from here to the one that has got most."""
    rate: int
    """Of these, bytes per second, lately."""


class FileView(Struct, frozen=True, kw_only=True):
    """A file that came with a message.

    All of it is what its sender says, except ``size``: only a decoder knows what the bytes are.  A
    larger file (``api.Files``) travels apart from its message, and has a state.
    """

    name: str
    """Clean: one line, no path, usable as a file name on every system."""
    media_type: str
    size: int
    """The number of bytes."""
    width: int = 0
    """Of a picture, in pixels; 0 if it is none."""
    height: int = 0
    thumbnail: bytes = b""
    """Of a larger file: PNG or JPEG of at most 8 KiB, b"" if there is none.  Untrusted."""
    state: FileState = FileState.INLINE
    is_upload: bool = False
    """Ours: ``done_bytes`` and ``rate`` are about what goes to nodes that keep it for others.

    It is RUNNING while they get it, and COMPLETE before and after.
    """
    done_bytes: int = 0
    rate: int = 0
    """Bytes per second, lately; 0 unless RUNNING."""
    fetch: FetchView | None = None
    """Also while it is RUNNING; None once a peer has got all of it, or nothing for a while."""
    thrown_away_bytes: int = 0
    """Of another's, OFFERED: so many had come, and were removed when the user cancelled it."""
    held_whole_by: tuple[ParticipantId, ...] = ()
    """The other members who say, signed, that they have all of it."""
    problem: FileProblem | None = None


class FileProgressed(Struct, frozen=True, kw_only=True):
    """More of a larger file is here, or with others: at most four times a second for each.

    ``MessageChanged`` tells a change of its state.
    """

    conversation_id: ConversationId
    message_id: MessageId
    file: FileView
