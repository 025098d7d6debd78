"""The list's badge, the unread line and the jump button tell of the same messages."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine.events import MessageKind
from tests.ui.desks import Desk, at_desks
from tests.ui.driving import until
from ui.app import build_window
from ui.settings import UiSettings
from ui.timeline.rows import UnreadRow, is_system, message_of
from ui.window.main_window import MainWindow
from ui.window.window_context import WindowContext


def below_the_line(desk: Desk | MainWindow) -> list[str]:
    """What somebody else wrote, below the unread line."""
    window = desk.window if isinstance(desk, Desk) else desk
    rows = window.pane.timeline.scene.loaded.rows
    at = next((n for n, row in enumerate(rows) if isinstance(row, UnreadRow)), len(rows))
    below = (message_of(row) for row in rows[at:])
    return [m.text for m in below if m is not None and not m.is_own and not is_system(m)]


def badge(desk: Desk | MainWindow) -> int:
    window = desk.window if isinstance(desk, Desk) else desk
    (view,) = window.model.conversations()
    return view.unread


def test_forty_unread_eighteen_looked_at_and_one_more_arrives(tmp_path: Path) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        group = await alice.engine.groups.create("Tide Gauge")
        await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
        bob.window.open_conversation(group)
        bob.window.activateWindow()
        await until(bob.window.isActiveWindow)
        for number in range(1, 41):
            bob.window.pane.composer.box.setPlainText(f"reading {number}\nand\nmore\nlines")
            QTest.keyClick(bob.window.pane.composer.box, Qt.Key.Key_Return)
        await until(lambda: badge(alice) == 40)
        alice.window.activateWindow()
        await until(alice.window.isActiveWindow)
        alice.window.open_conversation(group)
        timeline = alice.window.pane.timeline
        jump = timeline.canvas.jump_button
        await until(lambda: len(below_the_line(alice)) == 40)
        eighteenth = next(
            m.position for m in timeline.scene.loaded.messages if m.text.startswith("reading 18\n")
        )
        while not timeline.read_tracker.state.was_seen(eighteenth):
            timeline.canvas.scroll_by(-20)
            timeline.read_tracker.note_seen()
        await until(lambda: badge(alice) == 22)
        await until(lambda: jump.unread == 22)
        assert len(below_the_line(alice)) == 40, "it stays while one reads"
        bob.window.activateWindow()
        await until(bob.window.isActiveWindow)
        bob.type_and_enter("one more")
        await until(lambda: badge(alice) == 23)
        await until(lambda: jump.unread == 23)
        assert len(below_the_line(alice)) == 23
        assert below_the_line(alice)[0].startswith("reading 19\n")

    at_desks(tmp_path, ("Alice", "Bob"), scenario)


def test_what_was_written_while_one_was_away_and_comes_as_one_looks_has_its_line(
    tmp_path: Path,
) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        group = await alice.engine.groups.create("Tide Gauge")
        await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
        later = WindowContext(now=lambda: datetime.now(UTC) + timedelta(minutes=10))
        bob.window.hide()
        again = build_window(bob.engine, UiSettings(), later)
        again.show()
        await again.start()
        again.open_conversation(group)
        again.activateWindow()
        await until(again.isActiveWindow)
        await until(again.pane.timeline.read_tracker.is_watched)
        for said in ("one", "two", "three"):
            await alice.engine.timeline.send_text(group, said)
        await until(lambda: below_the_line(again) == ["one", "two", "three"])
        await until(lambda: not badge(again))
        assert below_the_line(again) == ["one", "two", "three"], "it stays once all are read"
        again.close()
        await again.shutdown()
        again.deleteLater()

    at_desks(tmp_path, ("Alice", "Bob"), scenario)


def test_who_joins_while_one_is_away_draws_no_line(tmp_path: Path) -> None:
    async def scenario(alice: Desk, bob: Desk, carol: Desk) -> None:
        group = await alice.engine.groups.create("Tide Gauge")
        link = await alice.engine.groups.make_invite_link(group)
        alice.window.open_conversation(group)
        carol.window.activateWindow()
        await until(carol.window.isActiveWindow)
        await bob.engine.groups.join(link)
        await until(lambda: alice.has_row("Bob joined"))
        rows = alice.window.pane.timeline.scene.loaded.rows
        assert not any(isinstance(row, UnreadRow) for row in rows)
        assert badge(alice) == 0
        kinds = {m.kind for row in rows if (m := message_of(row)) is not None}
        assert kinds == {MessageKind.CREATED, MessageKind.JOINED}

    at_desks(tmp_path, ("Alice", "Bob", "Carol"), scenario)
