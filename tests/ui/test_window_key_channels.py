"""Channels with a shared key in the window: made, joined by a link, labelled, and passed on."""

import pytest
from msgspec.structs import replace
from PySide6.QtGui import QGuiApplication

from engine.core.ids import ChannelId, ConversationId
from engine.core.records import OpenFormat, OpenPace
from tests.ui.driving import Stage, play, stage, until
from tests.ui.scripted_channels import CHANNEL_LINK, LINKED, PROPOSED
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import choose, seen_words, sheet_of, spoken_rows
from ui.dialogs.confirm import Confirm
from ui.dialogs.key_channel import KeyChannel
from ui.dialogs.open_channel import ChannelDetails
from ui.list.preview import row_sentence
from ui.times import moment

pytestmark = pytest.mark.usefixtures("qapp")

HERE = ConversationId("harbour".ljust(43, "_"))
LABEL = "Encrypted with a key that everybody with the link has; senders are not verified"


def in_channel(engine: ScriptedEngine) -> None:
    engine.scripted_channels.add(HERE, LINKED, "Harbour")


async def sheet_in(it: Stage) -> KeyChannel:
    choose(it.window.panel.start.menu(), "Channel with a shared key\tCtrl+Shift+O")
    return await sheet_of(it.window, KeyChannel)


def wish(name: object, label: str = "") -> list[object]:
    return [(name, label, "Ines", OpenFormat.AUTO, OpenPace.JS_WAKU)]


def test_a_channel_is_made_with_what_is_proposed() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await sheet_in(it)
            assert LABEL in seen_words(sheet)
            assert (sheet.confirm.text(), sheet.nick.text()) == ("Create channel", "Ines")
            assert not sheet.key.isVisible()
            sheet.channel_id.setText("tides")
            sheet.confirm.click()
            await until(lambda: bool(engine.called("join_open")))
            assert engine.called("join_open") == wish(
                replace(PROPOSED, channel_id=ChannelId("tides"))
            )
            await until(lambda: it.window.pane.open_bar.words.text() == LABEL)

    play(scenario)


def test_a_link_shows_what_it_leads_to_before_one_agrees() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await sheet_in(it)
            sheet.link.setText(f" {CHANNEL_LINK} ")
            assert (sheet.channel_id.text(), sheet.shard.text()) == ("harbour", "3")
            assert sheet.content_topic.text() == LINKED.content_topic
            assert sheet.confirm.text() == "Join channel"
            assert engine.called("join_open") == []
            sheet.link.setText(CHANNEL_LINK[:-1])
            assert "cut off" in sheet.problem.text()
            assert not sheet.confirm.isEnabled()
            assert sheet.channel_id.text() == PROPOSED.channel_id
            sheet.link.setText(CHANNEL_LINK)
            sheet.confirm.click()
            await until(lambda: it.window.pane.is_open(HERE))
            assert engine.called("join_open") == wish(LINKED)

    play(scenario)


@pytest.mark.parametrize("key", ["", "00", "x" * 64, "0" * 66])
def test_a_key_that_is_none_is_said_under_the_fields(key: str) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await sheet_in(it)
            sheet.more.click()
            assert sheet.key.text() == PROPOSED.key.hex()
            sheet.key.setText(key)
            assert sheet.confirm.isEnabled() is bool(key)
            sheet.confirm.click()
            if key:
                assert sheet.problem.text().startswith("A shared key has 32 bytes")
            sheet.key.setText("0x" + LINKED.key.hex().upper())
            sheet.confirm.click()
            await until(lambda: bool(engine.called("join_open")))
            assert engine.called("join_open") == wish(replace(PROPOSED, key=LINKED.key))

    play(scenario)


def test_it_is_labelled_where_one_types_and_wherever_it_is_named() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            in_channel(engine)
            it.window.open_conversation(HERE)
            assert it.window.pane.open_bar.isVisible()
            assert it.window.pane.open_bar.words.text() == LABEL
            assert not it.window.pane.header.lock.isVisible()
            assert it.window.pane.header.accessibleName() == "Harbour, channel with a shared key"
            assert "channel with a shared key" in row_sentence(it.listed(HERE), moment(0))

    play(scenario)


def test_link_and_key_can_be_copied_and_are_not_shown() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            in_channel(engine)
            it.window.open_conversation(HERE)
            choose(it.window.pane.header.more.menu(), "About this channel…")
            sheet = await sheet_of(it.window, ChannelDetails)
            assert LABEL in seen_words(sheet)
            assert LINKED.key.hex() not in " ".join(seen_words(sheet))
            clipboard = QGuiApplication.clipboard()
            sheet.copy_link.click()
            await until(lambda: clipboard.text() == CHANNEL_LINK)
            sheet.copy_key.click()
            await until(lambda: clipboard.text() == LINKED.key.hex())

    play(scenario)


def test_leaving_says_that_only_the_link_leads_back() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            in_channel(engine)
            it.window.open_conversation(HERE)
            choose(it.window.pane.header.more.menu(), "Leave channel…")
            confirm = await sheet_of(it.window, Confirm)
            assert any("only by its link" in words for words in seen_words(confirm))

    play(scenario)


def test_a_link_from_another_program_opens_the_sheet() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            it.window.open_conversation(group)
            it.window.come_to_front(CHANNEL_LINK)
            sheet = await sheet_of(it.window, KeyChannel)
            assert sheet.link.text() == CHANNEL_LINK
            assert sheet.channel_id.text() == "harbour"
            assert engine.called("join_open") == []
            assert spoken_rows(it.window.pane.timeline) == []

    play(scenario)
