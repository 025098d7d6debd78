"""Several files for one message: those that are refused, too many, or still read as one goes on."""

import threading
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from engine.api import MAX_FILE_BYTES, MAX_LARGE_FILE_BYTES
from engine.events import ConversationRemoved, MessageRemoved
from tests.patience import PATIENCE_S
from tests.ui.driving import Key, group_stage, play, stage, turn, until
from tests.ui.on_messages import in_view, own_held
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import seen_words
from ui.attachments import Prepared, prepare_file
from ui.controls import ElidedText
from ui.window.attaching import MAX_TOGETHER
from ui.window.unsent import Unsent

pytestmark = pytest.mark.usefixtures("qapp")
MB = 1024 * 1024
WAITS = "It goes out as soon as what is attached has been read."


def test_of_several_files_each_that_is_refused_is_named_and_the_others_go_out(
    tmp_path: Path,
) -> None:
    film, good, tape, more = (
        tmp_path / name for name in ("film.bin", "chart.pdf", "tape.bin", "more.pdf")
    )
    for large in (film, tape):
        with large.open("wb") as file:
            file.truncate(MAX_LARGE_FILE_BYTES + 4 * MB)
    for small in (good, more):
        small.write_bytes(b"chart")

    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            pane = it.window.pane
            it.write("the charts", on=pane.composer.box)
            pane.attaching.take_files([film, good, tape, more])
            await until(lambda: len(pane.attaching.files) == 2)
            refused = "“{}” is too large: a file can have 100.0 MB."
            words = " ".join(map(refused.format, ("film.bin", "tape.bin")))
            await until(lambda: words in seen_words(pane.composer))
            assert [file.name for file in pane.attaching.files] == ["chart.pdf", "more.pdf"]
            assert pane.composer.text() == "the charts"

    play(scenario)


def test_why_a_file_is_refused_stays_while_messages_arrive(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            pane = it.window.pane
            pane.attaching.take_files([tmp_path / "none.bin"])
            await until(lambda: "none.bin" in " ".join(seen_words(pane.composer)))
            arrived = engine.receive(group, "Maya", "Did you get it?")
            engine.change(group, unread=1)
            await until(lambda: in_view(it, arrived))
            await it.window.tasks.settle()
            assert "none.bin" in " ".join(seen_words(pane.composer))
            it.write("no", on=pane.composer.box)
            assert "none.bin" not in " ".join(seen_words(pane.composer))

    play(scenario)


def test_of_many_refused_files_some_are_named_and_the_others_counted(tmp_path: Path) -> None:
    damaged = tmp_path / "boat.png"
    damaged.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99))
    empty = [tmp_path / f"{number}.bin" for number in range(4)]
    for path in empty:
        path.write_bytes(b"")

    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            pane = it.window.pane
            pane.attaching.take_files([damaged, *empty])
            words = (
                "“boat.png”: The picture is damaged. “0.bin” is empty. “1.bin” is empty. "
                "2 more cannot be sent."
            )
            await until(lambda: words in seen_words(pane.composer))
            assert not pane.attaching.files

    play(scenario)


def two_charts(place: Path) -> list[Path]:
    """One to be read at once, and one that comes late."""
    paths = [place / name for name in ("first.pdf", "late.pdf")]
    for path in paths:
        path.write_bytes(b"chart")
    return paths


def read_when_set(monkeypatch: pytest.MonkeyPatch, may: threading.Event) -> list[str]:
    """Files are read once ``may`` is set; return the names of those that are being read."""
    begun = list[str]()

    def wait(path: Path, *, most: int) -> Prepared:
        begun.append(path.name)
        if path.stem != "first":
            assert may.wait(PATIENCE_S)
        return prepare_file(path, most=most)

    monkeypatch.setattr("ui.window.attaching.prepare_file", wait)
    return begun


def test_what_is_being_read_is_shown_where_it_will_be_attached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may = threading.Event()
    paths = two_charts(tmp_path)
    read_when_set(monkeypatch, may)

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            pane, elsewhere = it.window.pane, engine.add_group("Walks")
            bar = pane.attachment_bar
            pane.attaching.take_files(paths)
            await until(lambda: "Being read…" in seen_words(bar))
            assert seen_words(bar) == ["first.pdf", "5 bytes", "late.pdf", "Being read…"]
            assert bar.accessibleName() == "2 files go out with the message: first.pdf, late.pdf"
            it.window.open_conversation(elsewhere)
            assert not bar.isVisible()
            it.window.open_conversation(group)
            await until(lambda: "Being read…" in seen_words(bar))
            may.set()
            await until(lambda: len(pane.attaching.files) == 2)
            assert seen_words(bar) == ["first.pdf", "5 bytes", "late.pdf", "5 bytes"]

    play(scenario)


def test_what_was_read_and_refused_is_not_shown_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may = threading.Event()
    (path := tmp_path / "none.bin").touch()
    read_when_set(monkeypatch, may)

    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            pane = it.window.pane
            pane.attaching.take_files([path])
            await until(lambda: seen_words(pane.attachment_bar) == ["none.bin", "Being read…"])
            may.set()
            await until(lambda: "“none.bin” is empty." in seen_words(pane.composer))
            assert not pane.attachment_bar.isVisible()

    play(scenario)


def test_a_large_file_that_was_sent_is_shown_until_it_has_a_row(tmp_path: Path) -> None:
    path = tmp_path / "film.bin"
    path.write_bytes(b"x" * (MAX_FILE_BYTES + 1))

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            pane, elsewhere = it.window.pane, engine.add_group("Walks")
            bar = pane.attachment_bar
            engine.blobs.gate.clear()
            pane.attaching.take_files([path])
            await until(lambda: len(pane.attaching.files) == 1)
            pane.composer.submit()
            await until(lambda: seen_words(bar) == ["film.bin", "Being sealed…"])
            assert not pane.composer.send.isEnabled(), "there is nothing more to send"
            it.window.open_conversation(elsewhere)
            assert not bar.isVisible()
            it.window.open_conversation(group)
            await until(lambda: seen_words(bar) == ["film.bin", "Being sealed…"])
            engine.blobs.gate.set()
            await until(lambda: not bar.isVisible())
            assert engine.blobs.asked == [("send", str(path))]

    play(scenario)


def test_what_one_sends_waits_until_what_is_attached_has_been_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may = threading.Event()
    paths = two_charts(tmp_path)
    read_when_set(monkeypatch, may)

    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            pane = it.window.pane
            pane.attaching.take_files(paths)
            await until(lambda: len(pane.attaching.files) == 1)
            it.write("both charts", on=pane.composer.box)
            it.press(Key.Key_Return, on=pane.composer.box)
            assert WAITS in seen_words(pane.composer)
            assert pane.composer.text() == "both charts"
            assert not engine.called("send_file")
            may.set()
            await until(lambda: len(engine.called("send_file")) == 2)
            assert engine.called("send_file") == [
                ("first.pdf", "application/pdf", 5, "both charts"),
                ("late.pdf", "application/pdf", 5, ""),
            ]
            assert (pane.attaching.files, pane.composer.text()) == ((), "")
            assert WAITS not in seen_words(pane.composer)

    play(scenario)


@pytest.mark.parametrize("why", ["refused", "written on", "left"])
def test_what_waits_does_not_go_out_by_itself_once_that_may_not_be_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    path, may = tmp_path / "late.pdf", threading.Event()
    path.write_bytes(b"" if why == "refused" else b"chart")
    begun = read_when_set(monkeypatch, may)

    async def scenario() -> None:
        engine = ScriptedEngine()
        here, there = engine.add_group("Harbour"), engine.add_group("Walks")
        async with stage(engine, opening=here) as it:
            pane = it.window.pane
            pane.attaching.take_files([path])
            await until(lambda: begun == ["late.pdf"])
            it.write("the chart", on=pane.composer.box)
            it.press(Key.Key_Return, on=pane.composer.box)
            if why == "written on":
                it.write(" of", on=pane.composer.box)
                assert WAITS not in seen_words(pane.composer)
            elif why == "left":
                it.window.open_conversation(there)
            may.set()
            await it.window.tasks.settle()
            assert not engine.called("send_file")
            assert not engine.called("send_text")
            if why == "refused":
                assert pane.composer.text() == "the chart"
                assert "“late.pdf” is empty." in seen_words(pane.composer)

    play(scenario)


def test_what_is_still_read_as_one_leaves_waits_in_its_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may = threading.Event()
    paths = two_charts(tmp_path)
    read_when_set(monkeypatch, may)

    async def scenario() -> None:
        engine = ScriptedEngine()
        here, there = engine.add_group("Harbour"), engine.add_group("Walks")
        async with stage(engine, opening=here) as it:
            pane = it.window.pane
            pane.attaching.take_files(paths)
            await until(lambda: len(pane.attaching.files) == 1)
            it.window.open_conversation(there)
            assert not pane.attaching.files
            it.write("unread", on=pane.composer.box)
            it.press(Key.Key_Return, on=pane.composer.box)
            await until(lambda: [row.text for row in engine.rows[there].values()] == ["unread"])
            it.window.open_conversation(here)
            it.write("both", on=pane.composer.box)
            it.press(Key.Key_Return, on=pane.composer.box)
            assert WAITS in seen_words(pane.composer)
            it.window.open_conversation(there)
            may.set()
            await it.window.tasks.settle()
            assert not pane.attaching.files
            assert not pane.attachment_bar.isVisible()
            it.window.open_conversation(here)
            assert [file.name for file in pane.attaching.files] == ["first.pdf", "late.pdf"]
            assert pane.attachment_bar.isVisible()
            assert not engine.called("send_file")
            it.press(Key.Key_Return, on=pane.composer.box)
            await until(lambda: len(engine.called("send_file")) == 2)
            assert {row.file is None for row in engine.rows[there].values()} == {True}

    play(scenario)


def test_what_is_still_read_as_an_edit_begins_goes_out_with_the_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, may = tmp_path / "late.pdf", threading.Event()
    path.write_bytes(b"chart")
    read_when_set(monkeypatch, may)

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            pane, mine = it.window.pane, own_held(engine, group, "first")
            await until(lambda: in_view(it, mine))
            pane.attaching.take_files([path])
            it.press(Key.Key_Up, on=pane.composer.box)
            assert pane.composer.text() == "first"
            may.set()
            await it.window.tasks.settle()
            assert not pane.attaching.files
            it.press(Key.Key_Escape, on=pane.composer.box)
            assert [file.name for file in pane.attaching.files] == ["late.pdf"]

    play(scenario)


def test_a_file_that_could_not_be_sent_waits_where_it_was_to_go() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        here, there = engine.add_group("Harbour"), engine.add_group("Walks")
        async with stage(engine, opening=there) as it:
            pane = it.window.pane
            file = Prepared(name="chart.pdf", media_type="", size=5, data=b"chart")
            it.window.outbox.returned.emit(here, Unsent(text="", file=file))
            assert not pane.attaching.files
            it.window.open_conversation(here)
            assert pane.attaching.files == (file,)

    play(scenario)


def test_what_is_refused_is_said_in_its_own_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, may = [tmp_path / name for name in ("none.bin", "chart.pdf")], threading.Event()
    for path in paths:
        path.write_bytes(b"")
    begun = read_when_set(monkeypatch, may)

    async def scenario() -> None:
        engine = ScriptedEngine()
        here, there = engine.add_group("Harbour"), engine.add_group("Walks")
        async with stage(engine, opening=here) as it:
            composer, said = it.window.pane.composer, list[str]()
            monkeypatch.setattr(composer, "complain", said.append)
            it.window.pane.attaching.take_files(paths)
            await until(lambda: begun == ["none.bin"])
            it.window.open_conversation(there)
            may.set()
            await it.window.tasks.settle()
            assert not said
            it.window.open_conversation(here)
            assert said == ["“none.bin” is empty. “chart.pdf” is empty."]

    play(scenario)


def test_what_is_to_go_out_waits_in_its_conversation(tmp_path: Path) -> None:
    chart = tmp_path / "chart.pdf"
    chart.write_bytes(b"chart")

    async def scenario() -> None:
        engine = ScriptedEngine()
        here, there = engine.add_group("Harbour"), engine.add_group("Walks")
        asked = engine.receive(here, "Maya", "Who has the chart?")
        async with stage(engine, opening=here) as it:
            pane = it.window.pane
            await until(lambda: in_view(it, asked))
            pane.writing.reply(asked)
            pane.attaching.take_files([chart])
            await until(lambda: len(pane.attaching.files) == 1)
            it.write("Here", on=pane.composer.box)
            it.window.open_conversation(there)
            assert (pane.attaching.files, pane.composer.text()) == ((), "")
            assert not pane.attachment_bar.isVisible()
            assert not pane.composer_bar.isVisible()
            it.window.open_conversation(here)
            assert [file.name for file in pane.attaching.files] == ["chart.pdf"]
            assert pane.attachment_bar.isVisible()
            assert seen_words(pane.composer_bar)[0] == "Reply to Maya"
            it.press(Key.Key_Return, on=pane.composer.box)
            await until(lambda: bool(engine.called("send_file")))
            assert not pane.composer_bar.isVisible()
            it.window.open_conversation(there)
            it.window.open_conversation(here)
            assert not pane.attaching.files

    play(scenario)


@pytest.mark.parametrize("how", ["retracted", "removed"])
def test_what_is_answered_is_not_kept_in_a_conversation_where_it_is_gone(how: str) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        here, there = engine.add_group("Harbour"), engine.add_group("Walks")
        asked = engine.receive(here, "Maya", "Who has the chart?")
        async with stage(engine, opening=here) as it:
            pane = it.window.pane
            await until(lambda: in_view(it, asked))
            pane.writing.reply(asked)
            it.window.open_conversation(there)
            if how == "removed":
                engine.tell(MessageRemoved(conversation_id=here, message_id=asked.message_id))
            else:
                engine.alter(replace(asked, retracted=True))
            await it.window.tasks.settle()
            it.window.open_conversation(here)
            assert not pane.composer_bar.isVisible()

    play(scenario)


def test_files_wait_while_an_old_message_is_edited(tmp_path: Path) -> None:
    chart = tmp_path / "chart.pdf"
    chart.write_bytes(b"chart")

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            pane, mine = it.window.pane, own_held(engine, group, "first")
            await until(lambda: in_view(it, mine))
            pane.attaching.take_files([chart])
            await until(lambda: len(pane.attaching.files) == 1)
            it.press(Key.Key_Up, on=pane.composer.box)
            assert pane.composer.text() == "first"
            assert not pane.attachment_bar.isVisible()
            it.write("!", on=pane.composer.box)
            it.press(Key.Key_Return, on=pane.composer.box)
            await until(lambda: bool(engine.called("edit")))
            assert [file.name for file in pane.attaching.files] == ["chart.pdf"]

    play(scenario)


def test_what_was_to_go_out_in_a_group_that_is_gone_goes_nowhere(tmp_path: Path) -> None:
    chart = tmp_path / "chart.pdf"
    chart.write_bytes(b"chart")

    async def scenario() -> None:
        engine = ScriptedEngine()
        here, there = engine.add_group("Harbour"), engine.add_group("Walks")
        async with stage(engine, opening=here) as it:
            pane = it.window.pane
            pane.attaching.take_files([chart])
            await until(lambda: len(pane.attaching.files) == 1)
            engine.tell(ConversationRemoved(conversation_id=here))
            await until(lambda: not pane.is_open(here))
            it.window.open_conversation(there)
            assert not pane.attaching.files
            assert not pane.attachment_bar.isVisible()

    play(scenario)


def test_a_refused_file_takes_no_place_from_those_behind_it(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.bin" for number in range(MAX_TOGETHER + 3)]
    for path in paths:
        path.write_bytes(b"x")
    for empty in paths[:2]:
        empty.write_bytes(b"")

    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            pane = it.window.pane
            pane.attaching.take_files(paths)
            words = "“0.bin” is empty. “1.bin” is empty. At most 10 files go out at once."
            await until(lambda: words in seen_words(pane.composer))
            taken = [file.name for file in pane.attaching.files]
            assert taken == [path.name for path in paths[2:-1]]

    play(scenario)


def test_a_wheel_leads_along_many_files_and_each_shows_what_kind_it_is(tmp_path: Path) -> None:
    paths = [tmp_path / f"{'a long name ' * 12}{number}.exe" for number in range(MAX_TOGETHER)]
    for path in paths:
        path.write_bytes(b"MZ")

    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            pane = it.window.pane
            pane.attaching.take_files(paths)
            await until(lambda: len(pane.attaching.files) == MAX_TOGETHER)
            items = pane.attachment_bar.items
            await until(lambda: items[0].width() < pane.attachment_bar.width())
            names = items[0].findChildren(ElidedText)
            assert names[0].text().endswith(".exe")
            assert items[-1].visibleRegion().isEmpty()
            row = pane.attachment_bar.findChild(QScrollArea)
            assert row is not None
            for _notch in range(30):
                turn_wheel(row.viewport())
            await until(lambda: not items[-1].visibleRegion().isEmpty())
            assert items[0].visibleRegion().isEmpty()

    play(scenario)


def test_the_long_name_of_the_only_file_has_one_ellipsis(tmp_path: Path) -> None:
    path = tmp_path / f"{'minutes of the meeting ' * 8}as signed by all.pdf"
    path.write_bytes(b"%PDF")

    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            pane = it.window.pane
            pane.attaching.take_files([path])
            await until(lambda: len(pane.attaching.files) == 1)
            name = pane.attachment_bar.items[0].findChildren(ElidedText)[0]
            pane.attachment_bar.items[0].setFixedWidth(420)
            await until(lambda: name.width() < 420 and "…" in name.text())
            assert name.text().count("…") == 1
            assert name.text().endswith("all.pdf")

    play(scenario)


def turn_wheel(over: QWidget) -> None:
    """One notch towards the user."""
    middle = QPointF(over.rect().center())
    event = QWheelEvent(
        middle,
        over.mapToGlobal(middle),
        QPoint(),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(over, event)


def test_the_name_of_a_picture_stands_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "pier.png"
    image = QImage(900, 300, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.darkCyan)
    assert image.save(str(path))

    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            pane = it.window.pane
            it.window.resize(1280, 800)
            for number in (1, 2):
                pane.attaching.take_files([path])
                await until(lambda number=number: len(pane.attaching.files) == number)  # type: ignore[misc]
                await it.window.tasks.settle()
                await turn()
                for item in pane.attachment_bar.items:
                    [name] = [
                        each for each in item.findChildren(ElidedText) if "pier" in each.text()
                    ]
                    shown = item.picture.pixmap().deviceIndependentSize().width()
                    assert 0 < name.x() - item.picture.x() - shown < 20

    play(scenario)
