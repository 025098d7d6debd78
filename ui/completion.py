"""Completes a word that begins with a sign, ":" for emoji or "@" for people, while one writes.

A ``Completion`` says which sign and what to offer; ``CompletionPopup`` watches a text box, shows
the candidates above the caret, and takes the keys that choose one as long as it is shown: Up, Down,
Tab, Enter, Escape.  The text box keeps the focus and every other key.  After Escape the same word
is left alone.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QFontMetricsF,
    QKeyEvent,
    QPainter,
    QPen,
    QTextCursor,
)
from PySide6.QtWidgets import (
    QFrame,
    QListView,
    QPlainTextEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
)

from ui.controls import Card
from ui.mirrored import draw_text, mirror_item
from ui.speaking import announce
from ui.theme import Radius, current_theme, theme_changed
from ui.translate import tr

MAX_CANDIDATES = 50
MAX_QUERY = 40
_ROWS_SHOWN = 8
_WIDTH = 340
_ROW = 32
_SIGN = 20
_FROM_BOX = 4
_EDGE = 4
_GOES_ON = "_-./:@\\"
"""Behind a letter, a digit or one of these, a sign does not begin a word."""
_Index = QModelIndex | QPersistentModelIndex
DrawSign = Callable[[QPainter, QRectF], None]


class Candidate(Struct, frozen=True, kw_only=True):
    """``text`` is written; ``words`` are read, with ``detail`` in a quieter tone behind them.

    ``key`` is passed to the handler that accepts it: a participant id, for instance.
    """

    text: str
    words: str
    detail: str = ""
    key: str = ""
    draw: DrawSign | None = None
    """Draws the sign before the words into a square."""


def insert_text(cursor: QTextCursor, candidate: Candidate) -> None:
    cursor.insertText(candidate.text)


class Completion(Struct, frozen=True, kw_only=True):
    trigger: str
    name: str
    """Of the list, for screen readers."""
    query: re.Pattern[str]
    """What has to stand between the sign and the caret, as a whole, for anything to be offered."""
    find: Callable[[str], Sequence[Candidate]]
    """The best first; more than MAX_CANDIDATES are not shown."""
    accept: Callable[[QTextCursor, Candidate], None] = insert_text
    """The cursor has sign and query selected; one undo takes back all that this does."""
    closing: str = ""
    """A query that ends with this, for which there is one candidate, is accepted at once."""


# --- matching -------------------------------------------------------------------------------------


def folded(text: str) -> str:
    """For comparing: without case and accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def match_rank(query: str, words: str) -> int | None:
    """How well a name matches what was typed, 0 best; None if it does not.  Both are folded.

    All of it, its beginning, the beginning of a word in it, any part, the letters in order.
    """
    if words == query:
        return 0
    if words.startswith(query):
        return 1
    at = words.find(query)
    if at > 0:
        return 2 if not words[at - 1].isalnum() else 3
    letters = iter(words)
    return 4 if query and all(letter in letters for letter in query) else None


def best_matches(
    query: str, named: Iterable[tuple[str, Candidate]], *, most: int = MAX_CANDIDATES
) -> list[Candidate]:
    """Candidates whose folded name matches, the best first, otherwise in the order given."""
    wanted = folded(query)
    ranked = [
        (rank, number, candidate)
        for number, (name, candidate) in enumerate(named)
        if (rank := match_rank(wanted, name)) is not None
    ]
    return [candidate for _, _, candidate in sorted(ranked, key=lambda each: each[:2])[:most]]


# --- the list -------------------------------------------------------------------------------------

CANDIDATE_ROLE = int(Qt.ItemDataRole.UserRole)


class _Model(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self.candidates: Sequence[Candidate] = ()

    def show(self, candidates: Sequence[Candidate]) -> None:
        self.beginResetModel()
        self.candidates = candidates
        self.endResetModel()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        return 0 if parent.isValid() else len(self.candidates)

    def data(self, index: _Index, role: int = 0) -> object:
        candidate = self.candidates[index.row()]
        if role == CANDIDATE_ROLE:
            return candidate
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole}:
            return spoken(candidate)
        return None


def spoken(candidate: Candidate) -> str:
    return f"{candidate.words}, {candidate.detail}" if candidate.detail else candidate.words


class _Delegate(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        theme = current_theme()
        line = theme.type.label.line_height + 2 * theme.metrics.gap(6)
        return QSize(0, max(theme.metrics.scaled(_ROW), int(line)))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        candidate = index.data(CANDIDATE_ROLE)
        if not isinstance(candidate, Candidate):
            return
        theme = current_theme()
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_item(painter, option)
        box = QRectF(option.rect)
        if option.state & QStyle.StateFlag.State_Selected:
            strong = theme.is_high_contrast
            painter.setPen(QPen(theme.accent, 2) if strong else QPen(Qt.PenStyle.NoPen))
            painter.setBrush(theme.selected)
            radius = theme.metrics.gap(Radius.GROUPED)
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), radius, radius)
        left = box.left() + theme.metrics.gap(8)
        if candidate.draw is not None:
            side = theme.metrics.scaled(_SIGN)
            candidate.draw(painter, QRectF(left, box.center().y() - side / 2, side, side))
            left += side + theme.metrics.gap(8)
        right = box.right() - theme.metrics.gap(8)
        self._words(painter, candidate, QRectF(left, box.top(), right - left, box.height()))
        painter.restore()

    def _words(self, painter: QPainter, candidate: Candidate, room: QRectF) -> None:
        theme = current_theme()
        aligned = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        for text, face, ink in (
            (candidate.words, theme.type.label, theme.ink),
            (candidate.detail, theme.type.caption, theme.ink2),
        ):
            metrics = QFontMetricsF(face.font)
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width())
            painter.setFont(face.font)
            painter.setPen(ink)
            draw_text(painter, room, aligned, shown)
            room.setLeft(room.left() + metrics.horizontalAdvance(shown) + theme.metrics.gap(8))
            if room.width() < metrics.averageCharWidth() * 3:
                return


class _Word(Struct, frozen=True):
    """A word that may be completed: where its sign stands in the text, and what follows it."""

    completion: Completion
    start: int
    query: str


class CompletionPopup(Card):
    """Floats over the window above the text box, without ever having the focus."""

    accepted = Signal(str)
    """The ``key`` of the candidate that was taken."""

    def __init__(self, box: QPlainTextEdit) -> None:
        super().__init__("surface", "line2", radius=Radius.BUTTON, parent=box)
        self._box = box
        self._completions: list[Completion] = []
        self._word: _Word | None = None
        self._left_alone: int | None = None
        self._has_space = False
        """The caret stands just behind a space that came with what was chosen."""
        self._model = _Model()
        self.rows = QListView()
        self.rows.setAccessibleName(tr("Suggestions"))
        self.rows.setModel(self._model)
        self.rows.setItemDelegate(_Delegate(self.rows))
        self.rows.setFrameShape(QFrame.Shape.NoFrame)
        self.rows.setUniformItemSizes(True)
        self.rows.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.rows.setMouseTracking(True)
        self.rows.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.rows.viewport().setAutoFillBackground(False)
        self.rows.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.rows.clicked.connect(lambda index: self._accept(index.row()))
        self.rows.entered.connect(self.rows.setCurrentIndex)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(_EDGE, _EDGE, _EDGE, _EDGE)
        layout.addWidget(self.rows)
        self.setVisible(False)
        box.textChanged.connect(self._edited)
        box.cursorPositionChanged.connect(self._moved)
        box.installEventFilter(self)
        theme_changed.connect(self._place)

    def add(self, completion: Completion) -> None:
        """Offer these as well; each has a sign of its own."""
        self._completions.append(completion)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """What is offered now, the first at the top; empty while nothing is."""
        return tuple(self._model.candidates) if self._word is not None else ()

    def dismiss(self) -> None:
        self._word = None
        self.hide()

    # --- which word -------------------------------------------------------------------------------

    def _word_at_caret(self) -> _Word | None:
        """Of signs that both begin one, such as in "@Maya come :anch", the last counts."""
        cursor = self._box.textCursor()
        if cursor.hasSelection():
            return None
        in_block = cursor.positionInBlock()
        # As Qt counts: in UTF-16, where an emoji is two.
        line = cursor.block().text().encode("utf-16-le", "surrogatepass")
        before = line[max(0, in_block - MAX_QUERY - 2) * 2 : in_block * 2]
        text = before.decode("utf-16-le", "replace")
        words = []
        for completion in self._completions:
            at = text.rfind(completion.trigger, 0, len(text) - 1 if completion.closing else None)
            if at < 0 or (at > 0 and (text[at - 1].isalnum() or text[at - 1] in _GOES_ON)):
                continue
            query = text[at + 1 :]
            if completion.query.fullmatch(query):
                units = len(query.encode("utf-16-le")) // 2 + 1
                words.append(_Word(completion, cursor.position() - units, query))
        return max(words, key=lambda word: word.start, default=None)

    def _edited(self) -> None:
        self._has_space = False
        word = self._word_at_caret() if self._box.hasFocus() else None
        if word is None or word.start != self._left_alone:
            self._left_alone = None
            self._offer(word)

    def _moved(self) -> None:
        """The caret left the word.  Coming upon one by moving does not begin a completion."""
        self._has_space = False
        if self._word is not None:
            word = self._word_at_caret()
            if word is None or word.start != self._word.start:
                self.dismiss()

    def _offer(self, word: _Word | None) -> None:
        found = word.completion.find(word.query)[:MAX_CANDIDATES] if word is not None else ()
        if word is None or not found:
            self.dismiss()
            return
        self._word = word
        self._model.show(found)
        closing = word.completion.closing
        if closing and word.query.endswith(closing):
            if len(found) == 1:
                self._accept(0)
            else:
                self.dismiss()
            return
        self.rows.setAccessibleName(word.completion.name)
        self._choose(0)
        self._place()
        self.show()
        self.raise_()

    # --- where ------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Above the box, its left edge at the word; as many rows as there is room for."""
        if self._word is None:
            return
        window = self._box.window()
        if self.parentWidget() is not window:
            self.setParent(window)
        metrics = current_theme().metrics
        row = self.rows.sizeHintForRow(0)
        top = self._box.mapTo(window, QPoint(0, 0)).y() - _FROM_BOX
        fitting = max(1, (top - 2 * _EDGE) // row)
        shown = min(len(self._model.candidates), _ROWS_SHOWN, fitting)
        width = min(metrics.scaled(_WIDTH), window.width() - 2 * _EDGE)
        cursor = QTextCursor(self._box.document())
        cursor.setPosition(self._word.start)
        at = self._box.cursorRect(cursor).topLeft()
        x = self._box.viewport().mapTo(window, at).x() - metrics.gap(8)
        x = max(_EDGE, min(x, window.width() - width - _EDGE))
        height = shown * row + 2 * _EDGE
        self.setGeometry(x, top - height, width, height)
        self.rows.scrollTo(self.rows.currentIndex())

    # --- choosing ---------------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if self._word is None:
            if isinstance(event, QKeyEvent) and kind == QEvent.Type.KeyPress:
                return self._is_second_space(event)
            return False
        if kind == QEvent.Type.FocusOut:
            self.dismiss()
        elif kind in {QEvent.Type.Resize, QEvent.Type.Move}:
            self._place()
        elif isinstance(event, QKeyEvent):
            if kind == QEvent.Type.ShortcutOverride and event.key() in _KEYS:
                event.accept()
                return True
            if kind == QEvent.Type.KeyPress:
                return self._key(event)
        return False

    def _is_second_space(self, event: QKeyEvent) -> bool:
        """Whoever chose a name types the space behind it as after any word; it is there already."""
        if not self._has_space or event.text() != " ":
            return False
        self._has_space = False
        return True

    def _key(self, event: QKeyEvent) -> bool:
        """Whether the key was meant for the list."""
        held = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if event.key() not in _KEYS or held != Qt.KeyboardModifier.NoModifier:
            return False
        current = self.rows.currentIndex().row()
        match event.key():
            case Qt.Key.Key_Up:
                self._choose(current - 1)
            case Qt.Key.Key_Down:
                self._choose(current + 1)
            case Qt.Key.Key_Escape:
                self._left_alone = self._word.start if self._word is not None else None
                self.dismiss()
            case _:
                self._accept(current)
        return True

    def _choose(self, row: int) -> None:
        """Past either end it goes on at the other."""
        count = len(self._model.candidates)
        index = self._model.index(row % count)
        self.rows.setCurrentIndex(index)
        said = tr("{words}, {number} of {count}").format(
            words=spoken(self._model.candidates[row % count]), number=row % count + 1, count=count
        )
        announce(self._box, said)

    def _accept(self, row: int) -> None:
        word = self._word
        if word is None or not 0 <= row < len(self._model.candidates):
            return
        candidate = self._model.candidates[row]
        self.dismiss()
        cursor = self._box.textCursor()
        end = cursor.position()
        cursor.setPosition(word.start)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        cursor.beginEditBlock()
        word.completion.accept(cursor, candidate)
        cursor.endEditBlock()
        self._box.setTextCursor(cursor)
        self._has_space = candidate.text.endswith(" ")
        self.accepted.emit(candidate.key)


_KEYS = frozenset(
    {
        Qt.Key.Key_Up,
        Qt.Key.Key_Down,
        Qt.Key.Key_Tab,
        Qt.Key.Key_Return,
        Qt.Key.Key_Enter,
        Qt.Key.Key_Escape,
    }
)
