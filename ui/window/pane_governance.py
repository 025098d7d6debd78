"""What a governed group adds to the open conversation: who asks to come in, why nothing is sent.

Three bars: requests stand above the messages.  In the composer's place it says that one was
removed, and above it that a member bears the name of somebody else whose key the user compared:
before that is answered nothing is sent.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from engine.api import ChatEngine
from engine.core.ids import ConversationId
from engine.events import ConversationView, MemberView
from engine.governance_views import AskingView, GovernanceView
from ui.conversation_words import is_group
from ui.foreign_text import one_line
from ui.governing_words import JoinWords, asking_title, is_out, removed_words
from ui.namesakes import Namesake, namesakes
from ui.timeline.rows import Withheld
from ui.translate import tr
from ui.window.standing_bar import Choice, StandingBar

_NAME = 40


class PaneGovernance(QObject):
    approve_requested = Signal(str)
    refuse_requested = Signal(str)
    requests_requested = Signal()
    """Several ask: the panel about the group has them all."""
    join_requested = Signal()
    export_requested = Signal()
    leave_requested = Signal()
    compare_requested = Signal(MemberView)
    told_apart = Signal(str)
    """The user knows that these are two people: the key of a ``Namesake``."""
    withheld_changed = Signal(object)
    """A ``Withheld`` if something from before cannot be read here, else None; told each time."""
    outranked_changed = Signal(frozenset)
    """Whose messages we may delete for everybody; told each time."""

    def __init__(
        self,
        engine: ChatEngine,
        conversations: Callable[[], Iterable[ConversationView]],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._conversations = conversations
        self.known_apart: frozenset[str] = frozenset()
        """Keys of namesakes whom the user told apart."""
        self._coming: Mapping[ConversationId, JoinWords] = {}
        self.asking = StandingBar(edge="bottom")
        self.out = StandingBar()
        self.namesake = StandingBar("warnBg")
        self._reason = ""
        self.view: GovernanceView | None = None
        """Of the group that is open; None for a group without roles, and for a person."""
        self._names: tuple[object, ...] = ()
        """From which ``_found`` follows."""
        self._found: tuple[Namesake, ...] = ()

    @property
    def reason(self) -> str:
        """Why nothing can be written; "" if nothing here is against it."""
        return self._reason

    @property
    def replaces_composer(self) -> bool:
        return self.out.is_wanted

    def know_joins(self, coming: Mapping[ConversationId, JoinWords]) -> None:
        """How it stands with groups that we ask to be let into; ``show_of`` says it."""
        self._coming = coming

    def show_of(
        self, conversation: ConversationView | None, told: GovernanceView | None = None
    ) -> None:
        """``told``: how it is governed from now on, where that was just said."""
        self.view = view = told or self._view_of(conversation)
        self.withheld_changed.emit(None if view is None else _withheld(view))
        self.outranked_changed.emit(frozenset() if view is None else view.outranked)
        self._show_asking(view)
        self._show_out(view)
        self._show_namesake(None if conversation is None or is_out(view) else conversation)

    def _view_of(self, conversation: ConversationView | None) -> GovernanceView | None:
        """Asked for once: every message comes by here."""
        if conversation is None or not is_group(conversation) or conversation.open_channel:
            return None
        this = conversation.conversation_id
        if self.view is not None and self.view.conversation_id == this:
            return self.view
        return self._engine.governing.view(this)

    def _show_asking(self, view: GovernanceView | None) -> None:
        asking = () if view is None else view.asking
        if not asking:
            self.asking.show_nothing()
        elif len(asking) == 1:
            self._show_one(asking[0])
        else:
            show: Choice = (tr("Show"), "plain", self.requests_requested.emit)
            names = ", ".join(one_line(one.name, _NAME) or "?" for one in asking[:3])
            self.asking.show_standing("several", asking_title(asking), names, (show,))

    def _show_one(self, one: AskingView) -> None:
        self.asking.show_standing(
            one,
            asking_title((one,)),
            tr("They came with an invitation of yours."),
            (
                (tr("Decline"), "plain", partial(self.refuse_requested.emit, one.participant_id)),
                (
                    tr("Let in"),
                    "primary",
                    partial(self.approve_requested.emit, one.participant_id),
                ),
            ),
            fingerprint=one.fingerprint,
        )

    def _show_out(self, view: GovernanceView | None) -> None:
        self._reason = ""
        if view is None or not is_out(view):
            self.out.show_nothing()
            return
        title = self._reason = removed_words(view)
        words = (
            tr("It lets nobody in any more. Ask somebody in the group for an invitation.")
            if view.is_link_over
            else tr(
                "You can read what is here. To come back, ask somebody in the group for a new"
                " invitation."
            )
        )
        coming = self._coming.get(view.conversation_id)
        if coming is not None and coming.goes_on:
            title, words = coming.title, coming.words
        self.out.show_standing(
            "out",
            title,
            words,
            (
                (tr("Export…"), "plain", self.export_requested.emit),
                (tr("Remove…"), "danger", self.leave_requested.emit),
                (tr("Join with an invitation…"), "primary", self.join_requested.emit),
            ),
        )

    def _show_namesake(self, group: ConversationView | None) -> None:
        found = self._first_namesake(group)
        if found is None:
            self.namesake.show_nothing()
            return
        name = one_line(found.member.name, _NAME) or "?"
        title = tr("This {name} is not the {name} whose key you compared").format(name=name)
        self._reason = self._reason or tr("Say first whether you know this {name}").format(
            name=name
        )
        self.namesake.show_standing(
            found.key,
            title,
            tr(
                "Somebody in this group bears the name, with another key. It may be another person,"
                " a new device of theirs, or somebody who pretends."
            ),
            (
                (
                    tr("Compare keys…"),
                    "primary",
                    partial(self.compare_requested.emit, found.member),
                ),
                (tr("They are two people"), "plain", partial(self.told_apart.emit, found.key)),
            ),
            fingerprint=found.member.fingerprint,
        )

    def _first_namesake(self, group: ConversationView | None) -> Namesake | None:
        if group is None:
            return None
        verified = self._engine.people.verified()
        names = group.conversation_id, group.members, verified
        if names != self._names:
            self._names = names
            self._found = namesakes(group, self._conversations(), verified)
        return next((one for one in self._found if one.key not in self.known_apart), None)


def _withheld(view: GovernanceView) -> Withheld | None:
    if view.is_history_withheld:
        return Withheld(by=view.withheld_by_name, since_ms=None)
    if view.reads_since_ms is not None:
        return Withheld(by=view.withheld_by_name, since_ms=view.reads_since_ms)
    return None
