"""An engine in memory that does what a test tells it: every command works, and can be made to fail.

It keeps the contract of ``engine.api`` as the window sees it: rows ordered by position, pages by
key, and an event for every change, told after the change.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypedDict, Unpack

from msgspec.structs import replace

from engine.answers import PAGE_SIZE, HolderView, InvitePreview, TimelinePage
from engine.api import ChatEngine, Groups, History, Mention, OpenChannels, People, Timeline
from engine.core.errors import InviteError, LinkFlaw, LinkKind
from engine.core.ids import (
    ConversationId,
    DeliveryState,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.problems import ConnectionReason
from engine.events import (
    ClockJudged,
    ConnectionChanged,
    ConnectionLevel,
    ConnectionView,
    ConversationAdded,
    ConversationChanged,
    ConversationRemoved,
    ConversationView,
    DeliveryView,
    EngineEvent,
    GapPlace,
    GapUpdated,
    GapView,
    HeldUpdated,
    HeldView,
    IdentityView,
    Listener,
    MemberView,
    MessageAdded,
    MessageChanged,
    MessageKind,
    MessageRemoved,
    MessageView,
    OwnClockView,
    TimelineChanged,
)
from engine.file_views import FileView
from engine.network_views import NetworkFacts, NetworkView
from tests.ui.scripted_annotations import ScriptedAnnotations, quote_of, spans_in
from tests.ui.scripted_channels import ScriptedOpenChannels
from tests.ui.scripted_faults import ScriptedFaults
from tests.ui.scripted_files import ScriptedFiles
from tests.ui.scripted_governing import STRONG_LINK, ScriptedGoverning
from tests.ui.scripted_inspection import ScriptedInspection
from tests.ui.scripted_people import SAFETY_NUMBER, ScriptedPeople
from tests.ui.scripted_stores import ScriptedStores
from tests.ui.scripted_trouble import ScriptedTrouble

START_MS = 1_795_000_000_000
SELF_ID = ParticipantId("a" * 32)
FINGERPRINT = "4fd1 90ab 77c2 1e05"
GOOD_LINK = "causerie:join/good"
OFFLINE = ConnectionView(
    level=ConnectionLevel.OFFLINE,
    peers=0,
    reason=ConnectionReason.NOBODY_CONNECTED,
    bytes_in=0,
    bytes_out=0,
)


def member(name: str, *, is_self: bool = False, is_admin: bool = False) -> MemberView:
    participant_id = SELF_ID if is_self else ParticipantId(name.lower().ljust(32, "0")[:32])
    return MemberView(
        participant_id=participant_id,
        name=name,
        is_self=is_self,
        is_admin=is_admin,
        has_left=False,
        fingerprint=FINGERPRINT,
        safety_number="" if is_self else SAFETY_NUMBER,
    )


class Changes(TypedDict, total=False):
    """What ``ScriptedEngine.change`` may set."""

    members: tuple[MemberView, ...]
    unread: int
    first_unread: Position | None
    mentions: int
    first_mention: Position | None
    muted: bool
    muted_until_ms: UnixMs | None
    missing: int
    waiting_to_send: int
    failed: int
    draft: str
    key_is_lost: bool


class ScriptedEngine(
    ScriptedFaults,
    ScriptedTrouble,
    ScriptedStores,
    ScriptedPeople,
    ScriptedAnnotations,
    ScriptedGoverning,
    ChatEngine,
):
    def __init__(self, *, name: str | None = "Ines") -> None:
        self.blobs = ScriptedFiles()
        self.listeners: list[Listener] = []
        self.own: IdentityView | None = None if name is None else self._identity(name)
        self.views: dict[ConversationId, ConversationView] = {}
        self.rows: dict[ConversationId, dict[MessageId, MessageView]] = {}
        self.gaps: dict[ConversationId, GapView] = {}
        self.held_views: dict[ConversationId, HeldView] = {}
        self.holder_views: tuple[HolderView, ...] = ()
        self.clock_view: OwnClockView | None = None
        self.muted_rows: dict[ConversationId, dict[MessageId, MessageView]] = {}
        self.link_view: ConnectionView = OFFLINE
        self.network_view: NetworkView | None = None
        self.looks = 0
        """How often the network was looked at."""
        self.failures: dict[str, list[Exception]] = {}
        self.file_bytes: dict[MessageId, bytes] = {}
        self.gate = asyncio.Event()
        """``send_text`` waits while it is not set."""
        self.gate.set()
        self.calls: list[tuple[str, object]] = []
        self._lamport = 0
        self.scripted_channels = ScriptedOpenChannels(self)
        self.inspected = ScriptedInspection(self.rows)

    # --- the facets are all this one --------------------------------------------------------------

    @property
    def groups(self) -> Groups:
        return self

    @property
    def open_channels(self) -> OpenChannels:
        return self.scripted_channels

    @property
    def people(self) -> People:
        return self

    @property
    def timeline(self) -> Timeline:
        return self

    @property
    def files(self) -> ScriptedFiles:
        return self.blobs

    @property
    def history(self) -> History:
        return self

    @property
    def inspection(self) -> ScriptedInspection:
        return self.inspected

    # --- what a test does -------------------------------------------------------------------------

    def fail(self, method: str, error: Exception) -> None:
        """The next call of ``method`` raises."""
        self.failures.setdefault(method, []).append(error)

    def called(self, method: str) -> list[object]:
        return [argument for name, argument in self.calls if name == method]

    def tell(self, event: EngineEvent) -> None:
        for listener in tuple(self.listeners):
            listener(event)

    def connect(self, *, peers: int = 7) -> None:
        self.link_view = ConnectionView(
            level=ConnectionLevel.GOOD,
            peers=peers,
            reason=ConnectionReason.PEERS,
            bytes_in=3_900_000,
            bytes_out=1_230_000,
        )
        self.tell(ConnectionChanged(connection=self.link_view))

    def disconnect(self) -> None:
        self.link_view = OFFLINE
        self.tell(ConnectionChanged(connection=OFFLINE))

    def add_group(self, name: str, others: Iterable[str] = ("Maya",)) -> ConversationId:
        conversation_id = ConversationId(f"group-{len(self.views)}-{name}")
        members = (member("Ines", is_self=True), *(member(other) for other in others))
        members = (replace(members[0], is_admin=True), *members[1:])
        self.views[conversation_id] = ConversationView(
            conversation_id=conversation_id,
            name=name,
            members=members,
            unread=0,
            first_unread=None,
            muted=False,
            last_message=None,
            missing=0,
            waiting_to_send=0,
            failed=0,
            created_ms=UnixMs(START_MS + len(self.views)),
            draft="",
        )
        self.rows[conversation_id] = {}
        self.tell(ConversationAdded(conversation=self.views[conversation_id]))
        return conversation_id

    def receive(
        self,
        conversation_id: ConversationId,
        sender: str,
        text: str,
        *,
        minute: int = 0,
        notify: bool = True,
    ) -> MessageView:
        """Somebody else's message arrives; it is unread until the window says otherwise."""
        row = self.row(conversation_id, member(sender), text, minute)
        self.arrive(row, notify=notify)
        return row

    def arrive(self, message: MessageView, *, notify: bool = True) -> None:
        conversation_id = message.conversation_id
        self.rows[conversation_id][message.message_id] = message
        view = self.views[conversation_id]
        first = view.first_unread if view.unread else message.position
        self.tell(MessageAdded(message=message, notify=notify and not view.muted))
        self.change(conversation_id, unread=view.unread + 1, first_unread=first)

    def change(self, conversation_id: ConversationId, **changes: Unpack[Changes]) -> None:
        """A new state of the conversation, told to the window."""
        rows = sorted(self.rows[conversation_id].values(), key=lambda row: row.position)
        view = replace(self.views[conversation_id], last_message=rows[-1] if rows else None)
        self.views[conversation_id] = replace(view, **changes)
        self.tell(ConversationChanged(conversation=self.views[conversation_id]))

    def set_gap(self, conversation_id: ConversationId, missing: int) -> None:
        gap = GapView(
            conversation_id=conversation_id,
            missing=missing,
            waiting=1,
            places=(
                GapPlace(
                    missing=missing,
                    waiting=1,
                    since_ms=UnixMs(START_MS),
                    requests=1,
                    next_request_ms=UnixMs(START_MS + 12_000),
                ),
            ),
        )
        if missing:
            self.gaps[conversation_id] = gap
        else:
            self.gaps.pop(conversation_id, None)
        self.tell(GapUpdated(conversation_id=conversation_id, gap=gap if missing else None))
        self.change(conversation_id, missing=missing)

    def set_held(self, conversation_id: ConversationId, held: HeldView | None) -> None:
        self.held_views.pop(conversation_id, None)
        if held is not None:
            self.held_views[conversation_id] = held
        self.tell(HeldUpdated(conversation_id=conversation_id, held=held))

    def judge_clock(self, clock: OwnClockView | None) -> None:
        self.clock_view = clock
        self.tell(ClockJudged(clock=clock))

    def deliver(
        self, conversation_id: ConversationId, message_id: MessageId, delivery: DeliveryView
    ) -> None:
        row = replace(self.rows[conversation_id][message_id], delivery=delivery)
        self.rows[conversation_id][message_id] = row
        self.tell(MessageChanged(message=row))
        failed = sum(
            1
            for other in self.rows[conversation_id].values()
            if other.delivery is not None and other.delivery.state is DeliveryState.FAILED
        )
        self.change(conversation_id, failed=failed)

    # --- ChatEngine: clock ------------------------------------------------------------------------

    def own_clock(self) -> OwnClockView | None:
        return self.clock_view

    async def set_clock_offset(self, offset_ms: int | None) -> None:
        """As the real one does: what was said of the clock before is past."""
        self._enter("set_clock_offset", offset_ms)
        since_ms = UnixMs(START_MS)
        self.judge_clock(
            OwnClockView(offset_ms=offset_ms, since_ms=since_ms) if offset_ms else None
        )

    # --- ChatEngine: identity and conversations ---------------------------------------------------

    def subscribe(self, listener: Listener, /) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def identity(self) -> IdentityView | None:
        return self.own

    async def create_identity(self, name: str) -> IdentityView:
        self._enter("create_identity", name)
        self.own = self._identity(name)
        return self.own

    async def conversations(self) -> Sequence[ConversationView]:
        self._enter("conversations", None)
        return tuple(self.views.values())

    async def create(self, name: str) -> ConversationId:
        self._enter("create_group", name)
        return self.add_group(name, others=())

    async def make_invite_link(self, conversation_id: ConversationId) -> str:
        self._enter("make_invite_link", conversation_id)
        return f"{GOOD_LINK}/{conversation_id}"

    def preview_invite(self, link: str) -> InvitePreview:
        if not link.startswith(GOOD_LINK):
            flaw = LinkFlaw.CUT_OFF if link.startswith("causerie:join/") else LinkFlaw.FOREIGN
            raise InviteError(flaw, LinkKind.INVITATION)
        return InvitePreview(
            conversation_id=self.link_over or ConversationId("joined"),
            is_over=bool(self.link_over),
            group_name="Tide Gauge",
            inviter_name="Maya",
            admin_fingerprint=FINGERPRINT,
            node_addresses=("/dns4/quay.harbour.example/tcp/443/wss",),
            already_joined=ConversationId("joined") in self.views,
            asks_first=link.startswith(STRONG_LINK),
        )

    async def join(self, link: str) -> ConversationId:
        self._enter("join_group", link)
        made = self.add_group("Tide Gauge", others=("Maya", "Jonas"))
        view = replace(self.views.pop(made), conversation_id=ConversationId("joined"))
        self.rows[view.conversation_id] = self.rows.pop(made)
        self.views[view.conversation_id] = view
        self.tell(ConversationRemoved(conversation_id=made))
        self.tell(ConversationAdded(conversation=view))
        return view.conversation_id

    async def leave(self, conversation_id: ConversationId) -> None:
        self._enter("leave_group", conversation_id)
        del self.views[conversation_id]
        del self.rows[conversation_id]
        self.tell(ConversationRemoved(conversation_id=conversation_id))

    async def set_muted(
        self, conversation_id: ConversationId, *, muted: bool, for_ms: int | None = None
    ) -> None:
        self._enter("set_muted", (muted, for_ms))
        until_ms = UnixMs(START_MS + for_ms) if muted and for_ms is not None else None
        self.change(conversation_id, muted=muted, muted_until_ms=until_ms)

    async def set_member_muted(
        self, conversation_id: ConversationId, participant_id: ParticipantId, *, muted: bool
    ) -> None:
        """Their rows go, and come back."""
        self._enter("set_member_muted", (participant_id, muted))
        rows = self.rows[conversation_id]
        aside = self.muted_rows.setdefault(conversation_id, {})
        source, target = (rows, aside) if muted else (aside, rows)
        for row in [row for row in source.values() if row.sender_id == participant_id]:
            target[row.message_id] = source.pop(row.message_id)
        self.tell(TimelineChanged(conversation_id=conversation_id))
        members = self.views[conversation_id].members
        self.change(
            conversation_id,
            members=tuple(
                replace(one, is_muted=muted) if one.participant_id == participant_id else one
                for one in members
            ),
        )

    async def mark_read(self, conversation_id: ConversationId, up_to: Position) -> None:
        self._enter("mark_read", up_to)
        rows = sorted(self.rows[conversation_id].values(), key=lambda row: row.position)
        unread = [
            row.position
            for row in rows
            if not row.is_own and row.kind is MessageKind.TEXT and row.position > up_to
        ]
        first = unread[0] if unread else None
        self.change(conversation_id, unread=len(unread), first_unread=first)

    async def save_draft(
        self, conversation_id: ConversationId, text: str, *, mentions: Sequence[Mention] = ()
    ) -> None:
        self._enter("save_draft", text)
        if conversation_id in self.views:
            kept = {"draft": text, "draft_mentions": tuple(mentions)}
            self.views[conversation_id] = replace(self.views[conversation_id], **kept)

    # --- ChatEngine: messages ---------------------------------------------------------------------

    async def send_text(
        self,
        conversation_id: ConversationId,
        text: str,
        *,
        reply_to: MessageId | None = None,
        mentions: Sequence[Mention] = (),
        forwarded: bool = False,
    ) -> MessageId:
        await self.gate.wait()
        self._enter("send_text", text)
        self._enter("mentions", tuple(mentions))
        view = self.views[conversation_id]
        row = self.row(conversation_id, member("Ines", is_self=True), text)
        others = len(view.members) - 1
        quoted = self.rows[conversation_id].get(reply_to) if reply_to is not None else None
        row = replace(
            row,
            delivery=DeliveryView(state=DeliveryState.SAVED, of=others),
            quote=None if quoted is None else quote_of(quoted),
            spans=spans_in(text, mentions),
            forwarded=forwarded,
        )
        self.rows[conversation_id][row.message_id] = row
        self.tell(MessageAdded(message=row, notify=False))
        self.change(conversation_id)
        return row.message_id

    async def send_file(  # noqa: PLR0913 - what a file is sent with
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
        self._enter("send_file", (name, media_type, len(data), caption))
        sent = await self.send_text(
            conversation_id, caption, reply_to=reply_to, mentions=mentions, forwarded=forwarded
        )
        file = FileView(
            name=name, media_type=media_type, size=len(data), width=width, height=height
        )
        self.file_bytes[sent] = data
        row = self.rows[conversation_id][sent]
        self.alter(replace(row, kind=MessageKind.FILE, file=file))
        self.change(conversation_id)
        return sent

    async def file_data(self, conversation_id: ConversationId, message_id: MessageId) -> bytes:
        self._enter("file_data", message_id)
        return self.file_bytes[message_id]

    async def set_typing(self, conversation_id: ConversationId, *, active: bool) -> None:
        self._enter("set_typing", active)

    async def resend(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        self._enter("resend", message_id)
        delivery = DeliveryView(state=DeliveryState.SAVED, of=1)
        self.deliver(conversation_id, message_id, delivery)

    async def delete_locally(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        self._enter("delete_locally", message_id)
        del self.rows[conversation_id][message_id]
        self.tell(MessageRemoved(conversation_id=conversation_id, message_id=message_id))
        self.change(conversation_id)

    async def fetch_missing(self, conversation_id: ConversationId) -> None:
        self._enter("fetch_missing", conversation_id)

    async def fetch_lost(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId]
    ) -> None:
        self._enter("fetch_lost", (conversation_id, tuple(message_ids)))

    async def latest_page(
        self, conversation_id: ConversationId, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        self._enter("latest_page", conversation_id)
        total = len(self.rows[conversation_id])
        return self._page(conversation_id, max(0, total - limit), total)

    async def page_before(
        self, conversation_id: ConversationId, position: Position, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        end = self._count_before(conversation_id, position)
        return self._page(conversation_id, max(0, end - limit), end)

    async def page_after(
        self, conversation_id: ConversationId, position: Position, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        ordered = self._ordered(conversation_id)
        start = sum(1 for row in ordered if row.position <= position)
        return self._page(conversation_id, start, min(len(ordered), start + limit))

    async def page_around(
        self, conversation_id: ConversationId, position: Position, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        middle = self._count_before(conversation_id, position)
        total = len(self.rows[conversation_id])
        return self._page(
            conversation_id, max(0, middle - limit // 2), min(total, middle + limit // 2)
        )

    async def gap(self, conversation_id: ConversationId) -> GapView | None:
        return self.gaps.get(conversation_id)

    async def held(self, conversation_id: ConversationId) -> HeldView | None:
        return self.held_views.get(conversation_id)

    async def holders(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[HolderView]:
        self._enter("holders", message_id)
        return self.holder_views

    def connection(self) -> ConnectionView:
        return self.link_view

    def counters(self) -> Mapping[str, int]:
        return {}

    def network(self) -> NetworkView:
        self.looks += 1
        return self.network_view or NetworkView(
            at_ms=UnixMs(START_MS),
            connection=self.link_view,
            facts=NetworkFacts(),
            addresses=(),
            stores=(),
            people=(),
        )

    # --- inside -----------------------------------------------------------------------------------

    def _enter(self, method: str, argument: object) -> None:
        waiting = self.failures.get(method)
        if waiting:
            raise waiting.pop(0)
        self.calls.append((method, argument))

    def _identity(self, name: str) -> IdentityView:
        return IdentityView(
            participant_id=SELF_ID,
            name=name,
            fingerprint=FINGERPRINT,
            key_storage="system keyring",
        )

    def row(
        self, conversation_id: ConversationId, sender: MemberView, text: str, minute: int = 0
    ) -> MessageView:
        """A new row at the end, not told to anybody yet."""
        self._lamport += 1
        message_id = MessageId(f"m{self._lamport:05}")
        return MessageView(
            conversation_id=conversation_id,
            position=Position(lamport_timestamp=self._lamport, message_id=message_id),
            sender_id=sender.participant_id,
            sender_name=sender.name,
            is_own=sender.is_self,
            kind=MessageKind.TEXT,
            text=text,
            spans=spans_in(text),
            sent_ms=UnixMs(START_MS + minute * 60_000 + self._lamport),
            delivery=None,
        )

    def _ordered(self, conversation_id: ConversationId) -> list[MessageView]:
        return sorted(self.rows[conversation_id].values(), key=lambda row: row.position)

    def _count_before(self, conversation_id: ConversationId, position: Position) -> int:
        return sum(1 for row in self._ordered(conversation_id) if row.position < position)

    def _page(self, conversation_id: ConversationId, start: int, end: int) -> TimelinePage:
        rows = self._ordered(conversation_id)
        return TimelinePage(
            messages=tuple(rows[start:end]),
            has_older=start > 0,
            has_newer=end < len(rows),
            older_count=start,
            total=len(rows),
        )
