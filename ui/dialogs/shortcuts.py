"""All keys on one sheet (Ctrl+/), by where they work.

Names of keys are the platform's own (``QKeySequence.NativeText``), so a Mac shows its symbols.
"""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from ui.controls import KeyCap, Text
from ui.dialogs.sheet import ScrolledPart, Sheet
from ui.theme import current_theme
from ui.translate import tr

_KEYS_WIDTH = 200
"""As much as the longest row of keys needs, so that the tables have one axis."""

Rows = tuple[tuple[Sequence[str], str], ...]
"""Keys, each of which does it, and what."""


def _anywhere() -> Rows:
    return (
        (("Ctrl+K",), tr("Search people, groups, messages and commands")),
        (("Ctrl+F",), tr("Search this conversation")),
        (("Ctrl+Shift+F",), tr("Search the list of conversations")),
        (("Alt+Up", "Alt+Down"), tr("Conversation above, below")),
        (("Alt+Left",), tr("Back to the conversations")),
        (("Alt+Return",), tr("About the conversation, and close it")),
        (("Ctrl+Shift+I",), tr("Inspect a message, and close it")),
        (("Ctrl+Shift+N",), tr("Network: peers, and who was heard when")),
        (("F6", "Shift+F6"), tr("To the next area, to the one before")),
        (("Ctrl+P",), tr("Add a person")),
        (("Ctrl+N",), tr("New group")),
        (("Ctrl+J",), tr("Join with an invitation")),
        (("Ctrl+O",), tr("Open channel")),
        (("Ctrl+Shift+O",), tr("Channel with a shared key")),
        (("Ctrl+,",), tr("Settings")),
        (("Ctrl+L",), tr("Lock the window")),
        (("Ctrl++", "Ctrl+-", "Ctrl+0"), tr("Larger, smaller, normal text")),
        (("F1",), tr("How it works")),
        (("Ctrl+/",), tr("These keys")),
        (("Ctrl+Q",), tr("Quit")),
    )


def _writing() -> Rows:
    return (
        (("Return",), tr("Send")),
        (("Shift+Return",), tr("New line")),
        (("Up",), tr("Edit what you sent last, if nothing is written")),
        (("Ctrl+E",), tr("Emoji; or write :name:")),
        (("@",), tr("Mention somebody")),
        (("Ctrl+B", "Ctrl+I", "Ctrl+Shift+X"), tr("Bold, italic, strike")),
        (("Escape",), tr("No reply, no edit after all")),
    )


def _messages() -> Rows:
    return (
        (("Up", "Down"), tr("Message above, below")),
        (("PgUp", "PgDown"), tr("A page up, down")),
        (("Home", "End"), tr("To the first message, to the newest")),
        (("R",), tr("Reply")),
        (("E",), tr("Edit")),
        (("+",), tr("React")),
        (("I",), tr("Message info")),
        (("Ctrl+I",), tr("Inspect it: its life, holders and fields")),
        (("Q",), tr("To the message it answers")),
        (("Del",), tr("Delete")),
        (("Return",), tr("What its button does")),
        (("Menu", "Shift+F10"), tr("All that can be done with it")),
        (("Ctrl+C", "Ctrl+A"), tr("Copy, select everything")),
    )


class Shortcuts(Sheet):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Keys"), parent=parent)
        content = QWidget()
        whole = QVBoxLayout(content)
        whole.setContentsMargins(0, 0, 8, 0)
        whole.setSpacing(14)
        for title, rows in (
            (tr("Anywhere"), _anywhere()),
            (tr("While writing"), _writing()),
            (tr("On a message"), _messages()),
        ):
            whole.addLayout(_table(title, rows))
        area = ScrolledPart(content, tr("Keys"))
        area.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.body.addWidget(area)
        self.add_close()


def _table(title: str, rows: Rows) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(10)
    grid.setVerticalSpacing(5)
    grid.setColumnMinimumWidth(0, current_theme().metrics.scaled(_KEYS_WIDTH))
    grid.setColumnStretch(1, 1)
    grid.addWidget(Text(title, face="label", strong=True), 0, 0, 1, 2)
    for line, (keys, words) in enumerate(rows, start=1):
        caps = QHBoxLayout()
        caps.setSpacing(4)
        for key in keys:
            caps.addWidget(KeyCap(_native(key)))
        caps.addStretch(1)
        grid.addLayout(caps, line, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(Text(words, face="label", colour="ink2", wrap=True), line, 1)
    return grid


def _native(key: str) -> str:
    if key == "@":
        return key
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)
