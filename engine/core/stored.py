"""What a store gives back of a conversation: rows, pages, and what the conversation list shows.

They are read from the database as they stand and say nothing of how they are kept.  What is written
is in ``engine.core.ports``, beside the store itself.
"""

from msgspec import Struct

from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.records import (
    DeliveryRecord,
    FileRecord,
    MemberRecord,
    MessageRecord,
    SpanRecord,
    TransferRecord,
)
from engine.core.sds.vocabulary import HolderEntry


class StoredTransfer(Struct, frozen=True, kw_only=True):
    """A blob and its message, without thumbnail and holders."""

    conversation_id: ConversationId
    message_id: MessageId
    is_own: bool
    transfer: TransferRecord


class StoredQuote(Struct, frozen=True, kw_only=True):
    """The beginning of a message that another one answers, as it is shown now."""

    position: Position
    sender_id: ParticipantId
    is_own: bool
    text: str
    """Of a text, or a file's caption or else its name, within bounds; empty for other rows."""
    spans: tuple[SpanRecord, ...]
    retracted: bool
    hidden: bool  # It is in no page: deleted here, or its sender is muted.
    file: FileRecord | None = None  # Unless it is not shown any more.


class StoredReaction(Struct, frozen=True, kw_only=True):
    """Everybody who chose one emoji for a message, without muted members."""

    emoji: str
    count: int
    participant_ids: tuple[ParticipantId, ...]
    """At most ``rules.MAX_REACTORS_NAMED`` of the others, the earliest first."""
    mine: bool
    pending: bool  # Ours, and nobody took it so far.


class StoredMessage(Struct, frozen=True, kw_only=True, gc=False):
    """A row.  ``record`` has the text shown now; delivery and holders are of ``shown_id``."""

    record: MessageRecord
    delivery: DeliveryRecord | None
    holders: tuple[HolderEntry, ...]
    shown_id: MessageId | None = None
    """The edit or the retraction that decides what is shown; None: nobody changed the message."""
    edited_ms: UnixMs | None = None
    """When ``shown_id`` was said, by its author's clock, if it is an edit."""
    retracted: bool = False
    quote: StoredQuote | None = None  # What ``record.reply_to`` names, if it is here.
    quotes_before: bool = False  # It is not: from before we came, in keys that we were not given.
    reactions: tuple[StoredReaction, ...] = ()
    """The most frequent first, then the earliest.  None of a retracted message."""
    more_reactions: int = 0
    """Further emoji, beyond ``rules.MAX_REACTIONS_SHOWN``."""
    deleted_by: ParticipantId | None = None  # The admin who did; ``retracted`` is set, too.


class StoredVersion(Struct, frozen=True, kw_only=True):
    """A text that a message had or has; empty once the message is retracted."""

    message_id: MessageId
    """Of the message itself, or of the edit."""
    text: str
    spans: tuple[SpanRecord, ...]
    sent_ms: UnixMs
    received_ms: UnixMs
    is_own: bool
    is_shown: bool
    delivery: DeliveryRecord | None
    holders: tuple[HolderEntry, ...]


class StoredReactor(Struct, frozen=True, kw_only=True):
    message_id: MessageId  # of the reaction
    participant_id: ParticipantId
    emoji: str
    sent_ms: UnixMs
    is_own: bool
    delivery: DeliveryRecord | None
    holders: tuple[HolderEntry, ...]


class StoredAnnotation(Struct, frozen=True, kw_only=True):
    """The newest of what was said about messages, and the beginning of its target."""

    kind: str
    message_id: MessageId
    target_id: MessageId
    sender_id: ParticipantId
    is_own: bool
    sent_ms: UnixMs
    emoji: str
    target: StoredQuote


class StoredPage(Struct, frozen=True, kw_only=True):
    """Consecutive rows, oldest first; hidden rows are left out and not counted."""

    messages: tuple[StoredMessage, ...]
    has_older: bool
    has_newer: bool
    older_count: int
    total: int


class ConversationSummary(Struct, frozen=True, kw_only=True):
    """Counts for the conversation list.

    Unread: visible rows of others after the read mark, of the kinds ``rules.SAID_KINDS``.
    """

    unread: int
    first_unread: Position | None
    last_message: StoredMessage | None
    waiting_to_send: int
    """Own rows of these kinds that are only saved; nobody waits for a notice such as a join."""
    failed: int
    """Own rows of these kinds that were given up."""
    mentions: int = 0
    """How many of the unread ones mention us."""
    first_mention: Position | None = None
    last_annotation: StoredAnnotation | None = None
    """The newest one that counts, if it is later than ``last_message``."""


class Listed(Struct, frozen=True, kw_only=True):
    """What the conversation list shows of one."""

    summary: ConversationSummary
    members: tuple[MemberRecord, ...]
    """As ``ProfileStore.members``."""
    muted: frozenset[ParticipantId]
    """Members whose rows are hidden."""
