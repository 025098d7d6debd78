import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ConfigError, RemoteProtocolError
from engine.core.ids import ContentTopic, PubsubTopic
from engine.core.waku import WakuMessage
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import (
    Shard,
    Sharding,
    parse_content_topic,
    parse_pubsub_topic,
)

VECTORS = Path(__file__).parents[2] / "vectors" / "waku"
HASHES = json.loads((VECTORS / "waku_message_hash.json").read_text())["cases"]
SHARDS = json.loads((VECTORS / "autosharding.json").read_text())["cases"]


@pytest.mark.parametrize("case", HASHES, ids=lambda case: str(case["name"]))
def test_published_message_hashes(case: dict[str, str]) -> None:
    message = WakuMessage(
        payload=bytes.fromhex(case["payload"]),
        content_topic=ContentTopic(case["content_topic"]),
        meta=bytes.fromhex(case["meta"] or "") or None,
        timestamp_ns=int(case["timestamp"]),
    )
    assert message_hash(PubsubTopic(case["pubsub_topic"]), message).hex() == case["message_hash"]


def test_an_absent_timestamp_hashes_like_zero_and_a_negative_one_does_not_raise() -> None:
    def hash_at(timestamp_ns: int | None) -> bytes:
        topic = ContentTopic("/a/1/b/c")
        message = WakuMessage(payload=b"", content_topic=topic, timestamp_ns=timestamp_ns)
        return message_hash(PubsubTopic("/waku/2/rs/42/0"), message)

    assert hash_at(None) == hash_at(0)
    assert len({hash_at(0), hash_at(1), hash_at(-1), hash_at(-(2**63))}) == 4


@pytest.mark.parametrize("case", SHARDS, ids=lambda case: str(case["content_topic"]))
def test_autosharding(case: dict[str, str]) -> None:
    topic = Sharding(cluster_id=1, shard_count=8).pubsub_topic(ContentTopic(case["content_topic"]))
    assert topic == f"/waku/2/rs/1/{case['shard']}"


def test_our_own_topics_share_one_shard_of_cluster_42() -> None:
    topics = {Sharding().pubsub_topic(ContentTopic(f"/causerie/1/{n}/proto")) for n in range(50)}
    assert topics == {"/waku/2/rs/42/4"}


def test_a_static_shard_overrides_autosharding() -> None:
    sharding = Sharding(static_shard=7)
    assert sharding.pubsub_topic(ContentTopic("/myapp/1/latest/proto")) == "/waku/2/rs/42/7"


@pytest.mark.parametrize(
    "text",
    [
        "", "/", "a/1/b/c", "/a/1/b", "/a/1/b/c/", "//1/b/c", "/a/1//c", "/1/a/1/b/c",
        "/x/a/1/b/c", "/a/1/b/c/d/e", "/a/1/b c/d", "/a/1/b/c\n", "/a/1/b/" + "c" * 300,
        "/99999/a/1/b/c",
    ],
)  # fmt: skip
def test_content_topics_without_the_required_shape(text: str) -> None:
    with pytest.raises(RemoteProtocolError, match="content_topic_malformed"):
        parse_content_topic(text)


@given(st.text(max_size=40))
def test_parsing_any_text_is_safe(text: str) -> None:
    with suppress(RemoteProtocolError):
        assert parse_content_topic(text).generation == 0
    with suppress(RemoteProtocolError):
        assert parse_pubsub_topic(text).pubsub_topic == text


@given(st.integers(0, 65_535), st.integers(0, 65_535))
def test_pubsub_topics_round_trip(cluster_id: int, shard: int) -> None:
    expected = Shard(cluster_id=cluster_id, shard=shard)
    assert parse_pubsub_topic(expected.pubsub_topic) == expected


@pytest.mark.parametrize(
    "text", ["/waku/2/rs/1", "/waku/2/rs/65536/0", "/waku/2/rs/01/0", "/waku/2/rs/1/-1", "x"]
)
def test_other_pubsub_topics_are_refused(text: str) -> None:
    with pytest.raises(RemoteProtocolError, match="pubsub_topic_malformed"):
        parse_pubsub_topic(text)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Sharding(cluster_id=65_536), "cluster 65536: allowed are 0 to 65535"),
        (lambda: Sharding(shard_count=0), "0 shards: allowed are 1 to 65536"),
        (lambda: Sharding(static_shard=8), "shard 8: allowed are 0 to 7"),
    ],
)
def test_impossible_shards_are_named(make: Callable[[], Sharding], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        make()


def test_a_content_topic_can_be_placed_on_any_shard_and_put_back() -> None:
    sharding, topic = Sharding(), ContentTopic("/toy-chat/2/huilong/proto")
    derived = sharding.pubsub_topic(topic)
    sharding.place(topic, 900)
    assert sharding.pubsub_topic(topic) == "/waku/2/rs/42/900"
    assert sharding.pubsub_topic(ContentTopic("/toy-chat/2/other/proto")) == derived
    sharding.place(topic, None)
    assert sharding.pubsub_topic(topic) == derived
    with pytest.raises(ConfigError, match="shard 65536: allowed are 0 to 65535"):
        sharding.place(topic, 65_536)
