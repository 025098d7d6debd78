"""The first start in three short steps: a name makes an identity, Stores, the first conversation.

It is a page of the window, not a sheet, because there is nothing behind it yet.  The avatar is
hollow until the key exists: its colour comes from the key.
"""

from collections.abc import Awaitable, Callable

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QLineEdit,
    QRadioButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from engine.core.errors import ChatError, ConfigError
from engine.events import IdentityView
from ui.avatar import draw_avatar
from ui.connection_words import key_words
from ui.controls import Area, Button, Card, ElidedText, Text
from ui.dialogs.group import selectable
from ui.dialogs.sheet import field_label, limit_name, problem_line, say_problem
from ui.dialogs.steps import ShownStep, Step
from ui.error_words import error_words
from ui.fitted_scroll_area import FittedScrollArea
from ui.foreign_text import one_line
from ui.icons import draw_app_icon, draw_icon
from ui.problem_words import sentence
from ui.tasks import Tasks
from ui.theme import Radius, current_theme, initials, theme_changed
from ui.translate import tr

_CARD_WIDTH = 440
_CARD_HEIGHT = 560
_EDGE = 12
_NARROW_BELOW = 320
_GAP, _NARROW_GAP, _LEAST_GAP = 24, 12, 2
_ROOMY = 720
"""Window height from which there is room for wide gaps."""


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


class NameStep(Step):
    def __init__(self) -> None:
        super().__init__(
            1,
            tr("What should people call you?"),
            tr("Your name travels with your messages. You can change it later."),
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
                    "A key pair is made on this device. Nobody else has its secret half; a backup"
                    " keeps it for you."
                ),
            )
        )
        self.restore = Button(tr("I have a backup"), kind="ghost", size="big")
        self.restore.hide()
        self.foot.addSpacing(-self.restore.inset())  # Its words stand below the text.
        self.foot.addWidget(self.restore)
        self.foot.addStretch(1)
        self.foot.addWidget(self.next)

    def decorations(self) -> tuple[QWidget, ...]:
        return (self.avatar,)


class Option(QRadioButton):
    """One of several, with words of its own; the arrow keys go from one to the next."""

    def __init__(self, title: str, words: str) -> None:
        super().__init__()
        self.setAccessibleName(title)
        self.setAccessibleDescription(words)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._title = Text(title, face="body", strong=True, wrap=True)
        self._words = Text(words, face="label", colour="ink2", wrap=True)
        self._column = QVBoxLayout(self)
        self._column.setSpacing(2)
        for text in (self._title, self._words):
            text.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            self._column.addWidget(text)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme_changed.connect(self._dress)
        self._dress()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._column.totalHeightForWidth(width)

    def sizeHint(self) -> QSize:
        return self._column.totalSizeHint()

    def minimumSizeHint(self) -> QSize:
        return self._column.totalMinimumSize()

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        chosen = self.isChecked()
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        radius = theme.metrics.gap(Radius.ROW)
        painter.setPen(QPen(theme.accent, 2) if chosen else QPen(theme.line, 1))
        painter.setBrush(theme.surface)
        painter.drawRoundedRect(box, radius, radius)
        centre = QPointF(theme.metrics.scaled(24), self._title.geometry().top() + 0.0)
        centre.setY(centre.y() + theme.type.body.line_height / 2)
        outer = theme.metrics.scaled(9) - 1
        painter.setPen(QPen(theme.accent if chosen else theme.line2, 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawEllipse(centre, outer, outer)
        if chosen:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.accent)
            painter.drawEllipse(centre, outer / 2, outer / 2)
        if self.hasFocus():
            painter.setPen(QPen(theme.focus, theme.focus_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(3, 3, -3, -3), radius - 3, radius - 3)

    def _dress(self) -> None:
        metrics = current_theme().metrics
        gap = metrics.gap(12)
        self._column.setContentsMargins(metrics.scaled(44), gap, gap, gap)
        self.updateGeometry()


class StoresStep(Step):
    """``problem_of`` says why a text is no address of a Store."""

    def __init__(self, problem_of: Callable[[str], ConfigError | None]) -> None:
        super().__init__(
            2,
            tr("How do messages wait for you?"),
            tr("Stores keep sealed messages while someone is away. They cannot read them."),
        )
        self._problem_of = problem_of
        self.usual = Option(
            tr("Use the Stores of my groups"),
            tr("Invitations name them, and members keep messages for each other, too."),
        )
        self.own = Option(
            tr("My own Store, too"),
            tr("Enter its address. You can add more in the settings at any time."),
        )
        self.address = QLineEdit()
        self.address.setPlaceholderText("/dns4/store.example.org/tcp/60000/p2p/16Uiu2…")
        self.label = field_label(tr("Address of your Store"), self.address)
        self.problem = problem_line()
        self.next = Button(tr("Next"), kind="primary", size="big")
        for part in (self.usual, self.own, self.label, self.address, self.problem):
            self.body.addWidget(part)
        self.foot.addStretch(1)
        self.foot.addWidget(self.next)
        self.usual.setChecked(True)
        self.own.toggled.connect(self._show_field)
        self.address.textChanged.connect(self._judge)
        self._show_field(shown=False)

    def wanted(self) -> str:
        """The address to add; "" for none."""
        return self.address.text().strip() if self.own.isChecked() else ""

    def _show_field(self, shown: bool) -> None:
        for part in (self.label, self.address):
            part.setVisible(shown)
        self._judge()

    def _judge(self) -> None:
        address = self.wanted()
        error = self._problem_of(address) if address else None
        self.say("" if error is None else sentence(error_words(error)))
        self.next.setEnabled(error is None and (bool(address) or not self.own.isChecked()))

    def say(self, problem: str) -> None:
        say_problem(self.problem, problem)


class ConversationStep(Step):
    def __init__(self) -> None:
        super().__init__(
            3,
            tr("Start a conversation"),
            tr("Use an invitation or a contact link you were given, or make a group."),
        )
        self.avatar = _BigAvatar(60)
        self.who = ElidedText(face="body", strong=True)
        self.who.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._fingerprint_title = Text(tr("Your fingerprint"), face="caption", colour="ink3")
        self.fingerprint = selectable("")
        self.kept = _Note("lock", "")
        self.join = Button(tr("Join with an invitation"), kind="primary", size="big")
        self.new_group = Button(tr("New group"), size="big", icon_name="plus")
        self.add_person = Button(tr("Add a person"), size="big", icon_name="person-add")
        self.back = Button(tr("Back"), kind="ghost", size="big")
        self.later = Button(tr("Later"), size="big")
        self.body.addWidget(self.avatar, 0, Qt.AlignmentFlag.AlignHCenter)
        self.body.addWidget(self.who)
        self.body.addSpacing(8)
        self.body.addWidget(self._fingerprint_title)
        self.body.addWidget(self.fingerprint)
        explained = tr("Friends who compare it with you know that it is really you.")
        self.body.addWidget(Text(explained, face="caption", colour="ink3", wrap=True))
        self.body.addSpacing(8)
        self.body.addWidget(self.kept)
        self.body.addSpacing(8)
        for button in (self.join, self.add_person, self.new_group):
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.body.addWidget(self.join)
        self._pair = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._pair.setSpacing(8)
        self._pair.addWidget(self.add_person)
        self._pair.addWidget(self.new_group)
        self.body.addLayout(self._pair)
        self.foot.addSpacing(-self.back.inset())
        self.foot.addWidget(self.back)
        self.foot.addStretch(1)
        self.foot.addWidget(self.later)

    def fit(self, width: int) -> None:
        """Two buttons stand below one another where they have no room side by side."""
        margins = self.rows.contentsMargins()
        room = width - margins.left() - margins.right() - self._pair.spacing()
        buttons = (self.add_person, self.new_group)
        for button in buttons:  # Else it has the size of a plain one until it is shown.
            button.ensurePolished()
        needed = sum(button.sizeHint().width() for button in buttons)
        directions = QBoxLayout.Direction
        wanted = directions.LeftToRight if needed <= room else directions.TopToBottom
        if self._pair.direction() != wanted:
            self._pair.setDirection(wanted)

    def decorations(self) -> tuple[QWidget, ...]:
        return (self.avatar, self.who)

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
    """``create`` makes the identity and may refuse the name; ``add_store`` takes an address."""

    identity_created = Signal()
    new_group_requested = Signal()
    join_requested = Signal()
    add_person_requested = Signal()
    later_requested = Signal()
    restore_requested = Signal()

    def __init__(
        self,
        create: Callable[[str], Awaitable[IdentityView]],
        tasks: Tasks,
        *,
        add_store: Callable[[str], Awaitable[None]],
        store_problem: Callable[[str], ConfigError | None],
    ) -> None:
        super().__init__("canvas")
        self._create = create
        self._add_store = add_store
        self._tasks = tasks
        self.name_step = NameStep()
        self.stores_step = StoresStep(store_problem)
        self.conversation_step = ConversationStep()
        self.steps = ShownStep(self.name_step, self.stores_step, self.conversation_step)
        self._lay_out()
        self.name_step.name.textChanged.connect(self._judge)
        self.name_step.name.returnPressed.connect(self._submit)
        self.name_step.next.clicked.connect(self._submit)
        self.stores_step.next.clicked.connect(self._take_stores)
        self.stores_step.address.returnPressed.connect(self._take_stores)
        self.stores_step.own.toggled.connect(self._fit)
        self.conversation_step.back.clicked.connect(self._show_stores)
        self.name_step.restore.clicked.connect(self.restore_requested)
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
        words.addWidget(Text(tr("Welcome to Causerie"), face="title", strong=True, wrap=True))
        hint = tr("Three short steps. Nothing leaves this device until you join a conversation.")
        words.addWidget(Text(hint, face="body", colour="ink2", wrap=True))
        self._sign = _Sign()
        self._brand = QWidget()
        brand = QHBoxLayout(self._brand)
        brand.setContentsMargins(0, 0, 0, 0)
        brand.setSpacing(14)
        brand.addWidget(self._sign)
        brand.addLayout(words, 1)
        centre = QWidget()
        self._scroll = FittedScrollArea(centre)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self._scroll)
        self._column = QWidget(centre)
        column = QVBoxLayout(self._column)
        column.addStretch(1)
        column.addWidget(self._brand)
        column.addWidget(self.steps)
        column.addStretch(1)
        self._rows = column
        row = QHBoxLayout(centre)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self._column, 1000)
        row.addStretch(1)

    def offer_restore(self) -> None:
        self.name_step.restore.show()

    @property
    def is_asking(self) -> bool:
        """Whether a step before the last is being answered."""
        return not self.isHidden() and self.steps.current is not self.conversation_step

    def begin(self) -> None:
        self.steps.show_step(self.name_step)
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
        self.name_step.name.clearFocus()  # What goes away with the focus gives it to anybody.
        self._show_stores()
        self.identity_created.emit()

    def _show_stores(self) -> None:
        self.steps.show_step(self.stores_step)
        self._fit()
        self.stores_step.next.setFocus()

    def _take_stores(self) -> None:
        step = self.stores_step
        if not step.next.isEnabled():
            return
        if not step.wanted():
            self._show_conversation()
            return
        step.next.setEnabled(False)
        self._tasks.spawn(self._keep_store, purpose=tr("add the Store"), retry=False)

    async def _keep_store(self) -> None:
        try:
            await self._add_store(self.stores_step.wanted())
        except ChatError as error:
            self.stores_step.say(sentence(error_words(error)))
            self.stores_step.next.setEnabled(True)
            return
        self.stores_step.address.clear()  # It is in the list; going back adds none twice.
        self.stores_step.usual.setChecked(True)
        self._show_conversation()

    def _show_conversation(self) -> None:
        self.steps.show_step(self.conversation_step)
        self._fit()
        self.conversation_step.join.setFocus()

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
        bar = self._scroll.verticalScrollBar().sizeHint().width()  # Which may be needed.
        width = min(self.width() - bar, self._column.maximumWidth()) - 2 * _EDGE
        narrow = width / current_theme().metrics.factor < _NARROW_BELOW
        for step in (self.name_step, self.stores_step, self.conversation_step):
            step.set_narrow(narrow=narrow)
        self.conversation_step.fit(width)
        parts = (self._brand, *self.steps.current.decorations())
        for part in parts:
            part.show()
        beside = 3 * gap + self._brand.heightForWidth(width)
        for part in parts:
            if self._needed(width) + beside <= self.height():
                break
            part.hide()
            gap = min(gap, max(_LEAST_GAP, (self.height() - self._needed(width)) // 2))
            beside = 2 * gap
        self._rows.setContentsMargins(_EDGE, gap, _EDGE, gap)
        self._rows.setSpacing(gap)
        usual = current_theme().metrics.scaled(_CARD_HEIGHT)
        room = self.height() - beside
        self.steps.setMinimumHeight(max(self._needed(width), min(usual, room)))

    def _needed(self, width: int) -> int:
        """Of the height, by the card that is shown."""
        step = self.steps.current
        step.body.invalidate()  # Of what was shown or hidden within it Qt tells it only later.
        step.rows.invalidate()
        return step.rows.totalHeightForWidth(width)


class _Sign(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(52, 52)
        self.setAccessibleName("Causerie")

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_app_icon(QPainter(self), QRectF(self.rect()))
