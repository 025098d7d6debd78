"""Notifications over a real bus: servers that can much, little, or nothing, and bad ones."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from jeepney import DBusAddress, Parser, new_method_call, new_method_return
from msgspec.structs import replace
from PySide6.QtGui import QColor, QImage

from chat_app.dbus_notifications import DBusNotifications
from chat_app.session_bus import MAX_UNSENT_BYTES, MOST_WAITING, BusError, SessionBus
from chat_app.silent_bus import session_address
from tests.patience import PATIENCE_S
from tests.ui.desktop.private_bus import NAME, PATH, NotificationServer, private_bus
from ui.desktop.port import (
    ActionLabels,
    DesktopNotification,
    Dismissed,
    MarkedRead,
    NotificationAnswer,
    Opened,
    Replied,
)


def picture() -> QImage:
    image = QImage(3, 2, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(QColor(10, 20, 30))
    return image


def a_notification(key: str = "group", body: str = "Maya: low water at ten") -> DesktopNotification:
    return DesktopNotification(
        key=key,
        title="Tide Gauge",
        body=body,
        picture=picture(),
        labels=ActionLabels(open="Open", reply="Reply", mark_read="Mark as read"),
        can_reply=True,
        can_mark_read=True,
    )


class Told:
    """The program's side, and what it heard."""

    def __init__(self, port: DBusNotifications) -> None:
        self.port = port
        self.heard: list[NotificationAnswer] = []
        self._changed = asyncio.Event()
        port.listen(self._hear)

    def _hear(self, answer: NotificationAnswer) -> None:
        self.heard.append(answer)
        self._changed.set()

    async def until(self, *answers: NotificationAnswer) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.heard) < len(answers):
                self._changed.clear()
                await self._changed.wait()
        assert self.heard == list(answers)

    async def show(self, notification: DesktopNotification) -> None:
        self.port.show(notification)
        await asyncio.wait_for(self.port.idle(), PATIENCE_S)

    async def withdraw(self, key: str) -> None:
        self.port.withdraw(key)
        await asyncio.wait_for(self.port.idle(), PATIENCE_S)

    def counted(self, name: str) -> int:
        return self.port.counters.snapshot().get(f"notification.{name}", 0)

    async def until_counted(self, name: str, number: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.counted(name) < number:  # noqa: ASYNC110 - a counter tells nobody
                await asyncio.sleep(0)


@asynccontextmanager
async def told(
    address: str, *, answer_s: float = PATIENCE_S, rest_s: float = 0
) -> AsyncIterator[Told]:
    port = DBusNotifications(address, answer_s=answer_s, rest_s=rest_s)
    task = asyncio.create_task(port.run())
    try:
        yield Told(port)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.fixture
async def bus(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    async with private_bus(tmp_path_factory.mktemp("b")) as address:
        yield address


async def test_a_server_that_can_all_is_asked_for_all_and_one_notification_is_updated(
    bus: str,
) -> None:
    server = await NotificationServer.start(bus)
    async with told(bus) as it:
        await it.show(a_notification(body='Maya: <b>low</b> & "high" water'))
        (shown,) = server.shown
        assert shown.application == "Causerie"
        assert shown.title == "Tide Gauge"
        assert shown.body == 'Maya: &lt;b&gt;low&lt;/b&gt; &amp; "high" water'
        assert shown.actions == (
            *("default", "Open"),
            *("inline-reply", "Reply"),
            *("mark-read", "Mark as read"),
        )
        assert shown.hints["desktop-entry"] == ("s", "chat.causerie.Causerie")
        assert shown.hints["image-data"] == (
            "(iiibiiay)",
            (3, 2, 12, True, 8, 4, bytes((10, 20, 30, 255)) * 6),
        )
        assert "suppress-sound" not in shown.hints
        await it.show(replace(a_notification(body="Maya: later"), is_update=True))
        await it.show(a_notification(key="other"))
        assert [(one.number, one.replaces_id) for one in server.shown] == [(1, 0), (1, 1), (2, 0)]
        assert server.shown[1].hints["suppress-sound"] == ("b", True)
        assert server.calls.count("GetCapabilities") == 1
        await it.withdraw("group")
        await it.withdraw("never shown")
        assert server.closed == [1]
        await it.show(a_notification())
        assert server.shown[-1].replaces_id == 0
    await server.stop()


@pytest.mark.parametrize(
    ("capabilities", "title", "body", "actions"),
    [
        ((), "Tide Gauge: Maya: a < b", "", ()),
        (("body",), "Tide Gauge", "Maya: a < b", ()),
        (("body", "body-markup"), "Tide Gauge", "Maya: a &lt; b", ()),
        (
            ("body", "actions"),
            "Tide Gauge",
            "Maya: a < b",
            ("default", "Open", "mark-read", "Mark as read"),
        ),
    ],
)
async def test_a_server_is_asked_for_what_it_can(
    bus: str, capabilities: tuple[str, ...], title: str, body: str, actions: tuple[str, ...]
) -> None:
    server = await NotificationServer.start(bus, capabilities)
    async with told(bus) as it:
        await it.show(a_notification(body="Maya:\na < b" if not capabilities else "Maya: a < b"))
        (shown,) = server.shown
        assert (shown.title, shown.body, shown.actions) == (title, body, actions)
    await server.stop()


async def test_nobody_can_reply_where_nothing_can_be_written(bus: str) -> None:
    server = await NotificationServer.start(bus)
    async with told(bus) as it:
        await it.show(replace(a_notification(), can_reply=False, can_mark_read=False))
        assert server.shown[0].actions == ("default", "Open")
    await server.stop()


async def test_what_the_user_does_is_heard(bus: str) -> None:
    server = await NotificationServer.start(bus)
    async with told(bus) as it:
        for key in ("group", "other", "third"):
            await it.show(a_notification(key=key))
        await server.say("ActionInvoked", "us", 1, "default")
        await server.say("ActionInvoked", "us", 2, "mark-read")
        await server.say("NotificationReplied", "us", 2, "on my way")
        await server.say("NotificationClosed", "uu", 2, 1)
        await server.say("NotificationClosed", "uu", 3, 2)
        await it.until(
            Opened("group"), MarkedRead("other"), Replied("other", "on my way"), Dismissed("third")
        )
        await it.show(a_notification(key="other"))
        assert server.shown[-1].replaces_id == 0, "what is closed is not updated"
    await server.stop()


async def test_a_flood_of_signals_about_what_is_not_ours_is_counted_and_nothing_else(
    bus: str,
) -> None:
    server = await NotificationServer.start(bus)
    async with told(bus) as it:
        await it.show(a_notification())
        for number in range(2_000):
            await server.say("ActionInvoked", "us", 77 + number, "default")
        await server.say("ActionInvoked", "us", 1, "no such action")
        await server.say("ActionInvoked", "ss", "1", "default")
        await server.say("ActionInvoked", "u", 1)
        await server.say("NotificationReplied", "u(ss)", 1, ("a", "b"))
        await server.say("Nonsense", "", *())
        await server.say("ActionInvoked", "us", 1, "default")
        await it.until(Opened("group"))
        assert it.counted("signal_for_another") == 2_000
        assert it.counted("signal_malformed") == 4
    await server.stop()


async def test_only_the_server_itself_is_believed(bus: str) -> None:
    server = await NotificationServer.start(bus)
    other = await NotificationServer.start(bus)  # The name is taken: it only waits for it.
    async with told(bus) as it:
        await it.show(a_notification())
        await other.say_to(server.heard_from[-1], "ActionInvoked", "us", 1, "mark-read")
        await it.until_counted("signal_of_another", 1)
        assert it.heard == []
    await other.stop()
    await server.stop()


async def test_without_a_server_or_a_bus_nothing_is_shown_and_nothing_breaks(bus: str) -> None:
    for address in (bus, "unix:path=/nowhere/at/all", "nonsense", "tcp:host=1", ""):
        async with told(address, rest_s=PATIENCE_S) as it:
            await it.show(a_notification())
            await it.withdraw("group")
            await it.show(a_notification())
            names = it.port.counters.snapshot()
            wanted = "ServiceUnknown" if address == bus else "NoBus"
            assert names[f"notification.not_shown_{wanted}"] == 1, address
            assert names["notification.server_rests"] == 1, "it is not asked again and again"


async def test_a_server_that_comes_later_is_asked_at_once(bus: str) -> None:
    async with told(bus, rest_s=3_600) as it:
        await it.show(a_notification())
        server = await NotificationServer.start(bus)
        await it.until_counted("server_changed", 1)
        await it.show(a_notification())
        assert [shown.title for shown in server.shown] == ["Tide Gauge"]
    await server.stop()


async def test_a_server_that_starts_again_knows_nothing_of_earlier_ids(bus: str) -> None:
    server = await NotificationServer.start(bus, first=5)
    async with told(bus) as it:
        await it.show(a_notification())
        await server.stop()
        await it.until_counted("server_changed", 1)
        again = await NotificationServer.start(bus, ("body",), first=5)
        await it.until_counted("server_changed", 2)
        await it.withdraw("group")
        await it.show(a_notification())
        assert again.closed == []
        assert (again.shown[0].replaces_id, again.shown[0].actions) == (0, ())
    await again.stop()


async def test_errors_cost_the_notification_and_nothing_else(bus: str) -> None:
    server = await NotificationServer.start(bus)
    async with told(bus) as it:
        server.refuses = True
        await it.show(a_notification())
        assert it.counted("not_shown_Failed") == 1
        server.refuses = False
        await it.show(a_notification())
        assert len(server.shown) == 1
        server.refuses = True
        await it.withdraw("group")
        assert it.counted("not_shown_Failed") == 2
    await server.stop()


@pytest.mark.parametrize("answer", [("s", ("one",)), ("u", (0,)), ("b", (True,)), (None, ())])
async def test_an_answer_without_an_id_is_none(
    bus: str, answer: tuple[str | None, tuple[object, ...]]
) -> None:
    server = await NotificationServer.start(bus)
    server.says_instead = answer
    async with told(bus) as it:
        await it.show(a_notification())
        assert it.counted("not_shown_InvalidArgs") == 1
        await it.withdraw("group")
        assert server.closed == []
    await server.stop()


async def test_a_server_that_never_answers_holds_up_nobody_and_is_left_alone(bus: str) -> None:
    server = await NotificationServer.start(bus)
    async with told(bus, rest_s=3_600) as it:
        await it.show(a_notification())
        server.mute = True
        it.port.answer_s = 0.01
        for number in range(MOST_WAITING * 2):
            await it.show(a_notification(key=f"group {number}"))
        assert it.counted("not_shown_NoReply") == 1
        assert it.counted("server_rests") == MOST_WAITING * 2 - 1
        await server.until(lambda: server.calls.count("Notify") == 2)
    await server.stop()


async def test_an_answer_that_comes_late_is_not_lost(bus: str) -> None:
    server = await NotificationServer.start(bus)
    async with told(bus, rest_s=3_600) as it:
        await it.show(a_notification(key="first"))
        server.mute = True
        it.port.answer_s = 0.01
        await it.show(a_notification())
        await server.until(lambda: len(server.shown) == 2)
        await server.answer_after_all()
        await it.until_counted("answer_came_late", 1)
        it.port.answer_s = PATIENCE_S
        await it.withdraw("group")
        assert server.closed == [2]
    await server.stop()


async def test_the_window_goes_on_while_a_server_does_not_answer(bus: str) -> None:
    server = await NotificationServer.start(bus)
    server.mute = True
    async with told(bus) as it:
        it.port.show(a_notification(body="first"))
        await server.until(lambda: "GetCapabilities" in server.calls)
        for number in range(1_000):
            it.port.show(a_notification(body=f"number {number}"))
        it.port.withdraw("never shown")
        await server.answer_after_all()
        await asyncio.wait_for(it.port.idle(), PATIENCE_S)
        assert [shown.body for shown in server.shown] == ["first", "number 999"]
    await server.stop()


async def test_closing_withdraws_what_is_shown_and_shows_no_more(bus: str) -> None:
    server = await NotificationServer.start(bus)
    async with told(bus) as it:
        for key in ("group", "other"):
            await it.show(a_notification(key=key))
        it.port.close()
        it.port.show(a_notification(key="third"))
        await asyncio.wait_for(it.port.idle(), PATIENCE_S)
        assert server.on_screen == {}
        assert len(server.shown) == 2
    await server.stop()


@pytest.mark.parametrize("text", ["\0", "\ud800", "a\x07b\x1bc", "\udcff" * 10, "\u202e" * 3])
async def test_no_text_makes_the_bus_hang_up(bus: str, text: str) -> None:
    server = await NotificationServer.start(bus)
    async with told(bus) as it:
        await it.show(replace(a_notification(body=text), title=f"to {text}"))
        assert len(server.shown) == 1
        assert "\0" not in server.shown[0].body
        await it.show(a_notification())
        assert len(server.shown) == 2
    await server.stop()


async def test_a_bus_that_goes_away_is_found_again(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    place = tmp_path_factory.mktemp("b")
    async with private_bus(place) as address:
        server = await NotificationServer.start(address)
        port = DBusNotifications(address, answer_s=PATIENCE_S, rest_s=0)
        task = asyncio.create_task(port.run())
        it = Told(port)
        await it.show(a_notification())
        assert len(server.shown) == 1
    with suppress(EOFError, OSError):
        await server.stop()
    await it.show(a_notification())
    (place / "bus").unlink(missing_ok=True)
    async with private_bus(place) as address:
        server = await NotificationServer.start(address)
        await it.show(a_notification())
        assert (len(server.shown), server.shown[0].replaces_id) == (1, 0)
        await server.stop()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    "answer",
    [b"", b"REJECTED EXTERNAL\r\n", b"OK 1234deadbeef\r\n" + b"\xff" * 64, b"x" * 4_096],
    ids=["nothing", "no", "no D-Bus", "no end"],
)
async def test_what_is_no_bus_is_said_to_be_none(
    answer: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    socket = tmp_path_factory.mktemp("s") / "bus"

    ended = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        with suppress(OSError):
            while await reader.read(100):
                pass
        writer.close()
        ended.set()

    server = await asyncio.start_unix_server(talk, socket)
    with pytest.raises(BusError):
        await SessionBus.connect(f"unix:path={socket}", timeout_s=0.2)
    await asyncio.wait_for(ended.wait(), PATIENCE_S)
    server.close()


class DeafBus:
    """Greets whoever comes, and then reads no more, as a bus that was stopped."""

    def __init__(self) -> None:
        self.greeted = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        await reader.readuntil(b"\r\n")
        writer.write(b"OK 0123456789abcdef0123456789abcdef\r\n")
        await reader.readuntil(b"BEGIN\r\n")
        parser = Parser()
        while (hello := parser.get_next_message()) is None:
            parser.add_data(await reader.read(1024))
        writer.write(new_method_return(hello, "s", (":1.1",)).serialise(1))
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        self.greeted.set()

    def stop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def deaf_bus(place: Path) -> AsyncIterator[tuple[DeafBus, str]]:
    deaf, path = DeafBus(), place / "deaf"
    server = await asyncio.start_unix_server(deaf.serve, path)
    try:
        yield deaf, f"unix:path={path}"
    finally:
        deaf.stop()
        server.close()


async def test_a_bus_that_reads_no_more_is_left_and_holds_up_no_end(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with deaf_bus(tmp_path_factory.mktemp("d")) as (_, address):
        connection = await SessionBus.connect(address)
        call = new_method_call(DBusAddress(PATH, bus_name=NAME), "Say", "s", ("x" * 60_000,))
        answers = [connection.ask(call) for _ in range(MOST_WAITING)]
        async with asyncio.timeout(PATIENCE_S):
            await connection.closed.wait()
            for answer in answers:
                with pytest.raises(BusError):
                    await answer
            await connection.close()


async def test_what_little_was_not_read_holds_up_no_end_either(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with deaf_bus(tmp_path_factory.mktemp("d")) as (_, address):
        connection = await SessionBus.connect(address)
        call = new_method_call(DBusAddress(PATH, bus_name=NAME), "Say", "s", ("x" * 60_000,))
        for _ in range(MAX_UNSENT_BYTES // 60_000):
            connection.ask(call)
        await asyncio.wait_for(connection.close(), PATIENCE_S)


async def test_ending_while_the_bus_is_asked_leaves_nothing_behind(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with deaf_bus(tmp_path_factory.mktemp("d")) as (deaf, address):
        port = DBusNotifications(address, answer_s=PATIENCE_S)
        running = asyncio.create_task(port.run())
        port.show(a_notification())
        await asyncio.wait_for(deaf.greeted.wait(), PATIENCE_S)
        running.cancel()
        await asyncio.wait([running])
        assert not any(task.get_name() == "session bus" for task in asyncio.all_tasks())


async def test_answers_that_never_come_are_bounded(bus: str) -> None:
    server = await NotificationServer.start(bus)
    server.mute = True
    connection = await SessionBus.connect(bus)
    target = DBusAddress(PATH, bus_name=NAME, interface=NAME)
    asked = [
        connection.ask(new_method_call(target, "GetCapabilities")) for _ in range(MOST_WAITING + 3)
    ]
    assert [future.done() for future in asked] == [True] * 3 + [False] * MOST_WAITING
    await connection.close()
    assert all(future.done() for future in asked)
    await server.stop()


def test_the_bus_is_found_as_others_find_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("r")
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    assert session_address() == ""
    (place / "bus").touch()
    assert session_address() == f"unix:path={place}/bus"
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/other")
    assert session_address() == "unix:path=/other"
