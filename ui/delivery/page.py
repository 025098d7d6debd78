"""The page that shows a conversation's delivery instead of its timeline and composer.

Figures on top, the causal graph, below it who holds what and the live figures side by side, and at
the end what was refused.  Where it is narrow, the cards stand below each other; the page scrolls.
"""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QVBoxLayout, QWidget

from engine.events import ConversationView
from ui.delivery.card import DeliveryCard
from ui.delivery.loaded import LoadedMessages
from ui.fitted_scroll_area import FittedScrollArea
from ui.theme import current_theme, theme_changed
from ui.translate import tr

_EDGE, _GAP = 16, 12
_SIDE_BY_SIDE_FROM = 900


class DeliveryPane(QWidget):
    message_chosen = Signal(str)
    """The id of a message into which one wants to look."""
    older_wanted = Signal()
    paused = Signal(bool)
    loaded_changed = Signal(LoadedMessages)
    """What is known of the messages changed, or more of them are."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Delivery"))
        self.conversation: ConversationView | None = None
        self.loaded = LoadedMessages()
        self.graph_card = DeliveryCard(tr("Causal order"))
        self.holders_card = DeliveryCard(tr("Who holds what"))
        self.live_card = DeliveryCard(tr("Live"))
        self.refusals_card = DeliveryCard(tr("Refusals"))
        for slot in (self.holders_card, self.live_card, self.refusals_card):
            slot.hide()  # Until something fills it.
        content = QWidget()
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(_EDGE, _GAP, _EDGE, _GAP)
        self._column.setSpacing(_GAP)
        self._column.addWidget(self.graph_card)
        self._pair = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._pair.setSpacing(_GAP)
        self._pair.addWidget(self.holders_card, 1)
        self._pair.addWidget(self.live_card, 1)
        self._column.addLayout(self._pair)
        self._column.addWidget(self.refusals_card)
        self._column.addStretch(1)
        self.area = FittedScrollArea(content)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.area)
        theme_changed.connect(self.update)

    def fill_holders(self, content: QWidget) -> None:
        self._fill(self.holders_card, content)

    def fill_live(self, content: QWidget) -> None:
        self._fill(self.live_card, content)

    def fill_refusals(self, content: QWidget) -> None:
        self._fill(self.refusals_card, content)

    def _fill(self, card: DeliveryCard, content: QWidget) -> None:
        card.fill(content)
        card.show()

    def show_conversation(self, conversation: ConversationView) -> None:
        """Whose names and members count from now on."""
        self.conversation = conversation

    def show_loaded(self, loaded: LoadedMessages, changed: int) -> None:
        """What is known now; ``changed``: the index of the first message that may be new."""
        self.loaded = loaded
        self.loaded_changed.emit(loaded)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), current_theme().canvas)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = self.width() >= _SIDE_BY_SIDE_FROM * current_theme().metrics.factor
        directions = QBoxLayout.Direction
        self._pair.setDirection(directions.LeftToRight if wide else directions.TopToBottom)

    def take_focus(self) -> None:
        self.graph_card.setFocus(Qt.FocusReason.OtherFocusReason)
