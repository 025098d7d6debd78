"""Faults that are planted, and what the window alone says of them (docs/testing-delivery.md)."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.core.ids import MessageId
from scripts.planted_cases import HONEST, LOSSY, Planted, PlantedCast, plant, silence_everybody
from tests.ui.driving import heard, play, until
from tests.ui.seeing import seen_words, sheet_of
from ui.app import build_window
from ui.history_words import short_address
from ui.network.health import HealthRow
from ui.network.sheet import NetworkSheet
from ui.settings import UiSettings
from ui.window.main_window import MainWindow
from ui.window.window_context import WindowContext

pytestmark = pytest.mark.usefixtures("qapp")


async def looked_into(window: MainWindow, message_id: MessageId) -> list[str]:
    shown = heard(window.inspector.shown)
    window.inspector.show_message(message_id)
    await shown
    panel = window.inspector.panel
    assert panel is not None
    return [words.replace("\u200b", "") for words in seen_words(panel)]


async def who_lacks_it_and_since_when(window: MainWindow, planted: Planted) -> None:
    window.open_conversation(planted.kitchen)
    await until(lambda: window.pane.timeline.scene.loaded.total > 0)
    said = await looked_into(window, planted.lacked)
    assert "Held by 1 of 2 others." in said
    assert not any("No acknowledgement yet" in words for words in said), "Maya answered in time"
    (of_luc,) = [words for words in said if words.startswith("Luc: ")]
    found = re.fullmatch(r"Luc: no sign, last heard ([0-9:]+) since ([0-9:]+)", of_luc)
    assert found is not None, of_luc
    before, after = (datetime.fromtimestamp(ms / 1_000, UTC) for ms in planted.lacked_since)
    assert found[1] < f"{before:%H:%M:%S}"
    assert f"{before:%H:%M}" <= found[2] <= f"{after:%H:%M}"


async def why_it_is_late(window: MainWindow, planted: Planted) -> None:
    window.open_conversation(planted.tide)
    await until(lambda: window.pane.timeline.scene.loaded.total > 0)
    said = await looked_into(window, planted.repaired)
    assert any(
        re.match(r"Repaired: Maya sent it again, late: \d min after it was signed, [0-9:.]+$", each)
        for each in said
    )
    assert "Held by 1 of 1." in said
    said = await looked_into(window, planted.waited)
    assert any(words.startswith("Came directly") for words in said), "and then it waited"
    (why,) = [words for words in said if words.startswith("In its place")]
    assert re.match(r"In its place, after it had waited \d min for Jonas", why)
    assert f"Jonas {planted.repaired[:5]}" in why


async def which_store_loses_messages(sheet: NetworkSheet) -> None:
    said = [row.accessibleName() for row in sheet.stores.findChildren(HealthRow)]
    lossy = [words for words in said if words.startswith(short_address(LOSSY))]
    honest = [words for words in said if words.startswith(tuple(map(short_address, HONEST)))]
    assert len(lossy) == 1
    assert len(honest) == len(HONEST)
    assert "something is wrong" in lossy[0]
    assert "that others had" in lossy[0]
    assert all("0 with messages left out" in words for words in honest)
    assert not any("something is wrong" in words for words in honest)


async def whose_network_is_bad(window: MainWindow, cast: PlantedCast, planted: Planted) -> None:
    window.open_conversation(planted.books)
    await until(lambda: window.pane.conversation is not None)
    window.commands.network()
    sheet = await sheet_of(window, NetworkSheet)
    said = sheet.verdict.text()
    assert re.search(r"so your own connection works\. Tomas was last heard 1\d min ago\.", said)
    await which_store_loses_messages(sheet)
    silence_everybody(cast)
    sheet.refresh()
    said = sheet.verdict.text()
    assert re.search(r"Nothing came from any of them for [^:]+: your own connection may be", said)
    assert not re.search(r"last heard \d s ago", said), "nor are people heard"
    sheet.reject()


def test_the_window_alone_says_what_is_wrong(tmp_path: Path) -> None:
    async def scenario() -> None:
        cast = PlantedCast(tmp_path)
        planted = await plant(cast)
        context = WindowContext(version=lambda: "0.1.0", now=cast.clock.now)
        window = build_window(cast.engines["Ines"], UiSettings(), context)
        window.resize(1280, 820)
        window.show()
        await window.start()
        await who_lacks_it_and_since_when(window, planted)
        await why_it_is_late(window, planted)
        await whose_network_is_bad(window, cast, planted)
        window.close()
        await window.shutdown()
        window.deleteLater()
        for engine in cast.engines.values():
            await engine.stop()

    play(scenario)
