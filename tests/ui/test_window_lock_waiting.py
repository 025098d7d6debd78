"""What waits for a locked window to be unlocked, and that quitting does not wait for it."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chat_app.passphrase_control import PassphraseControl
from engine.persistence.profile_directory import open_profile_directory
from tests.ui.driving import play, turn, until
from tests.ui.seeing import sheet_of
from tests.ui.test_window_lock import at_a_group, page_of, port_of, unlock
from ui.dialogs.join import Join
from ui.dialogs.person import AddPerson
from ui.window.outside_links import MAX_WAITING

if TYPE_CHECKING:
    from ui.dialogs.sheet import Sheet

pytestmark = pytest.mark.usefixtures("qapp")


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PassphraseControl:
    monkeypatch.setenv("CAUSERIE_KEY_FILE", "1")
    return port_of(open_profile_directory(tmp_path / "profile"))


def test_a_sheet_that_comes_by_itself_and_a_link_from_outside_wait(
    port: PassphraseControl,
) -> None:
    async def scenario() -> None:
        async with at_a_group(port) as (it, _engine, _group):
            window = it.window
            window.lock.lock()
            window.come_to_front("causerie:contact/nonsense")
            window.come_to_front("causerie:join/another")
            await turn()
            assert window.flows.sheet is None
            assert window.centralWidget() is page_of(window)
            await unlock(window)
            first = await sheet_of(window, AddPerson)
            first.reject()
            (await sheet_of(window, Join)).reject()
            await until(lambda: window.flows.sheet is None)

    play(scenario)


def test_of_many_links_to_a_locked_window_the_newest_few_wait(port: PassphraseControl) -> None:
    async def scenario() -> None:
        async with at_a_group(port) as (it, _engine, _group):
            window = it.window
            window.lock.lock()
            for number in range(MAX_WAITING + 2):
                window.come_to_front(f"causerie:contact/{number}")
            window.come_to_front("causerie:join/the-last")
            await unlock(window)
            shown: list[Sheet] = []
            while not shown or not isinstance(shown[-1], Join):
                await until(lambda: window.flows.sheet not in {None, *shown})
                sheet = window.flows.sheet
                assert sheet is not None
                shown.append(sheet)
                sheet.reject()
            assert len(shown) == MAX_WAITING
            await until(lambda: window.flows.sheet is None)

    play(scenario)


@pytest.mark.parametrize("what", ["a link", "a sheet that is open", "a sheet to come"])
def test_quitting_a_locked_window_waits_for_nothing_that_waits_for_it(
    port: PassphraseControl, what: str
) -> None:
    """What still ran would be given its time first, at each quitting."""

    async def scenario() -> None:
        async with at_a_group(port) as (it, _engine, _group):
            window, ended = it.window, list[str]()
            window.tasks.succeeded.connect(ended.append)
            if what == "a sheet that is open":
                window.people.add_person()
                await sheet_of(window, AddPerson)
            window.lock.lock()
            page = page_of(window)
            if what == "a link":
                window.come_to_front("causerie:contact/nonsense")
            elif what == "a sheet to come":
                window.people.add_person()
                await turn()
            page.quit.click()
            assert not window.isVisible()
            if what == "a link":
                await turn()
                assert window.flows.sheet is None
            else:
                await until(lambda: "add a person" in ended)

    play(scenario)
