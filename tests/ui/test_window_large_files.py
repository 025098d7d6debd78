"""Files beyond 96 KiB: their rows, what can be done with them, sending, forwarding."""

from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QMimeData, QPointF, QSizeF, Qt, QUrl
from PySide6.QtGui import QHelpEvent, QImage
from PySide6.QtWidgets import QApplication

from chat_app.settings_control import SettingsControl
from engine.answers import HolderView
from engine.api import MAX_FILE_BYTES, MAX_LARGE_FILE_BYTES
from engine.core.errors import StorageFault
from engine.core.ids import ConversationId, DeliveryState
from engine.core.problems import FileFault, FileProblem
from engine.events import DeliveryView, MessageKind, MessageView
from engine.file_views import FetchView, FileProgressed, FileState, FileView
from tests.ui.driving import Key, Stage, group_stage, move_mouse, pair_stage, play, stage, until
from tests.ui.on_messages import (
    ask_by_menu,
    bubble,
    click,
    focus,
    in_view,
    menu_of,
    notice_button,
)
from tests.ui.on_settings import open_settings, pick
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.seeing import entries, seen_words, sheet_of, spoken_rows, words_of
from tests.ui.test_window_files import paste
from ui.attachments import prepare_file
from ui.dialogs.forward import Forward
from ui.dialogs.message_info import MessageInfoSheet
from ui.file_words import cancel_words, file_problem_words, state_words
from ui.pictures import PictureError
from ui.timeline.buttons import RowButton
from ui.timeline.file_box import FileBox, acts_of
from ui.tips import shown_tip

pytestmark = pytest.mark.usefixtures("qapp")
ROOM = QSizeF(340, 260)
MB = 1024 * 1024
LOGS = FileView(
    name="logs.zip", media_type="application/zip", size=24 * MB, state=FileState.OFFERED
)
RUNNING = replace(LOGS, state=FileState.RUNNING, done_bytes=6 * MB, rate=MB)
COMPLETE = replace(LOGS, state=FileState.COMPLETE, done_bytes=24 * MB)
OURS = replace(COMPLETE, is_upload=True)
EMPTY_HANDED = FileProblem(fault=FileFault.NOBODY_HAS_IT, peers=3, nodes=1)
FAILED = replace(LOGS, state=FileState.FAILED, problem=FileProblem(fault=FileFault.NOT_AS_SAID))


def with_file(
    engine: ScriptedEngine, group: ConversationId, file: FileView, *, own: bool = False
) -> MessageView:
    row = engine.row(group, member("Ines", is_self=True) if own else member("Maya"), "")
    row = replace(row, kind=MessageKind.FILE, file=file)
    if own:
        row = replace(row, delivery=DeliveryView(state=DeliveryState.HELD, of=1))
    engine.arrive(row, notify=False)
    return row


def said(it: Stage) -> str:
    return "\n".join(spoken_rows(it.window.pane.timeline))


def says(it: Stage, words: str) -> bool:
    return words in said(it)


def press(it: Stage, row: MessageView, button: RowButton) -> None:
    box, y = bubble(it, row)
    click(it, next(rect for each, rect in box.buttons if each is button).center(), y)


def file_of(it: Stage, row: MessageView) -> FileBox:
    file = bubble(it, row)[0].file
    assert file is not None
    return file


def shown_buttons(it: Stage, row: MessageView) -> list[RowButton]:
    return [button for button, _ in bubble(it, row)[0].buttons]


def test_a_long_name_has_one_ellipsis_in_its_row() -> None:
    name = "MINUTES OF THE MEETING ON THE HARBOUR OF " * 5 + "2026 as signed by all.pdf"
    inline = FileView(name=name, media_type="application/pdf", size=9)

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            for file in (inline, replace(LOGS, name=name)):
                row = with_file(engine, group, file)
                await until(partial(in_view, it, row))
                shown = file_of(it, row).name
                assert shown.count("…") == 1
                assert shown.startswith("MINUTES OF THE")
                assert shown.endswith("by all.pdf")

    play(scenario)


@pytest.mark.parametrize(
    ("file", "button", "command"),
    [
        (LOGS, RowButton.FILE_FETCH, "fetch"),
        (RUNNING, RowButton.FILE_PAUSE, "pause"),
        (RUNNING, RowButton.FILE_CANCEL, "cancel"),
        (replace(RUNNING, state=FileState.WAITING), RowButton.FILE_CANCEL, "cancel"),
        (replace(RUNNING, state=FileState.PAUSED), RowButton.FILE_GO_ON, "fetch"),
        (FAILED, RowButton.FILE_AGAIN, "fetch"),
    ],
)
def test_each_state_has_its_buttons_by_mouse_keys_and_menu(
    file: FileView, button: RowButton, command: str
) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = with_file(engine, group, file)
            await until(lambda: in_view(it, row))
            press(it, row, button)
            await until(lambda: engine.blobs.asked == [(command, row.message_id)])
            await focus(it, row)
            it.press(Key.Key_Menu, on=it.window.pane.timeline)
            listed = entries(menu_of(it))
            menu_of(it).close()
            assert "Save as…" not in listed
            if button is acts_of(row)[-1]:
                it.press(Key.Key_Return, on=it.window.pane.timeline)
                await until(lambda: engine.blobs.asked[1:] == [(command, row.message_id)])

    play(scenario)


def test_a_row_follows_its_file_and_says_what_it_shows() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = with_file(engine, group, LOGS)
            await until(lambda: "24.0 MB, not fetched yet" in said(it))
            engine.tell(
                FileProgressed(conversation_id=group, message_id=row.message_id, file=RUNNING)
            )
            words = "6.0 MB of 24.0 MB · 1.0 MB/s · 18 s left, 25 % done"
            await until(lambda: words in said(it))
            await until(lambda: file_of(it, row).done == 0.25)
            assert not file_of(it, row).bar.isEmpty()
            waiting = replace(RUNNING, state=FileState.WAITING, problem=EMPTY_HANDED)
            engine.alter(replace(row, file=waiting))
            await until(lambda: "3 people and 1 service node were asked" in said(it))
            await until(lambda: not file_of(it, row).problem_rect.isEmpty())
            assert bubble(it, row)[0].bubble.contains(file_of(it, row).problem_rect)
            third = (member("Priya").participant_id,)
            engine.alter(replace(row, file=replace(COMPLETE, held_whole_by=third)))
            await until(lambda: "held as a whole by 2 of 2" in said(it))  # We are one of them.
            kept = [RowButton.FILE_SAVE, RowButton.FILE_OPEN]
            await until(lambda: shown_buttons(it, row) == kept)

    play(scenario)


def test_its_sender_sees_how_much_of_it_was_fetched_from_here() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = with_file(engine, group, OURS, own=True)
            await until(lambda: "24.0 MB" in said(it))
            assert file_of(it, row).bar.isEmpty()
            one = FetchView(peers=1, done_bytes=6 * MB, rate=MB)
            fetched = replace(OURS, fetch=one)
            tell = partial(FileProgressed, conversation_id=group, message_id=row.message_id)
            engine.tell(tell(file=fetched))
            words = "Being fetched: 6.0 MB of 24.0 MB · 1.0 MB/s · 18 s left"
            await until(lambda: f"{words}, 25 % done" in said(it))
            await until(lambda: file_of(it, row).done == 0.25)
            box = file_of(it, row)
            assert box.state == words
            assert bubble(it, row)[0].bubble.contains(box.bar)
            assert shown_buttons(it, row) == [RowButton.FILE_SAVE, RowButton.FILE_OPEN]
            several = replace(one, peers=3, rate=0)
            engine.tell(tell(file=replace(fetched, fetch=several)))
            await until(
                lambda: "Being fetched over 3 connections, the furthest: 6.0 MB" in said(it)
            )
            gone = FileProblem(fault=FileFault.NOT_HERE)
            failed = replace(fetched, state=FileState.FAILED, problem=gone)
            engine.tell(tell(file=failed))
            await until(lambda: f"{words}, 25 % done" in said(it))
            paused = replace(fetched, state=FileState.PAUSED, done_bytes=12 * MB)
            engine.tell(tell(file=paused))
            await until(lambda: "Paused · 12.0 MB of 24.0 MB" in said(it))
            assert "done" not in said(it)
            await until(lambda: file_of(it, row).done == 0.5)
            engine.tell(tell(file=OURS))
            await until(lambda: "fetch" not in said(it) and file_of(it, row).bar.isEmpty())

    play(scenario)


@pytest.mark.parametrize("is_own", [True, False])
def test_a_row_keeps_its_width_while_its_numbers_change(is_own: bool) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            third = (member("Priya").participant_id,)
            file = replace(OURS if is_own else RUNNING, held_whole_by=third)
            row, widths = with_file(engine, group, file, own=is_own), set[float]()
            await until(lambda: in_view(it, row))
            for done, rate in ((MB, MB), (9 * MB, 9 * MB), (11 * MB, 61 * MB), (22 * MB, 0)):
                if not is_own:
                    now = replace(file, done_bytes=done, rate=rate)
                else:
                    now = replace(file, fetch=FetchView(peers=1, done_bytes=done, rate=rate))
                engine.tell(
                    FileProgressed(conversation_id=group, message_id=row.message_id, file=now)
                )
                await until(lambda now=now: file_of(it, row).state.startswith(state_words(now)))  # type: ignore[misc]
                widths.add(bubble(it, row)[0].bubble.width())
            assert len(widths) == 1

    play(scenario)


def test_cancelling_says_before_and_after_that_it_throws_away_what_came() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = with_file(engine, group, RUNNING)
            await until(lambda: in_view(it, row))
            timeline, words = it.window.pane.timeline, "Cancel: throws away the 6.0 MB that came"
            box, y = bubble(it, row)
            place = next(at for each, at in box.buttons if each is RowButton.FILE_CANCEL)
            at, viewport = (place.center() + QPointF(0, y)).toPoint(), timeline.viewport()
            event = QHelpEvent(QEvent.Type.ToolTip, at, viewport.mapToGlobal(at))
            QApplication.sendEvent(viewport, event)
            assert shown_tip() == words
            await focus(it, row)
            it.press(Key.Key_Menu, on=timeline)
            assert words in entries(menu_of(it))
            menu_of(it).close()
            gone = replace(LOGS, thrown_away_bytes=6 * MB)
            engine.alter(replace(row, file=gone))
            await until(lambda: says(it, "Cancelled; 6.0 MB of 24.0 MB were thrown away"))
            await until(lambda: shown_buttons(it, row) == [RowButton.FILE_FETCH])

    play(scenario)


@pytest.mark.parametrize("file", [replace(RUNNING, done_bytes=0), replace(RUNNING, is_upload=True)])
def test_cancelling_says_nothing_where_nothing_is_thrown_away(file: FileView) -> None:
    assert cancel_words(file) == ""


def test_with_one_person_the_row_and_the_info_say_that_they_have_it() -> None:
    async def scenario() -> None:
        async with pair_stage("Maya") as (it, engine, pair):
            row = with_file(engine, pair, COMPLETE)
            assert "held as a whole" not in said(it)
            held = replace(COMPLETE, held_whole_by=(row.sender_id,))
            engine.alter(replace(row, file=held))
            await until(lambda: "held as a whole by them" in said(it))
            await until(lambda: file_of(it, row).state.endswith("held as a whole by them"))
            engine.holder_views = (
                HolderView(
                    participant_id=row.sender_id,
                    name="Maya",
                    certain=True,
                    source=None,
                    since_ms=None,
                ),
            )
            await focus(it, row)
            it.press(Key.Key_I)
            sheet = await sheet_of(it.window, MessageInfoSheet)
            assert "Maya said so" in words_of(sheet)
            sheet.reject()

    play(scenario)


def test_a_large_file_goes_out_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    path.write_bytes(bytes(MAX_FILE_BYTES + 1))

    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            source = QMimeData()
            source.setUrls([QUrl.fromLocalFile(str(path))])
            await paste(it, source)
            assert seen_words(it.window.pane.attachment_bar) == ["logs.zip", "96 kB"]
            it.write("the logs", on=it.window.pane.composer.box)
            it.press(Key.Key_Return, on=it.window.pane.composer.box)
            await until(lambda: engine.blobs.asked == [("send", str(path))])
            assert engine.called("send_file") == []

    play(scenario)


def test_a_file_beyond_all_bounds_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "film.bin"
    with path.open("wb") as file:
        file.truncate(MAX_LARGE_FILE_BYTES + 1)
    with pytest.raises(PictureError, match=r"“film.bin” is too large: a file can have 100.0 MB"):
        prepare_file(path, most=MAX_LARGE_FILE_BYTES)


@pytest.mark.parametrize("pauses", [False, True])
def test_a_button_that_came_under_the_mouse_by_itself_is_not_pressed_unawares(
    pauses: bool,
) -> None:
    """A file has come just as one pauses it; what one's own press put there can be pressed."""
    after = replace(RUNNING, state=FileState.PAUSED) if pauses else COMPLETE

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = with_file(engine, group, RUNNING)
            await until(lambda: in_view(it, row))
            timeline, (box, y) = it.window.pane.timeline, bubble(it, row)
            pause = next(rect for each, rect in box.buttons if each is RowButton.FILE_PAUSE)
            point = pause.center()
            for beside in (1, 0):  # A mouse that was there already would not move.
                await move_mouse(timeline.viewport(), point + QPointF(beside, y))
            hover = timeline.scene.hover
            assert hover is not None
            assert hover.button is RowButton.FILE_PAUSE
            if pauses:
                click(it, point, y)
            engine.alter(replace(row, file=after))

            def is_pressed_as_it_comes() -> bool:
                comes = RowButton.FILE_PAUSE not in shown_buttons(it, row)
                if comes:
                    click(it, point, y)
                return comes

            await until(is_pressed_as_it_comes)
            if pauses:
                asked = [("pause", row.message_id), ("fetch", row.message_id)]
                await until(lambda: engine.blobs.asked == asked)
                return
            opened = [f"file:///opened/{row.message_id}"]

            def is_opened() -> bool:
                click(it, point, y)
                return bool(it.opened_urls)

            assert it.opened_urls == []
            await until(is_opened)
            assert set(it.opened_urls) == set(opened)

    play(scenario)


def test_a_file_without_words_has_nothing_to_copy() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = with_file(engine, group, COMPLETE)
            await focus(it, row)
            it.press(Key.Key_Menu, on=it.window.pane.timeline)
            assert "Save as…" in entries(menu_of(it))
            assert "Copy message" not in entries(menu_of(it))
            menu_of(it).close()

    play(scenario)


def test_of_several_files_of_ours_the_last_says_that_no_node_keeps_them() -> None:
    lacking = replace(OURS, problem=FileProblem(fault=FileFault.NOBODY_KEEPS_IT))

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            rows = [with_file(engine, group, lacking, own=True) for _ in range(3)]
            await until(lambda: all(in_view(it, row) for row in rows))
            assert [bool(file_of(it, row).problem) for row in rows] == [False, False, True]
            others = (member("Maya").participant_id,)
            engine.alter(replace(rows[2], file=replace(lacking, held_whole_by=others)))
            await until(lambda: bool(file_of(it, rows[1]).problem))
            assert [bool(file_of(it, row).problem) for row in rows] == [False, True, False]
            engine.receive(group, "Maya", "Thanks")
            fourth = with_file(engine, group, lacking, own=True)
            await until(lambda: in_view(it, fourth))
            assert file_of(it, rows[1]).problem, "another message stands between them"
            assert file_of(it, fourth).problem

    play(scenario)


def test_ones_own_says_how_it_reaches_the_others() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            sending = replace(RUNNING, is_upload=True)
            row = with_file(engine, group, sending, own=True)
            await until(lambda: "To service nodes: 6.0 MB of 24.0 MB" in said(it))
            problem = FileProblem(fault=FileFault.NOBODY_KEEPS_IT)
            engine.alter(replace(row, file=replace(COMPLETE, is_upload=True, problem=problem)))
            await until(lambda: "only while you are connected" in said(it))
            await until(lambda: RowButton.FILE_AGAIN in shown_buttons(it, row))
            press(it, row, RowButton.FILE_AGAIN)
            await until(lambda: engine.blobs.asked == [("fetch", row.message_id)])
            others = (member("Maya").participant_id,)
            whole = replace(COMPLETE, problem=problem, held_whole_by=others)
            engine.alter(replace(row, file=whole))
            await until(lambda: "held as a whole by 1 of 1" in said(it))
            assert "No service node keeps it" not in said(it), "nobody needs one any more"
            await until(lambda: RowButton.FILE_AGAIN not in shown_buttons(it, row))

    play(scenario)


def test_who_holds_it_has_a_line_of_its_own_where_there_is_no_room() -> None:
    held = replace(LOGS, held_whole_by=(member("Luc").participant_id,))

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = with_file(engine, group, held)
            await until(lambda: in_view(it, row))
            words = "held as a whole by 1 of 1"
            box = file_of(it, row)
            assert (box.state, box.held) == (f"24.0 MB, not fetched yet · {words}", "")
            it.window.resize(340, 700)
            await until(lambda: file_of(it, row).held == words)
            box = file_of(it, row)
            assert box.state == "24.0 MB, not fetched yet"
            assert box.held_line.top() >= box.rect.bottom()
            assert box.held_line.bottom() <= box.buttons[0][1].top()

    play(scenario)


def test_what_somebody_holds_is_not_said_to_be_with_nobody() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            waiting = replace(RUNNING, state=FileState.WAITING, problem=EMPTY_HANDED)
            row = with_file(engine, group, waiting)
            await until(lambda: "have nothing of what is missing. They are asked" in said(it))
            for peers, nodes, asked in (
                (3, 1, "3 people and 1 service node were asked, and have nothing"),
                (1, 0, "1 person asked, and nothing of what is missing is there"),
                (0, 2, "2 service nodes asked, and nothing of what is missing is there"),
            ):
                problem = replace(EMPTY_HANDED, peers=peers, nodes=nodes)
                third = (member("Luc").participant_id,)
                held = replace(waiting, held_whole_by=third, problem=problem)
                engine.alter(replace(row, file=held))
                await until(partial(says, it, asked))
                assert "held as a whole by 1 of" in said(it)
                assert "Whoever has all of it seems not to be connected" in said(it)
                assert "obody" not in said(it)

    play(scenario)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("fault", list(FileFault))
def test_every_problem_is_said_in_sentences(fault: FileFault, own: bool) -> None:
    for peers, nodes in ((0, 0), (1, 0), (0, 2), (3, 1)):
        problem = FileProblem(fault=fault, peers=peers, nodes=nodes, storage=StorageFault.DISK_FULL)
        words = file_problem_words(problem, is_own=own)
        assert words.endswith(".")
        assert fault.value not in words
    full = FileProblem(fault=FileFault.STORAGE, storage=StorageFault.DISK_FULL)
    assert "disk is full" in file_problem_words(full, is_own=own)


@pytest.mark.parametrize("state", list(FileState))
def test_sizes_that_lie_are_said_sanely(state: FileState) -> None:
    for size, done, rate in ((0, 0, 0), (1, 10**15, 1), (10**15, 1, 1), (24 * MB, 25 * MB, 10**12)):
        words = state_words(replace(LOGS, state=state, size=size, done_bytes=done, rate=rate))
        assert words
        assert "-" not in words


def test_a_large_file_is_forwarded_once_it_is_here() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            other = engine.add_group("Book Circle")
            row = with_file(engine, group, LOGS)
            await focus(it, row)
            it.press(Key.Key_Menu, on=it.window.pane.timeline)
            assert "Forward…" not in entries(menu_of(it))
            menu_of(it).close()
            await until(lambda: it.window.pane.timeline.interaction.menu is None)
            engine.alter(replace(row, file=COMPLETE))
            await ask_by_menu(it, row, "Forward…")
            sheet = await sheet_of(it.window, Forward)
            sheet.choose(other)
            sheet.confirm.click()
            await until(lambda: bool(engine.blobs.asked))
            assert engine.blobs.asked == [("forward", row.message_id)]
            assert engine.blobs.forwarded == [other]

    play(scenario)


def test_what_cannot_be_fetched_can_be_tried_again() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = with_file(engine, group, LOGS)
            await until(lambda: in_view(it, row))
            engine.blobs.failing = True
            press(it, row, RowButton.FILE_FETCH)
            await until(lambda: any("fetch the file" in w for w in seen_words(it.window.notices)))
            engine.blobs.failing = False
            notice_button(it, "Try again").click()
            await until(lambda: engine.blobs.asked == [("fetch", row.message_id)])

    play(scenario)


def test_which_pictures_come_by_themselves_is_a_choice(control: SettingsControl) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            page = open_settings(it.window, "privacy")
            pick(it, page, "Fetch pictures by themselves", "Never")
            await until(lambda: control.settings.privacy.fetch_pictures_below_mb == 0)
            it.press(Key.Key_End)
            await until(lambda: control.settings.privacy.fetch_pictures_below_mb == 10)

    play(scenario)


def test_the_words_about_the_original_size_have_room_beside_other_pictures(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("wide.png", "high.png", "square.png")]
    for path, (width, height) in zip(paths, ((400, 200), (200, 400), (300, 300)), strict=True):
        image = QImage(width, height, QImage.Format.Format_RGB32)
        image.fill(Qt.GlobalColor.darkCyan)
        assert image.save(str(path), "PNG")  # type: ignore[call-overload]

    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            pane = it.window.pane
            pane.attaching.take_files(paths)
            await until(lambda: len(pane.attachment_bar.items) == len(paths))
            await until(lambda: pane.attachment_bar.items[0].original.width() > 0)
            pane.attachment_bar.grab()
            widths = {item.width() for item in pane.attachment_bar.items}
            assert len(widths) == 1
            for item in pane.attachment_bar.items:
                button = item.original
                assert button.width() >= button.sizeHint().width()

    play(scenario)


def test_a_picture_can_go_out_in_its_original_size(tmp_path: Path) -> None:
    path = tmp_path / "pier.png"
    image = QImage(400, 300, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.darkCyan)
    image.setText("Location", "53.55 N, 9.99 E")
    assert image.save(str(path), "PNG")  # type: ignore[call-overload]

    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            pane = it.window.pane
            pane.attaching.take_files([path])
            await until(lambda: len(pane.attachment_bar.items) == 1)
            wanted = pane.attachment_bar.items[0].original
            assert wanted.isVisible()
            wanted.click()
            await until(lambda: pane.attaching.files[0].small is not None)
            assert pane.attachment_bar.items[0].original.isChecked()
            assert (pane.attaching.files[0].name, pane.attaching.files[0].width) == (
                "pier.png",
                400,
            )
            assert b"53.55" not in pane.attaching.files[0].data
            pane.attachment_bar.items[0].original.click()
            await until(lambda: pane.attaching.files[0].small is None)
            pane.attachment_bar.items[0].original.click()
            await until(lambda: pane.attaching.files[0].small is not None)
            it.press(Key.Key_Return, on=pane.composer.box)
            await until(lambda: bool(engine.called("send_file")))

    play(scenario)
