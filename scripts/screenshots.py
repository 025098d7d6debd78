"""Draw the pictures in docs/images: the real window on real engines, groups and people.

Six people's engines (encrypted stores on disk, sealed sessions, a network in memory) play a short
scene under a clock that can be set forward; what the window shows of it is what it would show to
anybody.  ``xvfb-run -a python -m scripts.screenshots`` writes them; offscreen has other fonts.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtWidgets import QScrollArea

from chat_app.settings import DEFAULTS
from chat_app.settings_control import SettingsControl
from engine.core.fault_bench import FaultTarget, Preset
from engine.core.history.queries import End
from engine.core.ids import ConversationId, UnixMs
from engine.core.problems import QueryFailed
from engine.history_views import (
    HistoryChanged,
    HistoryReason,
    HistoryState,
    HistoryView,
    StoreHealth,
    StoreOrigin,
    StoresChanged,
    StoreView,
)
from scripts.everyday_pictures import everyday_pictures
from scripts.governing_pictures import governing_pictures
from scripts.release import version
from scripts.scene import Cast, luc_scene, play
from scripts.taking_pictures import NARROW, SIZE, draw_all, keep, picture, settled
from ui.app import build_window
from ui.dialogs.person import MINE, AddPerson
from ui.languages import speak
from ui.settings import Appearance, UiSettings
from ui.timeline.rows import message_in
from ui.window.looks import Looks
from ui.window.main_window import MainWindow
from ui.window.window_context import WindowContext

PEER = "/p2p/16Uiu2HAmPLe7Mzm8TsYUubgCAW1aJoeFScxrLj8ppHFivPo97bUZ"


async def first_pictures(cast: Cast) -> None:
    """What somebody sees who starts the program for the first time, up to the empty window."""
    engine = await cast.enter("Nora", is_new=True)
    context = WindowContext(version=version, now=cast.clock.now, restore=lambda: None)
    window = build_window(engine, UiSettings(), context)
    window.resize(*SIZE)
    window.show()
    await window.start()
    window.first_page.page.name_step.name.setText("Nora")
    await picture(window, Appearance.LIGHT, "first-start.png")
    window.first_page.page.name_step.next.click()
    await asyncio.sleep(0.6)
    window.first_page.page.later_requested.emit()
    await picture(window, Appearance.LIGHT, "nothing-yet.png")
    await window.shutdown()
    window.close()


async def panel_pictures(window: MainWindow) -> None:
    window.side.toggle()
    await picture(window, Appearance.LIGHT, "panel-light.png")
    await picture(window, Appearance.DARK, "panel-dark.png")
    window.side.close()


async def delivery_pictures(window: MainWindow) -> None:
    own = [
        message
        for row in window.pane.timeline.scene.loaded.rows
        if (message := message_in(row)) is not None and message.is_own
    ]
    window.inspector.show_message(own[-2].message_id)
    await asyncio.sleep(0.6)
    await picture(window, Appearance.LIGHT, "inspector-light.png")
    window.inspector.close()
    window.pane.header.views.choose(1)
    await asyncio.sleep(1)
    await picture(window, Appearance.LIGHT, "delivery-light.png")
    await picture(window, Appearance.DARK, "delivery-dark.png")
    window.delivery.show_chat()


async def bench_pictures(cast: Cast, tide: ConversationId) -> None:
    """Settings: privacy, and the fault bench with its bar above the conversation that it spoils."""
    control = SettingsControl(cast.place / "settings.toml", DEFAULTS)
    engine = cast.engines["Ines"]
    context = WindowContext(version=version, now=cast.clock.now, settings_port=control)
    window = build_window(engine, UiSettings(), context)
    window.resize(*SIZE)
    window.show()
    await window.start()
    window.open_conversation(tide)
    await asyncio.sleep(1)
    window.settings.open("privacy")
    await picture(window, Appearance.LIGHT, "settings-privacy.png")
    window.settings.close()
    await asyncio.sleep(0.3)
    engine.faults.start(FaultTarget(conversation_id=tide), Preset.HOTEL)
    window.settings.open("advanced")
    await asyncio.sleep(0.6)
    rows = window.settings.faults
    if rows is None or window.settings.page is None:
        raise RuntimeError("no settings")
    for area in window.settings.page.findChildren(QScrollArea):
        content = area.widget()
        if content is not None and content.isAncestorOf(rows.overview):
            top = rows.overview.mapTo(content, rows.overview.rect().topLeft()).y()
            area.verticalScrollBar().setValue(top - 40)
    await picture(window, Appearance.LIGHT, "fault-bench-light.png")
    window.settings.close()
    await picture(window, Appearance.DARK, "fault-bar-dark.png")
    engine.faults.stop_all()
    await window.shutdown()
    window.close()


async def sheet_picture(window: MainWindow, open_it: Callable[[], None], name: str) -> None:
    open_it()
    await asyncio.sleep(0.6)
    if window.flows.sheet is not None:
        await settled(window.flows.sheet)
    sheet = window.flows.sheet
    if sheet is None:
        raise RuntimeError(f"no sheet for {name}")
    if isinstance(sheet, AddPerson):
        sheet.ways.choose(MINE)
        sheet.mine.copy_button.setFocus()
        await asyncio.sleep(0.3)
    keep(sheet, name)
    sheet.reject()
    await asyncio.sleep(0.3)


async def people_pictures(window: MainWindow, cast: Cast) -> None:
    for name in ("Luc", "Bob"):
        cast.online(name, online=True)
    luc = await luc_scene(cast)
    window.open_conversation(luc)
    await asyncio.sleep(1)
    await picture(window, Appearance.LIGHT, "person-light.png")
    await picture(window, Appearance.DARK, "person-dark.png")
    bob = next(view for view in window.model.conversations() if view.name == "Bob")
    window.open_conversation(bob.conversation_id)
    await asyncio.sleep(0.5)
    await picture(window, Appearance.LIGHT, "request-light.png")
    await sheet_picture(window, window.people.add_person, "add-person.png")
    view = window.model.conversation(luc)
    if view is None:
        raise RuntimeError("Luc is gone")
    await sheet_picture(window, lambda: window.people.safety_number(view), "safety-number.png")
    window.resize(*NARROW)
    await picture(window, Appearance.LIGHT, "request-narrow.png")


def store(address: str, health: StoreHealth, **known: int) -> StoreView:
    """As a Store may stand after a few days; those of the scene need none."""
    failed = health is StoreHealth.FAILED
    return StoreView(
        multiaddr=address,
        origin=StoreOrigin.USER,
        enabled=True,
        health=health,
        problem=QueryFailed(End.TIMEOUT) if failed else None,
        version="3.0.0",
        queries=44,
        complete=known.get("complete", 44),
        messages=known.get("messages", 12_340),
        new=known.get("new", 310),
        omitted=known.get("omitted", 0),
        asked_ms=UnixMs(known["asked_ms"]),
        round_trip_ms=known.get("round_trip_ms", 38),
        test=None,
    )


async def history_pictures(window: MainWindow, cast: Cast, tide: ConversationId) -> None:
    """What is told of a fetch and of three Stores, in the real window."""
    now_ms = cast.clock.now_ms()
    fetching = HistoryView(
        conversation_id=tide,
        reason=HistoryReason.USER,
        state=HistoryState.RUNNING,
        since_ms=UnixMs(now_ms - 30 * 86_400_000),
        fetched=3_240,
        arrived=312,
        per_second=1_620,
        fraction=0.4,
        stores=2,
    )
    window.bridge.publish(HistoryChanged(history=fetching))
    await picture(window, Appearance.LIGHT, "history-light.png")
    await picture(window, Appearance.DARK, "history-dark.png")
    ended = replace(fetching, state=HistoryState.DONE)
    window.bridge.publish(HistoryChanged(history=ended))
    window.looks.choose(Appearance.LIGHT)
    stores = (
        store(f"/dns4/quay.harbour.example/tcp/443/wss{PEER}", StoreHealth.GOOD, asked_ms=now_ms),
        store(
            f"/dns4/lantern.home.example/tcp/8443/wss{PEER}",
            StoreHealth.GOOD,
            asked_ms=now_ms,
            new=12,
            omitted=7,
            round_trip_ms=61,
        ),
        store(f"/ip4/192.0.2.12/tcp/60000{PEER}", StoreHealth.FAILED, asked_ms=now_ms, complete=3),
    )
    window.flows.stores()
    await asyncio.sleep(0.3)
    window.bridge.publish(StoresChanged(stores=stores))
    await sheet_picture(window, lambda: None, "stores.png")


async def language_pictures(cast: Cast, tide: ConversationId) -> None:
    """French, narrow too; and the window mirrored, as Hebrew has it, in English words."""
    for language, sizes in (
        ("fr", {"french": SIZE, "french-narrow": NARROW}),
        ("he", {"mirrored": SIZE}),
    ):
        speak(language)
        settings = UiSettings()
        Looks(settings).apply()
        context = WindowContext(version=version, now=cast.clock.now)
        window = MainWindow(cast.engines["Ines"], settings, context)
        window.resize(*SIZE)
        window.show()
        await window.start()
        window.open_conversation(tide)
        for name, size in sizes.items():
            window.resize(*size)
            await asyncio.sleep(1)
            window.pane.timeline.go_to_newest()
            await picture(window, Appearance.LIGHT, f"{name}-light.png")
            await picture(window, Appearance.DARK, f"{name}-dark.png")
        await window.shutdown()
        window.close()
    speak("en")


async def all_pictures() -> None:
    with tempfile.TemporaryDirectory(prefix="causerie-pictures-") as place:
        cast = Cast(Path(place))
        tide = await play(cast)
        settings = UiSettings()
        window = build_window(
            cast.engines["Ines"], settings, WindowContext(version=version, now=cast.clock.now)
        )
        window.resize(*SIZE)
        window.show()
        await window.start()
        window.open_conversation(tide)
        window.activateWindow()
        await asyncio.sleep(2)
        window.pane.timeline.go_to_newest()
        await asyncio.sleep(1)
        await picture(window, Appearance.LIGHT, "main-light.png")
        await picture(window, Appearance.DARK, "main-dark.png")
        await picture(window, Appearance.HIGH_CONTRAST, "main-high-contrast.png")
        await panel_pictures(window)
        await delivery_pictures(window)
        await history_pictures(window, cast, tide)
        await people_pictures(window, cast)
        await window.shutdown()
        window.close()
        await bench_pictures(cast, tide)
        await first_pictures(cast)
        await language_pictures(cast, tide)
        for engine in cast.engines.values():
            await engine.stop()
        await governing_pictures()
        await everyday_pictures()


if __name__ == "__main__":
    sys.exit(draw_all(all_pictures))
