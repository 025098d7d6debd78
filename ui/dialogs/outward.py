"""The settings for discovery on the local network, and for the proxy of all connections.

A part of the network's page.  What is chosen here holds from the next start.
"""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from ui.controls import Text
from ui.dialogs.sheet import field_label
from ui.segments import Segments
from ui.translate import tr

_FOUND, _UNSEEN = 0, 1


class Outward(QWidget):
    changed = Signal()

    def __init__(self, *, discovery: bool, proxy: str) -> None:
        super().__init__()
        self.found = Segments(tr("Local network"), [tr("Find each other"), tr("Stay unseen")])
        self._words = Text(face="small", colour="ink2", wrap=True)
        self.proxy = QLineEdit(proxy)
        self.proxy.setProperty("kind", "field")
        self.proxy.setPlaceholderText(tr("none; Tor's is socks5://127.0.0.1:9050"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(field_label(tr("Local network"), self.found))
        column.addWidget(self.found)
        column.addWidget(self._words)
        column.addWidget(field_label(tr("SOCKS5 proxy for all connections"), self.proxy))
        column.addWidget(self.proxy)
        hint = tr("The local network and the proxy hold from the next start.")
        column.addWidget(Text(hint, face="caption", colour="ink3", wrap=True))
        self._number = _FOUND if discovery else _UNSEEN
        self.found.chosen.connect(self._choose)
        self.proxy.textChanged.connect(self._show)
        self.found.choose(self._number)
        self._show()

    def discovery(self) -> bool:
        return self._number == _FOUND

    def proxy_text(self) -> str:
        return self.proxy.text().strip()

    def _choose(self, number: int) -> None:
        self._number = number
        self._show()

    def _show(self) -> None:
        if self.proxy_text():
            words = tr(
                "Everything goes through the proxy, and nothing is said on the local network."
            )
        elif self.discovery():
            words = tr(
                "Devices on one network find each other. Others there can see that this one is"
                " here."
            )
        else:
            words = tr("Nothing is said on the local network. Others can still be met by address.")
        self._words.setText(words)
        self.changed.emit()
