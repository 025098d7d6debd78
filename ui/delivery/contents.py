"""What fills the cards of a delivery view beside the graph."""

from engine.live_views import PairDelivery
from ui.delivery.figures import charts_of
from ui.delivery.holders_content import HoldersContent
from ui.delivery.live_content import LiveContent
from ui.delivery.page import DeliveryPane
from ui.delivery.series import Window
from ui.delivery.words_content import RecordsContent, RefusalsContent


class Contents:
    """Of one page."""

    def __init__(self, page: DeliveryPane) -> None:
        self._page = page
        self.holders = HoldersContent()
        self.live = LiveContent()
        self.refusals = RefusalsContent()
        self.records = RecordsContent()
        page.fill_holders(self.holders)
        page.fill_live(self.live)
        page.fill_refusals(self.refusals)
        page.records_card.fill(self.records)

    def show_window(self, window: Window, *, is_pair: bool, is_open: bool) -> None:
        """The live figures of a span of time."""
        self.live.show_charts(charts_of(window, is_pair=is_pair, is_open=is_open))

    def show_records(self, records: PairDelivery | None) -> None:
        """None: it is no conversation between two."""
        self._page.records_card.setVisible(records is not None)
        if records is not None:
            self.records.show_records(records)
