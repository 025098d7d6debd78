"""Draw the pictures in docs/images: the real window on real engines, groups and people.

Six people's engines (encrypted stores on disk, sealed sessions, a network in memory) play a short
scene under a clock that can be set forward; what the window shows of it is what it would show to
anybody.  ``xvfb-run -a python -m scripts.screenshots`` writes them; offscreen has other fonts.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom

from msgspec.structs import replace
from PySide6.QtWidgets import QScrollArea, QWidget

from chat_app.qt_loop import run_on_qt
from chat_app.settings import DEFAULTS
from chat_app.settings_control import SettingsControl
from engine.api import Mention
from engine.core.contacts import ContactState
from engine.core.entropy import Entropy
from engine.core.fault_bench import FaultTarget, Preset
from engine.core.history.queries import End
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.problems import FileFault, FileProblem, QueryFailed
from engine.events import MessageAdded, MessageKind, MessageView, TimelineChanged
from engine.file_views import FileState, FileView
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
from engine.network.memory import MemoryNetwork, MemoryTransport
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.runtime.engine import Engine, EngineDependencies, OpenedStore
from scripts.painted_pictures import lighthouse, pier_photo
from scripts.release import version
from ui.app import build_window
from ui.dialogs.person import MINE, AddPerson
from ui.languages import speak
from ui.settings import Appearance, UiSettings
from ui.timeline.rows import message_in
from ui.window.looks import Looks
from ui.window.main_window import MainWindow
from ui.window.window_context import WindowContext

OUT = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZE = (1280, 820)
NARROW = (420, 720)
KEY = bytes(32)
MIB = 1024 * 1024
READINGS = """\
13:54:30  level=2.41 m  batt=3.92 V  seq=118
13:55:00  level=2.40 m  batt=3.92 V  seq=119"""
PEER = "/p2p/16Uiu2HAmPLe7Mzm8TsYUubgCAW1aJoeFScxrLj8ppHFivPo97bUZ"


class Clock:
    """Real time, moved to a morning and set forward by hand."""

    def __init__(self) -> None:
        start = datetime(2026, 11, 20, 13, 41, tzinfo=UTC)
        self._offset_ms = int(start.timestamp() * 1000) - time.time_ns() // 1_000_000

    def now_ms(self) -> UnixMs:
        return UnixMs(time.time_ns() // 1_000_000 + self._offset_ms)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.now_ms() / 1000, tz=UTC)

    def forward(self, minutes: float) -> None:
        self._offset_ms += int(minutes * 60_000)


class Cast:
    """The people of the scene."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.clock = Clock()
        self.network = MemoryNetwork()
        self.engines: dict[str, Engine] = {}
        self._transports: dict[str, MemoryTransport] = {}

    def transport(self, name: str) -> MemoryTransport:
        """By which somebody takes part."""
        return self.network.attach(name)

    async def enter(self, name: str) -> Engine:
        transport = self.transport(name)
        path = self.place / f"{name}.db"
        engine = Engine(
            EngineDependencies(
                open_store=lambda: OpenedStore(
                    store=SqliteProfileStore.open(path, KEY), key_storage="key file"
                ),
                make_transport=lambda _seed: transport,
                port_of=lambda _transport: None,
                entropy=Entropy(random_bytes=os.urandom, random_unit=SystemRandom().random),
                now_ms=self.clock.now_ms,
                counted_ms=self.clock.now_ms,
            )
        )
        await engine.start()
        await engine.create_identity(name)
        self.engines[name] = engine
        self._transports[name] = transport
        return engine

    def online(self, name: str, *, online: bool) -> None:
        self._transports[name].set_online(online)

    async def group(self, name: str, founder: str, *others: str) -> ConversationId:
        made = await self.engines[founder].groups.create(name)
        link = await self.engines[founder].groups.make_invite_link(made)
        for other in others:
            await self.engines[other].groups.join(link)
        everybody = (founder, *others)
        await until(lambda: self._all_know(made, everybody))
        return made

    async def _all_know(self, group: ConversationId, names: tuple[str, ...]) -> bool:
        for name in names:
            views = await self.engines[name].conversations()
            view = next(v for v in views if v.conversation_id == group)
            if len(view.members) < len(names) or view.missing:
                return False
        return True

    async def befriend(self, asker: str, other: str) -> ConversationId:
        pair = await self.ask(asker, other)
        await self.engines[other].people.accept(pair)
        await until(lambda: self._stands(asker, pair, ContactState.ACCEPTED))
        return pair

    async def ask(self, asker: str, other: str) -> ConversationId:
        link = await self.engines[other].people.make_contact_link()
        pair = await self.engines[asker].people.add(link)
        await until(lambda: self._stands(other, pair, ContactState.ASKING))
        return pair

    async def _stands(self, name: str, pair: ConversationId, state: ContactState) -> bool:
        views = await self.engines[name].conversations()
        contacts = (view.contact for view in views if view.conversation_id == pair)
        return any(contact is not None and contact.state is state for contact in contacts)

    async def say(  # noqa: PLR0913 - what a message is made of
        self,
        name: str,
        group: ConversationId,
        text: str,
        *,
        after: float = 1,
        reply_to: MessageId | None = None,
        mentions: tuple[Mention, ...] = (),
    ) -> MessageId:
        self.clock.forward(after)
        said = await self.engines[name].timeline.send_text(
            group, text, reply_to=reply_to, mentions=mentions
        )
        await asyncio.sleep(0.15)
        return said

    async def send_file(  # noqa: PLR0913 - what a file is made of
        self,
        name: str,
        group: ConversationId,
        file_name: str,
        data: bytes,
        *,
        caption: str = "",
        media_type: str = "text/csv",
        size: tuple[int, int] = (0, 0),
    ) -> None:
        self.clock.forward(1)
        await self.engines[name].timeline.send_file(
            group,
            name=file_name,
            media_type=media_type,
            data=data,
            caption=caption,
            width=size[0],
            height=size[1],
        )
        await asyncio.sleep(0.15)

    def id_of(self, name: str) -> ParticipantId:
        identity = self.engines[name].identity()
        if identity is None:
            raise RuntimeError(f"{name} has no identity")
        return identity.participant_id


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110 - a condition over several engines
            await asyncio.sleep(0.1)


async def play(cast: Cast) -> ConversationId:
    """The scene; afterwards Ines and Tomas alone are online, and both lack something."""
    for name in ("Ines", "Maya", "Jonas", "Priya", "Luc", "Tomas"):
        await cast.enter(name)
    kitchen = await cast.group("Sunday Kitchen", "Ines", "Luc", "Maya")
    books = await cast.group("Book Circle", "Maya", "Ines", "Tomas")
    notes = await cast.group("Field Notes", "Priya", "Ines", "Jonas")
    tide = await cast.group("Tide Gauge", "Ines", "Maya", "Jonas", "Priya", "Luc", "Tomas")
    await cast.say("Luc", kitchen, "Who brings the big pot?")
    await cast.say("Ines", kitchen, "I can bring it, and the ladle.")
    await cast.say("Tomas", books, "Chapter nine broke me.", after=2)
    await cast.say("Maya", books, "Same time on Thursday?")
    await cast.engines["Ines"].set_muted(books, muted=True)
    await cast.say("Priya", notes, "Two kingfishers at the lower bridge!", after=2)
    await cast.engines["Ines"].timeline.save_draft(kitchen, "And napkins, if somebody")
    await people_scene(cast)
    await tide_scene(cast, tide)
    return tide


async def people_scene(cast: Cast) -> None:
    """Friends, somebody who asks, and somebody who was asked."""
    await cast.engines["Luc"].set_profile(name="Luc", picture=lighthouse("#3b6ea5", "#f2c9a0"))
    await cast.engines["Ines"].set_profile(name="Ines", picture=lighthouse("#0b6b66", "#bfe3dd"))
    maya = await cast.befriend("Maya", "Ines")
    await cast.send_file(
        "Maya",
        maya,
        "mark.jpg",
        pier_photo(),
        caption="The low water mark",
        media_type="image/jpeg",
        size=(560, 250),
    )
    await cast.enter("Nell")
    await cast.ask("Ines", "Nell")
    await cast.enter("Bob")
    cast.clock.forward(1)
    await cast.ask("Bob", "Ines")


async def luc_scene(cast: Cast) -> ConversationId:
    luc = await cast.befriend("Luc", "Ines")
    await cast.say("Luc", luc, "Are you at the slip on Saturday?", after=0)
    await cast.say("Ines", luc, "Yes, nine sharp. I'll bring the ladder.")
    await cast.say("Luc", luc, "Lovely. Mind that it is Tomas's.")
    await cast.say("Ines", luc, "I'll be careful. Tea afterwards?")
    await asyncio.sleep(1)
    cast.online("Luc", online=False)
    await cast.say("Ines", luc, "And could you print the tide table?")
    await asyncio.sleep(1)
    return luc


async def tide_scene(cast: Cast, tide: ConversationId) -> None:
    pier = await cast.say("Maya", tide, "New sensor is on the pier. Bracket fits, cable is *long*.")
    await cast.say("Luc", tide, "Does it talk?")
    await asyncio.sleep(1)
    for name, emoji in (("Ines", "🎉"), ("Jonas", "🎉"), ("Luc", "🎉"), ("Tomas", "👏")):
        await cast.engines[name].timeline.react(tide, pier, emoji, active=True)
    await cast.say("Jonas", tide, f"It talks! A reading every 30 seconds:\n```\n{READINGS}\n```")
    await cast.send_file(
        "Maya",
        tide,
        "pier.jpg",
        pier_photo(),
        caption="The bracket, at low water. https://example.org/tide-gauge",
        media_type="image/jpeg",
        size=(560, 250),
    )
    await cast.send_file("Jonas", tide, "first-hour.csv", READINGS.encode() * 120)
    await cast.say("Ines", tide, "Lovely. I'll put the level on the club page tonight.", after=2)
    await asyncio.sleep(4)
    for name in ("Ines", "Tomas"):
        cast.online(name, online=False)
    for text in ("Battery is at 3.92 V.", "Who has the spare?", "It might be in the shed."):
        await cast.say("Jonas", tide, text)
    await asyncio.sleep(3)
    for name in ("Maya", "Jonas", "Luc"):
        cast.online(name, online=False)
    cast.online("Ines", online=True)
    ines = Mention(participant_id=cast.id_of("Ines"), start=0, length=5)
    words = "@Ines can you bring the spare battery on Saturday? I can drive."
    await cast.say("Priya", tide, words, reply_to=pier, mentions=(ines,))
    cast.online("Priya", online=False)
    cast.online("Tomas", online=True)
    await asyncio.sleep(0.5)
    cast.clock.forward(2)
    await asyncio.sleep(1)
    await cast.say("Ines", tide, "Yes, it's charged. I'll pick you up at half past eight.", after=0)
    await cast.say("Ines", tide, "Low water is 10:52, so we have an hour before it's tight.")


async def about_messages(window: MainWindow) -> None:
    """Answering, choosing an emoji, and what is known of a message."""
    pane = window.pane
    rows = [message_in(row) for row in pane.timeline.scene.loaded.rows]
    asked = next(row for row in rows if row is not None and row.mentions_me)
    pane.writing.reply(asked)
    pane.ask_emoji()
    await picture(window, Appearance.LIGHT, "reply-light.png")
    pane.ask_emoji()
    pane.writing.cancel()
    await sheet_picture(window, lambda: pane.info_requested.emit(asked.message_id), "info.png")
    window.side.toggle()
    await picture(window, Appearance.LIGHT, "panel-light.png")
    await picture(window, Appearance.DARK, "panel-dark.png")
    window.side.close()


async def delivery_pictures(window: MainWindow) -> None:
    window.pane.header.views.choose(1)
    await asyncio.sleep(1)
    await picture(window, Appearance.LIGHT, "delivery-light.png")
    await picture(window, Appearance.DARK, "delivery-dark.png")
    window.delivery.show_chat()


async def bench_pictures(cast: Cast, tide: ConversationId) -> None:
    """The fault bench in the settings, and its bar above the conversation that it spoils."""
    control = SettingsControl(cast.place / "settings.toml", DEFAULTS)
    engine = cast.engines["Ines"]
    context = WindowContext(version="0.1.0", now=cast.clock.now, settings_port=control)
    window = build_window(engine, UiSettings(), context)
    window.resize(*SIZE)
    window.show()
    await window.start()
    window.open_conversation(tide)
    await asyncio.sleep(1)
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


async def picture(window: MainWindow, appearance: Appearance, name: str) -> None:
    window.looks.choose(appearance)
    await asyncio.sleep(0.6)
    keep(window, name)


def keep(widget: QWidget, name: str) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    if not widget.grab().save(str(OUT / name)):
        raise OSError(f"{OUT / name} cannot be written")
    print(f"docs/images/{name}")


async def sheet_picture(window: MainWindow, open_it: Callable[[], None], name: str) -> None:
    open_it()
    await asyncio.sleep(0.6)
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


def large_files(window: MainWindow) -> list[MessageView]:
    """How files beyond 96 KiB may stand in a row: on their way, waiting, here, and our own."""
    rows = [message_in(row) for row in window.pane.timeline.scene.loaded.rows]
    said = [row for row in rows if row is not None and row.kind is MessageKind.TEXT]
    theirs = next(row for row in reversed(said) if not row.is_own)
    mine = next(row for row in reversed(said) if row.is_own)
    plain = replace(theirs, quote=None, reactions=(), mentions_me=False, spans=(), text="")
    plain = replace(plain, kind=MessageKind.FILE, waiting=False)
    film = FileView(
        name="pier-timelapse.mp4",
        media_type="video/mp4",
        size=48 * MIB,
        state=FileState.RUNNING,
        done_bytes=19 * MIB,
        rate=3 * MIB,
    )
    asked = FileProblem(fault=FileFault.NOBODY_HAS_IT, peers=3, nodes=1)
    logs = replace(film, name="logs-2026-11.zip", media_type="application/zip", size=24 * MIB)
    log_files = (
        film,
        replace(logs, state=FileState.WAITING, done_bytes=5 * MIB, rate=0, problem=asked),
        replace(
            logs,
            name="chart.pdf",
            state=FileState.COMPLETE,
            held_whole_by=(theirs.sender_id, mine.sender_id),
        ),
    )
    found = [replace(plain, file=file) for file in log_files]
    sending = replace(film, name="calibration.zip", is_upload=True, done_bytes=30 * MIB)
    found.append(replace(mine, kind=MessageKind.FILE, text="", spans=(), file=sending))
    return [
        replace(
            row,
            sent_ms=UnixMs(mine.sent_ms + 60_000 * number),
            position=Position(
                mine.position.lamport_timestamp + number, MessageId(f"file {number}")
            ),
        )
        for number, row in enumerate(found, start=1)
    ]


async def file_pictures(window: MainWindow) -> None:
    for row in large_files(window):
        window.bridge.publish(MessageAdded(message=row, notify=False))
    await asyncio.sleep(0.5)
    window.pane.timeline.go_to_newest()
    await picture(window, Appearance.LIGHT, "files-light.png")
    await picture(window, Appearance.DARK, "files-dark.png")
    window.bridge.publish(TimelineChanged(conversation_id=row.conversation_id))
    await asyncio.sleep(1)
    window.pane.timeline.go_to_newest()


async def language_pictures(cast: Cast, tide: ConversationId) -> None:
    """French, narrow too; and the window mirrored, as Hebrew has it, in English words."""
    for language, sizes in (
        ("fr", {"french": SIZE, "french-narrow": NARROW}),
        ("he", {"mirrored": SIZE}),
    ):
        speak(language)
        settings = UiSettings()
        Looks(settings).apply()
        context = WindowContext(version=version(), now=cast.clock.now)
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


async def draw() -> int:
    os.environ["TZ"] = "UTC"
    time.tzset()
    with tempfile.TemporaryDirectory(prefix="causerie-pictures-") as place:
        cast = Cast(Path(place))
        tide = await play(cast)
        settings = UiSettings()
        window = build_window(
            cast.engines["Ines"], settings, WindowContext(version=version(), now=cast.clock.now)
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
        await about_messages(window)
        await delivery_pictures(window)
        await file_pictures(window)
        await history_pictures(window, cast, tide)
        await people_pictures(window, cast)
        await window.shutdown()
        window.close()
        await bench_pictures(cast, tide)
        await language_pictures(cast, tide)
        for engine in cast.engines.values():
            await engine.stop()
    return 0


if __name__ == "__main__":
    sys.exit(run_on_qt(draw))
