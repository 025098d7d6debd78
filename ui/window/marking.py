"""Ctrl+B, Ctrl+I and Ctrl+Shift+X: put marks around the selection, or remove them.

A style begins and ends at a word and in one line, so what is selected grows to whole words and each
of its lines gets marks of its own, behind the signs of a quote or an entry.  Without a selection
both marks are put down with the cursor between them; the same keys then lead out of them, or take
them away while nothing is written.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from PySide6.QtCore import QEvent, QKeyCombination, QObject, Qt
from PySide6.QtGui import QKeyEvent, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit

from engine.core.markup import is_edge
from ui.marked_text import Range, in_units

_CTRL, _SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
MARKS: Final = {
    QKeyCombination(_CTRL, Qt.Key.Key_B): "**",
    QKeyCombination(_CTRL, Qt.Key.Key_I): "_",
    QKeyCombination(_CTRL | _SHIFT, Qt.Key.Key_X): "~~",
}
_PREFIX = re.compile(r"(?:> ?){0,3}(?: {0,6}(?:[-*]|\d{1,3}[.)]) )?")


class Edit(Struct, frozen=True):
    """At ``at``, ``removed`` units are replaced by ``put``."""

    at: int
    removed: int
    put: str


class Marked(Struct, frozen=True):
    """What is to be done, ascending, and what is selected afterwards."""

    edits: tuple[Edit, ...]
    start: int
    end: int


def marked(text: str, start: int, end: int, mark: str) -> Marked:
    """Indexes are those of ``text``; its units are Qt's (``in_units``)."""
    if start == end:
        return _at_cursor(text, start, mark)
    parts = [_without_marks(text, part, mark) for part in _parts(text, start, end)]
    if not parts:
        return Marked((), start, end)
    if all(_has_marks(text, part, mark) for part in parts):
        pairs = [(Edit(a - len(mark), len(mark), ""), Edit(b, len(mark), "")) for a, b in parts]
    else:
        bare = [part for part in parts if not _has_marks(text, part, mark)]
        pairs = [(Edit(a, 0, mark), Edit(b, 0, mark)) for a, b in bare]
    edits = tuple(edit for pair in pairs for edit in pair)
    first, last = parts[0][0], parts[-1][1]
    grown = [len(edit.put) - edit.removed for edit in edits]
    before = sum(by for edit, by in zip(edits, grown, strict=True) if edit.at <= first)
    within = sum(by for edit, by in zip(edits, grown, strict=True) if edit.at < last)
    return Marked(edits, first + before, last + within)


def _at_cursor(text: str, at: int, mark: str) -> Marked:
    size = len(mark)
    if text[at : at + size] == mark:
        if text[max(0, at - size) : at] == mark:
            return Marked((Edit(at - size, 2 * size, ""),), at - size, at - size)
        if text[at - 1 : at].strip():
            return Marked((), at + size, at + size)
    return Marked((Edit(at, 0, mark + mark),), at + size, at + size)


def _parts(text: str, start: int, end: int) -> Iterator[Range]:
    """What is selected in each line, from word to word; nothing of lines that are blank there."""
    line = text.rfind("\n", 0, start) + 1
    while line < end:
        stop = text.find("\n", line)
        stop = len(text) if stop < 0 else stop
        prefix = _PREFIX.match(text, line, stop)
        first = max(start, line if prefix is None else prefix.end())
        part = text[first : min(stop, end)]
        if part.strip():
            first += len(part) - len(part.lstrip())
            last = first + len(part.strip())
            while first > line and _in_word(text, first):
                first -= 1
            while last < stop and _in_word(text, last):
                last += 1
            yield first, last
        line = stop + 1


def _in_word(text: str, at: int) -> bool:
    """Whether a word goes on across an index, where a style could not begin or end."""
    return not is_edge(text[at - 1]) and not is_edge(text[at])


def _without_marks(text: str, part: Range, mark: str) -> Range:
    """If the marks are selected, too, or one of them: what they mark."""
    first, last, size = *part, len(mark)
    begins, ends = text.startswith(mark, first), text.endswith(mark, first, last)
    inner = first + size * begins, last - size * ends
    return inner if inner[0] < inner[1] and _has_marks(text, inner, mark) else part


def _has_marks(text: str, part: Range, mark: str) -> bool:
    """Exactly these: one of two asterisks is not the mark of one."""
    first, last, size = *part, len(mark)
    if first < size:
        return False
    around = text[first - size : first] == mark == text[last : last + size]
    longer = mark[0] in {text[first - size - 1 : first - size], text[last + size : last + size + 1]}
    return around and not longer


class MarkingKeys(QObject):
    """Listens to the keys of ``box``."""

    def __init__(self, box: QPlainTextEdit) -> None:
        super().__init__(box)
        self._box = box
        box.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._box and isinstance(event, QKeyEvent):
            mark = MARKS.get(event.keyCombination())
            if mark is not None and event.type() is QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            if mark is not None and event.type() is QEvent.Type.KeyPress:
                self._toggle(mark)
                return True
        return super().eventFilter(watched, event)

    def _toggle(self, mark: str) -> None:
        cursor = self._box.textCursor()
        text = in_units(self._box.toPlainText())
        done = marked(text, cursor.selectionStart(), cursor.selectionEnd(), mark)
        cursor.beginEditBlock()
        for edit in reversed(done.edits):
            cursor.setPosition(edit.at)
            cursor.setPosition(edit.at + edit.removed, QTextCursor.MoveMode.KeepAnchor)
            cursor.insertText(edit.put)
        cursor.endEditBlock()
        cursor.setPosition(done.start)
        cursor.setPosition(done.end, QTextCursor.MoveMode.KeepAnchor)
        self._box.setTextCursor(cursor)
        self._box.ensureCursorVisible()
