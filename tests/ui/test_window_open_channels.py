"""Open channels in the window: the sheet, the row, and the warning where one writes."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage

from engine.core.ids import ChannelId, ContentTopic, ConversationId, DeliveryState, ParticipantId
from engine.core.records import ChannelName, OpenFormat, OpenPace
from engine.events import DeliveryView, FloodView, MessageKind
from tests.ui.desks import Desk, at_desks
from tests.ui.driving import Stage, play, stage, turn, until
from tests.ui.scripted_channels import CLUSTER, OWN_SENDER
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.seeing import choose, entries, seen_words, sheet_of, spoken_rows
from ui.dialogs.confirm import Confirm
from ui.dialogs.open_channel import ChannelDetails, OpenChannel
from ui.glyphs import Glyph, count_of, delivery_words, glyph_of
from ui.list.preview import row_sentence
from ui.times import moment

pytestmark = pytest.mark.usefixtures("qapp")

TOPIC = ContentTopic("/toy-chat/2/huilong/proto")
NAME = ChannelName(channel_id=ChannelId("general"), content_topic=TOPIC, cluster_id=CLUSTER)
HERE = ConversationId("general".ljust(43, "_"))
WARNING = "Not encrypted: anybody can read and write"


def in_channel(engine: ScriptedEngine, *, is_served: bool = True) -> None:
    engine.scripted_channels.add(HERE, NAME, "General", is_served=is_served)


async def sheet_in(it: Stage) -> OpenChannel:
    choose(it.window.panel.start.menu(), "Open channel\tCtrl+O")
    return await sheet_of(it.window, OpenChannel)


def test_a_channel_is_opened_by_its_names() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await sheet_in(it)
            assert any(WARNING in words for words in seen_words(sheet))
            assert (sheet.cluster.text(), sheet.nick.text()) == (str(CLUSTER), "Ines")
            assert not sheet.confirm.isEnabled()
            sheet.channel_id.setText(" general ")
            sheet.content_topic.setText(TOPIC)
            sheet.confirm.click()
            await until(lambda: it.window.pane.is_open(HERE))
            wish = (NAME, "", "Ines", OpenFormat.AUTO, OpenPace.JS_WAKU)
            assert engine.called("join_open") == [wish]

    play(scenario)


def test_everything_can_be_chosen() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await sheet_in(it)
            assert not sheet.label.isVisible()
            sheet.more.click()
            assert sheet.label.isVisible()
            assert not sheet.nick.isVisible()
            sheet.label.setText("Toy chat")
            sheet.more.click()
            assert sheet.nick.isVisible()
            sheet.content_topic.setText(TOPIC)
            sheet.shard.setText("5")
            sheet.nick.setText("Ines S.")
            sheet.format.choose(2)
            sheet.pace.choose(1)
            sheet.confirm.click()
            await until(lambda: bool(engine.called("join_open")))
            name = replace(NAME, channel_id=ChannelId(""), shard=5)
            wish = (name, "Toy chat", "Ines S.", OpenFormat.TOY_CHAT, OpenPace.CAUSERIE)
            assert engine.called("join_open") == [wish]

    play(scenario)


@pytest.mark.parametrize(
    ("cluster", "shard", "words"),
    [
        ("one", "", "Cluster and shard are numbers."),
        ("1", "a", "Cluster and shard are numbers."),
        ("7", "", "This device is on cluster 1, so it cannot reach a channel on cluster 7."),
    ],
)
def test_what_is_wrong_is_said_under_the_fields(cluster: str, shard: str, words: str) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await sheet_in(it)
            sheet.content_topic.setText(TOPIC)
            sheet.cluster.setText(cluster)
            sheet.shard.setText(shard)
            sheet.confirm.click()
            await until(lambda: sheet.problem.text().startswith(words))
            assert sheet.isVisible()
            sheet.nick.setText("Ines S.")
            assert sheet.problem.text() == ""
            assert sheet.confirm.isEnabled()

    play(scenario)


def test_it_is_said_where_one_writes_and_in_the_list() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            in_channel(engine)
            it.window.open_conversation(HERE)
            bar = it.window.pane.open_bar
            assert bar.isVisible()
            assert bar.words.text() == WARNING
            assert it.window.pane.composer.box.isEnabled()
            assert not it.window.pane.header.lock.isVisible()
            sentence = row_sentence(it.listed(HERE), moment(0))
            assert "open channel, not encrypted" in sentence
            it.window.open_conversation(group)
            assert not bar.isVisible()
            assert it.window.pane.header.lock.isVisible()

    play(scenario)


def test_a_channel_that_is_not_served_says_so() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            in_channel(engine, is_served=False)
            it.window.open_conversation(HERE)
            assert "nothing is sent or received" in it.window.pane.open_bar.words.text()

    play(scenario)


def test_its_menu_has_what_a_channel_can_do() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            in_channel(engine)
            it.window.open_conversation(HERE)
            menu = it.window.pane.header.more.menu()
            assert entries(menu) == [
                "About this channel…",
                "Search this conversation",
                "Delivery view",
                "Fetch history",
                "Mute",
                "Leave channel…",
            ]
            choose(menu, "About this channel…")
            sheet = await sheet_of(it.window, ChannelDetails)
            words = [each.replace("\u200b", "") for each in seen_words(sheet)]
            assert {"general", TOPIC, OWN_SENDER} <= set(words)
            assert "Cluster 1, shard by content topic" in words
            sheet.label.setText("The room")
            sheet.confirm.click()
            await until(lambda: it.listed(HERE).name == "The room")
            choose(menu, "Leave channel…")
            confirm = await sheet_of(it.window, Confirm)
            confirm.confirm.click()
            await until(lambda: engine.called("leave_open") == [HERE])

    play(scenario)


def test_what_strangers_send_is_shown_and_turns_nothing() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            in_channel(engine)
            it.window.open_conversation(HERE)
            row = engine.row(HERE, member("\u202eevil"), "hello", 1)
            engine.arrive(row)
            binary = replace(
                engine.row(HERE, member("js"), "binary", 2), kind=MessageKind.UNSUPPORTED
            )
            engine.arrive(binary)
            await turn()
            spoken = " | ".join(spoken_rows(it.window.pane.timeline))
            assert "hello" in spoken
            assert "\u202e" not in spoken
            assert "Content that is no text" in spoken

    play(scenario)


def test_nothing_is_offered_that_nobody_there_understands() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            in_channel(engine)
            for place in (HERE, group):
                own = replace(
                    engine.row(place, member("Ines", is_self=True), "mine", 1), is_own=True
                )
                engine.arrive(own)
            it.window.open_conversation(group)
            await until(lambda: it.window.pane.timeline.last_own() is not None)
            picture = QMimeData()
            picture.setImageData(QImage(8, 8, QImage.Format.Format_RGB32))
            composer = it.window.pane.composer
            assert composer.attach.isVisible()
            assert composer.box.canInsertFromMimeData(picture)
            it.window.open_conversation(HERE)
            await until(lambda: "mine" in " ".join(spoken_rows(it.window.pane.timeline)))
            assert it.window.pane.timeline.last_own() is None, "it cannot be edited"
            assert not composer.attach.isVisible()
            assert not composer.box.canInsertFromMimeData(picture)

    play(scenario)


def test_a_flood_of_nobody_in_particular_can_be_shown_and_not_muted() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            in_channel(engine)
            flood = FloodView(
                conversation_id=HERE,
                participant_id=ParticipantId(""),
                name="",
                waiting=3,
                size=100,
                dropped=0,
            )
            engine.flood(HERE, flood)
            (notice,) = it.window.notices.notices()
            assert notice.text.startswith("General: Unusually much is sent here.")
            (row,) = it.window.notices.rows
            assert [act.text() for act in row.acts] == ["Show"]

    play(scenario)


def test_nobody_is_said_to_hold_anything_for_certain() -> None:
    maybe = (ParticipantId("js-0"), ParticipantId("js-1"))
    delivery = DeliveryView(state=DeliveryState.POSSIBLY_HELD, maybe_held_by=maybe)
    assert glyph_of(delivery) is Glyph.MAYBE
    assert count_of(delivery) == ""
    words = delivery_words(delivery, (), str)
    assert words == "Maybe held under 2 names; nobody here is proved."


def test_two_real_engines_talk_in_the_window(tmp_path: Path) -> None:
    async def scenario(ines: Desk, bob: Desk) -> None:
        name = ChannelName(
            channel_id=ChannelId("general"),
            content_topic=TOPIC,
            cluster_id=ines.person.engine.open_channels.cluster_id(),
        )
        for desk, nick in ((ines, "Ines"), (bob, "Bob")):
            await desk.person.engine.open_channels.join(
                name, label="General", nick=nick, pace=OpenPace.CAUSERIE
            )
        (view,) = await ines.person.engine.conversations()
        await until(lambda: ines.window.model.conversation(view.conversation_id) is not None)
        ines.window.open_conversation(view.conversation_id)
        ines.window.pane.composer.set_text("hello, anybody")
        ines.window.pane.composer.submit()
        bob.window.open_conversation(view.conversation_id)
        await until(lambda: "hello, anybody" in " ".join(spoken_rows(bob.window.pane.timeline)))
        assert "Ines " in " ".join(spoken_rows(bob.window.pane.timeline))

    at_desks(tmp_path, ("Ines", "Bob"), scenario)
