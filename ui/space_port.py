"""What the window asks of the outside about the space that the profile takes on the disk."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from engine.core.ids import ConversationId, MessageId
from ui.backup_port import Follow, GoesOn


class FilesHere(Struct, frozen=True):
    """Complete ones, beyond those that came with their messages."""

    count: int = 0
    size: int = 0


class ConversationTakes(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    texts: int
    files: int
    evidence: int
    fetchable: FilesHere
    """Of others, and another member says that they have them."""
    message_ids: tuple[MessageId, ...]
    """Of the fetchable ones."""
    unheld: FilesHere
    """Of others, and nobody else says so."""
    own: FilesHere
    own_only_here: FilesHere

    @property
    def total(self) -> int:
        return self.texts + self.files + self.evidence


class ProfileTakes(Struct, frozen=True, kw_only=True):
    conversations: Sequence[ConversationTakes]
    """The largest first."""
    search: int
    lists: int
    unused: int
    kept_for_others: int
    records: int
    logs: int
    other: int
    total: int
    room_to_pack: int
    """That the disk must have for a while to give the unused pages back."""


class SpacePort(Protocol):
    async def measure(self, follow: Follow, goes_on: GoesOn) -> ProfileTakes:
        """On a thread of its own; raises ChatError."""

    async def reclaim(self, follow: Follow, goes_on: GoesOn) -> int:
        """Give the unused pages of the database back; how many bytes that were.

        What is to be saved meanwhile waits.  Raises ChatError, and nothing has changed.
        """

    async def let_records_go(self) -> None:
        """Recorded deliveries, but for those of this run.  Raises ChatError."""
