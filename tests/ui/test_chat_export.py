"""An exported chat: all of it is there, nothing in it can run, and what fails leaves nothing."""

import asyncio
import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.errors import (
    ChatError,
    CommandError,
    CommandRefusal,
    StorageError,
    StorageFault,
)
from engine.core.ids import ConversationId
from engine.events import MessageKind, MessageView, QuoteView, ReactionView
from engine.file_views import FileState, FileView
from tests.ui.desks import Desk, at_desks
from tests.ui.driving import Key, Stage, play, stage, until
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.seeing import choose, sheet_of
from ui.chat_export import ChatExport, message_data, message_html
from ui.dialogs.export import ExportChat
from ui.error_words import error_words
from ui.window.window_context import WindowContext

pytestmark = pytest.mark.usefixtures("qapp")
HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
HARMLESS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "p"),
    *("article", "header", "b", "bdi", "blockquote", "br", "div", "footer", "img"),
}


class Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def with_file(row: MessageView, name: str, media_type: str, state: FileState) -> MessageView:
    file = FileView(name=name, media_type=media_type, size=4, state=state)
    return replace(row, kind=MessageKind.FILE, file=file)


def many(engine: ScriptedEngine, number: int = 230) -> ConversationId:
    """A group with more messages than a page has, a picture, a page and a file that is not here."""
    group = engine.add_group(HOSTILE[:40])
    maya = replace(member("Maya"), name=HOSTILE)
    for minute in range(number):
        engine.arrive(engine.row(group, maya, f"{minute} {HOSTILE}", minute))
    for name, media_type, state in (
        ("the 'pier'.png", "image/png", FileState.COMPLETE),
        ("evil.html", "text/html", FileState.COMPLETE),
        ("drawing.svg", "image/svg+xml", FileState.COMPLETE),
        ("far away.zip", "application/zip", FileState.OFFERED),
    ):
        row = with_file(engine.row(group, maya, "", number), name, media_type, state)
        engine.blobs.data[row.message_id] = name.encode()
        engine.arrive(row)
    return group


def test_all_of_it_is_there_and_nothing_in_it_can_run(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = many(engine)
        export = ChatExport(engine, engine.views[group])
        made = await export.write(tmp_path, lambda done, total: seen.append((done, total)))
        assert (made.messages, made.files, made.not_here) == (len(engine.rows[group]), 3, 1)

    play(scenario)
    assert seen[-1][0] == seen[-1][1] >= 234
    assert len(seen) > 2
    (folder,) = tmp_path.iterdir()
    assert folder.name.isprintable()
    assert "<" not in folder.name
    assert "/" not in folder.name
    page = Seen((folder / "chat.html").read_text(encoding="utf-8"))
    assert set(page.tags) <= HARMLESS
    assert page.tags.count("img") == 1
    assert not any(name.startswith("on") or name == "href" for name, _ in page.attributes)
    assert ("src", "files/0001-the%20%27pier%27.png") in page.attributes
    policy = next(value for name, value in page.attributes if value.startswith("default-src"))
    assert "script" not in policy
    assert f"229 {HOSTILE}" in page.texts
    data = json.loads((folder / "chat.json").read_text(encoding="utf-8"))
    assert (data["format"], data["version"]) == ("causerie-chat", 1)
    texts = [message["text"] for message in data["messages"] if message["kind"] == "text"]
    assert [text for text in texts if HOSTILE in text] == [f"{n} {HOSTILE}" for n in range(230)]
    paths = [each["file"]["path"] for each in data["messages"] if each["file"]]
    assert paths[1:] == ["files/0002-evil.html", "files/0003-drawing.svg", None]
    assert (folder / paths[0]).read_bytes() == b"the 'pier'.png"


def test_a_real_group_is_exported_from_its_first_row_on(tmp_path: Path) -> None:
    place = tmp_path / "out"
    place.mkdir()

    async def scenario(alice: Desk) -> None:
        group = await alice.engine.groups.create("Tide")
        for number in range(120):
            await alice.engine.timeline.send_text(group, f"line {number}")
        (view,) = await alice.engine.conversations()
        made = await ChatExport(alice.engine, view).write(place, lambda _d, _t: None)
        assert made.messages == 121

    at_desks(tmp_path, ("Alice",), scenario)
    data = json.loads((place / "Tide" / "chat.json").read_text(encoding="utf-8"))
    assert [each["text"] for each in data["messages"][1:]] == [f"line {n}" for n in range(120)]
    assert data["messages"][0]["kind"] == "created"


def test_what_was_said_about_a_message_stands_with_it() -> None:
    engine = ScriptedEngine()
    row = engine.row(engine.add_group("Tide Gauge"), member("Maya"), "low water at ten")
    wave = ReactionView(emoji="\N{WATER WAVE}", count=2)
    page, data = message_html(row, ""), message_data(row, "")
    assert "edited" not in page
    assert (data["edited_ms"], data["reactions"]) == (None, [])
    row = replace(row, edited_ms=row.sent_ms, reactions=(wave,))
    page, data = message_html(row, ""), message_data(row, "")
    assert "(edited)" in page
    assert "\N{WATER WAVE} 2" in page
    assert data["edited_ms"] == row.sent_ms
    assert data["reactions"] == [{"emoji": "\N{WATER WAVE}", "count": 2}]
    quote = QuoteView(message_id=row.message_id, position=row.position, sender_name="Jonas <b>")
    row = replace(row, forwarded=True, quote=replace(quote, text="when is it?"))
    page, data = message_html(row, ""), message_data(row, "")
    assert "Forwarded" in page
    assert "Jonas &lt;b&gt;" in page
    assert "when is it?" in page
    assert (data["forwarded"], data["answers"]) == (True, row.message_id)
    for gone in (replace(quote, text="secret", hidden=True), replace(quote, retracted=True)):
        page = message_html(replace(row, quote=gone), "")
        assert "Jonas" in page
        assert "secret" not in page
    missing = message_html(replace(row, quote=QuoteView(message_id=row.message_id)), "")
    assert "not here" in missing
    assert "Click" not in missing
    picture = FileView(name="a.png", media_type="image/png", size=4, width=4, height=4)
    assert "Photo" in message_html(replace(row, quote=replace(quote, file=picture)), "")
    row = replace(row, text="", retracted=True)
    assert "low water" not in message_html(row, "")
    assert message_data(row, "")["retracted"]


@given(st.text(), st.text())
def test_whatever_is_said_stands_in_the_page_as_text(name: str, said: str) -> None:
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge")
    row = engine.row(group, replace(member("Maya"), name=name), said)
    page = Seen(message_html(row, ""))
    assert set(page.tags) <= HARMLESS
    assert {value for _, value in page.attributes} <= {"said", "own", "auto"}
    plain = said.replace("\r\n", "\n").replace("\r", "\n")
    shown = "".join(page.texts).replace("\r\n", "\n").replace("\r", "\n")
    assert plain in shown


@pytest.mark.parametrize("inside", [True, False])
def test_what_fails_leaves_nothing_behind(tmp_path: Path, inside: bool) -> None:
    """In the middle, or because there is no such place."""
    place = tmp_path if inside else tmp_path / "a file"
    if not inside:
        place.write_text("mine", encoding="utf-8")
    before = list(tmp_path.iterdir())

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = many(engine, 3)
        engine.blobs.full = inside
        with pytest.raises(StorageError) as raised:
            await ChatExport(engine, engine.views[group]).write(place, lambda _d, _t: None)
        assert raised.value.fault is StorageFault.FILE_NOT_WRITTEN
        assert raised.value.detail

    play(scenario)
    assert list(tmp_path.iterdir()) == before


@pytest.mark.parametrize("midway", [True, False])
def test_a_stick_that_vanished_is_said_and_not_made_anew(tmp_path: Path, midway: bool) -> None:
    """Before the export, or while it writes."""
    stick = tmp_path / "stick"
    stick.mkdir()

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = many(engine)

        def pull_out(_done: int, _total: int) -> None:
            shutil.rmtree(stick)

        if not midway:
            stick.rmdir()
        with pytest.raises(StorageError) as raised:
            await ChatExport(engine, engine.views[group]).write(stick, pull_out)
        assert raised.value.fault is StorageFault.FOLDER_GONE
        assert raised.value.detail == str(stick)
        assert "not there any more" in error_words(raised.value)

    play(scenario)
    assert not stick.exists()


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide/Gauge")
        for _ in range(2):
            await ChatExport(engine, engine.views[group]).write(tmp_path, lambda _d, _t: None)

    play(scenario)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["Tide_Gauge", "Tide_Gauge 2"]


def test_two_exports_at_once_do_not_touch_each_other(tmp_path: Path) -> None:
    """Neither does more than look until both have begun."""

    async def scenario() -> None:
        both_began = threading.Event()
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        held = loop.run_in_executor(None, both_began.wait)
        engine = ScriptedEngine()
        group = many(engine, 3)
        view = engine.views[group]
        ways = [ChatExport(engine, view).write(tmp_path, lambda _d, _t: None) for _ in range(2)]
        tasks = [asyncio.create_task(way) for way in ways]
        await asyncio.sleep(0)
        both_began.set()
        await held
        made = await asyncio.gather(*tasks)
        assert len({each.folder for each in made}) == 2
        for each in made:
            names = {path.name for path in each.folder.iterdir()}
            assert names == {"chat.html", "chat.json", "files"}

    play(scenario)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "gone",
    [
        StorageError("a part is gone", StorageFault.DAMAGED),
        CommandError(CommandRefusal.NOT_COMPLETE),
    ],
)
def test_a_file_that_turns_out_to_be_gone_keeps_nothing_else_back(
    tmp_path: Path, gone: ChatError
) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = many(engine, 3)
        rows = engine.rows[group].values()
        lost = next(row for row in rows if row.file and row.file.name == "evil.html")
        engine.blobs.gone[lost.message_id] = gone
        made = await ChatExport(engine, engine.views[group]).write(tmp_path, lambda _d, _t: None)
        assert (made.messages, made.files, made.not_here) == (len(engine.rows[group]), 2, 2)
        assert len(list((made.folder / "files").iterdir())) == 2
        data = json.loads((made.folder / "chat.json").read_text(encoding="utf-8"))
        paths = {each["file"]["name"]: each["file"]["path"] for each in data["messages"][-4:]}
        assert paths["evil.html"] is None
        assert (made.folder / paths["drawing.svg"]).read_bytes() == b"drawing.svg"

    play(scenario)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("CON", "_CON"),
        ("nul", "_nul"),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", "\u0939\u093f\u0928\u094d\u0926\u0940"),
        ("..", "chat"),
        ("a/../b\\c", "a_.._b_c"),
        ("x" * 300, "x" * 59 + "…"),
    ],
)
def test_a_folder_has_a_name_that_every_system_takes(
    tmp_path: Path, name: str, folder: str
) -> None:
    """``name`` is a device of Windows, letters with marks, a way out, or too long."""

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide")
        view = replace(engine.views[group], name=name)
        made = await ChatExport(engine, view).write(tmp_path, lambda _d, _t: None)
        assert made.folder == tmp_path / folder

    play(scenario)


def test_no_name_and_no_text_turns_what_stands_beside_it() -> None:
    """Each text runs as its own first letter says, and a name does not move the time."""
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge")
    row = engine.row(
        group,
        replace(member("Maya"), name="\u05de\u05d0\u05d9\u05d4"),
        "\u05e9\u05dc\u05d5\u05dd 5",
    )
    page = message_html(row, "")
    assert "<bdi>\u05de\u05d0\u05d9\u05d4</bdi>" in page
    assert '<div class="said" dir="auto">\u05e9\u05dc\u05d5\u05dd 5</div>' in page


async def begin(it: Stage) -> ExportChat:
    choose(it.window.pane.header.more.menu(), "Export…")
    sheet = await sheet_of(it.window, ExportChat)
    assert sheet.confirm.hasFocus()
    return sheet


def test_the_menu_leads_to_a_folder_and_a_full_disk_is_said(tmp_path: Path) -> None:
    async def scenario() -> None:
        async def chosen(_parent: object) -> Path:
            return tmp_path

        engine = ScriptedEngine()
        group = many(engine, 3)
        around = WindowContext(choose_folder=chosen)
        async with stage(engine, opening=group, around=around) as it:
            sheet = await begin(it)
            engine.blobs.full = True
            it.press(Key.Key_Return)
            await until(sheet.problem.isVisible)
            words = "The file cannot be written: No space left on device. Nothing was left behind."
            assert sheet.problem.text() == words
            engine.blobs.full = False
            sheet.confirm.click()
            await until(lambda: "3 files" in sheet.state.text())
            assert not sheet.problem.isVisible()
            sheet.confirm.click()
            await until(lambda: it.window.flows.sheet is None)
            assert len(it.opened_urls) == 1

    play(scenario)
    (folder,) = tmp_path.iterdir()
    assert (folder / "chat.json").is_file()


def test_cancelling_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scenario() -> None:
        async def chosen(_parent: object) -> Path:
            return tmp_path

        engine = ScriptedEngine()
        group = many(engine, 3)
        engine.blobs.gate.clear()
        around = WindowContext(choose_folder=chosen)
        async with stage(engine, opening=group, around=around) as it:
            sheet = await begin(it)
            it.press(Key.Key_Return)
            await until(lambda: engine.blobs.asked[-1:] == [("save_as", "m00004")])
            sheet.reject()
            engine.blobs.gate.set()
            await it.window.tasks.settle()

    play(scenario)
    assert list(tmp_path.iterdir()) == []
