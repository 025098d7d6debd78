"""Flows of the side panel: which one is open, what it shows, and what its buttons do.

The panel follows the conversation that is open.  A person chosen in a group has a way back to it.
What a panel tells of the newest messages is read once when it opens, and again after a message.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QApplication, QWidget

from engine.api import ChatEngine
from engine.core.ids import ConversationId, ParticipantId
from engine.events import ConversationView, MemberView, MessageView
from ui.governing_acts import MemberAct, acts_on, is_made_by_us
from ui.list.model import ConversationModel
from ui.people import cannot_ask_words, groups_with
from ui.side.dock import Dock
from ui.side.group import GroupPanel
from ui.side.panel import SidePanel
from ui.side.person import PersonPanel, Somebody
from ui.side.shared import SharedFiles
from ui.side.words import Activity, activities, contacts_by_id
from ui.tasks import Tasks
from ui.timeline.file_pictures import FilePictures
from ui.translate import tr
from ui.window.flows import Flows
from ui.window.governing_flows import GoverningFlows
from ui.window.pane import ConversationPane
from ui.window.people_flows import PeopleFlows
from ui.window.received_files import ReceivedFiles

_LOOKED_AT = 200
"""Messages at the end of a conversation from which it is told what members have."""
_AGAIN_MS = 500
_REFRESH_MS = 50


class SideFlows(QObject):
    open_requested = Signal(str)
    """A conversation id that should be shown, ready to write."""
    file_open_requested = Signal(MessageView)
    left_by_key = Signal(bool)
    """By Tab beyond the panel's last button; False: by Shift+Tab before its first."""

    def __init__(  # noqa: PLR0913 - the parts that a panel shows and acts on
        self,
        engine: ChatEngine,
        tasks: Tasks,
        window: QWidget,
        dock: Dock,
        *,
        pane: ConversationPane,
        model: ConversationModel,
        flows: Flows,
        people: PeopleFlows,
        governing: GoverningFlows,
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(window)
        self._engine = engine
        self._tasks = tasks
        self._window = window
        self._dock = dock
        self._pane = pane
        self._model = model
        self._flows = flows
        self._people = people
        self._governing = governing
        self._now = now
        self._about: ConversationId | None = None
        self._who: ParticipantId | None = None
        """A member of the group ``_about``."""
        self._activity: dict[ParticipantId, Activity] = {}
        self._before: QWidget | None = None
        """What had the focus before the panel was opened."""
        self._pictures = FilePictures()
        self._pictures.setParent(self)
        self._shared: SharedFiles | None = None
        self._files = ReceivedFiles(
            engine,
            tasks,
            (self._pictures,),
            window,
            folders=pane.folders,
            loaded=self._shared_messages,
        )
        self._files.open_requested.connect(self.file_open_requested)
        self._files.saved.connect(pane.files.saved)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_AGAIN_MS)
        self._soon.timeout.connect(self._read_activity)
        self._stale = QTimer(self)
        self._stale.setSingleShot(True)
        self._stale.setInterval(_REFRESH_MS)
        self._stale.timeout.connect(self._refresh)
        model.totals_changed.connect(self._refresh_soon)
        governing.changed.connect(self._refresh_soon)
        people.verified_changed.connect(self._refresh)
        people.verified_changed.connect(self.show_verified)
        pane.timeline.writeRequested.connect(self._write_to_sender)

    @property
    def panel(self) -> SidePanel | None:
        side = self._dock.side
        return side if isinstance(side, GroupPanel | PersonPanel) else None

    def areas(self) -> tuple[QWidget, ...]:
        """What F6 leads to."""
        return () if self.panel is None else (self.panel.close_button,)

    # --- opening and closing ----------------------------------------------------------------------

    def toggle(self) -> None:
        """About the open conversation."""
        if self.panel is not None:
            self.close()
        else:
            self.show_open()

    def show_open(self) -> None:
        """About the open conversation: the group's panel has the members."""
        if self._pane.conversation is not None:
            self.show_conversation(self._pane.conversation)

    def show_conversation(self, conversation: ConversationView) -> None:
        if conversation.open_channel is not None:
            return  # It has a sheet of its own; nobody in it is known.
        self._note_focus()
        self._leave_shared()
        self._about, self._who = conversation.conversation_id, None
        self._activity = {}
        if conversation.contact is not None:
            self._show(self._person_panel(conversation.conversation_id))
        else:
            self._show(self._group_panel(conversation.conversation_id))
        self._read_activity()

    def show_person(self, participant_id: ParticipantId) -> None:
        """Somebody in the open conversation, by the picture or the name beside a message."""
        conversation = self._pane.conversation
        if conversation is None or conversation.open_channel is not None:
            return
        if conversation.contact is not None:
            if participant_id == conversation.contact.participant_id:
                self.show_conversation(conversation)
            return
        if all(m.participant_id != participant_id for m in conversation.members):
            return
        self._note_focus()
        if self._about != conversation.conversation_id:
            self._about, self._activity = conversation.conversation_id, {}
            self._read_activity()
        self._who = participant_id
        self._leave_shared()
        pair = contacts_by_id(self._model.conversations()).get(participant_id)
        back = tr("Back to the group")
        self._show(self._person_panel(None if pair is None else pair.conversation_id, back=back))

    def show_member(self, group: ConversationId, participant_id: ParticipantId) -> None:
        """Somebody of a group that is opened for that."""
        self.open_requested.emit(group)
        if self._pane.is_open(group):
            self.show_person(participant_id)

    def conversation_opened(self) -> None:
        """The panel follows, or goes where it would hide what was opened."""
        conversation = self._pane.conversation
        if self.panel is None or conversation is None:
            return
        if conversation.conversation_id == self._about:
            return
        if self._dock.covers or conversation.open_channel is not None:
            self.close()
        else:
            self._about = None
            self._before = None
            self._follow(conversation)

    def _follow(self, conversation: ConversationView) -> None:
        focused = QApplication.focusWidget()
        self.show_conversation(conversation)
        if focused is not None and focused.isVisible():
            focused.setFocus(Qt.FocusReason.OtherFocusReason)

    def close(self) -> None:
        if self.panel is None:
            return
        self._about = self._who = None
        before, self._before = self._before, None
        self._soon.stop()
        self._leave_shared()
        self._dock.show_side(None)
        if before is not None and before.isVisible():
            before.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            self._pane.take_focus()

    def show_verified(self) -> None:
        """In the list, the header and the timeline: whose keys the user compared."""
        if self._engine.identity() is None:
            return
        verified = self._engine.people.verified()
        self._model.set_verified(verified)
        self._pane.show_verified(verified)

    def heard(self, message: MessageView) -> None:
        """Of the open conversation: others may have more now than a moment ago."""
        if message.conversation_id == self._about and not self._soon.isActive():
            self._soon.start()

    # --- what is shown ----------------------------------------------------------------------------

    def _show(self, panel: SidePanel) -> None:
        panel.close_requested.connect(self.close)
        panel.back_requested.connect(self._back)
        panel.left_by_key.connect(self.left_by_key)
        self._dock.show_side(panel)
        self._refresh()
        panel.take_focus()

    def _note_focus(self) -> None:
        """A panel that is replaced by another is no place to return to."""
        focused = QApplication.focusWidget()
        if self.panel is None:
            self._before = focused

    def _list_shared(self, conversation_id: ConversationId) -> SharedFiles:
        shared = SharedFiles(self._engine, self._tasks, self._pictures, self._now)
        shared.chosen.connect(self._files.open)
        shared.show_of(conversation_id)
        self._shared = shared
        return shared

    def _shared_messages(self) -> list[MessageView]:
        """Oldest first, as one looks from picture to picture."""
        return [] if self._shared is None else self._shared.messages[::-1]

    def _leave_shared(self) -> None:
        """What is still being read of it is not wanted any more."""
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.leave()
            self._pictures.clear()

    def _group_panel(self, conversation_id: ConversationId) -> GroupPanel:
        panel = GroupPanel(self._list_shared(conversation_id), self._now)
        panel.member_chosen.connect(self.show_person)
        panel.write_requested.connect(partial(self._write_to, conversation_id))
        panel.invite_requested.connect(lambda: self._with_group(self._flows.invite))
        panel.leave_requested.connect(lambda: self._with_group(self._flows.leave))
        panel.mute_requested.connect(lambda choice: self._pane.mute(conversation_id, choice))
        self._governing.follow(panel, conversation_id)
        return panel

    def _person_panel(
        self, conversation_id: ConversationId | None, *, back: str = ""
    ) -> PersonPanel:
        shared = None if conversation_id is None else self._list_shared(conversation_id)
        panel = PersonPanel(shared, self._now, back=back)
        panel.compare_requested.connect(self._compare)
        panel.unverify_requested.connect(lambda: self._set_verified(verified=False))
        panel.group_chosen.connect(self.open_requested)
        panel.link_requested.connect(self._people.add_person)
        panel.mute_member_requested.connect(self._mute_member)
        panel.act_requested.connect(self._act_on_shown)
        panel.write_requested.connect(self._write_to_shown)
        if conversation_id is not None:
            for asked, run in (
                (panel.rename_requested, self._people.rename),
                (panel.block_requested, self._people.block),
                (panel.unblock_requested, self._people.unblock),
                (panel.remove_requested, self._people.remove),
            ):
                asked.connect(self._with(conversation_id, run))
        return panel

    def _write_to_shown(self) -> None:
        somebody, about = self._shown_somebody(), self._about
        if somebody is None or about is None:
            return
        if somebody.conversation is not None:
            self.open_requested.emit(somebody.conversation.conversation_id)
        else:
            self._write_to(about, somebody.participant_id)

    def _write_to_sender(self, who: ParticipantId) -> None:
        """Of a message in the open conversation."""
        if self._pane.conversation is not None:
            self._write_to(self._pane.conversation.conversation_id, who)

    def _write_to(self, group: ConversationId, who: ParticipantId) -> None:
        """To a member of a group, alone: in the conversation that is there, or they are asked."""
        pair = contacts_by_id(self._model.conversations()).get(who)
        if pair is not None:
            self.open_requested.emit(pair.conversation_id)
            return
        view = self._model.conversation(group)
        members = () if view is None else view.members
        member = next((each for each in members if each.participant_id == who), None)
        if view is not None and member is not None:
            self._people.ask_member(view, member)

    def _act_on_shown(self, act: MemberAct) -> None:
        somebody, about = self._shown_somebody(), self._about
        if somebody is not None and about is not None:
            self._governing.act(about, somebody.participant_id, act)

    def _with(
        self, conversation_id: ConversationId, run: Callable[[ConversationView], None]
    ) -> Callable[[], None]:
        def act() -> None:
            view = self._model.conversation(conversation_id)
            if view is not None:
                run(view)

        return act

    def _with_group(self, run: Callable[[ConversationView], None]) -> None:
        if self._about is not None:
            self._with(self._about, run)()

    def _back(self) -> None:
        view = None if self._about is None else self._model.conversation(self._about)
        if view is not None:
            self.show_conversation(view)

    def _refresh_soon(self) -> None:
        """Not anew for each of thousands of messages that come in a row."""
        if self.panel is not None and not self._stale.isActive():
            self._stale.start()

    def _refresh(self) -> None:
        panel, about = self.panel, self._about
        view = None if about is None else self._model.conversation(about)
        if panel is None:
            return
        if view is None:
            self.close()
        elif isinstance(panel, GroupPanel):
            panel.show_group(
                view,
                contacts=contacts_by_id(self._model.conversations()),
                verified=self._engine.people.verified(),
                activity=self._activity,
                view=self._engine.governing.view(view.conversation_id),
            )
        elif isinstance(panel, PersonPanel):
            somebody = self._somebody(view)
            if somebody is None:
                self._back()
            else:
                panel.show_somebody(somebody)

    def _somebody(self, view: ConversationView) -> Somebody | None:
        """Whom the panel is about; None once they are not in the group any more."""
        conversations = self._model.conversations()
        member: MemberView | None = None
        acts: tuple[MemberAct, ...] = ()
        who = self._who
        if who is None:
            who = None if view.contact is None else view.contact.participant_id
        else:
            member = next((m for m in view.members if m.participant_id == who), None)
            if member is None:
                return None
            governance = self._engine.governing.view(view.conversation_id)
            is_ours = is_made_by_us(view) and not member.has_left
            acts = acts_on(governance, who, is_self=member.is_self, is_ours=is_ours)
        if who is None:
            return None
        return Somebody(
            participant_id=who,
            conversation=contacts_by_id(conversations).get(who),
            member=member,
            activity=self._activity.get(who, Activity()),
            is_verified=who in self._engine.people.verified(),
            groups=groups_with(who, conversations),
            acts=acts,
            cannot_ask="" if member is None else cannot_ask_words(member, view),
        )

    def _read_activity(self) -> None:
        about = self._about
        view = None if about is None else self._model.conversation(about)
        if about is None or view is None or view.contact is not None:
            return

        async def work() -> None:
            page = await self._engine.timeline.latest_page(about, limit=_LOOKED_AT)
            if about == self._about:
                self._activity = activities(page.messages)
                self._refresh()

        self._tasks.spawn(work, purpose=tr("see who has what"), retry=False)

    # --- what can be done -------------------------------------------------------------------------

    def _shown_somebody(self) -> Somebody | None:
        return self.panel.somebody if isinstance(self.panel, PersonPanel) else None

    def _compare(self) -> None:
        somebody = self._shown_somebody()
        if somebody is not None:
            self._people.compare(somebody.member, somebody.conversation)

    def _set_verified(self, *, verified: bool) -> None:
        somebody = self._shown_somebody()
        if somebody is not None:
            self._people.set_verified(somebody.participant_id, verified=verified)

    def _mute_member(self, muted: bool) -> None:
        somebody, about = self._shown_somebody(), self._about
        if somebody is None or about is None:
            return

        async def work() -> None:
            await self._engine.groups.set_member_muted(about, somebody.participant_id, muted=muted)

        purpose = tr("mute the member") if muted else tr("unmute the member")
        self._tasks.spawn(work, purpose=purpose)
