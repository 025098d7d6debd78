"""Content: what is written comes back, and nothing out of bounds gets in or out."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.codec.content import (
    MAX_CONTENT_BYTES,
    decode_content,
    decode_ephemeral,
    decode_pair_content,
    encode_content,
)
from engine.core.content import (
    MAX_NAME_CHARACTERS,
    MAX_TEXT_BYTES,
    Body,
    Content,
    Created,
    Leave,
    Reaction,
    Text,
    Unsupported,
    clean_name,
)
from engine.core.errors import LocalProtocolError
from engine.core.ids import AuthorSequence, InstanceId, MessageId, UnixMs
from proto import content_pb2
from tests.codec.content_examples import (
    REASONS,
    SOMEBODY,
    TEXT,
    content,
    contents,
    reason_of,
    refused,
    wire,
)


@given(contents)
def test_what_is_encoded_is_decoded(original: Content) -> None:
    decoded = decode_content(encode_content(original))
    if isinstance(original.body, Created):
        assert decoded.body == Created(name=clean_name(original.body.name))
    else:
        assert decoded == original


@given(st.binary(max_size=300))
@example(b"")
def test_garbage_is_refused_with_a_reason(garbage: bytes) -> None:
    assert refused(decode_content, garbage).startswith(REASONS)
    assert refused(decode_ephemeral, garbage).startswith(REASONS)


@given(contents, st.data())
def test_damaged_content_never_raises_anything_else(original: Content, data: st.DataObject) -> None:
    encoded = bytearray(encode_content(original))
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    assert refused(decode_content, bytes(encoded)).startswith(REASONS)


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("content_bad_instance_id", {"instance_id": bytes(15)}),
        ("content_bad_instance_id", {"instance_id": b""}),
        ("content_bad_nonce", {"nonce": bytes(17)}),
        ("content_bad_sequence", {"sequence": 0}),
        ("content_bad_sequence", {"sequence": 2**53}),
        ("content_bad_time", {"sent_ms": 2**53}),
        ("content_bad_message_id", {"previous_id": "x" * 129, "sequence": 2}),
        ("content_bad_message_id", {"previous_id": "é" * 65, "sequence": 2}),
        ("content_bad_message_id", {"replaces": "x" * 129}),
        ("content_bad_previous_id", {"previous_id": "x"}),
        ("content_bad_previous_id", {"sequence": 2}),
        ("content_bad_lamport_timestamp", {"lamport_timestamp": 1}),
        ("content_malformed", {"body": b"\xff"}),
    ],
)
def test_fields_out_of_bounds_are_refused(reason: str, changes: dict[str, object]) -> None:
    assert reason_of(decode_content, wire(**changes)) == reason


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("content_empty_text", content_pb2.Text()),
        ("content_text_too_long", content_pb2.Text(text="x" * (MAX_TEXT_BYTES + 1))),
        ("content_text_too_long", content_pb2.Text(text="é" * (MAX_TEXT_BYTES // 2 + 1))),
        ("content_too_many_mentions", content_pb2.Text(text="x", mentions=[SOMEBODY] * 65)),
        ("content_bad_mention", content_pb2.Text(text="x", mentions=["everybody"])),
        ("content_bad_mention", content_pb2.Text(text="x", mentions=[SOMEBODY[:-1] + "B"])),
        ("content_bad_message_id", content_pb2.Text(text="x", reply_to="x" * 129)),
    ],
)
def test_texts_out_of_bounds_are_refused(reason: str, text: content_pb2.Text) -> None:
    assert reason_of(decode_content, wire(content_pb2.Body(text=text))) == reason


def test_size_and_utf_8_are_checked_before_anything_else() -> None:
    assert reason_of(decode_content, bytes(MAX_CONTENT_BYTES + 1)) == "content_oversized"
    invalid = wire().replace(b"hi", b"\xff\xff")
    assert reason_of(decode_content, invalid) == "content_malformed"


UNKNOWN = b"\xa2\x06\x03abc"  # field 100


@pytest.mark.parametrize(
    "padded",
    [
        wire() + UNKNOWN,
        UNKNOWN + wire(),
        wire() + bytes([0x10, 1]),  # a second sequence, the same
        wire()[18:] + wire()[:18],  # the instance id last
        wire().replace(b"\x10\x01", b"\x10\x81\x00"),  # a longer way to write 1
    ],
)
def test_there_is_one_encoding_and_nothing_unknown_outside_the_body(padded: bytes) -> None:
    assert reason_of(decode_content, padded) == "content_not_canonical"
    assert reason_of(decode_pair_content, padded) == "content_not_canonical"


def test_the_longest_text_fits() -> None:
    longest = content(Text(text="é" * (MAX_TEXT_BYTES // 2), mentions=(SOMEBODY,) * 64))
    assert decode_content(encode_content(longest)) == longest


def test_content_of_a_newer_version_is_kept_as_unsupported() -> None:
    for kind in ("reaction", "edit", "retraction", "profile"):
        body = content_pb2.Body()
        getattr(body, kind).SetInParent()
        assert decode_content(wire(body)).body == Unsupported(kind=kind)
    for decode in (decode_content, decode_pair_content):
        assert decode(wire(UNKNOWN)).body == Unsupported()
        assert decode(wire(b"")).body == Unsupported()
        # What a newer version adds to a kind that is known is passed over.
        added = TEXT.SerializeToString() + UNKNOWN
        assert decode(wire(added)).body == Text(text="hi")


@pytest.mark.parametrize(
    "body",
    [
        Unsupported(),
        Reaction(target_id=MessageId("m"), emoji="no"),
        Reaction(target_id=MessageId(""), emoji="👍"),
        Text(text="@Al", mentions=(SOMEBODY,), mention_places=((0, 4),)),
        Text(text=""),
        Text(text="\ud800"),
        Text(text="x" * (MAX_TEXT_BYTES + 1)),
        Created(name=" \u202e "),
        Created(name="x" * (MAX_NAME_CHARACTERS + 1)),
    ],
)
def test_we_never_say_what_nobody_would_accept(body: Body) -> None:
    with pytest.raises(LocalProtocolError):
        encode_content(content(body))


def test_our_own_numbers_are_checked_too() -> None:
    for sequence in (0, -1, 2**53, 2**64):
        author = AuthorSequence(instance_id=InstanceId(bytes(16)), sequence=sequence)
        original = content(Leave())
        broken = Content(
            author=author, previous_id=None, nonce=original.nonce, sent_ms=UnixMs(1), body=Leave()
        )
        with pytest.raises(LocalProtocolError):
            encode_content(broken)
