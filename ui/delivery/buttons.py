"""The buttons of a card: show the same as a table, and export it."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from ui.controls import Button
from ui.delivery.wrapping import WrappingRow
from ui.menu import Menu
from ui.translate import tr


class Buttons(QWidget):
    """Show as table, and export."""

    table_wanted = Signal(bool)
    export_wanted = Signal(str)
    """"png", "svg" or "csv"."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Button(tr("Show as table"), kind="ghost", size="small")
        self.table.setCheckable(True)
        self.table.toggled.connect(self._toggled)
        self.export = Button(tr("Export…"), kind="ghost", size="small")
        self.export.setMenu(export_menu(self, self.export_wanted.emit))
        row = WrappingRow()
        self.setLayout(row)
        row.addWidget(self.table)
        row.addWidget(self.export)

    def _toggled(self, on: bool) -> None:
        self.table.rename(tr("Show as picture") if on else tr("Show as table"))
        self.table_wanted.emit(on)


def export_menu(parent: QWidget, export: Callable[[str], None]) -> Menu:
    """``export``: "png", "svg" or "csv"."""

    def chosen(kind: str, _checked: bool = False) -> None:
        export(kind)

    menu = Menu(parent)
    menu.setAccessibleName(tr("Export…"))
    for words, kind in (
        (tr("Picture (PNG)…"), "png"),
        (tr("Drawing (SVG)…"), "svg"),
        (tr("Table (CSV)…"), "csv"),
    ):
        menu.addAction(words).triggered.connect(partial(chosen, kind))
    return menu
