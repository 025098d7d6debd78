"""Open channels in real engines over real nodes: join, talk, label, restart, leave."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.codec.open_content import encode_toy_chat, message_id_of_content
from engine.codec.sds import encode_message
from engine.core.errors import ConfigError, InputError, InputFlaw
from engine.core.ids import (
    ChannelId,
    ContentTopic,
    ConversationId,
    DeliveryState,
    ParticipantId,
    PubsubTopic,
    UnixMs,
)
from engine.core.records import ChannelName, OpenFormat, OpenPace
from engine.core.sds.config import SdsConfig
from engine.core.sds.vocabulary import HistoryEntry, Message
from engine.core.waku import WakuMessage
from engine.core.waku_archive import ArchiveQuery
from engine.events import (
    ConversationAdded,
    ConversationRemoved,
    GapUpdated,
    MessageAdded,
    MessageChanged,
    MessageKind,
)
from engine.network.waku.topics import Sharding
from tests.runtime.history.history_stage import Person, StoreNode, until_stored
from ui.inspector.json_copy import as_json

TOPIC = ContentTopic("/my-app/1/room/proto")
GENERAL = ChannelName(
    channel_id=ChannelId("general"), content_topic=TOPIC, cluster_id=42, shard=None
)

OFF_TOPIC = replace(GENERAL, channel_id=ChannelId("off topic"))


async def join(
    person: Person,
    name: ChannelName = GENERAL,
    *,
    format_: OpenFormat = OpenFormat.AUTO,
    pace: OpenPace = OpenPace.CAUSERIE,
) -> ConversationId:
    """With our history and retries, which are as quick as a test wants."""
    return await person.engine.open_channels.join(
        name, label="Everybody", nick=person.name, format_=format_, pace=pace
    )


class Met:
    """Ann and Bob in one channel, over a node of ours that relays every shard and keeps all."""

    def __init__(self, node: StoreNode, ann: Person, bob: Person, channel: ConversationId) -> None:
        self.node, self.ann, self.bob, self.channel = node, ann, bob, channel

    async def stop(self) -> None:
        await self.ann.stop()
        await self.bob.stop()
        await self.node.stop()


async def meet(place: Path, name: ChannelName = GENERAL) -> Met:
    node = StoreNode(place, "node")
    address = await node.start(shards=tuple(range(8)))
    ann = await Person("Ann", place, peers=(address,)).start()
    bob = await Person("Bob", place, peers=(address,)).start()
    channel = await join(ann, name)
    assert await join(bob, name) == channel
    await ann.until_online()
    await bob.until_online()
    return Met(node, ann, bob, channel)


async def rows_of(person: Person, channel: ConversationId) -> list[tuple[str, str, bool]]:
    """Who said what, and whether it is ours."""
    page = await person.engine.timeline.latest_page(channel, limit=100)
    return [(row.sender_name, row.text, row.is_own) for row in page.messages]


async def publish(met: Met, message: Message) -> None:
    """As a stranger would: no engine of ours made it."""
    assert met.node.node is not None
    now_ns = met.ann.now_ms() * 1_000_000
    payload = encode_message(message)
    await met.node.node.publish(
        WakuMessage(payload=payload, content_topic=TOPIC, timestamp_ns=now_ns)
    )


def from_stranger(
    content: bytes, *after: bytes, sender: str = "Mallory", lamport: int = 1
) -> Message:
    history = tuple(HistoryEntry(message_id=message_id_of_content(each)) for each in after)
    return Message(
        sender_id=ParticipantId(sender),
        message_id=message_id_of_content(content),
        channel_id=GENERAL.channel_id,
        lamport_timestamp=lamport,
        causal_history=history,
        content=content,
    )


async def test_two_people_talk_and_nobody_certainly_holds_anything(tmp_path: Path) -> None:
    met = await meet(tmp_path)
    ann, bob, channel = met.ann, met.bob, met.channel
    await ann.engine.timeline.send_text(channel, "hello, anybody")
    await bob.until_told(channel, 1)
    await bob.engine.timeline.send_text(channel, "hello, somebody")
    await ann.until_told(channel, 2)
    (first, second) = await rows_of(ann, channel)
    assert first[1:] == ("hello, anybody", True)
    assert second[1:] == ("hello, somebody", False)
    assert second[0].startswith("Bob ")
    await ann.until(
        lambda: any(
            isinstance(event, MessageChanged)
            and event.message.delivery is not None
            and event.message.delivery.state is DeliveryState.POSSIBLY_HELD
            for event in ann.told
        )
    )
    page = await ann.engine.timeline.latest_page(channel)
    delivery = page.messages[0].delivery
    assert delivery is not None
    assert (delivery.held_by, delivery.of) == ((), 0)
    assert [name[:4] for name in delivery.maybe_held_by] == ["Bob "]
    (holder,) = await ann.engine.timeline.holders(channel, page.messages[0].message_id)
    assert not holder.certain
    await met.stop()


async def test_equal_texts_are_two_messages_here(tmp_path: Path) -> None:
    met = await meet(tmp_path)
    await met.ann.engine.timeline.send_text(met.channel, "ok")
    await met.ann.engine.timeline.send_text(met.channel, "ok")
    await met.bob.until_told(met.channel, 2)
    await met.bob.engine.timeline.send_text(met.channel, "ok")
    await met.ann.until_told(met.channel, 3)
    assert sorted(met.ann.texts(met.channel)) == ["ok", "ok ", "ok  "]
    await met.stop()


async def test_a_channel_outlives_a_restart_with_all_that_was_said(tmp_path: Path) -> None:
    met = await meet(tmp_path)
    await met.ann.engine.timeline.send_text(met.channel, "before")
    await met.bob.until_told(met.channel, 1)
    await met.bob.engine.open_channels.set_label(met.channel, "The room")
    await met.bob.stop()
    await met.ann.engine.timeline.send_text(met.channel, "meanwhile")
    await met.bob.start_again()
    (view,) = await met.bob.engine.conversations()
    assert view.name == "The room"
    assert view.open_channel is not None
    assert view.open_channel.channel_id == "general"
    await met.bob.until(lambda: "meanwhile" in met.bob.texts(met.channel))
    assert [row[1] for row in await rows_of(met.bob, met.channel)] == ["before", "meanwhile"]
    await met.stop()


async def test_a_fixed_shard_is_joined_for_this_channel_alone(tmp_path: Path) -> None:
    met = await meet(
        tmp_path,
        ChannelName(channel_id=ChannelId("general"), content_topic=TOPIC, cluster_id=42, shard=6),
    )
    await met.ann.engine.timeline.send_text(met.channel, "on shard 6")
    await met.bob.until_told(met.channel, 1)
    assert met.node.archive is not None
    await until_stored(met.node, 1)
    query = ArchiveQuery(
        pubsub_topic=PubsubTopic("/waku/2/rs/42/6"), forward=True, limit=10, max_bytes=10**6
    )
    assert (await met.node.archive.query(query)).rows
    other = ChannelName(channel_id=ChannelId("b"), content_topic=TOPIC, cluster_id=42, shard=None)
    with pytest.raises(InputError) as caught:
        await join(met.ann, other)
    assert caught.value.flaw is InputFlaw.TOPIC_PLACED
    await met.ann.engine.open_channels.leave(met.channel)
    assert any(isinstance(event, ConversationRemoved) for event in met.ann.told)
    await join(met.ann, other)
    await met.stop()


async def test_a_shard_is_the_same_said_by_its_number_or_left_out(tmp_path: Path) -> None:
    met = await meet(tmp_path)
    usual = Sharding().usual_shard(TOPIC)
    said = [
        ChannelName(channel_id=ChannelId(name), content_topic=TOPIC, cluster_id=42, shard=shard)
        for name, shard in (("general", usual), ("b", usual), ("b", None))
    ]
    general, by_number, left_out = [await join(met.ann, name) for name in said]
    assert general == met.channel, "the channel that is there, and no second one"
    assert by_number == left_out
    await met.stop()


@pytest.mark.parametrize(
    ("name", "flaw"),
    [
        (("general", "no topic", 42, None), InputFlaw.CONTENT_TOPIC),
        (("general", TOPIC, 1, None), InputFlaw.CLUSTER),
        (("general", TOPIC, 42, -1), InputFlaw.SHARD),
        (("g" * 129, TOPIC, 42, None), InputFlaw.CHANNEL_TOO_LONG),
    ],
)
async def test_what_cannot_be_joined_is_said(
    tmp_path: Path, name: tuple[str, str, int, int | None], flaw: InputFlaw
) -> None:
    ann = await Person("Ann", tmp_path).start()
    channel_id, topic, cluster_id, shard = name
    with pytest.raises(ConfigError) as caught:
        await join(
            ann,
            ChannelName(
                channel_id=ChannelId(channel_id),
                content_topic=ContentTopic(topic),
                cluster_id=cluster_id,
                shard=shard,
            ),
        )
    assert isinstance(caught.value, InputError)
    assert caught.value.flaw is flaw
    assert await ann.engine.conversations() == []
    await ann.stop()


async def test_a_channel_without_a_name_is_called_0(tmp_path: Path) -> None:
    ann = await Person("Ann", tmp_path).start()
    await join(ann, ChannelName(channel_id=ChannelId(" "), content_topic=TOPIC, cluster_id=42))
    (added,) = [event for event in ann.told if isinstance(event, ConversationAdded)]
    assert added.conversation.open_channel is not None
    assert added.conversation.open_channel.channel_id == "0"
    await ann.stop()


async def test_where_others_speak_toy_chat_we_do_too(tmp_path: Path) -> None:
    met = await meet(tmp_path)
    said = encode_toy_chat("hei", "Kari", UnixMs(met.ann.now_ms()))
    await publish(met, from_stranger(said, lamport=met.ann.now_ms()))
    await met.ann.until_told(met.channel, 1)
    assert await rows_of(met.ann, met.channel) == [("Kari", "hei", False)]
    await met.ann.engine.timeline.send_text(met.channel, "hei hei")
    await met.bob.until(lambda: "hei hei" in met.bob.texts(met.channel))
    assert ("Ann", "hei hei", False) in await rows_of(met.bob, met.channel)
    await met.stop()


async def test_two_channels_on_one_content_topic_do_not_mix(tmp_path: Path) -> None:
    met = await meet(tmp_path)
    other = await join(met.ann, OFF_TOPIC)
    assert await join(met.bob, OFF_TOPIC) == other != met.channel
    for channel, word in ((met.channel, "general"), (other, "off topic")):
        await met.ann.engine.timeline.send_text(channel, f"{word}, by Ann")
        await met.bob.engine.timeline.send_text(channel, f"{word}, by Bob")
    for person in (met.ann, met.bob):
        await person.until_told(met.channel, 2)
        await person.until_told(other, 2)
        for channel, word in ((met.channel, "general"), (other, "off topic")):
            assert sorted(person.texts(channel)) == [f"{word}, by Ann", f"{word}, by Bob"]
            assert await person.engine.timeline.gap(channel) is None
    await met.ann.engine.open_channels.leave(other)
    await met.bob.engine.timeline.send_text(met.channel, "the first goes on")
    await met.ann.until_told(met.channel, 3)
    await met.stop()


async def test_a_shared_key_seals_a_channel_and_outlives_a_restart(tmp_path: Path) -> None:
    """Beside an open channel of the same names, which takes none of it."""
    met = await meet(tmp_path)
    proposed = met.ann.engine.open_channels.new_name()
    sealed = await join(met.ann, replace(GENERAL, key=proposed.key))
    link = await met.ann.engine.open_channels.make_link(sealed)
    name = met.bob.engine.open_channels.preview_link(link)
    assert name == replace(GENERAL, key=proposed.key)
    assert await join(met.bob, name) == sealed != met.channel
    await met.ann.engine.timeline.send_text(sealed, "between us")
    await met.bob.until_told(sealed, 1)
    await met.bob.stop()
    await met.bob.start_again()
    await met.bob.until_online()
    keyed = [
        view.conversation_id
        for view in await met.bob.engine.conversations()
        if view.open_channel is not None and view.open_channel.has_key
    ]
    assert keyed == [sealed]
    await met.bob.engine.timeline.send_text(sealed, "still between us")
    await met.ann.until_told(sealed, 2)
    assert met.bob.texts(met.channel) == met.ann.texts(met.channel) == []
    assert met.ann.engine.counters()["open.other_version"] > 0
    assert await met.ann.engine.open_channels.shared_key(sealed) == proposed.key
    await met.stop()


@pytest.mark.parametrize("length", [1, 31, 33])
async def test_a_key_of_another_length_is_refused(tmp_path: Path, length: int) -> None:
    ann = await Person("Ann", tmp_path).start()
    with pytest.raises(InputError) as caught:
        await join(ann, replace(GENERAL, key=bytes(length)))
    assert caught.value.flaw is InputFlaw.SHARED_KEY
    await ann.stop()


async def test_content_that_is_no_text_leaves_no_gap(tmp_path: Path) -> None:
    met = await meet(tmp_path)
    await publish(met, from_stranger(b"\xff\xfe\x00", lamport=met.ann.now_ms()))
    await met.ann.until(
        lambda: any(
            isinstance(event, MessageAdded) and event.message.kind is MessageKind.UNSUPPORTED
            for event in met.ann.told
        )
    )
    await met.ann.engine.timeline.send_text(met.channel, "after it")
    await met.bob.until_told(met.channel, 1)
    page = await met.bob.engine.timeline.latest_page(met.channel)
    kinds = [row.kind for row in page.messages]
    assert MessageKind.UNSUPPORTED in kinds
    assert await met.bob.engine.timeline.gap(met.channel) is None
    await met.stop()


async def test_what_comes_together_is_told_in_causal_order(tmp_path: Path) -> None:
    """One that is shown among what waits, and one that came after it, for the same message."""
    met = await meet(tmp_path)
    ann, lamport = met.ann, met.ann.now_ms()

    def told(*, waiting: bool) -> list[str]:
        return [
            event.message.text
            for event in ann.told
            if isinstance(event, MessageAdded | MessageChanged) and event.message.waiting is waiting
        ]

    await publish(met, from_stranger(b"second", b"first", lamport=lamport + 1))
    await ann.until(lambda: any(isinstance(event, GapUpdated) for event in ann.told))
    ann.passed_ms += SdsConfig().show_waiting_ms
    await publish(met, from_stranger(b"third", b"second", lamport=lamport + 2))
    await ann.until(lambda: told(waiting=True) == ["second"])
    await publish(met, from_stranger(b"first", lamport=lamport))
    await ann.until(lambda: len(told(waiting=False)) == 3)
    assert told(waiting=False) == ["first", "second", "third"]
    await met.stop()


async def test_another_cluster_is_kept_shown_and_not_served(tmp_path: Path) -> None:
    """The profile was on this network before."""
    ann = await Person("Ann", tmp_path).start()
    channel = await join(ann)
    await ann.stop()
    ann.cluster_id = 7
    await ann.start_again()
    (view,) = await ann.engine.conversations()
    assert view.open_channel is not None
    assert not view.open_channel.is_served
    assert ann.engine.open_channels.cluster_id() == 7
    await ann.engine.timeline.send_text(channel, "nobody hears it")
    page = await ann.engine.timeline.latest_page(channel)
    assert page.messages[0].delivery is not None
    assert page.messages[0].delivery.state is DeliveryState.SAVED
    await ann.stop()


async def test_the_inspector_proves_nobody_and_copies_no_text(tmp_path: Path) -> None:
    met = await meet(tmp_path)
    ann, bob, channel = met.ann, met.bob, met.channel
    said = await ann.engine.timeline.send_text(channel, "hello, anybody")
    await bob.until_told(channel, 1)
    answer = await bob.engine.timeline.send_text(channel, "hello, somebody")
    await ann.until_told(channel, 2)
    for person, is_own in ((ann, True), (bob, False)):
        found = await person.engine.inspection.message(channel, said)
        assert (found.is_open, found.is_own, found.whereabouts) == (True, is_own, "logged")
        assert found.sender_name.startswith("Ann")
        assert not [holder.name for holder in found.holders if holder.certain]
        assert [link.message_id for link in found.named_by] == [answer]
        assert found.sds is not None
        assert (found.sds.signed_ms, found.sds.group_key) == (None, None), "nothing is signed"
        assert "hello" not in as_json(found)
        assert bool(found.copies) is is_own
        page = await person.engine.timeline.info(channel, said)
        assert sum(part.size for part in found.parts) == page.size
    await met.stop()


async def test_of_what_a_stranger_only_names_the_inspector_knows_who_waits_for_it(
    tmp_path: Path,
) -> None:
    met = await meet(tmp_path)
    ann, never_said, late = met.ann, b"first", b"second"
    await publish(met, from_stranger(late, never_said, lamport=ann.now_ms()))
    await ann.until(lambda: any(isinstance(event, GapUpdated) for event in ann.told))
    missing = message_id_of_content(never_said)
    found = await ann.engine.inspection.message(met.channel, missing)
    assert (found.whereabouts, found.sds, found.names) == ("missing", None, ())
    assert [link.message_id for link in found.named_by] == [message_id_of_content(late)]
    assert not found.named_by_complete
    assert found.holders == ()
    waiting = await ann.engine.inspection.message(met.channel, message_id_of_content(late))
    assert waiting.whereabouts == "waiting"
    assert [each.message_id for each in waiting.waits_for] == [missing]
    await met.stop()
