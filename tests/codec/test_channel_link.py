"""Links to channels with a shared key: what was written comes back, everything else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.channel_link import CHANNEL_FORM, read_channel_link, write_channel_link
from engine.core.channel_link import MAX_CHANNEL_ID_BYTES, MAX_INDEX
from engine.core.errors import InviteError, LinkFlaw, LinkKind, LocalProtocolError
from engine.core.ids import ChannelId, ContentTopic
from engine.core.links import find_links
from engine.core.records import ChannelName
from proto import channel_link_pb2

NAME = ChannelName(
    channel_id=ChannelId("général"),
    content_topic=ContentTopic("/tides/1/harbour/proto"),
    cluster_id=42,
    shard=None,
    key=bytes(range(32)),
)
LINK = (
    "causerie:channel/-ejuQAgBEiAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHxoJZ8OpbsOpcmFs"
    "IhYvdGlkZXMvMS9oYXJib3VyL3Byb3RvKCo"
)
"""Frozen: such links are in letters, on walls and in other programs."""


def wire_of(link: str) -> channel_link_pb2.ChannelLink:
    return channel_link_pb2.ChannelLink.FromString(CHANNEL_FORM.read(link))


def flaw_of(wire: channel_link_pb2.ChannelLink) -> LinkFlaw:
    with pytest.raises(InviteError) as error:
        read_channel_link(CHANNEL_FORM.write(wire.SerializeToString(deterministic=True)))
    assert error.value.kind is LinkKind.CHANNEL
    return error.value.flaw


def test_the_text_is_the_frozen_one() -> None:
    assert write_channel_link(NAME) == LINK
    assert read_channel_link(LINK) == NAME


@given(
    channel_id=st.text(
        st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=128
    ),
    cluster=st.integers(0, MAX_INDEX),
    shard=st.none() | st.integers(0, MAX_INDEX),
    key=st.binary(min_size=32, max_size=32),
)
def test_what_was_written_comes_back(
    channel_id: str, cluster: int, shard: int | None, key: bytes
) -> None:
    name = replace(NAME, channel_id=ChannelId(channel_id), cluster_id=cluster, shard=shard, key=key)
    assert read_channel_link(write_channel_link(name)) == name


def test_a_link_is_found_in_a_text() -> None:
    (found,) = find_links(f"come to <{LINK}>, all of you")
    assert found.target == LINK


def test_the_key_appears_in_no_representation() -> None:
    assert repr(NAME.key) not in repr(NAME)
    assert NAME.key.hex() not in repr(NAME)


def test_everything_else_is_refused_by_its_name() -> None:
    for change, flaw in (
        ({"version": 2, "key": b""}, LinkFlaw.NEWER),
        ({"version": 0}, LinkFlaw.INCOMPLETE),
        ({"key": bytes(31)}, LinkFlaw.BAD_KEY),
        ({"key": bytes(33)}, LinkFlaw.BAD_KEY),
        ({"channel_id": ""}, LinkFlaw.BAD_NAME),
        ({"channel_id": "x" * (MAX_CHANNEL_ID_BYTES + 1)}, LinkFlaw.BAD_NAME),
        ({"channel_id": "\u202eevil"}, LinkFlaw.BAD_NAME),
        ({"content_topic": ""}, LinkFlaw.BAD_NAME),
        ({"content_topic": "/a/1/" + "b" * 300 + "/proto"}, LinkFlaw.BAD_NAME),
        ({"content_topic": "/a/1/two\nlines/proto"}, LinkFlaw.BAD_NAME),
        ({"cluster_id": MAX_INDEX + 1}, LinkFlaw.BAD_ADDRESS),
        ({"shard": MAX_INDEX + 1}, LinkFlaw.BAD_ADDRESS),
    ):
        wire = wire_of(LINK)
        for field, value in change.items():
            setattr(wire, field, value)
        assert flaw_of(wire) is flaw, change


def test_another_form_of_the_same_is_refused() -> None:
    encoded = CHANNEL_FORM.read(LINK)
    with pytest.raises(InviteError) as error:
        read_channel_link(CHANNEL_FORM.write(encoded + b"\x3a\x01x"))
    assert error.value.flaw is LinkFlaw.NOT_CANONICAL


@pytest.mark.parametrize(
    "unusable",
    [replace(NAME, key=b""), replace(NAME, channel_id=ChannelId("")), replace(NAME, cluster_id=-1)],
)
def test_nobody_gets_a_link_that_nobody_could_use(unusable: ChannelName) -> None:
    with pytest.raises(LocalProtocolError):
        write_channel_link(unusable)
