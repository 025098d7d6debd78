"""What the settings' data section leads to: where the space goes, and erasing this profile."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from chat_app.settings_control import SettingsControl
from chat_app.settings_reading import load_settings
from engine.core.errors import StorageError, StorageFault
from engine.core.ids import ConversationId, MessageId
from tests.ui.driving import Key, play, stage, until
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import sheet_of, words_of
from ui.backup_port import Follow, GoesOn
from ui.dialogs.erase import EraseProfile
from ui.dialogs.space import SpaceRow, SpaceTaken
from ui.settings_page.rows import ActionRow
from ui.space_port import ConversationTakes, FilesHere, ProfileTakes
from ui.window.window_context import WindowContext

pytestmark = pytest.mark.usefixtures("qapp")


def test_a_profile_is_erased_only_once_its_name_was_typed(tmp_path: Path) -> None:
    agreed: list[bool] = []
    path = tmp_path / "settings.toml"

    async def scenario() -> None:
        around = WindowContext(profile_name="default", erase=lambda: agreed.append(True))
        control = SettingsControl(path, load_settings(path))
        async with stage(ScriptedEngine(), around=around, control=control) as it:
            it.window.settings.open("data")
            assert it.window.settings.page is not None
            rows = it.window.settings.page.section("data").rows
            row = next(row for row in rows if row.label.text() == "Erase this profile")
            assert isinstance(row, ActionRow)
            row.button.click()
            sheet = await sheet_of(it.window, EraseProfile)
            assert "others keep what you wrote to them" in words_of(sheet)
            for text, usable in (("Default", False), ("defaul", False), ("default", True)):
                sheet.field.setText(text)
                assert sheet.confirm.isEnabled() is usable
            sheet.field.setText("defaul")
            it.press(Key.Key_Return, on=sheet.field)
            it.press(Key.Key_Escape, on=sheet.field)
            await until(lambda: it.window.flows.sheet is None)
            assert agreed == []
            assert it.window.isVisible()
            row.button.click()
            again = await sheet_of(it.window, EraseProfile)
            again.field.setText("default")
            again.confirm.click()
            await until(lambda: not it.window.isVisible())

    play(scenario)
    assert agreed == [True]


class Space:
    """A ``SpacePort``: what it finds is set by the test."""

    def __init__(self, found: ProfileTakes) -> None:
        self.found = found
        self.measured = 0
        self.freed = 0
        self.fails = False
        self.packing: asyncio.Future[int] | None = None

    async def measure(self, follow: Follow, goes_on: GoesOn) -> ProfileTakes:
        self.measured += 1
        follow(0.5)
        assert goes_on()
        if self.fails:
            raise StorageError("x", StorageFault.DAMAGED)
        return self.found

    async def reclaim(self, follow: Follow, goes_on: GoesOn) -> int:
        """As long as the test wants, or until it is stopped."""
        self.packing = asyncio.get_running_loop().create_future()
        follow(0.25)
        await until(lambda: self.packing is None or self.packing.done() or not goes_on())
        if not self.packing.done():
            raise StorageError("x", StorageFault.CLOSING)
        given_back = self.packing.result()
        self.found = replace(self.found, unused=0)
        return given_back

    async def let_records_go(self) -> None:
        self.freed += 1
        self.found = replace(self.found, records=0)


def takes(group: ConversationId, **changes: object) -> ConversationTakes:
    nothing = ConversationTakes(
        conversation_id=group,
        texts=1_200_000,
        files=40_000_000,
        evidence=2_300_000,
        fetchable=FilesHere(2, 30_000_000),
        message_ids=(MessageId("a"), MessageId("b")),
        unheld=FilesHere(1, 4_000_000),
        own=FilesHere(3, 6_000_000),
        own_only_here=FilesHere(1, 2_000_000),
    )
    return replace(nothing, **changes)


async def let_all_go(
    engine: ScriptedEngine, port: Space, sheet: SpaceTaken, group: ConversationId
) -> None:
    """One of two files stays at first: no connected member has it."""
    first = sheet.rows[0]
    assert first.button is not None
    left = takes(group, fetchable=FilesHere(1, 15_000_000), message_ids=(MessageId("b"),))
    port.found = replace(port.found, conversations=(left,))
    engine.blobs.unconfirmed = {MessageId("b")}
    first.button.click()
    assert engine.blobs.asked == []
    assert "Of 2 files those go from this device" in words_of(sheet)
    assert first.keep.hasFocus()
    first.keep.click()
    assert first.button.isVisible()
    assert not first.go.isVisible()
    first.button.click()
    first.go.click()
    await until(lambda: port.measured == 2 and sheet.rows[0] is not first)
    assert engine.blobs.asked == [("let_go", "a")]
    assert sheet.problem.text() == "1 file stays: no connected member has it just now."
    second = sheet.rows[0]
    assert second.button is not None
    assert second.button.text() == "Let 14.3 MB go too"
    port.found = replace(
        port.found, conversations=(takes(group, fetchable=FilesHere(), message_ids=()),)
    )
    second.button.click()
    assert "nobody may have it any more" in second.means.text()
    second.go.click()
    await until(lambda: port.measured == 3 and sheet.rows[0] is not second)
    assert engine.blobs.asked == [("let_go", "a"), ("let_go", "b")]
    assert sheet.rows[0].button is None


def test_the_space_is_shown_by_conversation_and_what_can_be_fetched_again_is_let_go(
    tmp_path: Path,
) -> None:
    path = tmp_path / "settings.toml"

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        port = Space(
            ProfileTakes(
                conversations=(takes(group),),
                search=1_000_000,
                lists=5_000,
                unused=0,
                kept_for_others=3_000_000,
                records=70_000,
                logs=9_000,
                other=0,
                total=47_584_000,
                room_to_pack=0,
            )
        )
        control = SettingsControl(path, load_settings(path))
        around = WindowContext(space=port)
        async with stage(engine, around=around, control=control) as it:
            it.window.settings.open("data")
            assert it.window.settings.page is not None
            rows = it.window.settings.page.section("data").rows
            row = next(row for row in rows if row.label.text() == "Where the space goes")
            assert isinstance(row, ActionRow)
            row.button.click()
            sheet = await sheet_of(it.window, SpaceTaken)
            await until(lambda: bool(sheet.rows))
            assert "45.4 MB" in sheet.total.text()
            first = sheet.rows[0]
            assert first.title.text() == "Tide Gauge"
            assert "Of 3 larger files of others, 2 can be fetched again" in first.hint.text()
            assert "3 larger files are your own and stay; 1 of them" in first.hint.text()
            assert first.button is not None
            assert first.button.text() == "Let 28.6 MB go"
            assert "Unused room" not in words_of(sheet)
            await let_all_go(engine, port, sheet, group)
            records = sheet.rows[-1]
            assert records.button is not None
            it.window.resize(400, 500)
            port.fails = True
            records.button.click()
            assert port.freed == 0
            await until(lambda: not records.go.visibleRegion().isEmpty())
            records.go.click()
            await until(sheet.problem.isVisible)
            assert port.freed == 1
            sheet.close_button.click()
            await until(lambda: it.window.flows.sheet is None)

    play(scenario)


def row_of(sheet: SpaceTaken, title: str) -> SpaceRow:
    return next(row for row in sheet.rows if row.title.text() == title)


async def agree_to_pack(port: Space, sheet: SpaceTaken) -> asyncio.Future[int]:
    """It runs, and the sheet says so."""
    await until(lambda: bool(sheet.rows) and sheet.area.isVisible())
    row, before = row_of(sheet, UNUSED), port.packing
    assert row.button is not None
    row.button.click()
    assert "takes up to 190.7 MB more on the disk" in row.means.text()
    assert row.keep.hasFocus()
    row.go.click()
    await until(lambda: port.packing is not before and sheet.stop_button.isVisible())
    assert port.packing is not None
    assert sheet.total.text() == "Packing the database…"
    assert sheet.line.value() == sheet.line.maximum() / 4
    assert not sheet.area.isVisible()
    return port.packing


UNUSED = "Unused room in the database"


def test_unused_room_is_given_back_and_the_packing_can_be_stopped() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        engine.add_group("Tide Gauge")
        found = ProfileTakes(
            conversations=(),
            search=0,
            lists=5_000,
            unused=900_000,
            kept_for_others=0,
            records=0,
            logs=0,
            other=0,
            total=140_000_000,
            room_to_pack=200_000_000,
        )
        port = Space(found)
        async with stage(engine, around=WindowContext(space=port)) as it:
            it.window.data.show_space()
            sheet = await sheet_of(it.window, SpaceTaken)
            await until(lambda: bool(sheet.rows))
            assert row_of(sheet, UNUSED).button is None  # Too little to be worth it.
            port.found = replace(found, unused=40_000_000)
            sheet.measure()
            await until(lambda: row_of(sheet, UNUSED).button is not None)
            await agree_to_pack(port, sheet)
            sheet.stop_button.click()
            await until(sheet.outcome.isVisible)
            assert sheet.outcome.text() == "Packing was stopped; nothing was changed."
            packing = await agree_to_pack(port, sheet)
            assert not sheet.outcome.isVisible()
            packing.set_exception(StorageError("x", StorageFault.NO_ROOM_TO_RECLAIM, "70"))
            await until(sheet.problem.isVisible)
            assert "70 MB are missing" in sheet.problem.text()
            packing = await agree_to_pack(port, sheet)
            assert not sheet.problem.isVisible()
            packing.set_result(40_000_000)
            await until(lambda: sheet.outcome.isVisible() and sheet.area.isVisible())
            assert sheet.outcome.text() == "38.1 MB given back to the disk."
            assert all(row.title.text() != UNUSED for row in sheet.rows)
            assert not sheet.stop_button.isVisible()
            sheet.close_button.click()
            await until(lambda: it.window.flows.sheet is None)

    play(scenario)
