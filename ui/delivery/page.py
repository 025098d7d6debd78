"""The page that shows a conversation's delivery instead of its timeline and composer.

Figures on top, the causal graph, below it who holds what and the live figures side by side, and at
the end what was refused and what is recorded.  Where it is narrow, the cards stand below each
other; the page scrolls.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QVBoxLayout, QWidget

from engine.events import ConversationView
from ui.delivery.card import DeliveryCard
from ui.delivery.graph_card import GraphCard
from ui.delivery.loaded import LoadedMessages
from ui.delivery.tiles import Tiles
from ui.fitted_scroll_area import FittedScrollArea
from ui.theme import current_theme, theme_changed
from ui.translate import tr

_EDGE, _GAP = 16, 12
_SIDE_BY_SIDE_FROM = 900
RANGES_MS: Final = (5 * 60_000, 20 * 60_000, None)
"""What one can choose to see: the last five minutes, twenty, or all that is loaded."""


class DeliveryPane(QWidget):
    message_chosen = Signal(str)
    """The id of a message into which one wants to look."""
    older_wanted = Signal()
    paused = Signal(bool)
    loaded_changed = Signal(LoadedMessages)
    """What is known of the messages changed, or more of them are."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self.setAccessibleName(tr("Delivery"))
        self.conversation: ConversationView | None = None
        self.loaded = LoadedMessages()
        self.tiles = Tiles()
        self.graph_card = GraphCard(now)
        self.graph_card.range_chosen.connect(self._show)
        self.graph_card.paused.connect(self.paused)
        self.graph_card.message_chosen.connect(self.message_chosen)
        self.graph_card.older_wanted.connect(self.older_wanted)
        self._changed = 0
        self._has_fitted = False
        self.holders_card = DeliveryCard(tr("Who holds what"))
        self.live_card = DeliveryCard(tr("Live"))
        self.refusals_card = DeliveryCard(tr("Refusals"))
        self.records_card = DeliveryCard(tr("Records of MVDS"))
        """Only between two people."""
        self.log_card = DeliveryCard(tr("Delivery log"))
        slots = (
            self.holders_card,
            self.live_card,
            self.refusals_card,
            self.records_card,
            self.log_card,
        )
        for slot in slots:
            slot.hide()  # Until something fills it.
        content = QWidget()
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(_EDGE, _GAP, _EDGE, _GAP)
        self._column.setSpacing(_GAP)
        self._column.addWidget(self.tiles)
        self._column.addWidget(self.graph_card)
        self._pair = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._pair.setSpacing(_GAP)
        self._pair.addWidget(self.holders_card, 1)
        self._pair.addWidget(self.live_card, 1)
        for side in (self.holders_card, self.live_card):
            self._pair.setAlignment(side, Qt.AlignmentFlag.AlignTop)
        self._column.addLayout(self._pair)
        self._column.addWidget(self.records_card)
        self._column.addWidget(self.refusals_card)
        self._column.addWidget(self.log_card)
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

    def fill_log(self, content: QWidget) -> None:
        self._fill(self.log_card, content)

    def _fill(self, card: DeliveryCard, content: QWidget) -> None:
        card.fill(content)
        card.show()

    def show_conversation(self, conversation: ConversationView) -> None:
        """Whose names and members count from now on."""
        self.conversation = conversation

    def show_loaded(self, loaded: LoadedMessages, changed: int) -> None:
        """What is known now; ``changed``: the index of the first message that may be new."""
        if loaded is not self.loaded:
            self._has_fitted, changed = False, 0
        self.loaded = loaded
        self._show(changed)
        self.loaded_changed.emit(loaded)

    @property
    def since_ms(self) -> int | None:
        """Where the chosen time begins; None: all that is loaded is shown."""
        length_ms, page = RANGES_MS[self.graph_card.ranges.chosen_number], self.loaded.page
        return None if length_ms is None or page is None else page.looked_ms - length_ms

    def _show(self, changed: int | None = None) -> None:
        loaded = self.loaded
        begin = loaded.begin_of(self.since_ms)
        looked_ms = 0 if loaded.page is None else loaded.page.looked_ms
        self.tiles.show_messages(loaded.messages[begin:], loaded.page, looked_ms=looked_ms)
        known = len(loaded.messages) if changed is None else changed
        self.graph_card.show_loaded(loaded, known, self.conversation, begin=begin)
        if changed is None or not self._has_fitted:
            self.graph_card.graph.fit()
            self._has_fitted = bool(loaded.messages)
        if not begin and self.since_ms is not None and loaded.wants_older:
            self.older_wanted.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), current_theme().canvas)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = self.width() >= _SIDE_BY_SIDE_FROM * current_theme().metrics.factor
        directions = QBoxLayout.Direction
        self._pair.setDirection(directions.LeftToRight if wide else directions.TopToBottom)
        self.tiles.set_room(self.width())
        self.graph_card.set_room(self.width())

    def take_focus(self) -> None:
        self.graph_card.take_focus()
