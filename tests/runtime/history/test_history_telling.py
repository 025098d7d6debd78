"""What is told of fetching: who asked for something sees it, whatever else goes on."""

from engine.core.history.progress import Purpose
from engine.core.history.queries import Window
from engine.core.ids import ContentTopic, ConversationId, PubsubTopic, UnixMs
from engine.core.problems import HistoryProblem, NoStoreToAsk
from engine.history_views import HistoryReason, HistoryState, HistoryView
from engine.runtime.history.progress import HistoryEventPublisher

WINDOW = Window(
    pubsub_topic=PubsubTopic("/waku/2/rs/42/0"),
    content_topics=(ContentTopic("/causerie/1/a/proto"),),
    start_ns=10**9,
    end_ns=2 * 10**9,
)


class Told:
    def __init__(self) -> None:
        self.views: list[HistoryView] = []
        self.teller = HistoryEventPublisher(
            ConversationId("group"), self.views.append, lambda: UnixMs(1_760_000_000_000)
        )

    def now(self) -> tuple[HistoryReason, HistoryState, HistoryProblem | None]:
        view = self.views[-1]
        return view.reason, view.state, view.problem


def test_a_wish_is_told_at_once_while_something_goes_on_by_itself() -> None:
    told = Told()
    told.teller.started(Purpose.CONNECT, WINDOW, stores=1, arrived=0)
    told.teller.waits(Purpose.USER, UnixMs(0))
    assert told.now() == (HistoryReason.USER, HistoryState.WAITING, None)
    told.teller.fetched(7, None, arrived=7)
    told.teller.started(Purpose.USER, WINDOW, stores=1, arrived=7)
    told.teller.fetched(3, None, arrived=9)
    view = told.teller.view
    assert view is not None
    assert (view.fetched, view.arrived) == (3, 2), "what the other brought is not counted to it"


def test_what_goes_on_by_itself_does_not_hide_a_wish() -> None:
    told = Told()
    told.teller.waits(Purpose.EARLIER, UnixMs(0))
    told.teller.waits(Purpose.CONNECT, UnixMs(0))
    assert told.now()[0] is HistoryReason.EARLIER


def test_without_a_store_a_wish_says_so_until_there_is_one() -> None:
    told = Told()
    told.teller.stores(any_=False)
    told.teller.waits(Purpose.CONNECT, UnixMs(0))
    told.teller.waits(Purpose.USER, UnixMs(0))
    assert told.now() == (HistoryReason.USER, HistoryState.WAITING, NoStoreToAsk())
    told.teller.stores(any_=True)
    assert told.now() == (HistoryReason.USER, HistoryState.WAITING, None)
    told.teller.started(Purpose.USER, WINDOW, stores=1, arrived=0)
    assert told.now() == (HistoryReason.USER, HistoryState.RUNNING, None)
    told.teller.stores(any_=False)
    assert told.now() == (HistoryReason.USER, HistoryState.WAITING, NoStoreToAsk())
