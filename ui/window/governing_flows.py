"""Flows about governed groups: invite, let in, promote, remove, change, and wait to be let in.

What the engine tells of them is led to the list, the open conversation and the panel from here.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.api import ChatEngine
from engine.core.admin_log.acts import EntryId, Role
from engine.core.ids import ConversationId, ParticipantId
from engine.events import ConversationAdded, ConversationView, MemberView, NoticeLevel
from engine.governance_views import GovernanceChanged, GovernanceView, JoinsChanged, JoinView
from ui.conversation_words import present_members
from ui.dialogs.confirm import Confirm
from ui.foreign_text import one_line
from ui.governing_acts import MemberAct, question_of
from ui.governing_words import JoinWords, is_out, join_words, removed_words
from ui.namesakes import look_of
from ui.settings import UiSettings
from ui.side.group import GroupPanel
from ui.translate import tr
from ui.window.notices import Notice
from ui.window.one_sheet import OneSheet
from ui.window.window_context import WindowContext

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

_NAME = 40


class GoverningFlows(QObject):
    asking_changed = Signal(object, object)
    """A ``GovernanceView``, and the ``AskingView``s of those who ask now and did not before."""
    changed = Signal()
    """Something of a governed group is different."""
    open_requested = Signal(str)
    """A conversation id that should be shown now."""

    def __init__(
        self,
        engine: ChatEngine,
        window: "MainWindow",
        one_sheet: OneSheet,
        settings: UiSettings,
        context: WindowContext,
    ) -> None:
        super().__init__(window)
        self._engine = engine
        self._tasks = window.tasks
        self._window = window
        self._one = one_sheet
        self._model = window.model
        self._pane = window.pane
        self._settings = settings
        self._context = context
        self._waiting: dict[ConversationId, JoinView] = {}
        bridge, pane = window.bridge, window.pane
        bridge.governance_changed.connect(self._governance_changed)
        bridge.joins_changed.connect(self._joins_changed)
        bridge.conversation_added.connect(self._conversation_added)
        window.flows.governed_invitation_wanted.connect(self.invite)
        window.panel.waiting_chosen.connect(self.show_waiting)
        window.people.verified_changed.connect(pane.judge_standing)
        pane.opened.connect(self._opened)
        governance = pane.governance
        governance.known_apart = settings.known_apart
        governance.withheld_changed.connect(pane.timeline.withhold_earlier)
        governance.outranked_changed.connect(pane.timeline.outrank)
        governance.approve_requested.connect(self._approve_in_open)
        governance.refuse_requested.connect(self._refuse_in_open)
        governance.join_requested.connect(window.flows.join)
        governance.export_requested.connect(pane.header.export_requested)
        governance.leave_requested.connect(pane.header.leave_requested)
        governance.compare_requested.connect(self._compare)
        governance.told_apart.connect(self._tell_apart)

    def start(self) -> None:
        """What was there before the window: once the conversations are known."""
        if self._engine.identity() is None:
            return
        governing = self._engine.governing
        for conversation in self._model.conversations():
            view = governing.view(conversation.conversation_id)
            if view is not None:
                self._model.set_governance(view)
        self._show_joins(tuple(governing.joins()))

    # --- what the engine tells --------------------------------------------------------------------

    def _governance_changed(self, event: GovernanceChanged) -> None:
        before = self._model.governance(event.view.conversation_id)
        self._model.set_governance(event.view)
        if before is not None and before.asking != event.view.asking:
            known = {one.participant_id for one in before.asking}
            new = [one for one in event.view.asking if one.participant_id not in known]
            self.asking_changed.emit(event.view, new)
        if self._pane.is_open(event.view.conversation_id):
            self._pane.judge_standing(event.view)
        self.changed.emit()

    def _joins_changed(self, event: JoinsChanged) -> None:
        for join in event.joins:
            before = self._waiting.get(join.conversation_id)
            words = join_words(join, self._context.now())
            if words.goes_on:
                self._window.notices.clear(_refused_key(join.conversation_id))
            elif before is not None and join_words(before, self._context.now()).goes_on:
                self._say_refused(join, words)
        self._show_joins(event.joins)

    def _say_refused(self, join: JoinView, words: JoinWords) -> None:
        """Whoever asked a moment ago looks at an empty window, and a narrow list has no words."""
        key = _refused_key(join.conversation_id)

        def show() -> None:
            self._window.notices.clear(key)
            self.show_waiting(join.conversation_id)

        notice = Notice(
            key=key,
            level=NoticeLevel.WARNING,
            text=f"{one_line(join.group_name, _NAME)}: {words.line}.",
            actions=((tr("Details"), show),),
        )
        self._window.notices.raise_notice(notice)

    def _show_joins(self, joins: tuple[JoinView, ...]) -> None:
        self._waiting.update({join.conversation_id: join for join in joins})
        self._window.panel.show_joins(joins)
        now = self._context.now()
        words = {join.conversation_id: join_words(join, now) for join in joins}
        self._pane.governance.know_joins(words)
        self._pane.judge_standing()

    def _conversation_added(self, event: ConversationAdded) -> None:
        """Whoever waited may look elsewhere by now."""
        view = event.conversation
        self._window.notices.clear(_refused_key(view.conversation_id))
        join = self._waiting.pop(view.conversation_id, None)
        if join is None:
            return
        if self._pane.conversation is None:
            self.open_requested.emit(view.conversation_id)
            return
        key = _let_in_key(view.conversation_id)

        def show() -> None:
            self._window.notices.clear(key)
            self.open_requested.emit(view.conversation_id)

        words = tr("{name} let you into {group}.").format(
            name=one_line(join.inviter_name, _NAME), group=one_line(view.name, _NAME)
        )
        notice = Notice(key=key, level=NoticeLevel.INFO, text=words, actions=((tr("Open"), show),))
        self._window.notices.raise_notice(notice)

    def _opened(self) -> None:
        """By the notice, or from the list."""
        if self._pane.conversation is not None:
            self._window.notices.clear(_let_in_key(self._pane.conversation.conversation_id))

    # --- invitations and requests -----------------------------------------------------------------

    def invite(self, conversation: ConversationView) -> None:
        from ui.dialogs.invite import Invite, Wanted  # noqa: PLC0415 - seldom wanted

        group = conversation.conversation_id

        async def make(wanted: Wanted) -> str:
            return await self._engine.governing.invite(
                group,
                uses=wanted.uses,
                days=wanted.days,
                needs_approval=wanted.needs_approval,
                earlier=wanted.earlier,
            )

        async def revoke(invitation_id: EntryId) -> None:
            await self._engine.governing.revoke(group, invitation_id)

        async def flow() -> None:
            view = self._engine.governing.view(group)
            if view is None:
                return
            if not view.may_invite:
                await self._one.ask(self._may_not_invite(view))
                return
            now = self._context.now
            sheet = Invite(
                conversation, view, self._tasks, self._window, make=make, revoke=revoke, now=now
            )

            def refresh() -> None:
                if (fresh := self._engine.governing.view(group)) is not None:
                    sheet.show_view(fresh)

            self.changed.connect(refresh)
            try:
                await self._one.ask(sheet)
            finally:
                self.changed.disconnect(refresh)

        self._one.start(tr("make an invitation"), flow)

    def _may_not_invite(self, view: GovernanceView) -> Confirm:
        sheet = Confirm(
            removed_words(view) or tr("Only admins let others in"),
            tr("Ask one of the admins to invite whom you want to have here.")
            if not is_out(view)
            else "",
            yes=tr("Close"),
            parent=self._window,
        )
        sheet.cancel.hide()
        return sheet

    def approve(self, group: ConversationId, who: ParticipantId) -> None:
        async def work() -> None:
            await self._engine.governing.approve(group, who)

        self._tasks.spawn(work, purpose=tr("let them in"))

    def refuse(self, group: ConversationId, who: ParticipantId) -> None:
        async def work() -> None:
            await self._engine.governing.refuse(group, who)

        self._tasks.spawn(work, purpose=tr("decline the request"))

    def _approve_in_open(self, who: ParticipantId) -> None:
        self._in_open(lambda group: self.approve(group, who))

    def _refuse_in_open(self, who: ParticipantId) -> None:
        self._in_open(lambda group: self.refuse(group, who))

    def _in_open(self, run: Callable[[ConversationId], None]) -> None:
        if self._pane.conversation is not None:
            run(self._pane.conversation.conversation_id)

    # --- who may what -----------------------------------------------------------------------------

    def follow(self, panel: GroupPanel, group: ConversationId) -> None:
        """What is pressed in the panel about a group."""
        section = panel.governed
        section.approve_requested.connect(partial(self.approve, group))
        section.refuse_requested.connect(partial(self.refuse, group))
        section.details_requested.connect(partial(self.change, group))
        section.inviters_chosen.connect(partial(self._set_inviters, group))
        panel.act_requested.connect(partial(self.act, group))

    def act(self, group: ConversationId, who: ParticipantId, act: MemberAct) -> None:
        view = self._model.conversation(group)
        member = None if view is None else _member(view, who)
        if view is None or member is None:
            return
        name = one_line(member.name, _NAME) or "?"
        question = question_of(
            act, name, one_line(view.name, _NAME), told_apart_by=_told_apart_by(member, view)
        )

        async def flow() -> None:
            sheet = Confirm(
                question.title,
                question.words,
                yes=question.yes,
                kind="danger" if question.is_grave else "primary",
                parent=self._window,
            )
            if await self._one.ask(sheet):
                await self._do(group, who, act)

        self._one.start(tr("change who may what"), flow)

    async def _do(self, group: ConversationId, who: ParticipantId, act: MemberAct) -> None:
        governing = self._engine.governing
        match act:
            case MemberAct.PROMOTE:
                await governing.promote(group, who)
            case MemberAct.DEMOTE | MemberAct.STEP_DOWN:
                await governing.demote(group, who)
            case MemberAct.REMOVE | MemberAct.END_LINK:
                await governing.remove(group, who)

    def _set_inviters(self, group: ConversationId, least: Role) -> None:
        async def work() -> None:
            await self._engine.governing.set_inviters(group, least)

        self._tasks.spawn(work, purpose=tr("change who may let others in"))

    def change(self, group: ConversationId) -> None:
        """Name, topic and picture."""
        from ui.dialogs.group_details import Details, GroupDetails  # noqa: PLC0415 - seldom wanted

        governing = self._engine.governing

        async def save(wanted: Details) -> None:
            view = governing.view(group)
            conversation = self._model.conversation(group)
            if conversation is not None and wanted.name != one_line(conversation.name, 120):
                await governing.rename(group, wanted.name)
            if view is not None and wanted.topic != view.topic:
                await governing.set_topic(group, wanted.topic)
            if view is not None and wanted.picture != view.picture:
                await governing.set_picture(group, wanted.picture)

        async def flow() -> None:
            conversation, view = self._model.conversation(group), governing.view(group)
            if conversation is None or view is None:
                return
            sheet = GroupDetails(
                conversation,
                view,
                self._tasks,
                self._window,
                choose=self._context.choose_picture,
                save=save,
            )
            await self._one.ask(sheet)

        self._one.start(tr("change the group"), flow)

    # --- names that are not whose they seem -------------------------------------------------------

    def _compare(self, member: MemberView) -> None:
        self._window.people.compare(member, None)

    def _tell_apart(self, key: str) -> None:
        self._settings.known_apart = self._settings.known_apart | {key}
        self._pane.governance.known_apart = self._settings.known_apart
        self._pane.judge_standing()
        self._pane.take_focus()

    # --- groups that we asked to be let into ------------------------------------------------------

    def show_waiting(self, conversation_id: ConversationId) -> None:
        from ui.dialogs.waiting import WaitingToBeLetIn  # noqa: PLC0415 - seldom wanted

        governing = self._engine.governing

        async def flow() -> None:
            joins = {join.conversation_id: join for join in governing.joins()}
            join = joins.get(conversation_id)
            if join is None:
                return
            sheet = WaitingToBeLetIn(join, self._context.now(), self._window)
            if await self._one.ask(sheet):
                await governing.forget_join(conversation_id)
                self._waiting.pop(conversation_id, None)
                self._window.notices.clear(_refused_key(conversation_id))
            elif sheet.wants_another:
                self._window.flows.join_next()

        self._one.start(tr("show how it stands"), flow)


def _let_in_key(conversation_id: ConversationId) -> str:
    return f"let-in/{conversation_id}"


def _refused_key(conversation_id: ConversationId) -> str:
    return f"not-let-in/{conversation_id}"


def _told_apart_by(member: MemberView, view: ConversationView) -> str:
    """The fingerprint, if somebody else in the group bears the name, or nearly; "" if nobody."""
    looks = [look_of(each.name) for each in present_members(view)]
    return member.fingerprint if looks.count(look_of(member.name)) > 1 else ""


def _member(view: ConversationView, who: ParticipantId) -> MemberView | None:
    return next((each for each in view.members if each.participant_id == who), None)
