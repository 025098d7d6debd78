"""The ``ChatEngine`` protocol: everything a user interface can ask of the engine.

Methods are commands or queries.  Any of them may raise ``StorageError``, which the user is shown,
and the errors its docstring names; the rest are bugs.  ``engine.runtime.engine`` implements it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from engine.answers import (
    FOUND_SIZE,
    PAGE_SIZE,
    ContactPreview,
    ForkProof,
    HolderView,
    InvitePreview,
    MessageInfo,
    ReactorView,
    SearchAnswer,
    TimelinePage,
    VersionView,
)
from engine.channel_commands import OpenChannels as OpenChannels  # noqa: PLC0414 - part of this API
from engine.core import content, emoji
from engine.core.blobs import manifest
from engine.core.content import Mention as Mention  # noqa: PLC0414 - part of this API
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.search import FoundPlace
from engine.delivery_views import MOST_IN_PAGE, DeliveryPage
from engine.events import (
    ConnectionView,
    ConversationView,
    FloodView,
    ForkView,
    GapView,
    HeldView,
    IdentityView,
    Listener,
    MessageView,
    OwnClockView,
    SearchIndexed,
)
from engine.fault_views import HasFaults
from engine.governing_commands import Governing as Governing  # noqa: PLC0414 - part of this API
from engine.history_views import HistoryView, StoreTestView, StoreView
from engine.inspection_views import Figures, MessageInspection
from engine.live_views import DeliveryWatch, PairDelivery
from engine.network_views import NetworkView

MAX_TEXT_BYTES = content.MAX_TEXT_BYTES
MAX_FILE_BYTES = content.MAX_FILE_BYTES
MAX_CAPTION_BYTES = content.MAX_CAPTION_BYTES
MAX_EMOJI_EACH = emoji.MAX_EMOJI_EACH
MAX_NAME_CHARACTERS = content.MAX_NAME_CHARACTERS
MAX_LARGE_FILE_BYTES = manifest.MAX_BLOB_BYTES
MAX_THUMBNAIL_BYTES = manifest.MAX_THUMBNAIL_BYTES
MAX_READ_BYTES = manifest.MAX_READ_BYTES


class Groups(Protocol):
    """Groups, and invitations to them.  ``engine.runtime.groups`` implements it."""

    async def create(self, name: str) -> ConversationId: ...

    async def make_invite_link(self, conversation_id: ConversationId) -> str: ...

    def preview_invite(self, link: str) -> InvitePreview:
        """Parse the link, without network or disk.  Raises InviteError with the reason."""

    async def join(self, link: str) -> ConversationId:
        """Join the group of an invitation link.  Raises InviteError if the link is unusable."""

    async def leave(self, conversation_id: ConversationId) -> None:
        """Notify the others if possible, then forget the group on this device."""

    async def set_member_muted(
        self, conversation_id: ConversationId, participant_id: ParticipantId, *, muted: bool
    ) -> None:
        """Hide or show a member's messages, on this device and in this group only.

        They are still received and kept.  Raises LocalProtocolError for a pair and for ourselves.
        """

    async def show_flood(
        self, conversation_id: ConversationId, participant_id: ParticipantId
    ) -> None:
        """Place what was set aside of this member, in steps, and all that comes today."""


class People(Protocol):
    """Contacts, and requests to talk.  ``engine.runtime.people`` implements it."""

    async def make_contact_link(self) -> str:
        """A link with which others can ask to talk to us.  It expires after 90 days."""

    def preview_contact(self, link: str) -> ContactPreview:
        """Parse the link, without network or disk.  Raises InviteError with the reason."""

    async def add(self, link: str) -> ConversationId:
        """Ask this person to talk, or accept if they asked already.  Raises InviteError."""

    async def ask_member(
        self, group_id: ConversationId, participant_id: ParticipantId
    ) -> ConversationId:
        """Ask another member of a group to talk, or accept if they asked already.

        Returns the conversation with them; one that is there stays as it is.  Raises CommandError:
        they or we are no member now, or their keys have not come.
        """

    async def accept(self, conversation_id: ConversationId) -> None:
        """Accept their request.  If either side declined before, ask again."""

    async def decline(self, conversation_id: ConversationId) -> None:
        """Decline their request.  They are notified; we may ask them later."""

    async def withdraw(self, conversation_id: ConversationId) -> None:
        """Withdraw our request.  Raises LocalProtocolError once they answered."""

    async def set_blocked(self, conversation_id: ConversationId, *, blocked: bool) -> None:
        """Block or unblock.  They are not notified; their messages are ignored while blocked."""

    async def remove(self, conversation_id: ConversationId) -> None:
        """Delete the person and the conversation on this device."""

    def verified(self) -> frozenset[ParticipantId]:
        """Those whose fingerprint or safety number the user compared.

        An id is the hash of the key that both are made of, so another key is another id.
        """

    async def set_verified(self, participant_id: ParticipantId, *, verified: bool) -> None:
        """Note that the user compared them, or takes it back.  Nobody is notified."""

    async def rename(self, conversation_id: ConversationId, name: str) -> None:
        """Name the contact on this device only; "" = the name they use.  Raises ConfigError."""


class Timeline(Protocol):
    """The messages of a conversation.  ``engine.runtime.timeline`` implements it."""

    async def send_text(
        self,
        conversation_id: ConversationId,
        text: str,
        *,
        reply_to: MessageId | None = None,
        mentions: Sequence[Mention] = (),
        forwarded: bool = False,
    ) -> MessageId:
        """Send a message of at most MAX_TEXT_BYTES bytes.

        Returns once it is durable.  Raises ConfigError if the text is empty or too long, or if a
        mention is at no "@" of it.
        """

    async def send_file(  # noqa: PLR0913 - one keyword per fact of the file
        self,
        conversation_id: ConversationId,
        *,
        name: str,
        media_type: str,
        data: bytes,
        caption: str = "",
        mentions: Sequence[Mention] = (),
        reply_to: MessageId | None = None,
        forwarded: bool = False,
        width: int = 0,
        height: int = 0,
    ) -> MessageId:
        """Send a picture or another file of at most MAX_FILE_BYTES bytes, in a group or a pair.

        Its name is cleaned; a path is cut off.  ``width`` and ``height`` are those of a picture, in
        pixels.  Returns once it is durable.  Raises ConfigError if it is empty or too large, if
        nothing is left of its name, or as ``send_text`` does for a caption of more than
        MAX_CAPTION_BYTES bytes.  Raises LocalProtocolError in an open channel.
        """

    async def file_data(self, conversation_id: ConversationId, message_id: MessageId) -> bytes:
        """The bytes of a message's file.  Only its sender says what they are.

        Raises LocalProtocolError if it is not here, has no file, or was retracted.
        """

    async def react(
        self, conversation_id: ConversationId, message_id: MessageId, emoji: str, *, active: bool
    ) -> Sequence[str]:
        """Choose an emoji for a message, or take it back.

        Return the emoji of ours that count no more, as only ``MAX_EMOJI_EACH`` of each member do.
        Raises ConfigError if it is not exactly one emoji, and LocalProtocolError if the message is
        not here or was retracted.
        """

    async def edit(
        self,
        conversation_id: ConversationId,
        message_id: MessageId,
        text: str,
        *,
        mentions: Sequence[Mention] = (),
    ) -> None:
        """Give a text of ours another text, or a file another caption.

        Raises as ``send_text`` and ``retract`` do.
        """

    async def retract(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        """Delete a text or file of ours for everybody.

        Others are asked to hide it, and do if they can.

        Raises LocalProtocolError if it is not here, not ours, or neither of the two.
        """

    async def versions(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[VersionView]:
        """The texts of a message, oldest first; their texts are empty once it is retracted."""

    async def reactors(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[ReactorView]:
        """Who reacted to a message, the earliest first."""

    async def info(self, conversation_id: ConversationId, message_id: MessageId) -> MessageInfo:
        """All that is known about a message.

        Raises LocalProtocolError if it is not in the timeline.
        """

    async def fetch_quoted(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        """Ask members and Stores for what the message ``message_id`` quotes, if it is not here.

        It is looked for like any missing message: ``GapUpdated`` tells how far, and lists it as
        lost once nobody has it.  It is asked for again when somebody new joins, and by another
        call.  In a one-to-one conversation, where messages cannot be asked for by their ids, Stores
        are asked for the time before the message.

        Raises CommandError if we were not given its key when we were let into the group.
        """

    async def set_typing(self, conversation_id: ConversationId, *, active: bool) -> None:
        """Send a typing notice: best effort, not stored.  May be called at every key press."""

    async def resend(self, conversation_id: ConversationId, message_id: MessageId) -> None: ...

    async def delete_locally(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        """Hide a message on this device.

        Others keep it and may still receive it, since the causal history names it.
        """

    async def fetch_missing(self, conversation_id: ConversationId) -> None:
        """Request missing messages again now."""

    async def fetch_lost(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId]
    ) -> None:
        """Ask members and Stores again for lost messages; they stay lost until they arrive.

        In a one-to-one conversation lost messages have no ids.  There ``message_ids`` are the
        messages before which they are missing (``LostView.before``); none means all that are lost.
        """

    async def latest_page(
        self, conversation_id: ConversationId, *, limit: int = PAGE_SIZE
    ) -> TimelinePage: ...

    async def page_before(
        self, conversation_id: ConversationId, position: Position, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        """Up to ``limit`` rows strictly before ``position``."""

    async def page_after(
        self, conversation_id: ConversationId, position: Position, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        """Up to ``limit`` rows strictly after ``position``."""

    async def page_around(
        self, conversation_id: ConversationId, position: Position, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        """Up to ``limit`` rows around ``position``, including the row at it if there is one."""

    async def gap(self, conversation_id: ConversationId) -> GapView | None:
        """What is missing; None if nothing is, or if the conversation is still being loaded.

        ``GapUpdated`` follows once it is loaded.
        """

    async def held(self, conversation_id: ConversationId) -> HeldView | None:
        """Messages held aside because they claim a time too far ahead; None if there are none."""

    async def holders(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[HolderView]:
        """One entry for every other member."""

    async def forks(self, conversation_id: ConversationId) -> Sequence[ForkView]:
        """Forks found here: authors who told different people different things."""

    async def fork_proof(self, fork: ForkView) -> ForkProof:
        """The proof of a fork.

        Raises LocalProtocolError if one of the two messages is no longer kept here.
        """

    async def floods(self, conversation_id: ConversationId) -> Sequence[FloodView]:
        """Members who exceeded their daily quota and still have messages set aside."""

    async def mark_read(self, conversation_id: ConversationId, up_to: Position) -> None:
        """Mark all rows up to and including ``up_to`` as read.  The mark never moves backwards."""

    async def save_draft(
        self, conversation_id: ConversationId, text: str, *, mentions: Sequence[Mention] = ()
    ) -> None:
        """Keep what was written and not sent, with the people whom it mentions."""


class Files(Protocol):
    """Files of more than MAX_FILE_BYTES, which travel apart from their messages.

    Conversations are groups and pairs.  Each but ``send``, ``save_as`` and ``shared`` is about a
    message whose ``FileView.state`` is not INLINE, and raises CommandError if there is none.
    """

    async def send(  # noqa: PLR0913 - one keyword per fact of the file
        self,
        conversation_id: ConversationId,
        path: str,
        *,
        name: str,
        media_type: str,
        caption: str = "",
        mentions: Sequence[Mention] = (),
        reply_to: MessageId | None = None,
        forwarded: bool = False,
        thumbnail: bytes = b"",
        width: int = 0,
        height: int = 0,
    ) -> MessageId:
        """Seal a copy of the file at ``path``, say so, and offer it to others.

        Of more than MAX_FILE_BYTES and at most MAX_LARGE_FILE_BYTES bytes; a smaller one is for
        ``Timeline.send_file``.  ``thumbnail``: PNG or JPEG of at most MAX_THUMBNAIL_BYTES; one that
        is not is left out.  Returns once the copy and the message are durable.  Raises ConfigError
        as ``Timeline.send_file`` does, and StorageError if the file cannot be read
        (``FILE_NOT_READ``) or there is no room for the copy.
        """

    async def forward(
        self, conversation_id: ConversationId, message_id: MessageId, to: ConversationId
    ) -> MessageId:
        """Send a complete file to another conversation, with its caption.

        Raises CommandError if it is not complete, and StorageError as ``send`` does.
        """

    async def shared(
        self,
        conversation_id: ConversationId,
        *,
        before: Position | None = None,
        limit: int = PAGE_SIZE,
    ) -> Sequence[MessageView]:
        """Messages with a file of any size, the newest first; those before ``before`` if given."""

    async def fetch(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        """Get it from others, or offer ours to nodes again.  It goes on after a restart."""

    async def pause(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        """What is here stays."""

    async def cancel(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        """Stop, and remove what is here of another's file; of ours only the offer to nodes ends."""

    async def let_go(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], *, unasked: bool
    ) -> Sequence[MessageId]:
        """Remove others' files that a connected member has, or all, and say so; return which."""

    async def save_as(
        self, conversation_id: ConversationId, message_id: MessageId, path: str
    ) -> None:
        """Write a complete file to ``path``, as a whole or not at all; one there is replaced.

        Also one that is INLINE.  On Windows and macOS, somebody else's says that it came from
        elsewhere.

        Raises StorageError (``FILE_NOT_WRITTEN``), and CommandError if it is not complete.
        """

    async def read(
        self,
        conversation_id: ConversationId,
        message_id: MessageId,
        *,
        limit: int = MAX_READ_BYTES,
    ) -> bytes:
        """The bytes of a complete file, for a picture to be shown.

        Raises CommandError if it is not complete or has more than ``limit`` bytes.
        """

    async def open_path(self, conversation_id: ConversationId, message_id: MessageId) -> str:
        """The path of a private copy with its name, for another program; removed at the end.

        Also one that is INLINE; with its message it is removed earlier.

        Raises CommandError if it is not complete.
        """


class History(Protocol):
    """Fetching from Stores, and the Stores.  ``engine.runtime.history.service`` implements it."""

    async def fetch(self, conversation_id: ConversationId, *, days: int | None) -> None:
        """Fetch the messages of the last ``days`` days from Stores; None fetches all.

        Returns once the request is durable.  Fetching continues in the background, also after a
        restart, until it is done or cancelled; ``HistoryChanged`` reports its progress.  Raises
        ConfigError for less than 1 day.
        """

    async def fetch_earlier(self, conversation_id: ConversationId) -> None:
        """Fetch a stretch before the oldest local message, further back with each call.

        The user interface calls it when the user scrolls past the beginning.  It does nothing while
        such a fetch runs.
        """

    async def cancel(self, conversation_id: ConversationId) -> None:
        """Cancel the fetches that the user asked for.  Messages already fetched stay."""

    def view(self, conversation_id: ConversationId) -> HistoryView | None:
        """The running or last fetch; None if there was none since the program started."""

    def stores(self) -> Sequence[StoreView]:
        """The Stores, in the order in which they are asked.  ``StoresChanged`` reports changes."""

    async def add_store(self, multiaddr: str) -> None:
        """Append a Store.  Raises ConfigError if the address is invalid or already listed."""

    async def remove_store(self, multiaddr: str) -> None:
        """Remove a Store.

        Raises ConfigError if the settings do not name it; so do ``move_store`` and
        ``enable_store``.
        """

    async def move_store(self, multiaddr: str, *, place: int) -> None:
        """Move a Store to this place, from 0, among those named in the settings."""

    async def enable_store(self, multiaddr: str, *, enabled: bool) -> None: ...

    async def test_store(self, multiaddr: str) -> StoreTestView:
        """Dial and query a Store, listed or not.  Takes up to 20 s.

        Raises ConfigError if the address is invalid.  Any other failure is the view's ``problem``.
        """


class Search(Protocol):
    """Finds messages in all conversations.  ``engine.runtime.search`` implements it."""

    async def find(  # noqa: PLR0913 - one keyword per filter
        self,
        text: str,
        *,
        conversation_id: ConversationId | None = None,
        sender_id: ParticipantId | None = None,
        since_ms: UnixMs | None = None,
        until_ms: UnixMs | None = None,
        has_file: bool = False,
        has_link: bool = False,
        before: FoundPlace | None = None,
        limit: int = FOUND_SIZE,
    ) -> SearchAnswer:
        """Messages with a word that begins with each word of ``text``, or a name of a file.

        Nothing in ``text`` is syntax.  ``before``: those before this hit, for the next page.
        Cancelling the call ends the search.
        """

    def indexed(self) -> SearchIndexed:
        """How far messages of an old profile can be found; the event tells of changes."""

    def set_indexing(self, *, active: bool) -> None:
        """Go on with the messages of an old profile, or pause until the next start."""


class Inspection(Protocol):
    """What is known of messages and their delivery, read only when it is asked for."""

    async def message(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> MessageInspection:
        """All that is known here of a message.  Raises CommandError if that is nothing."""

    async def delivery(
        self,
        conversation_id: ConversationId,
        *,
        before: Position | None = None,
        limit: int = MOST_IN_PAGE,
    ) -> DeliveryPage:
        """A part of the log with what is known of the delivery of each of its messages.

        The newest, or those before a place.  Raises CommandError if there is no conversation.
        """

    def watch(self, conversation_id: ConversationId) -> DeliveryWatch:
        """Begin to count what passes in a conversation.  Close it, or counting goes on."""

    async def pair(self, conversation_id: ConversationId) -> PairDelivery:
        """What MVDS still has to do between two people, the first 200 records."""

    async def figures(self) -> Figures:
        """How delivery goes in the most recent conversations, from their newest messages."""


class ChatEngine(HasFaults, Protocol):
    """One profile's chats.  Call its methods on the event loop that runs the engine."""

    def subscribe(self, listener: Listener, /) -> Callable[[], None]:
        """Call ``listener`` for every event, in order.  Returns a function that unsubscribes it."""

    @property
    def groups(self) -> Groups:
        """Raises LocalProtocolError before there is an identity; so do the next eight."""

    @property
    def open_channels(self) -> OpenChannels: ...

    @property
    def governing(self) -> Governing: ...

    @property
    def people(self) -> People: ...

    @property
    def timeline(self) -> Timeline: ...

    @property
    def files(self) -> Files: ...

    @property
    def history(self) -> History: ...

    @property
    def search(self) -> Search: ...

    @property
    def inspection(self) -> Inspection: ...

    def identity(self) -> IdentityView | None:
        """Our identity; None until ``create_identity`` has made one."""

    async def create_identity(self, name: str) -> IdentityView:
        """Raises LocalProtocolError if one exists, ConfigError if the name is unusable."""

    async def set_profile(self, *, name: str, picture: bytes) -> IdentityView:
        """Set our name and picture and send them to all contacts.  Raises ConfigError."""

    async def conversations(self) -> Sequence[ConversationView]:
        """All conversations, most recent activity first.

        One that is still being loaded shows nothing missing and nobody here; what is written or
        arrives meanwhile is handled once it is loaded, and ``ConversationChanged`` follows.
        """

    async def set_muted(
        self, conversation_id: ConversationId, *, muted: bool, for_ms: int | None = None
    ) -> None:
        """Mute, for ``for_ms`` or until it is unmuted; a mute that ends is told as a change.

        Raises LocalProtocolError if ``for_ms`` is no time, or more than a day.
        """

    def own_clock(self) -> OwnClockView | None:
        """Check the clock now.  None: no offset is set and there is no evidence against it."""

    async def set_clock_offset(self, offset_ms: int | None) -> None:
        """Add an offset in milliseconds to the system's time; None removes it.

        It is dropped when the system's time is set.  Raises ConfigError beyond a hundred years.
        """

    def connection(self) -> ConnectionView: ...

    def counters(self) -> Mapping[str, int]: ...

    def network(self) -> NetworkView: ...
