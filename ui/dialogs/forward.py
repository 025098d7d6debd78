"""Choose the conversations that a message is forwarded to."""

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox, QSizePolicy, QVBoxLayout, QWidget

from engine.core.ids import ConversationId
from engine.core.search_text import folded
from engine.events import ConversationView, MessageView
from ui.avatar import draw_avatar
from ui.controls import SearchLine, Text
from ui.conversation_words import is_group
from ui.dialogs.sheet import ScrolledPart, Sheet, field_label
from ui.file_words import with_caption
from ui.foreign_text import one_line
from ui.icons import draw_icon
from ui.marked_text import shown_text
from ui.mirrored import draw_text, mirror_widget
from ui.people import avatar_id, cannot_write_words, picture_of
from ui.pictures import FACES
from ui.theme import Radius, Theme, current_theme, theme_changed
from ui.translate import tr

_QUOTED = 120
_ROW = 44
_AVATAR = 30
_MARK = 20


class Forward(Sheet):
    """Accepted once at least one conversation is chosen."""

    def __init__(
        self,
        message: MessageView,
        conversations: Sequence[ConversationView],
        parent: QWidget | None = None,
    ) -> None:
        words = tr("It goes out as a message of yours that says it is forwarded: {text}")
        text = with_caption(message, one_line(shown_text(message), _QUOTED))
        super().__init__(tr("Forward to"), words.format(text=text), parent=parent)
        self.chosen: tuple[ConversationId, ...] = ()
        """Also once the sheet is gone."""
        usable = [
            view
            for view in conversations
            if not cannot_write_words(view)
            and view.conversation_id != message.conversation_id
            and (message.file is None or view.open_channel is None)
        ]
        self._rows = [_Choice(view) for view in usable]
        self.search = _Search()
        self.search.setPlaceholderText(tr("Search"))
        self.body.addWidget(field_label(tr("Conversations"), self.search))
        self.body.addWidget(self.search)
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 8, 0)
        column.setSpacing(2)
        for row in self._rows:
            row.toggled.connect(self._judge)
            column.addWidget(row)
        column.addStretch(1)
        if not usable:
            nowhere = tr("There is no other conversation that it could go to.")
            column.insertWidget(0, Text(nowhere, face="body", colour="ink2", wrap=True))
        scrolled = ScrolledPart(content, tr("Conversations"))
        scrolled.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # The choices have it, one after another.
        self.body.addWidget(scrolled)
        cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.confirm = self.add_button(tr("Forward"), kind="primary")
        cancel.clicked.connect(self.reject)
        self.confirm.clicked.connect(self.accept)
        self.confirm.setDefault(True)
        self.search.textChanged.connect(self._filter)
        self.search.left_below.connect(self._enter_rows)
        self._judge()
        (self.search if usable else cancel).setFocus()

    def choose(self, conversation_id: ConversationId) -> None:
        for row in self._rows:
            if row.conversation_id == conversation_id:
                row.setChecked(True)

    def _filter(self, text: str) -> None:
        wanted = folded(text.strip())
        for row in self._rows:
            row.setVisible(wanted in folded(row.name) or row.isChecked())

    def _enter_rows(self) -> None:
        first = next((row for row in self._rows if not row.isHidden()), None)
        if first is not None:
            first.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _judge(self) -> None:
        self.chosen = tuple(row.conversation_id for row in self._rows if row.isChecked())
        self.confirm.setEnabled(bool(self.chosen))


class _Search(SearchLine):
    """The Down key leads to what it found."""

    left_below = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Down:
            self.left_below.emit()
        else:
            super().keyPressEvent(event)


class _Choice(QCheckBox):
    """One conversation: pressing anywhere on the row chooses it, and a mark at its end says so."""

    def __init__(self, conversation: ConversationView) -> None:
        super().__init__()
        self._conversation = conversation
        self.conversation_id = conversation.conversation_id
        self.name = one_line(conversation.name, 60)
        self.setAccessibleName(self.name)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self.updateGeometry)
        FACES.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        metrics = current_theme().metrics
        return QSize(metrics.scaled(200), metrics.scaled(_ROW))

    def minimumSizeHint(self) -> QSize:
        return QSize(current_theme().metrics.scaled(80), self.sizeHint().height())

    def hitButton(self, pos: object) -> bool:
        del pos
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self)
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        radius = theme.metrics.gap(Radius.ROW)
        if self.underMouse() or self.isChecked():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.selected if self.isChecked() else theme.hover)
            painter.drawRoundedRect(box, radius, radius)
        gap, side = theme.metrics.gap(8), theme.metrics.scaled(_AVATAR)
        avatar = QRectF(box.left() + gap, box.center().y() - side / 2, side, side)
        draw_avatar(
            painter,
            avatar,
            stable_id=avatar_id(self._conversation),
            name=self.name,
            is_group=is_group(self._conversation),
            picture=picture_of(self._conversation),
        )
        mark = theme.metrics.scaled(_MARK)
        end = QRectF(box.right() - gap - mark, box.center().y() - mark / 2, mark, mark)
        words = box.adjusted(
            avatar.right() - box.left() + gap, 0, end.left() - box.right() - gap, 0
        )
        painter.setFont(theme.type.body.font)
        painter.setPen(theme.ink)
        name = QFontMetricsF(theme.type.body.font).elidedText(
            self.name, Qt.TextElideMode.ElideRight, words.width()
        )
        draw_text(painter, words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, name)
        self._draw_mark(painter, theme, end)
        if self.hasFocus():
            painter.setPen(QPen(theme.focus, theme.focus_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, radius, radius)

    def _draw_mark(self, painter: QPainter, theme: Theme, circle: QRectF) -> None:
        is_on = self.isChecked()
        painter.setPen(QPen(theme.accent if is_on else theme.line2, 1.5))
        painter.setBrush(theme.accent if is_on else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(circle.adjusted(1, 1, -1, -1))
        if is_on:
            edge = circle.width() / 5
            draw_icon(painter, "check", circle.adjusted(edge, edge, -edge, -edge), theme.onAccent)
