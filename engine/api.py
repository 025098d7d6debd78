"""What the outside may ask of the engine: the ``ChatEngine`` protocol, no implementation.

Methods are commands (imperative) or queries.  Every method may raise ``StorageError`` (shown with
an action) and the errors it names; anything else that escapes is a bug.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from engine.answers import ContactPreview, ForkProof, HolderView, InvitePreview, TimelinePage
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position
from engine.events import (
    ConnectionView,
    ConversationView,
    FloodView,
    ForkView,
    GapView,
    HeldView,
    IdentityView,
    Listener,
    OwnClockView,
)
from engine.history_views import HistoryView, StoreTestView, StoreView

MAX_TEXT_BYTES = 64 * 1024
MAX_NAME_CHARACTERS = 64
PAGE_SIZE = 100


class ChatEngine(Protocol):
    """One profile's chats.  Methods are called on the loop that runs the engine."""

    def subscribe(self, listener: Listener, /) -> Callable[[], None]:
        """Call ``listener`` for every event, in order; returns how to stop."""

    # identity ---------------------------------------------------------------------------------

    def identity(self) -> IdentityView | None:
        """None until the first start has been completed by ``create_identity``."""

    async def create_identity(self, name: str) -> IdentityView:
        """Raises LocalProtocolError if there is one, ConfigError if the name is unusable."""

    # conversations ----------------------------------------------------------------------------

    async def conversations(self) -> Sequence[ConversationView]:
        """All of them, most recent activity first."""

    async def create_group(self, name: str) -> ConversationId: ...

    async def make_invite_link(self, conversation_id: ConversationId) -> str: ...

    def preview_invite(self, link: str) -> InvitePreview:
        """Parse only: no network, no disk.  Raises InviteError with the reason."""

    async def join_group(self, link: str) -> ConversationId:
        """Raises InviteError."""

    async def leave_group(self, conversation_id: ConversationId) -> None:
        """Tell the others if possible, then forget the group on this device."""

    async def set_muted(self, conversation_id: ConversationId, *, muted: bool) -> None: ...

    async def set_member_muted(
        self, conversation_id: ConversationId, participant_id: ParticipantId, *, muted: bool
    ) -> None:
        """On this device, in this group: their messages are received and kept, and not shown.

        Nobody is told.  Raises LocalProtocolError for a one-to-one conversation and for oneself.
        """

    async def floods(self, conversation_id: ConversationId) -> Sequence[FloodView]:
        """Members who sent more than a day's quota, as long as something of it is set aside."""

    async def show_flood(
        self, conversation_id: ConversationId, participant_id: ParticipantId
    ) -> None:
        """Place what was set aside of this member, bit by bit, and all else that comes today."""

    async def mark_read(self, conversation_id: ConversationId, up_to: Position) -> None:
        """Everything up to and including ``up_to`` was on screen; never moves backwards."""

    async def save_draft(self, conversation_id: ConversationId, text: str) -> None: ...

    # people -----------------------------------------------------------------------------------

    async def make_contact_link(self) -> str:
        """A link with which others can ask to talk to us; expires after 90 days."""

    def preview_contact(self, link: str) -> ContactPreview:
        """Parse only: no network, no disk.  Raises InviteError with the reason."""

    async def add_contact(self, link: str) -> ConversationId:
        """Ask this person to talk; accepts if they asked already.  Raises InviteError."""

    async def accept_contact(self, conversation_id: ConversationId) -> None:
        """Answer their request with yes; of somebody who declined, or whom we did: ask again."""

    async def decline_contact(self, conversation_id: ConversationId) -> None:
        """They are told; they may be asked again by us."""

    async def withdraw_contact(self, conversation_id: ConversationId) -> None:
        """Take our request back.  Raises LocalProtocolError once they answered."""

    async def set_blocked(self, conversation_id: ConversationId, *, blocked: bool) -> None:
        """They are not told; nothing of theirs is taken in or answered."""

    async def remove_contact(self, conversation_id: ConversationId) -> None:
        """Forget the person and the conversation on this device."""

    async def rename_contact(self, conversation_id: ConversationId, name: str) -> None:
        """For this device only; "" = as they call themselves.  Raises ConfigError."""

    async def set_profile(self, *, name: str, picture: bytes) -> IdentityView:
        """Own name and picture, told to all contacts.  Raises ConfigError."""

    # messages ---------------------------------------------------------------------------------

    async def send_text(self, conversation_id: ConversationId, text: str) -> MessageId:
        """Returns once it is durable.  Raises ConfigError if empty or over MAX_TEXT_BYTES."""

    async def set_typing(self, conversation_id: ConversationId, *, active: bool) -> None:
        """Best effort, not stored; callers may call it at every key press."""

    async def resend(self, conversation_id: ConversationId, message_id: MessageId) -> None: ...

    async def delete_locally(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        """Hide it on this device.  Others keep it, or may still get it: the history names it."""

    async def fetch_missing(self, conversation_id: ConversationId) -> None:
        """Ask for missing messages again, now."""

    async def fetch_lost(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId]
    ) -> None:
        """Ask members and Stores once more for what was given up; it stays lost until it comes.

        Of a one-to-one conversation nothing has an id: what is lost before one of ``message_ids``
        (``LostView.before``) is meant there, and all that is lost if these are none.
        """

    async def latest_page(
        self, conversation_id: ConversationId, *, limit: int = PAGE_SIZE
    ) -> TimelinePage: ...

    async def page_before(
        self, conversation_id: ConversationId, position: Position, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        """Rows strictly before ``position``."""

    async def page_after(
        self, conversation_id: ConversationId, position: Position, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        """Rows strictly after ``position``."""

    async def page_around(
        self, conversation_id: ConversationId, position: Position, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        """Rows on both sides of ``position``, itself included where it exists."""

    async def gap(self, conversation_id: ConversationId) -> GapView | None: ...

    async def held(self, conversation_id: ConversationId) -> HeldView | None:
        """What is held aside because it claims a time too far ahead."""

    async def holders(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[HolderView]:
        """One line for every other member."""

    async def forks(self, conversation_id: ConversationId) -> Sequence[ForkView]:
        """Who told different people different things here."""

    async def fork_proof(self, fork: ForkView) -> ForkProof:
        """Raises LocalProtocolError if one of the two is not kept here any more."""

    # history ----------------------------------------------------------------------------------

    async def fetch_history(self, conversation_id: ConversationId, *, days: int | None) -> None:
        """Ask Stores for what was said in the last ``days``, None: for all there is.

        Returns once it is durable that this is wanted: it goes on by itself, also after a restart,
        until it is done or cancelled, and is told by ``HistoryChanged``.  Raises ConfigError for
        days below 1.
        """

    async def fetch_earlier(self, conversation_id: ConversationId) -> None:
        """Likewise for what lies before the oldest message here, a stretch further back each time.

        For who scrolls up past the beginning; nothing happens while one runs.
        """

    async def cancel_history(self, conversation_id: ConversationId) -> None:
        """What was fetched stays; nothing more is, of what the user asked for."""

    def history(self, conversation_id: ConversationId) -> HistoryView | None:
        """What is being fetched, or was last; None: nothing since the program started."""

    def stores(self) -> Sequence[StoreView]:
        """In the order in which they are asked; told by ``StoresChanged``."""

    async def add_store(self, multiaddr: str) -> None:
        """As the last one.  Raises ConfigError for no such address, or one that is there."""

    async def remove_store(self, multiaddr: str) -> None:
        """Raises ConfigError if it is not named in the settings; so do the following."""

    async def move_store(self, multiaddr: str, *, place: int) -> None:
        """To this place, from 0, among those named in the settings."""

    async def enable_store(self, multiaddr: str, *, enabled: bool) -> None: ...

    async def test_store(self, multiaddr: str) -> StoreTestView:
        """Dial and ask it, whether it is in the list or not; takes up to 20 s.

        Raises ConfigError for no such address; whatever else fails is the view's ``problem``.
        """

    # clock ------------------------------------------------------------------------------------

    def own_clock(self) -> OwnClockView | None:
        """Looks at the clock now.  None: the system's time is in force, nothing is against it."""

    async def set_clock_offset(self, offset_ms: int | None) -> None:
        """Add this to the time of the system until that is set; None: go by it again.

        Raises ConfigError for more than a hundred years.
        """

    # state ------------------------------------------------------------------------------------

    def connection(self) -> ConnectionView: ...

    def counters(self) -> Mapping[str, int]: ...
