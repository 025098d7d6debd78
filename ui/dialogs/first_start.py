"""The first start: a name makes an identity, then a conversation can begin.  Two short steps.

It is a page of the window, not a sheet, because there is nothing behind it yet.  The avatar is
hollow until the key exists: its colour comes from the key.
"""

from collections.abc import Awaitable, Callable

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from engine.core.errors import ChatError
from engine.events import IdentityView
from ui.avatar import draw_avatar
from ui.connection_words import key_words
from ui.controls import Area, Button, Card, ElidedText, Text
from ui.dialogs.group import selectable
from ui.dialogs.sheet import field_label, limit_name, problem_line, say_problem
from ui.error_words import error_words
from ui.foreign_text import one_line
from ui.icons import draw_app_icon, draw_icon
from ui.mirrored import mirror_widget
from ui.tasks import Tasks
from ui.theme import Radius, current_theme, initials, theme_changed
from ui.translate import tr

_CARD_WIDTH = 440
_CARD_HEIGHT = 560
_STEPS = 2
_EDGE = 12
_GAP, _NARROW_GAP = 24, 12
_ROOMY = 720
"""Window height from which there is room for wide gaps."""


class _Steps(QWidget):
    """Beads on a thread: done is filled, now is ringed, to come is hollow."""

    def __init__(self, now: int) -> None:
        super().__init__()
        self._now = now
        self.setAccessibleName(tr("Step {number} of {steps}").format(number=now, steps=_STEPS))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(20 + 45 * (_STEPS - 1), 20)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self)
        for step in range(1, _STEPS + 1):
            centre = QPointF(10 + 45 * (step - 1), 10)
            if step < _STEPS:
                painter.setPen(QPen(theme.accent if step < self._now else theme.thread, 2))
                painter.drawLine(centre + QPointF(6, 0), centre + QPointF(39, 0))
            if step == self._now:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(theme.accentSoft)
                painter.drawEllipse(centre, 9.5, 9.5)
            done = step < self._now
            painter.setPen(QPen(theme.accent if step <= self._now else theme.line2, 2))
            painter.setBrush(theme.accent if done else theme.surface)
            painter.drawEllipse(centre, 4.5, 4.5)


class _BigAvatar(QWidget):
    def __init__(self, side: int) -> None:
        super().__init__()
        self._side = side
        self._stable_id: str | None = None
        self._name = ""
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        side = current_theme().metrics.scaled(self._side)
        return QSize(side, side)

    def show_person(self, stable_id: str | None, name: str) -> None:
        self._stable_id, self._name = stable_id, name
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1.5, 1.5, -1.5, -1.5)
        if self._stable_id is not None:
            draw_avatar(painter, box, stable_id=self._stable_id, name=self._name, is_group=False)
            return
        painter.setPen(QPen(theme.accent, 2))
        painter.drawEllipse(box)
        font = theme.type.title.strong()
        font.setPixelSize(int(box.width() * 0.4))
        painter.setFont(font)
        painter.setPen(theme.accentInk)
        letter = initials(self._name) if self._name.strip() else ""
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, letter)


class _Note(Card):
    def __init__(self, icon_name: str, words: str) -> None:
        super().__init__("surface2", "surface2", radius=11)
        self._icon_name = icon_name
        row = QHBoxLayout(self)
        row.setContentsMargins(38, 11, 12, 11)
        self.words = Text(words, face="label", colour="ink2", wrap=True)
        row.addWidget(self.words)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        box = QRectF(12, 12, 16, 16)
        draw_icon(painter, self._icon_name, box, current_theme().accentInk)


class Step(Card):
    """One card: beads, title, words, content, and a foot that stays at the bottom."""

    def __init__(self, number: int, title: str, words: str) -> None:
        super().__init__("surface", "line", radius=Radius.DIALOG)
        head = QHBoxLayout()
        head.addWidget(_Steps(number))
        head.addStretch(1)
        head.addWidget(
            Text(
                tr("Step {number} of {steps}").format(number=number, steps=_STEPS),
                face="caption",
                colour="ink3",
            )
        )
        self.rows = whole = QVBoxLayout(self)
        whole.setContentsMargins(24, 22, 24, 20)
        whole.setSpacing(0)
        whole.addLayout(head)
        whole.addSpacing(16)
        whole.addWidget(Text(title, face="title", strong=True, wrap=True))
        whole.addSpacing(6)
        whole.addWidget(Text(words, face="body", colour="ink2", wrap=True))
        whole.addSpacing(16)
        self.body = QVBoxLayout()
        self.body.setSpacing(8)
        whole.addLayout(self.body)
        whole.addStretch(1)
        whole.addSpacing(20)
        self.foot = QHBoxLayout()
        whole.addLayout(self.foot)


class NameStep(Step):
    def __init__(self) -> None:
        super().__init__(
            1, tr("What should people call you?"), tr("Your name travels with your messages.")
        )
        self.avatar = _BigAvatar(88)
        self.name = QLineEdit()
        self.problem = problem_line()
        limit_name(self.name, self.problem)
        self.next = Button(tr("Next"), kind="primary", size="big")
        self.body.addWidget(self.avatar, 0, Qt.AlignmentFlag.AlignHCenter)
        self.body.addSpacing(8)
        self.body.addWidget(field_label(tr("Name"), self.name))
        self.body.addWidget(self.name)
        self.body.addWidget(self.problem)
        self.body.addSpacing(8)
        self.body.addWidget(
            _Note(
                "key",
                tr(
                    "A key pair is made on this device. Nobody else has the secret half, and there"
                    " is no backup yet: who loses this device loses this identity."
                ),
            )
        )
        self.foot.addStretch(1)
        self.foot.addWidget(self.next)


class ConversationStep(Step):
    def __init__(self) -> None:
        super().__init__(
            2,
            tr("Start a conversation"),
            tr("Use an invitation or a contact link you were given, or make a group."),
        )
        self.avatar = _BigAvatar(72)
        self.who = ElidedText(face="body", strong=True)
        self.who.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._fingerprint_title = Text(tr("Your fingerprint"), face="caption", colour="ink3")
        self.fingerprint = selectable("")
        self.kept = _Note("lock", "")
        self.join = Button(
            tr("Join with an invitation"), kind="primary", size="big", icon_name="join"
        )
        self.new_group = Button(tr("New group"), size="big", icon_name="plus")
        self.add_person = Button(tr("Add a person"), size="big", icon_name="person-add")
        self.later = Button(tr("Later"), kind="ghost", size="big")
        self.body.addWidget(self.avatar, 0, Qt.AlignmentFlag.AlignHCenter)
        self.body.addWidget(self.who)
        self.body.addSpacing(8)
        self.body.addWidget(self._fingerprint_title)
        self.body.addWidget(self.fingerprint)
        self.body.addSpacing(8)
        self.body.addWidget(self.kept)
        self.body.addSpacing(8)
        for button in (self.join, self.add_person, self.new_group):
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.body.addWidget(self.join)
        beside = QHBoxLayout()
        beside.setSpacing(8)
        beside.addWidget(self.add_person)
        beside.addWidget(self.new_group)
        self.body.addLayout(beside)
        self.foot.addWidget(self.later)
        self.foot.addStretch(1)

    def show_identity(self, identity: IdentityView) -> None:
        name = one_line(identity.name)
        self.avatar.show_person(identity.participant_id, name)
        self.who.setText(name)
        self.fingerprint.setText(identity.fingerprint)
        self.kept.words.setText(
            " ".join(
                (
                    tr("Messages are kept encrypted on this device."),
                    key_words(identity.key_storage),
                )
            )
        )


class FirstStart(Area):
    """``create`` makes the identity and may refuse the name."""

    identity_created = Signal()
    new_group_requested = Signal()
    join_requested = Signal()
    add_person_requested = Signal()
    later_requested = Signal()

    def __init__(self, create: Callable[[str], Awaitable[IdentityView]], tasks: Tasks) -> None:
        super().__init__("canvas")
        self._create = create
        self._tasks = tasks
        self.name_step = NameStep()
        self.conversation_step = ConversationStep()
        self.steps = QStackedWidget()
        self.steps.addWidget(self.name_step)
        self.steps.addWidget(self.conversation_step)
        self._lay_out()
        self.name_step.name.textChanged.connect(self._judge)
        self.name_step.name.returnPressed.connect(self._submit)
        self.name_step.next.clicked.connect(self._submit)
        self.conversation_step.new_group.clicked.connect(self.new_group_requested)
        self.conversation_step.join.clicked.connect(self.join_requested)
        self.conversation_step.add_person.clicked.connect(self.add_person_requested)
        self.conversation_step.later.clicked.connect(self.later_requested)
        theme_changed.connect(self._dress)
        self._judge()
        self._dress()

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(Text(tr("Welcome to Causerie"), face="title", strong=True))
        hint = tr("Two short steps. Your name stays on this device until you join a conversation.")
        words.addWidget(Text(hint, face="body", colour="ink2", wrap=True))
        self._sign = _Sign()
        brand = QHBoxLayout()
        brand.setSpacing(14)
        brand.addWidget(self._sign)
        brand.addLayout(words, 1)
        self._column = QWidget()
        column = QVBoxLayout(self._column)
        column.addStretch(1)
        column.addLayout(brand)
        column.addWidget(self.steps)
        column.addStretch(1)
        self._rows, self._brand = column, brand
        centre = QWidget()
        row = QHBoxLayout(centre)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self._column, 1000)
        row.addStretch(1)
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setWidget(centre)
        scroll.viewport().setAutoFillBackground(False)
        centre.setAutoFillBackground(False)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(scroll)

    def begin(self) -> None:
        self.steps.setCurrentWidget(self.name_step)
        self.name_step.name.setFocus()

    def _judge(self) -> None:
        name = self.name_step.name.text()
        self.name_step.avatar.show_person(None, name)
        say_problem(self.name_step.problem, "")
        self.name_step.next.setEnabled(bool(name.strip()))

    def _submit(self) -> None:
        if self.name_step.next.isEnabled():
            self.name_step.next.setEnabled(False)
            self._tasks.spawn(self._make, purpose=tr("make your identity"), retry=False)

    async def _make(self) -> None:
        try:
            identity = await self._create(self.name_step.name.text().strip())
        except ChatError as error:
            say_problem(self.name_step.problem, error_words(error))
            self.name_step.next.setEnabled(True)
            self.name_step.name.setFocus()
            return
        self.conversation_step.show_identity(identity)
        self.steps.setCurrentWidget(self.conversation_step)
        self._fit()
        self.conversation_step.join.setFocus()
        self.identity_created.emit()

    def _dress(self) -> None:
        metrics = current_theme().metrics
        self._column.setMaximumWidth(metrics.scaled(_CARD_WIDTH) + 2 * _EDGE)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """A card of the usual height where there is room, and never less than its words need."""
        gap = _GAP if self.height() >= _ROOMY else _NARROW_GAP
        self._rows.setContentsMargins(_EDGE, gap, _EDGE, gap)
        self._rows.setSpacing(gap)
        width = min(self.width(), self._column.maximumWidth()) - 2 * _EDGE
        room = self.height() - 3 * gap - self._brand.totalHeightForWidth(width)
        usual = current_theme().metrics.scaled(_CARD_HEIGHT)
        steps = (self.name_step, self.conversation_step)
        card = steps[self.steps.currentIndex()].rows
        needed = card.totalHeightForWidth(width)
        self.steps.setMinimumHeight(max(needed, min(usual, room)))


class _Sign(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(52, 52)
        self.setAccessibleName("Causerie")

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_app_icon(QPainter(self), QRectF(self.rect()))
