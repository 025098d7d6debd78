"""One conversation on screen: header, timeline, composer, and the commands they give.

It passes engine events for the open conversation on to its parts, and nothing for any other.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

from msgspec.structs import replace
from PySide6.QtCore import QRect, Qt, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from engine.api import ChatEngine
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.events import ConversationView, GapView, HeldView, MessageView
from engine.governance_views import GovernanceView
from ui.beads import MAX_BEADS, Recent
from ui.conversation_words import is_alone
from ui.emoji.window_emoji import WindowEmoji
from ui.file_choice import Folders
from ui.foreign_text import one_line
from ui.mute_entries import MuteChoice
from ui.people import Answer, cannot_write_words, faces_of, groups_with, lost_request
from ui.settings import UiSettings
from ui.tasks import Tasks
from ui.theme import current_theme
from ui.timeline.geometry import NARROW_WINDOW, column_edge
from ui.timeline.rows import is_system
from ui.timeline.view import TimelineView
from ui.translate import tr
from ui.window.alone_hint import AloneHint
from ui.window.answering import Answering
from ui.window.attaching import Attaching
from ui.window.attachment_bar import AttachmentBar
from ui.window.composer import Composer
from ui.window.composer_bar import ComposerBar
from ui.window.contact_bar import ContactBar
from ui.window.drop_hint import DropHint
from ui.window.find_bar import FindBar
from ui.window.header import ConversationHeader
from ui.window.message_commands import MessageCommands
from ui.window.muted_bar import MutedBar
from ui.window.open_bar import OpenBar
from ui.window.pane_governance import PaneGovernance
from ui.window.pane_history import PaneHistory
from ui.window.received_files import ReceivedFiles
from ui.window.shared_links import SharedLinks
from ui.window.unsent import UnsentTexts
from ui.window.writing import Writing

_HEADER_MS = 50
"""What was said is shown first, and the header once for all that comes meanwhile."""


def _shows_the_same(before: ConversationView, after: ConversationView) -> bool:
    """Nothing changed but what every message changes."""
    return before == replace(
        after,
        last_message=before.last_message,
        last_annotation=before.last_annotation,
        mentions=before.mentions,
        first_mention=before.first_mention,
        unread=before.unread,
        first_unread=before.first_unread,
        waiting_to_send=before.waiting_to_send,
    )


class ConversationPane(QWidget):
    delete_requested = Signal(MessageView)
    discard_requested = Signal(str)
    holders_requested = Signal(str)
    forward_requested = Signal(MessageView)
    reactions_requested = Signal(str)
    info_requested = Signal(str)
    versions_requested = Signal(str)
    link_activated = Signal(str)
    file_open_requested = Signal(MessageView)
    load_failed = Signal(str)
    block_requested = Signal()
    stores_requested = Signal()
    opened = Signal()
    """Another conversation is open, or none."""

    def __init__(  # noqa: PLR0913 - what a conversation needs around it
        self,
        engine: ChatEngine,
        tasks: Tasks,
        outbox: UnsentTexts,
        now: Callable[[], datetime],
        *,
        emoji: WindowEmoji,
        settings: UiSettings,
        conversations: Callable[[], Iterable[ConversationView]] = tuple,
    ) -> None:
        """``conversations``: all that there are; whom one talks to has a picture in groups, too."""
        super().__init__()
        self._engine = engine
        self._tasks = tasks
        self._outbox = outbox
        self._emoji = emoji
        self._conversations = conversations
        self._conversation: ConversationView | None = None
        self._gap: GapView | None = None
        self._recent = Recent()
        self._edges: tuple[int, int] | None = None
        """How far what stands above and below the timeline is from both sides."""
        self.header = ConversationHeader(now)
        self.timeline = TimelineView(
            lambda: engine.timeline,
            names=self._name_of,
            now_ms=lambda: UnixMs(int(now().timestamp() * 1_000)),
            faces_of=lambda group: faces_of(group, conversations()),
            describe=SharedLinks(engine).describe,
            parent=self,
        )
        self.timeline.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.muted_bar = MutedBar()
        self.contact_bar = ContactBar()
        self._answering = Answering(engine, tasks, self.contact_bar)
        self.governance = PaneGovernance(engine, conversations, self)
        self.composer_bar = ComposerBar(self.timeline.scene.shown_pictures.quoted)
        self.open_bar = OpenBar(self.header.export_requested.emit, self.header.leave_requested.emit)
        self.composer = Composer()
        self.attachment_bar = AttachmentBar()
        self.folders = Folders(settings)
        self.attaching = Attaching(tasks, self.composer, self.attachment_bar, self, self.folders)
        self.files = ReceivedFiles(
            engine,
            tasks,
            self.timeline.scene.shown_pictures,
            self,
            folders=self.folders,
            loaded=lambda: self.timeline.scene.loaded.messages,
        )
        self.writing = Writing(
            engine,
            tasks,
            outbox,
            self.composer,
            self.composer_bar,
            self.attaching,
            last_own=self.timeline.last_own,
            tells_typing=lambda: settings.tell_typing,
            parent=self,
        )
        self.chat = QWidget()
        """All below the header, unless ``_instead`` is shown there."""
        self._instead: QWidget | None = None
        self.alone_hint = AloneHint(self.chat)
        self.drop_hint = DropHint(self)
        self.about = MessageCommands(engine, tasks, self._open_id, self)
        self.finding = FindBar(engine, tasks, self._open_id)
        self._lay_out()
        self.history = PaneHistory(engine, tasks, self.header, self.timeline, self.chat)
        self._header_soon = QTimer(self, singleShot=True)
        self._header_soon.timeout.connect(self._show_header)
        self._typing: tuple[str, ...] = ()
        self._connect()

    def _lay_out(self) -> None:
        above: tuple[QWidget, ...] = (self.finding, self.muted_bar, self.governance.asking)
        below: tuple[QWidget, ...] = (
            self.contact_bar,
            self.governance.namesake,
            self.governance.out,
            self.composer_bar,
            self.attachment_bar,
            self.open_bar,
            self.composer,
        )
        layout, self._column = QVBoxLayout(self.chat), QVBoxLayout(self)
        for column in (layout, self._column):
            column.setContentsMargins(0, 0, 0, 0)
            column.setSpacing(0)
        self._strips = (self.header, *above, *below)
        for part in (*above, self.timeline, *below):
            layout.addWidget(part, int(part is self.timeline))
        self._column.addWidget(self.header)
        self._column.addWidget(self.chat, 1)

    def _connect(self) -> None:
        self.setAcceptDrops(True)
        self.drop_hint.dropped.connect(self.attaching.take_mime)
        self.composer.completions.add(self._emoji.completion())
        self.composer.emoji_requested.connect(self.ask_emoji)
        self.finding.chosen.connect(self.timeline.show_found)
        self.finding.unchosen.connect(self.timeline.leave_found)
        self.finding.searched.connect(self.timeline.mark_found)
        self.finding.closed.connect(self.take_focus)
        self.writing.sent.connect(self.timeline.go_on_after_own)
        self.header.mute_requested.connect(self._mute_open)
        self.muted_bar.show_requested.connect(self._unmute_member)
        self.header.beads.missing_chosen.connect(self._go_to_gap)
        self.header.focus_left.connect(self.composer.box.setFocus)
        self.header.unblock_requested.connect(lambda: self._answer(Answer.UNBLOCK))
        self.timeline.canvas.rows_placed.connect(self._share_axis)
        self.alone_hint.invite_requested.connect(self.header.invite_requested)
        self.history.bar_made.connect(self._share_axis_anew)
        self.contact_bar.answered.connect(self._answer)
        self.contact_bar.fitted.connect(self._share_room)
        self.timeline.visibleUpTo.connect(self._mark_read)
        self.timeline.fetchRequested.connect(self._fetch)
        self.timeline.lostRequested.connect(self._fetch_lost)
        self.timeline.resendRequested.connect(self._resend)
        self.timeline.discardRequested.connect(self.discard_requested)
        self.timeline.deleteRequested.connect(self.delete_requested)
        self.timeline.fileOpened.connect(self.files.open)
        self.timeline.fileSaveRequested.connect(self.files.save)
        self.timeline.fileActRequested.connect(self.files.act)
        self.files.open_requested.connect(self.file_open_requested)
        self.timeline.replyRequested.connect(self.writing.reply)
        self.timeline.editRequested.connect(self.writing.edit)
        self.timeline.forwardRequested.connect(self.forward_requested)
        self.timeline.reactionRequested.connect(self.about.toggle_reaction)
        self.timeline.reactionPickRequested.connect(self._pick_reaction)
        self.timeline.reactionsRequested.connect(self.reactions_requested)
        self.timeline.infoRequested.connect(self.info_requested)
        self.timeline.versionsRequested.connect(self.versions_requested)
        self.timeline.quotedRequested.connect(self.about.fetch_quoted)
        self.timeline.holdersRequested.connect(self.holders_requested)
        self.timeline.linkActivated.connect(self.link_activated)
        self.timeline.loadFailed.connect(self.load_failed)
        self.history.stores_requested.connect(self.stores_requested)

    # --- what is open -----------------------------------------------------------------------------

    @property
    def conversation(self) -> ConversationView | None:
        return self._conversation

    def is_open(self, conversation_id: ConversationId) -> bool:
        return (
            self._conversation is not None and self._conversation.conversation_id == conversation_id
        )

    def open(self, conversation: ConversationView) -> None:
        self.leave()
        self._conversation = conversation
        self._typing = ()
        self.header.show_typing(())
        self.header.show_conversation(conversation, ())
        self.muted_bar.show_muted(conversation)
        self.timeline.open(conversation)
        self.writing.open(conversation)
        self.judge_standing()
        self.history.open(conversation.conversation_id)
        self._fill(conversation.conversation_id)
        self.opened.emit()

    def show_instead(self, shown: QWidget | None) -> None:
        """Something else than the chat; None: the chat.  What is not shown any more is deleted."""
        before, self._instead = self._instead, shown
        if shown is not None:
            self._column.addWidget(shown, 1)
        self.chat.setVisible(shown is None)
        if before is not None:
            self._column.removeWidget(before)
            before.hide()
            before.deleteLater()

    def read_again(self) -> None:
        """Many rows came or went at once: all that was read of the conversation is out of date."""
        if self._conversation is not None:
            self._recent.clear()
            self.timeline.open(self._conversation)
            self._fill(self._conversation.conversation_id)

    def _fill(self, conversation_id: ConversationId) -> None:
        async def fill() -> None:
            page = await self._engine.timeline.latest_page(conversation_id, limit=MAX_BEADS)
            gap = await self._engine.timeline.gap(conversation_id)
            held = await self._engine.timeline.held(conversation_id)
            if self.is_open(conversation_id):
                for message in page.messages:
                    self._recent.put(message)
                self._show_header()
                self.set_gap(gap)
                self.timeline.set_held(held)

        self._tasks.spawn(fill, purpose=tr("read the conversation"))

    def leave(self) -> None:
        """Keep what was written and let go of the conversation."""
        if self._conversation is None:
            return
        self.writing.leave()
        self._let_go()

    def forget(self) -> None:
        """The conversation is gone, and with it its draft."""
        self._let_go()

    def _let_go(self) -> None:
        self._conversation = self._gap = None
        self.finding.forget()
        self.writing.forget()
        self._recent.clear()
        self._show_alone()
        self.history.leave()
        self.contact_bar.show_standing(None)
        self.governance.show_of(None)
        self.header.show_governance(None)
        self._share_room()
        self.open_bar.show_standing(None)
        self.muted_bar.show_muted(None)
        self.timeline.clear()
        self.composer.set_text("")
        self.composer.block(tr("Choose a conversation first"))
        self.opened.emit()

    def refresh(self, conversation: ConversationView) -> None:
        """The open conversation's name, members or counts changed."""
        before = self._conversation
        if self.is_open(conversation.conversation_id):
            self._conversation = conversation
            self.timeline.update_conversation(conversation)
            self.writing.refresh(conversation)
            self.muted_bar.show_muted(conversation)
            self.judge_standing()
            if before is not None and _shows_the_same(before, conversation):
                self._change_header()
            else:
                self._show_header()

    def show_verified(self, verified: frozenset[ParticipantId]) -> None:
        self.header.show_verified(verified)
        self.timeline.show_verified(verified)
        if self._conversation is not None:
            self._show_header()

    def areas(self) -> tuple[QWidget, ...]:
        """What F6 leads to, in order."""
        if self._instead is not None:
            return (self._instead,)
        governance = self.governance
        bars = (self.contact_bar, governance.namesake, governance.out)
        asking = governance.asking
        return (self.muted_bar.button, asking, self.timeline, *bars, self.composer.box)

    def take_focus(self) -> None:
        """Where one writes, or if one cannot: what says why."""
        if self._instead is not None:
            self._instead.setFocus()
            return
        if self.composer.box.isEnabled():
            self.composer.box.setFocus()
            return
        bars = (self.contact_bar, self.governance.namesake, self.governance.out)
        for bar in (bar for bar in bars if bar.isVisibleTo(self)):
            bar.setFocus()

    def ask_emoji(self) -> None:
        """For the text that one writes."""
        if self.composer.emoji.isEnabled() and self.composer.isVisible():
            self._emoji.ask(self.composer.emoji, self._insert_emoji)

    def _insert_emoji(self, emoji: str) -> None:
        self.composer.insert(emoji)
        self.composer.box.setFocus()

    def _pick_reaction(self, message: MessageView) -> None:
        """Any emoji, in a picker that leaves the message to be seen."""
        place = self.timeline.place_of(message.message_id)
        anchor = QRect(self.window().mapFromGlobal(place.topLeft()), place.size())
        self._emoji.ask(anchor, partial(self.about.react, message))

    def _share_room(self) -> None:
        """Large letters in a narrow window: the bar says all that the composer would."""
        instead = self.contact_bar.is_column or self.governance.replaces_composer
        self.composer.setVisible(not instead)

    def judge_standing(self, told: GovernanceView | None = None) -> None:
        """Two people write to each other once both want to; until then the bar says why not.

        In a governed group those write who are in it.  ``told``: how it is governed from now on.
        """
        conversation = self._conversation
        if conversation is None:
            return
        focused: QWidget | None = self.window().focusWidget()  # Also while one looks elsewhere.
        bars = (self.contact_bar, self.governance.namesake, self.governance.out)
        had_focus = any(focused is bar or bar.isAncestorOf(focused) for bar in bars if focused)
        wrote = focused is self.composer.box
        who = None if conversation.contact is None else conversation.contact.participant_id
        groups = () if who is None else groups_with(who, self._conversations())
        self.contact_bar.show_standing(conversation, groups)
        self.open_bar.show_standing(conversation)
        before = self.governance.view
        self.governance.show_of(conversation, told)
        if self.governance.view != before:
            self.header.show_governance(self.governance.view)
            self._show_header()
        self._share_room()
        reason = cannot_write_words(conversation) or self.governance.reason
        # In an open channel only text is understood: no files, and nothing about messages.
        is_open = conversation.open_channel is not None
        self.timeline.allow_writing(not reason and not is_open)
        self.composer.allow_files(allowed=not is_open)
        if reason:
            self.writing.cancel()
            self.composer.block(reason)
        else:
            self.composer.address(conversation.name)
        if had_focus or (wrote and reason):
            self.take_focus()

    # --- engine events for the open conversation --------------------------------------------------

    def add(self, *messages: MessageView) -> None:
        for message in messages[-MAX_BEADS:]:
            self._recent.put(message)
        self._change_header()
        self.timeline.add(*messages)

    def change(self, message: MessageView) -> None:
        self._recent.put(message)
        self._change_header()
        self.writing.changed(message)
        self.timeline.change(message)

    def remove(self, message_id: MessageId) -> None:
        self._recent.remove(message_id)
        self.writing.removed(message_id)
        self._change_header()
        self.timeline.remove(message_id)

    def show_typing(self, names: tuple[str, ...]) -> None:
        self._typing = names
        self._change_header()

    def set_gap(self, gap: GapView | None) -> None:
        self._gap = gap
        self.timeline.set_gap(gap)

    def _go_to_gap(self) -> None:
        places = () if self._gap is None else self._gap.places
        before = next((place.before for place in places if place.before is not None), None)
        if before is not None:
            self.timeline.go_to(before)
        else:
            self.timeline.go_to_newest()
        self.timeline.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_held(self, held: HeldView | None) -> None:
        self.timeline.set_held(held)

    # --- commands ---------------------------------------------------------------------------------

    def _open_id(self) -> ConversationId | None:
        return None if self._conversation is None else self._conversation.conversation_id

    def _mark_read(self, position: Position) -> None:
        if (open_id := self._open_id()) is not None:
            self.mark_read(open_id, position)

    def mark_read(self, conversation_id: ConversationId, position: Position) -> None:
        """The open one or any other."""

        async def work() -> None:
            await self._engine.timeline.mark_read(conversation_id, position)

        self._tasks.spawn(work, purpose=tr("remember what was read"), retry=False)

    def _mute_open(self, choice: MuteChoice) -> None:
        if (open_id := self._open_id()) is not None:
            self.mute(open_id, choice)

    def mute(self, conversation_id: ConversationId, choice: MuteChoice) -> None:
        """The open one or any other."""

        async def work() -> None:
            await self._engine.set_muted(conversation_id, muted=choice.muted, for_ms=choice.for_ms)

        purpose = tr("mute the conversation") if choice.muted else tr("unmute the conversation")
        self._tasks.spawn(work, purpose=purpose)

    def _unmute_member(self, participant_id: ParticipantId) -> None:
        if (open_id := self._open_id()) is not None:

            async def work() -> None:
                await self._engine.groups.set_member_muted(open_id, participant_id, muted=False)

            self._tasks.spawn(work, purpose=tr("show the member's messages"))

    def _answer(self, answer: Answer) -> None:
        """What was pressed in the bar.  Blocking asks first, so it is led from elsewhere."""
        open_id = self._open_id()
        if open_id is None:
            return
        if answer is Answer.BLOCK:
            self.block_requested.emit()
            return
        if answer is Answer.SEND_AGAIN:
            self._resend_request()
            return
        self._answering.answer(open_id, answer)

    def _fetch(self) -> None:
        if (open_id := self._open_id()) is not None:

            async def work() -> None:
                await self._engine.timeline.fetch_missing(open_id)

            self._tasks.spawn(work, purpose=tr("ask for the missing messages"))

    def _fetch_lost(self, message_ids: tuple[MessageId, ...]) -> None:
        if (open_id := self._open_id()) is not None:

            async def work() -> None:
                await self._engine.timeline.fetch_lost(open_id, message_ids)

            self._tasks.spawn(work, purpose=tr("ask for the lost messages"))

    def _resend_request(self) -> None:
        lost = None if self._conversation is None else lost_request(self._conversation)
        if lost is not None:
            self._resend(lost)

    def _resend(self, message_id: MessageId) -> None:
        if (open_id := self._open_id()) is not None:

            async def work() -> None:
                await self._engine.timeline.resend(open_id, message_id)

            self._tasks.spawn(work, purpose=tr("send the message again"))

    # --- looks ------------------------------------------------------------------------------------

    def _name_of(self, participant_id: ParticipantId) -> str:
        members = () if self._conversation is None else self._conversation.members
        for member in members:
            if member.participant_id == participant_id:
                return one_line(member.name, 40)
        return tr("somebody")

    def _change_header(self) -> None:
        if not self._header_soon.isActive():
            self._header_soon.start(_HEADER_MS)

    def _show_header(self) -> None:
        if self._conversation is not None:
            self.header.show_typing(self._typing)
            self.header.show_conversation(self._conversation, self._recent.last())
            self._show_alone()

    def _show_alone(self) -> None:
        """Until one has written something: then it would stand over it."""
        conversation, said = self._conversation, self._recent.last()
        wanted = (
            conversation is not None
            and is_alone(conversation)
            and not self.governance.replaces_composer
            and all(is_system(message) for message in said)
        )
        self.alone_hint.show_in(self.timeline.geometry(), wanted=wanted)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Letters and pastes that nothing else here wants are the beginning of a message."""
        if self._instead is not None or not self.composer.write_key(event):
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files may be dropped anywhere on the conversation."""
        conversation = None if self._instead is not None else self._conversation
        if conversation is not None and self.composer.takes(event.mimeData()):
            event.acceptProposedAction()
            self.drop_hint.show_for(conversation.name)

    def dropEvent(self, event: QDropEvent) -> None:
        self.drop_hint.hide()
        if self.composer.takes(event.mimeData()):
            event.acceptProposedAction()
            self.attaching.take_mime(event.mimeData())

    def _share_axis_anew(self) -> None:
        self._edges = None
        self._share_axis()

    def _share_axis(self) -> None:
        """What stands above and below the timeline begins and ends where its column does."""
        viewport, narrow = self.timeline.viewport(), self.window().width() < NARROW_WINDOW
        bar = self.timeline.width() - viewport.width()
        edge = int(column_edge(viewport.width(), narrow=narrow, theme=current_theme()))
        edges = edge, edge + min(edge, bar)
        if edges == self._edges:
            return
        self._edges = edges
        shown = (*self._strips, *([self.history.bar] if self.history.bar is not None else []))
        for strip in shown:
            strip.setContentsMargins(edges[0], 0, edges[1], 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.drop_hint.setGeometry(self.rect())
        self._show_alone()
        self.composer.set_room(self.height())
