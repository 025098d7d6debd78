"""The part of a group's panel about who governs it: requests to come in, what may be changed."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from PySide6.QtCore import Signal, SignalInstance
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from engine.core.admin_log.acts import Role
from engine.core.ids import ParticipantId
from engine.governance_views import AskingView, GovernanceView
from ui.avatar import Avatar
from ui.controls import Button, Card, Text
from ui.dialogs.group import selectable
from ui.foreign_text import one_line
from ui.governing_words import (
    asking_title,
    is_out,
    leads,
    nobody_more_words,
    open_invitations,
    prekey_words,
    removed_words,
    void_words,
)
from ui.segments import Segments
from ui.times import spoken_time
from ui.translate import tr

_LEAST = (Role.ADMIN, Role.MEMBER)
"""Who may let others in, in the order in which it is offered."""


class AskingCard(Card):
    """Somebody who asks to come in: their key, and the two answers."""

    def __init__(self, one: AskingView, now: datetime) -> None:
        super().__init__("accentSoft", "ownLine", radius=12)
        name = one_line(one.name, 60) or "?"
        asked = tr("Asked {time}").format(time=spoken_time(one.asked_ms, now))
        self.setAccessibleName(f"{asking_title((one,))}. {asked}. {one.fingerprint}")
        avatar = Avatar(32, is_group=False)
        avatar.show_identity(one.participant_id, name)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(Text(name, face="label", strong=True, wrap=True))
        words.addWidget(Text(asked, face="caption", colour="ink2"))
        head = QHBoxLayout()
        head.setSpacing(10)
        head.addWidget(avatar)
        head.addLayout(words, 1)
        self.refuse = Button(tr("Decline"), size="small")
        self.approve = Button(tr("Let in"), kind="primary", size="small")
        foot = QHBoxLayout()
        foot.setSpacing(8)
        for button in (self.refuse, self.approve):
            button.setAccessibleDescription(name)
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            foot.addWidget(button)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(10, 10, 10, 10)
        whole.setSpacing(8)
        whole.addLayout(head)
        whole.addWidget(selectable(one.fingerprint))
        whole.addLayout(foot)


class GovernedSection(QWidget):
    """``requests`` stands apart, above all that can be done by itself."""

    approve_requested = Signal(str)
    refuse_requested = Signal(str)
    details_requested = Signal()
    inviters_chosen = Signal(object)
    """A ``Role``: the least that may let others in."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._now = now
        self._least = Role.ADMIN
        self.requests = QWidget()
        self._cards = QVBoxLayout(self.requests)
        self._cards.setContentsMargins(0, 4, 0, 8)
        self.asking: dict[ParticipantId, AskingCard] = {}
        self._asked: tuple[AskingView, ...] = ()
        self.details = Button(tr("Edit group…"), icon_name="rename")
        self.details.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.details.clicked.connect(lambda _checked=False: self.details_requested.emit())
        question = tr("Who may let others in")
        self.question = Text(question, face="small", colour="ink2", strong=True, wrap=True)
        self.inviters = Segments(question, (tr("Only admins"), tr("Every member")), stacks=True)
        self.inviters.choose(0)
        self.inviters.chosen.connect(self._chosen)
        self.full = Text(nobody_more_words(), face="small", colour="warn", wrap=True)
        self.facts = Text(face="caption", colour="ink2", wrap=True)
        self.long_term = Text(face="caption", colour="ink2", wrap=True)
        self.voids = Text(face="caption", colour="ink2", wrap=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        facts = (self.full, self.facts, self.long_term, self.voids)
        for part in (self.details, self.question, self.inviters, *facts):
            column.addWidget(part)
        self.requests.hide()

    def show_view(
        self,
        view: GovernanceView | None,
        *,
        names: Mapping[ParticipantId, str],
        knows: bool = True,
    ) -> None:
        """``names``: of all who ever were in it.

        ``knows``: not a group whose key was lost, of which nothing is known.
        """
        may_change = leads(view)
        for part in (self.details, self.question, self.inviters):
            part.setVisible(may_change)
        self._show_asking(() if view is None else view.asking)
        facts = _facts(view, self._now()) if knows else ""
        self.full.setVisible(view is not None and view.is_full and not is_out(view))
        self.facts.setText(facts)
        self.facts.setVisible(bool(facts))
        without = frozenset() if view is None or is_out(view) else view.without_prekey
        self.long_term.setText(prekey_words(without, names))
        self.long_term.setVisible(bool(without))
        voids = [] if view is None or is_out(view) else void_words(view.voids, names)
        self.voids.setText("\n".join(voids))
        self.voids.setVisible(bool(voids))
        if view is not None:
            self._least = view.least_inviter
            self.inviters.blockSignals(True)
            self.inviters.choose(_LEAST.index(view.least_inviter))
            self.inviters.blockSignals(False)

    def _chosen(self, number: int) -> None:
        if _LEAST[number] is not self._least:
            self._least = _LEAST[number]
            self.inviters_chosen.emit(self._least)

    def _show_asking(self, asking: Sequence[AskingView]) -> None:
        if tuple(asking) == self._asked:
            return
        self._asked = tuple(asking)
        wanted = {one.participant_id for one in asking}
        for who in [who for who in self.asking if who not in wanted]:
            card = self.asking.pop(who)
            card.hide()
            card.deleteLater()
        for one in asking:
            if one.participant_id not in self.asking:
                card = self.asking[one.participant_id] = AskingCard(one, self._now())
                who = one.participant_id
                card.approve.clicked.connect(partial(self._answer, self.approve_requested, who))
                card.refuse.clicked.connect(partial(self._answer, self.refuse_requested, who))
                self._cards.addWidget(card)
        self.requests.setVisible(bool(asking))

    def _answer(self, answer: SignalInstance, who: ParticipantId, _checked: bool = False) -> None:
        answer.emit(who)


def _facts(view: GovernanceView | None, now: datetime) -> str:
    """What everybody may know of how it is governed."""
    if view is None:
        return tr(
            "Anyone with the link can come in and read along, and nobody has a role. Who made the"
            " group can remove somebody: that ends the link for good, and people come in by"
            " invitations."
        )
    if is_out(view):
        return f"{removed_words(view)}."
    facts = []
    if not leads(view):
        facts.append(
            tr("Every member may let others in.")
            if view.least_inviter is Role.MEMBER
            else tr("Only admins let others in.")
        )
    if number := len(open_invitations(view)):
        facts.append(tr("%n invitations are out.", "%n invitation is out.", number))
    if view.newest_key_ms is not None:
        time = spoken_time(view.newest_key_ms, now)
        facts.append(tr("The present key of the group is of {time}.").format(time=time))
    return " ".join(facts)
