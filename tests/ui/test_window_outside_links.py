"""Links from outside and a second start: what is shown, when, and what waits."""

import pytest
from PySide6.QtCore import Qt

from tests.ui.driving import group_stage, play, turn, until
from tests.ui.seeing import sheet_of
from ui.dialogs.join import Join
from ui.dialogs.person import AddPerson
from ui.window.outside_links import MAX_WAITING

pytestmark = pytest.mark.usefixtures("qapp")


def test_a_second_start_brings_a_minimised_window_to_the_front_with_its_link() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.window.showMinimized()
            it.window.come_to_front("causerie:contact/nonsense")
            assert not it.window.windowState() & Qt.WindowState.WindowMinimized
            sheet = await sheet_of(it.window, AddPerson)
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            it.window.come_to_front()
            assert it.window.flows.sheet is None

    play(scenario)


@pytest.mark.parametrize("link", ["causerie:", "causerie:nonsense", "causerie:%00/../x"])
def test_a_link_of_ours_that_is_nothing_is_said_where_one_looks(link: str) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.window.outside_links.open(link)
            sheet = await sheet_of(it.window, Join)
            await until(sheet.form.problem.isVisible)
            assert sheet.form.problem.text()
            sheet.reject()

    play(scenario)


def test_links_wait_for_the_sheet_that_is_open_and_only_a_few_do() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.window.flows.join()
            first = await sheet_of(it.window, Join)
            for number in range(MAX_WAITING + 3):
                it.window.outside_links.open(f"causerie:contact/{number}")
            assert it.window.flows.sheet is first
            first.reject()
            shown: list[AddPerson] = []
            for _ in range(MAX_WAITING):
                shown.append(await sheet_of(it.window, AddPerson))
                shown[-1].reject()
                await until(lambda: it.window.flows.sheet is not shown[-1])
            assert len(shown) == MAX_WAITING
            assert it.window.flows.sheet is None

    play(scenario)


def test_a_window_that_is_closed_neither_comes_back_nor_opens_what_waits() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.window.flows.join()
            await sheet_of(it.window, Join)
            it.window.outside_links.open("causerie:contact/waiting")
            it.window.close_at_once()
            await until(lambda: it.window.flows.sheet is None)
            await turn()
            it.window.come_to_front("causerie:contact/late")
            await turn()
            assert it.window.flows.sheet is None
            assert not it.window.isVisible()

    play(scenario)
