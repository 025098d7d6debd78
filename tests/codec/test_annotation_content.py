"""Reactions, edits, retractions, mentions: what is malformed says nothing, and is not refused."""

from collections.abc import Callable

import pytest

from engine.codec.content import (
    decode_content,
    decode_pair_content,
    encode_content,
)
from engine.core.content import (
    Content,
    Edit,
    Text,
    Unsupported,
)
from engine.core.errors import LocalProtocolError
from engine.core.ids import MessageId
from proto import content_pb2
from tests.codec.content_examples import SOMEBODY, content, wire

REACTION = content_pb2.Reaction(target_id="m", emoji="👍")
MALFORMED = [
    ("reaction", content_pb2.Reaction(target_id="m")),
    ("reaction", content_pb2.Reaction(target_id="m", emoji="a")),
    ("reaction", content_pb2.Reaction(target_id="m", emoji="👍👍")),
    ("reaction", content_pb2.Reaction(target_id="m", emoji="👍" * 20_000)),
    ("reaction", content_pb2.Reaction(target_id="", emoji="👍")),
    ("reaction", content_pb2.Reaction(target_id="m" * 129, emoji="👍")),
    ("edit", content_pb2.Edit(target_id="m")),
    ("edit", content_pb2.Edit(text=content_pb2.Text(text="hi"))),
    ("edit", content_pb2.Edit(target_id="m", text=content_pb2.Text(text="x", mentions=["x"]))),
    ("retraction", content_pb2.Retraction()),
]


@pytest.mark.parametrize(("kind", "malformed"), MALFORMED)
@pytest.mark.parametrize("decode", [decode_content, decode_pair_content])
def test_malformed_annotations_are_taken_and_say_nothing(
    decode: Callable[[bytes], Content],
    kind: str,
    malformed: content_pb2.Reaction | content_pb2.Edit | content_pb2.Retraction,
) -> None:
    """First versions take them, so that refusing them would leave a gap for others only."""
    body = content_pb2.Body()
    getattr(body, kind).CopyFrom(malformed)
    assert decode(wire(body)).body == Unsupported(kind=kind)


def test_an_edit_is_neither_a_reply_nor_forwarded() -> None:
    text = content_pb2.Text(text="hi", reply_to="other", forwarded=True)
    body = content_pb2.Body(edit=content_pb2.Edit(target_id="m", text=text))
    assert decode_content(wire(body)).body == Edit(target_id=MessageId("m"), text=Text(text="hi"))
    said = Edit(target_id=MessageId("m"), text=Text(text="hi", reply_to=MessageId("other")))
    with pytest.raises(LocalProtocolError):
        encode_content(content(said))


@pytest.mark.parametrize(
    "places",
    [
        [0],
        [0, 3],
        [0, 3, 4, 3, 8, 3],
        [4, 3, 0, 3],
        [0, 4, 3, 4],
        [0, 3, 4, 4],
        [0, 3, 9, 2**32 - 1],
        [0, 1, 4, 3],
        [1, 2, 4, 3],
        [0, 3, 4, 0],
    ],
)
def test_wrong_places_of_mentions_are_no_places(places: list[int]) -> None:
    text = content_pb2.Text(text="@Al @Bo", mentions=[SOMEBODY] * 2, mention_places=places)
    decoded = decode_content(wire(content_pb2.Body(text=text))).body
    assert decoded == Text(text="@Al @Bo", mentions=(SOMEBODY,) * 2)


def test_a_place_does_not_split_a_character() -> None:
    for place, kept in (([0, 3], ((0, 3),)), ([0, 2], ()), ([2, 2], ())):
        text = content_pb2.Text(text="@😀", mentions=[SOMEBODY], mention_places=place)
        decoded = decode_content(wire(content_pb2.Body(text=text))).body
        assert decoded == Text(text="@😀", mentions=(SOMEBODY,), mention_places=kept)
