"""The page of the Stores: judged while typing, moved by keys, faults said beside them."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

from chat_app.network_control import store_problem
from chat_app.settings_control import SettingsControl
from engine.core.errors import InputError, InputFlaw, TransportError, TransportFault
from engine.core.ids import UnixMs
from engine.core.problems import MessagesOmitted, StoreProblem, Unreachable
from engine.history_views import (
    StoreHealth,
    StoreOrigin,
    StoresChanged,
    StoreTestView,
    StoreView,
)
from tests.ui.driving import NOW, Key, play, stage, turn, until
from tests.ui.scripted_engine import START_MS, ScriptedEngine
from tests.ui.seeing import seen_words
from ui.dialogs.store_row import HealthSign, StoreRow
from ui.dialogs.stores import Stores, StoresList
from ui.history_words import short_address
from ui.switch import Spinner
from ui.tasks import Tasks
from ui.theme import ThemeMode, set_theme

pytestmark = pytest.mark.usefixtures("qapp")
PEER = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
GREY = QImage.Format.Format_Grayscale8
QUAY = f"/dns4/quay.example/tcp/443/wss/p2p/{PEER}"
MILL = f"/ip4/192.0.2.7/tcp/60000/p2p/{PEER}"
HUT = f"/ip6/2001:db8::1/tcp/60000/p2p/{PEER}"
ALT = Qt.KeyboardModifier.AltModifier


def store(multiaddr: str, **changes: object) -> StoreView:
    view = StoreView(
        multiaddr=multiaddr,
        origin=StoreOrigin.USER,
        enabled=True,
        health=StoreHealth.UNKNOWN,
        problem=None,
        version="",
        queries=0,
        complete=0,
        messages=0,
        new=0,
        omitted=0,
        asked_ms=None,
        round_trip_ms=None,
        test=None,
    )
    return replace(view, **changes)


class Page:
    """The page on a scripted engine, which tells what it did as the real one does."""

    def __init__(self, *stores: StoreView) -> None:
        self.engine = ScriptedEngine()
        self.engine.store_views = stores
        self.tasks = Tasks()
        self.stores = StoresList(self.engine, self.tasks, problem_of=store_problem, now=lambda: NOW)
        self.sheet = Stores(self.stores)
        self.sheet.open()

    def tell(self, *stores: StoreView) -> None:
        self.engine.store_views = stores
        self.stores.show_event(StoresChanged(stores=stores))

    def row(self, multiaddr: str) -> StoreRow:
        return next(row for row in self.stores.rows() if row.store.multiaddr == multiaddr)

    def order(self) -> list[str]:
        """As they stand on the page."""
        rows = self.stores.findChildren(StoreRow)
        shown = [row for row in rows if row in self.stores.rows()]
        return [row.store.multiaddr for row in sorted(shown, key=lambda row: row.y())]


def at_page(*stores: StoreView) -> Callable[[Callable[[Page], Awaitable[None]]], None]:
    def run(scenario: Callable[[Page], Awaitable[None]]) -> None:
        async def whole() -> None:
            page = Page(*stores)
            await turn()
            await scenario(page)
            if isValid(page.sheet):
                page.sheet.reject()
            await turn()

        play(whole)

    return run


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("nonsense", 'must start with "/"'),
        ("/ip4/192.0.2.7/udp/60000/quic-v1", '"/udp" is unsupported'),
        ("/ip4/300.0.2.7/tcp/60000", '"300.0.2.7" is no ip4 address'),
        ("/ip4/192.0.2.7/tcp/60000", "/p2p/ and the peer id are missing"),
        ("/ip4/192.0.2.7/tcp/60000/p2p/whoever", '"whoever" is no peer id'),
        (MILL, "in the list already"),
        ("/" + "x" * 4_000, ""),
    ],
)
def test_a_wrong_address_is_named_while_one_types(typed: str, named: str) -> None:
    async def scenario(page: Page) -> None:
        stores = page.stores
        assert not stores.add.isEnabled()
        assert stores.field_problem.text() == ""
        stores.field.setText(typed)
        assert named in stores.field_problem.text()
        assert stores.field_problem.isVisible()
        assert not stores.add.isEnabled()
        assert not stores.test_field.isEnabled()
        stores.field.setText(f"  {QUAY} ")
        assert stores.field_problem.text() == ""
        assert stores.add.isEnabled()

    at_page(store(MILL))(scenario)


def test_enter_adds_what_was_typed_and_says_in_place_what_the_engine_refuses() -> None:
    async def scenario(page: Page) -> None:
        stores = page.stores
        page.engine.fail("add_store", InputError(InputFlaw.STORES_FULL, limit=16))
        stores.field.setText(QUAY)
        QTest.keyClick(stores.field, Key.Key_Return)
        await until(lambda: stores.field_problem.text() == "There can be 16 Stores.")
        assert stores.isVisible()
        assert stores.field.text() == QUAY
        QTest.keyClick(stores.field, Key.Key_Return)
        await until(lambda: page.engine.called("add_store") == [QUAY])
        await until(lambda: stores.field.text() == "")
        page.tell(store(QUAY))
        assert page.order() == [QUAY]

    at_page()(scenario)


@pytest.mark.parametrize("refused", [False, True])
def test_what_is_added_while_the_page_closes_is_added_and_told_elsewhere_if_not(
    refused: bool,
) -> None:
    async def scenario(page: Page) -> None:
        gate, added = asyncio.Event(), []
        told: list[str] = []

        async def add_store(multiaddr: str) -> None:
            await gate.wait()
            if refused:
                raise InputError(InputFlaw.STORES_FULL, limit=16)
            added.append(multiaddr)

        page.engine.add_store = add_store  # type: ignore[method-assign]
        page.tasks.failed.connect(lambda failure: told.append(failure.text))
        page.stores.field.setText(QUAY)
        QTest.keyClick(page.stores.field, Key.Key_Return)
        page.sheet.reject()
        await until(lambda: not isValid(page.sheet))
        gate.set()
        await until(lambda: told == ["There can be 16 Stores."] if refused else added == [QUAY])

    at_page()(scenario)


def test_an_empty_list_explains_itself() -> None:
    async def scenario(page: Page) -> None:
        assert page.stores.empty.isVisible()
        assert "no Store in the list yet" in page.stores.empty.text()
        page.tell(store(QUAY))
        assert not page.stores.empty.isVisible()
        page.tell()
        assert page.stores.empty.isVisible()

    at_page()(scenario)


def test_alt_and_arrows_move_a_store_that_keeps_the_focus() -> None:
    async def scenario(page: Page) -> None:
        first = page.row(QUAY)
        first.setFocus()
        QTest.keyClick(first, Key.Key_Up, ALT)
        await turn()
        assert page.engine.called("move_store") == []
        QTest.keyClick(first, Key.Key_Down, ALT)
        await until(lambda: page.engine.called("move_store") == [(QUAY, 1)])
        page.tell(store(MILL), store(QUAY), store(HUT))
        await turn()
        assert page.order() == [MILL, QUAY, HUT]
        assert first.hasFocus()
        assert first.accessibleName().startswith("Store 2 of 3: quay.example:443")
        page.row(HUT).up.trigger()
        await until(lambda: page.engine.called("move_store")[-1] == (HUT, 1))
        assert not page.row(MILL).up.isEnabled()
        assert not page.row(HUT).down.isEnabled()

    at_page(store(QUAY), store(MILL), store(HUT))(scenario)


def test_tab_goes_through_each_row_and_then_to_the_field() -> None:
    async def scenario(page: Page) -> None:
        first, second = page.row(QUAY), page.row(MILL)
        first.setFocus()
        met = []
        for _ in range(9):
            QTest.keyClick(QApplication.focusWidget() or first, Key.Key_Tab)
            met.append(QApplication.focusWidget())
        rows = [first.test, first.use, first.more, second, second.test, second.use, second.more]
        assert met[:7] == rows
        assert met[7] is page.stores.field

    at_page(store(QUAY), store(MILL))(scenario)


def test_a_store_is_switched_and_removed_by_keys() -> None:
    async def scenario(page: Page) -> None:
        row = page.row(QUAY)
        row.use.setFocus()
        QTest.keyClick(row.use, Key.Key_Space)
        await until(lambda: page.engine.called("enable_store") == [(QUAY, False)])
        page.tell(store(QUAY, enabled=False, health=StoreHealth.FAILED), store(MILL))
        assert row.state.text() == "Off"
        assert not row.use.isChecked()
        role = QAccessible.queryAccessibleInterface(row.use).role()
        assert role == QAccessible.Role.CheckBox
        row.setFocus()
        QTest.keyClick(row, Key.Key_Delete)
        await until(lambda: page.engine.called("remove_store") == [QUAY])
        page.tell(store(MILL))
        assert page.order() == [MILL]
        assert page.row(MILL).hasFocus()

    at_page(store(QUAY), store(MILL))(scenario)


def test_what_cannot_be_done_is_said_on_the_page_and_shown_as_it_is() -> None:
    async def scenario(page: Page) -> None:
        page.engine.fail("enable_store", InputError(InputFlaw.STORE_UNKNOWN))
        page.row(QUAY).use.click()
        await until(lambda: page.stores.problem.text() == "There is no such Store in the list.")
        assert page.row(QUAY).use.isChecked()

    at_page(store(QUAY))(scenario)


def test_a_test_turns_while_it_runs_and_ends_in_words() -> None:
    gate = asyncio.Event()
    found = StoreTestView(
        multiaddr=QUAY,
        problem=None,
        reachable=True,
        versions=("3.0.0", "2.0.0-beta4"),
        cluster=16,
        round_trip_ms=38,
        clock_ahead_ms=42_000,
        oldest_ms=UnixMs(START_MS),
    )

    async def scenario(page: Page) -> None:
        async def test_store(multiaddr: str) -> StoreTestView:
            await gate.wait()
            if multiaddr == MILL:
                raise TransportError("not shown", TransportFault.STOPPED)
            return found

        page.engine.test_store = test_store  # type: ignore[method-assign]
        row, other = page.row(QUAY), page.row(MILL)
        row.test.click()
        other.test.click()
        assert row.result.text() == "Testing…"
        assert row.findChildren(Spinner)[0].isVisible()
        assert not row.test.isEnabled()
        page.tell(store(QUAY, health=StoreHealth.GOOD), store(MILL))
        assert row.result.text() == "Testing…"
        gate.set()
        await until(row.test.isEnabled)
        assert not row.findChildren(Spinner)[0].isVisible()
        for words in (
            "Test: works.",
            "Answers in 38 ms",
            "Store 3.0.0, also 2.0.0-beta4",
            "cluster 16",
            "its clock is 42 s behind the messages",
            "its oldest message of yours is from ",
        ):
            assert words in row.result.text()
            assert words.rstrip(".") in row.accessibleName()
        await until(other.test.isEnabled)
        assert other.result.text() == "This device is not connected to the network."

    at_page(store(QUAY), store(MILL))(scenario)


def test_an_address_can_be_tested_before_it_is_added() -> None:
    async def scenario(page: Page) -> None:
        page.stores.field.setText(QUAY)
        page.stores.test_field.click()
        assert not page.stores.test_field.isEnabled()
        await until(lambda: page.stores.field_result.text().startswith("Test: works"))
        assert page.engine.called("test_store") == [QUAY]
        assert page.engine.called("add_store") == []
        page.stores.field.setText(MILL)
        assert not page.stores.field_result.isVisible()

    at_page()(scenario)


def test_closing_the_page_ends_its_tests() -> None:
    ended: list[str] = []

    async def scenario(page: Page) -> None:
        async def test_store(multiaddr: str) -> StoreTestView:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(multiaddr)
            raise AssertionError

        page.engine.test_store = test_store  # type: ignore[method-assign]
        page.stores.test_all.click()
        await turn()
        page.sheet.reject()
        await until(lambda: sorted(ended) == sorted([QUAY, MILL]))

    at_page(store(QUAY), store(MILL))(scenario)


@pytest.mark.parametrize(
    ("health", "problem", "said"),
    [
        (StoreHealth.GOOD, None, "Answers in 61 ms"),
        (StoreHealth.UNKNOWN, None, "Not asked yet"),
        (
            StoreHealth.DOUBTFUL,
            MessagesOmitted(2),
            "but something is wrong. It did not have 2 messages that others had.",
        ),
        (
            StoreHealth.FAILED,
            Unreachable(TransportFault.SYSTEM, "hash\n\u202emismatch"),
            "it is asked again. Hash mismatch.",
        ),
    ],
)
def test_every_health_has_its_words_and_its_shape(
    health: StoreHealth, problem: StoreProblem | None, said: str
) -> None:
    view = store(
        QUAY,
        health=health,
        problem=problem,
        round_trip_ms=61,
        queries=44,
        complete=41,
        messages=12_340,
        new=310,
        omitted=7,
        version="3.0.0",
        asked_ms=UnixMs(START_MS),
    )

    async def scenario(page: Page) -> None:
        row = page.row(QUAY)
        assert said in row.state.text()
        assert "41 of 44 queries answered to the end" in row.statistics.text()
        assert "310 of them first from here" in row.statistics.text()
        assert "7 left out that others had" in row.statistics.text()
        pictures = {}
        for other in StoreHealth:
            page.tell(replace(view, health=other))
            grey = row.findChildren(HealthSign)[0].grab().toImage().convertToFormat(GREY)
            pictures[other] = bytes(memoryview(grey.constBits()))
        assert len(set(pictures.values())) == len(StoreHealth)

    at_page(view)(scenario)


def test_found_stores_are_shown_as_such_and_can_be_kept() -> None:
    found = store(HUT, origin=StoreOrigin.FOUND)

    async def scenario(page: Page) -> None:
        row = page.row(HUT)
        assert page.stores.empty.isVisible()
        assert "asked while no Store of yours is on" in page.stores.found_words.text()
        assert not row.use.isVisible()
        assert not row.more.isVisible()
        QTest.keyClick(row, Key.Key_Delete)
        QTest.keyClick(row, Key.Key_Down, ALT)
        row.keep.click()
        await until(lambda: page.engine.called("add_store") == [HUT])
        assert page.engine.called("remove_store") == page.engine.called("move_store") == []
        page.tell(store(QUAY), found)
        assert "not asked, because" in page.stores.found_words.text()
        assert page.order() == [QUAY, HUT]

    at_page(found)(scenario)


@pytest.mark.parametrize(
    ("multiaddr", "short"),
    [
        (QUAY, "quay.example:443"),
        (HUT, "[2001:db8::1]:60000"),
        ("", ""),
        ("/x", "/x"),
        ("/ip4/1.2.3.4/tcp", "1.2.3.4"),
    ],
)
def test_a_short_address_is_host_and_port(multiaddr: str, short: str) -> None:
    assert short_address(multiaddr) == short


@pytest.mark.parametrize("percent", [100, 200])
@pytest.mark.parametrize("mode", list(ThemeMode))
def test_nothing_is_cut_off_in_any_look(mode: ThemeMode, percent: int) -> None:
    app = QApplication.instance()
    assert isinstance(app, QApplication)

    async def scenario(page: Page) -> None:
        set_theme(app, mode, text_percent=percent)
        page.sheet.resize(300, 600)
        page.sheet.setFixedWidth(300)
        await turn()
        row = page.row(QUAY)
        for words in (row.state, row.statistics):
            assert words.height() >= words.heightForWidth(words.width())
        for button in (row.test, row.use, row.more):
            assert row.rect().contains(button.geometry())
        set_theme(app, ThemeMode.LIGHT)

    at_page(
        store(
            QUAY,
            health=StoreHealth.FAILED,
            problem=Unreachable(TransportFault.SYSTEM, "a page did not come within 30 s " * 4),
            queries=3,
        )
    )(scenario)


def test_a_long_word_in_a_result_makes_no_row_wider_than_the_page() -> None:
    async def scenario(page: Page) -> None:
        row = page.row(MILL)
        narrow = row.minimumSizeHint().width()
        problem = Unreachable(TransportFault.WRONG_PEER, f"{PEER} {PEER}")
        row.show_test(StoreTestView(multiaddr=MILL, problem=problem))
        await turn()
        assert row.result.isVisible()
        assert row.result.minimumSizeHint().width() <= max(narrow, 160)
        assert f"expected was {PEER}" in row.accessibleName()

    at_page(store(MILL))(scenario)


def test_on_the_settings_page_the_stores_stand_where_they_are_and_sum_up(
    control: SettingsControl,
) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        engine.store_views = (store(QUAY, health=StoreHealth.GOOD),)
        async with stage(engine, control=control) as it:
            it.window.commands.stores()
            page = it.window.settings.page
            assert page is not None
            assert it.window.flows.sheet is None
            assert page.current().name == "network"
            (stores,) = page.findChildren(StoresList)
            assert [row.store.multiaddr for row in stores.rows()] == [QUAY]
            assert "1 Store answers" in seen_words(page)
            stores.field.setFocus()
            it.write(MILL)
            it.press(Key.Key_Return)
            await until(lambda: engine.called("add_store") == [MILL])
            two = (*engine.store_views, store(MILL, health=StoreHealth.GOOD))
            engine.tell(StoresChanged(stores=two))
            await until(lambda: "2 Stores answer" in seen_words(page))
            assert stores.rows()[1].isVisible()
            assert stores.test_all.isVisible()
            page.search.setText("stores")
            assert stores.isVisible()
            page.search.setText("picture below nothing")
            assert not stores.isVisible()

    play(scenario)
