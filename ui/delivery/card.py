"""A card of the delivery page: a title, a legend or buttons beside it, and content below."""

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from ui.controls import Card, Text

_INSET = 16


class DeliveryCard(Card):
    def __init__(self, title: str) -> None:
        super().__init__()
        self.setAccessibleName(title)
        self.title = Text(title, face="label", strong=True)
        self.head = QHBoxLayout()
        """Legend and buttons: add them behind the title."""
        self.head.setSpacing(12)
        self.head.addWidget(self.title)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(_INSET, 8, _INSET, 10)
        self.body.setSpacing(6)
        self.body.addLayout(self.head)

    def fill(self, content: QWidget) -> None:
        self.body.addWidget(content, 1)
