"""Every text has its room: in both languages, narrow and wide, with the smallest and largest text.

What is too long for one line may be elided, because a tip has the whole of it; what is cut off in
the middle of a letter has no such way out.
"""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QRadioButton, QWidget

from engine.api import MAX_TEXT_BYTES
from engine.core.ids import MessageId
from tests.ui.driving import play, stage, turn, until
from tests.ui.every_sheet import SHEETS, a_lively_engine, governed_of
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.seeing import sheet_of
from tests.ui.test_languages import built_translations
from tests.ui.test_window_data import Space, takes
from ui import app
from ui.beads import MAX_BEADS
from ui.controls import ElidedText, Text
from ui.dialogs.confirm import DeleteChoice
from ui.dialogs.join import Join
from ui.dialogs.space import SpaceTaken
from ui.languages import speak
from ui.lines_field import LinesField
from ui.lock_port import KeyWaysView
from ui.settings import UiSettings
from ui.space_port import ConversationTakes, FilesHere, ProfileTakes
from ui.tasks import Tasks
from ui.window.window_context import WindowContext


class OpenedByNothing:
    """Wrong ones are being waited for."""

    def wait_ms(self) -> int:
        return 59_000

    async def try_passphrase(self, passphrase: str) -> None:
        del passphrase

    def ways(self) -> KeyWaysView:
        return KeyWaysView(has_passphrase=True, place="system keyring")

    async def set_passphrase(self, passphrase: str, *, alone: bool) -> bool:
        del passphrase
        return alone

    async def remove_passphrase(self) -> str:
        return ""


ADDRESS = "/dns4/store.example.org"
"""An example of what is always longer than its field."""
SIZES = {"narrow": (400, 720), "wide": (1280, 820)}


@pytest.fixture(params=["en", "fr"])
def language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    built_translations()
    monkeypatch.setattr(app, "speak", lambda _: speak(request.param))
    yield request.param
    speak("en")


@pytest.mark.parametrize("text_size", [100, 115, 200])
def test_a_field_for_a_link_shows_whole_lines_wherever_it_is_scrolled_to(text_size: int) -> None:
    def line_at(field: LinesField, y: int) -> QRect:
        return field.cursorRect(field.cursorForPosition(QPoint(5, y)))

    async def scenario() -> None:
        async with stage(ScriptedEngine(), stored={"text_percent": str(text_size)}) as it:
            it.window.flows.join()
            sheet = await sheet_of(it.window, Join)
            field = sheet.findChild(LinesField)
            assert field is not None
            field.setPlainText("causerie:join/" + "Axgj_" * 160)
            await turn()
            bar = field.verticalScrollBar()
            assert bar.maximum() > 3
            for line in range(bar.maximum() + 1):
                bar.setValue(line)
                height = field.viewport().height()
                assert 0 <= line_at(field, 1).top() <= 1
                assert abs(line_at(field, height - 2).bottom() + 1 - height) <= 1

    play(scenario)


def lacks_room(label: QLabel) -> bool:
    if label.wordWrap():
        return label.height() < label.heightForWidth(label.width()) - 1
    hint = label.sizeHint()
    return label.width() < hint.width() - 1 or label.height() < hint.height() - 1


def is_cut(widget: QObject) -> bool:
    match widget:
        case ElidedText():
            return widget.text() != widget.whole_text() and not widget.toolTip()
        case QLabel():
            return bool(widget.text()) and lacks_room(widget)
        case QRadioButton():  # A segment, whose words may stand close to its edges.
            return widget.width() < widget.fontMetrics().horizontalAdvance(widget.accessibleName())
        case QAbstractButton():
            hint = widget.sizeHint()
            return bool(widget.text()) and widget.width() < hint.width() - 1
        case QLineEdit():
            words = widget.placeholderText()
            room = widget.fontMetrics().horizontalAdvance(words)
            elided = not words.startswith(ADDRESS) and room > widget.width()
            return elided and not (widget.toolTip() or widget.accessibleName())
        case _:
            return False


def cut(root: QWidget) -> list[str]:
    shown = (widget for widget in root.findChildren(QWidget) if widget.isVisible())
    return [
        f"{type(widget).__name__} {widget.size().toTuple()}: {widget.property('text')}"
        for widget in shown
        if is_cut(widget)
    ]


def test_a_cut_label_is_found(qtbot: object) -> None:
    del qtbot
    window = QWidget()
    label = Text("So many words do not fit into that")
    label.setParent(window)
    window.resize(400, 100)
    window.show()
    label.resize(label.sizeHint())
    assert cut(window) == []
    label.resize(30, label.height())
    assert len(cut(window)) == 1
    window.close()


@pytest.mark.parametrize("percent", ["85", "200"])
@pytest.mark.parametrize("width", SIZES)
def test_the_window_and_every_sheet(language: str, width: str, percent: str) -> None:
    del language
    found: list[str] = []

    async def scenario() -> None:
        engine = a_lively_engine()
        group = next(iter(engine.views))
        engine.set_gap(group, 3)
        stored = {"text_percent": percent}
        async with stage(engine, opening=group, stored=stored, size=SIZES[width]) as it:
            await until(lambda: it.window.pane.is_open(group))
            found.extend(f"window: {each}" for each in cut(it.window))
            it.window.side.toggle()
            await until(lambda: it.window.side.panel is not None)
            found.extend(f"panel: {each}" for each in cut(it.window))
            it.window.open_conversation(governed_of(it).conversation_id)
            await turn()
            found.extend(f"with requests: {each}" for each in cut(it.window))
            it.window.side.show_open()
            await turn()
            found.extend(f"panel with roles: {each}" for each in cut(it.window))
            it.window.side.close()
            for name, open_it in SHEETS.items():
                open_it(it)
                await until(lambda: it.window.flows.sheet is not None)
                sheet = it.window.flows.sheet
                assert sheet is not None
                await until(sheet.isVisible)
                found.extend(f"{name}: {each}" for each in cut(sheet))
                if sheet.width() > it.window.width():
                    found.append(f"{name}: wider than the window")
                sheet.reject()
                await until(lambda: it.window.flows.sheet is None)

    play(scenario)
    assert found == []


@pytest.mark.parametrize("percent", ["85", "200"])
@pytest.mark.parametrize("look", ["light", "dark"])
def test_what_asks_for_a_passphrase_with_all_its_hints(
    language: str, look: str, percent: str
) -> None:
    del language
    found: list[str] = []

    async def scenario() -> None:
        port, stored = OpenedByNothing(), {"text_percent": percent, "appearance": look}
        settings = UiSettings(load=stored.get, save=stored.__setitem__)
        unlock = app.build_unlocking(port, Tasks(), settings, profile="a name", reason="a reason")
        unlock.form.caps_lock.show()
        unlock.show()
        unlock.resize(SIZES["narrow"][0], unlock.height())
        await until(unlock.form.problem.isVisible)
        await turn()
        found.extend(f"unlock: {each}" for each in cut(unlock))
        unlock.area.ensureWidgetVisible(unlock.quit)
        found.extend(
            f"unlock wider: {part}" for part in (unlock.restore, unlock.quit) if is_beyond(part)
        )
        unlock.close()
        around = WindowContext(passphrase=port, restore_beside=lambda: None)
        async with stage(
            a_lively_engine(), stored=stored, size=SIZES["narrow"], around=around
        ) as it:
            it.window.lock.lock()
            page = it.window.lock.page
            assert page is not None
            page.form.caps_lock.show()
            await until(page.form.problem.isVisible)
            await turn()
            found.extend(f"lock: {each}" for each in cut(it.window))
            found.extend(
                f"lock wider: {part}" for part in (page.restore, page.quit) if is_beyond(part)
            )

    play(scenario)
    assert found == []


def test_buttons_below_one_another_keep_their_distance_from_the_edge(language: str) -> None:
    del language
    left = list[int]()

    async def scenario() -> None:
        async with stage(
            ScriptedEngine(), stored={"text_percent": "200"}, size=SIZES["narrow"]
        ) as it:
            sheet = DeleteChoice(it.window)
            sheet.open()
            await until(sheet.isVisible)
            page = sheet.everybody.parentWidget()
            assert page is not None
            buttons = [each.geometry() for each in page.findChildren(QAbstractButton)]
            assert len({each.left() for each in buttons}) == 1
            left.append(page.height() - max(each.bottom() for each in buttons) - 1)
            sheet.reject()

    play(scenario)
    assert left == [20]


def test_the_invite_button_is_shown_whole_or_not_at_all(language: str) -> None:
    del language
    seen = set[bool]()

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge", ())
        async with stage(engine, opening=group) as it:
            header = it.window.pane.header
            engine.arrive(engine.row(group, member("Ines", is_self=True), "hm", 5), notify=False)
            engine.change(group, waiting_to_send=12)
            for width in range(1240, 400, -20):
                it.window.resize(width, 820)
                await turn()
                seen.add(header.invite.isVisible())
                if header.invite.isVisible():
                    assert header.invite.width() >= header.invite.sizeHint().width(), width

    play(scenario)
    assert seen == {True, False}


def test_the_beads_give_up_their_words_before_a_name_is_cut_to_letters(language: str) -> None:
    del language
    names = list[str]()
    widths = list[int]()

    async def scenario() -> None:
        engine = ScriptedEngine()
        engine.connect()
        group = engine.add_group("Harbour Watch")
        async with stage(engine, opening=group, size=SIZES["wide"]) as it:
            header = it.window.pane.header
            for lamport in range(5, 5 + MAX_BEADS):
                engine.arrive(engine.row(group, member("Maya"), "hm", lamport), notify=False)
            for do in (it.window.side.show_open, it.window.side.close):
                do()
                await turn()
                await turn()
                names.append(header.findChildren(ElidedText)[0].text())
                widths.append(header.beads.width())

    play(scenario)
    assert widths[0] < widths[1]
    assert names == ["Harbour Watch", "Harbour Watch"]


def test_what_is_too_long_is_counted_as_the_language_counts(language: str) -> None:
    said: list[str] = []

    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine, opening=engine.add_group("Tide Gauge")) as it:
            it.window.pane.composer.box.setPlainText("a" * (MAX_TEXT_BYTES + 1_536))
            await turn()
            said.extend(part.text() for part in it.window.pane.composer.findChildren(Text))

    play(scenario)
    count = {"en": "1.5 kB", "fr": "1,5\xa0Ko"}[language]
    assert any(words.startswith(count) for words in said)


def test_the_questions_before_files_go(language: str) -> None:
    """Twice: members who hold them may not be connected."""
    del language
    found: list[str] = []

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        port = Space(space_of(takes(group)))
        stored, around = {"text_percent": "200"}, WindowContext(space=port)
        async with stage(engine, stored=stored, around=around, size=SIZES["narrow"]) as it:
            it.window.data.show_space()
            sheet = await sheet_of(it.window, SpaceTaken)
            for step in (1, 2):
                await until(lambda: port.measured == step and bool(sheet.rows))  # noqa: B023
                row = sheet.rows[0]
                assert row.button is not None
                found.extend(f"offer {step}: {each}" for each in cut(sheet))
                row.button.click()
                await until(lambda: not row.go.visibleRegion().isEmpty())  # noqa: B023
                found.extend(f"question {step}: {each}" for each in cut(sheet))
                engine.blobs.unconfirmed = {MessageId("b")}
                left = takes(group, fetchable=FilesHere(1, 1_023_000_000))
                port.found = space_of(replace(left, message_ids=(MessageId("b"),)))
                row.go.click()
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)

    play(scenario)
    assert found == []


def space_of(conversation: ConversationTakes) -> ProfileTakes:
    return ProfileTakes(
        conversations=(conversation,),
        search=1_000_000,
        lists=5_000,
        unused=3_000_000,
        kept_for_others=3_000_000,
        records=70_000,
        logs=9_000,
        other=999,
        total=47_584_000,
        room_to_pack=90_000_000,
    )


def is_beyond(part: QWidget) -> bool:
    """Past the right or left edge of its window."""
    left = part.mapTo(part.window(), QPoint(0, 0)).x()
    return left < 0 or left + part.width() > part.window().width()
