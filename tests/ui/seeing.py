"""What one sees in the window and acts on: its sheets, their words, the rows and the menus.

``driving`` has the hands that press keys; here are the eyes.  A sheet is waited for until it is
shown, words are read without the invisible places to break a line, and rows are what a screen
reader would read.  Nothing here knows which engine is behind the window.
"""

from typing import TypeVar

from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QMenu, QWidget

from tests.ui.driving import until
from ui.controls import ElidedText, Text
from ui.dialogs.holders import HolderRow
from ui.dialogs.join import Join
from ui.dialogs.person import AddPerson
from ui.dialogs.sheet import Sheet
from ui.inspector.parts import StepRow
from ui.timeline.view import TimelineView
from ui.window.main_window import MainWindow

S = TypeVar("S", bound=Sheet)


async def sheet_of(window: MainWindow, kind: type[S]) -> S:
    """The sheet on the window, once it is of this kind and shown."""
    await until(lambda: isinstance(window.flows.sheet, kind) and window.flows.sheet.isVisible())
    sheet = window.flows.sheet
    assert isinstance(sheet, kind)
    return sheet


async def add_person(window: MainWindow) -> AddPerson:
    window.people.add_person()
    return await sheet_of(window, AddPerson)


async def join(window: MainWindow) -> Join:
    window.flows.join()
    return await sheet_of(window, Join)


def words_of(widget: QWidget) -> str:
    said = (_seen_words(part) for part in widget.findChildren(QWidget))
    return "\n".join(filter(None, said)).replace("\u200b", "")


def seen_words(widget: QWidget) -> list[str]:
    """The words on labels and painted rows in view, in the order of their making, none elided."""
    said = ((part, _seen_words(part)) for part in widget.findChildren(QWidget))
    return [words for part, words in said if words and part.isVisible()]


def _seen_words(part: QWidget) -> str:
    if isinstance(part, ElidedText):
        return part.whole_text()
    if isinstance(part, Text):
        return part.text()
    return part.accessibleName() if isinstance(part, StepRow | HolderRow) else ""


def spoken_rows(timeline: TimelineView) -> list[str]:
    """What a screen reader would read, row by row."""
    interface = QAccessible.queryAccessibleInterface(timeline)
    return [interface.child(i).text(QAccessible.Text.Name) for i in range(interface.childCount())]


def entries(menu: QMenu | None) -> list[str]:
    assert menu is not None
    shown = (action for action in menu.actions() if action.isVisible())
    return [action.text() for action in shown if not action.isSeparator()]


def choose(menu: QMenu | None, words: str) -> None:
    assert menu is not None
    next(action for action in menu.actions() if action.text() == words).trigger()
