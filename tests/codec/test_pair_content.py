"""Content of pairs: what is said comes back, and nothing out of bounds gets in or out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.content import (
    decode_content,
    decode_pair_content,
    decode_pair_ephemeral,
    encode_content,
)
from engine.core.contacts import MAX_PICTURE_BYTES
from engine.core.content import (
    MAX_FILES_HELD,
    MAX_NAME_CHARACTERS,
    MAX_SAFE_INTEGER,
    Body,
    ContactAnswer,
    ContactRequest,
    Content,
    Created,
    FilesHeld,
    Leave,
    ProfileUpdate,
    Text,
    Unsupported,
)
from engine.core.errors import LocalProtocolError
from engine.core.ids import InstanceId, MessageId
from proto import content_pb2
from tests.codec.content_examples import (
    INSTANCE,
    JPEG,
    OF_PAIRS,
    PNG,
    REASONS,
    content,
    pair_contents,
    reason_of,
    refused,
    wire,
)


@given(pair_contents)
def test_what_is_said_one_to_one_comes_back(original: Content) -> None:
    assert decode_pair_content(encode_content(original)) == original


@given(st.binary(max_size=300))
def test_garbage_one_to_one_is_refused_with_a_reason(garbage: bytes) -> None:
    assert refused(decode_pair_content, garbage).startswith(REASONS)
    assert refused(decode_pair_ephemeral, garbage).startswith(REASONS)


@given(pair_contents, st.data())
def test_damage_one_to_one_never_raises_anything_else(
    original: Content, data: st.DataObject
) -> None:
    encoded = bytearray(encode_content(original))
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    assert refused(decode_pair_content, bytes(encoded)).startswith(REASONS)
    assert refused(decode_content, bytes(encoded)).startswith(REASONS)


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("content_bad_instance_id", {"instance_id": bytes(15)}),
        ("content_bad_nonce", {"nonce": bytes(17)}),
        ("content_bad_sequence", {"sequence": 0}),
        ("content_bad_time", {"sent_ms": 2**53}),
        ("content_bad_lamport_timestamp", {"lamport_timestamp": 2**53}),
        ("content_bad_lamport_timestamp", {"lamport_timestamp": 2**64 - 1}),
        ("content_bad_message_id", {"previous_id": "x" * 129, "sequence": 2}),
        ("content_bad_previous_id", {"sequence": 2}),
        ("content_bad_replacement", {"replaces": "x"}),
    ],
)
def test_fields_out_of_bounds_are_refused_one_to_one(
    reason: str, changes: dict[str, object]
) -> None:
    assert reason_of(decode_pair_content, wire(**changes)) == reason


@pytest.mark.parametrize("kind", ["contact_request", "contact_answer"])
@pytest.mark.parametrize("round_", [0, 2**53, 2**64 - 1])
def test_a_statement_without_a_round_is_refused(kind: str, round_: int) -> None:
    """Also as it was said before there were rounds."""
    message = content_pb2.Body()
    body = getattr(message, kind)
    body.name, body.round = "Zoë", round_
    assert reason_of(decode_pair_content, wire(message)) == "content_bad_round"


@pytest.mark.parametrize(
    ("accepted", "answered", "reason"),
    [
        (True, b"", "content_bad_answered_instance"),
        (True, bytes(15), "content_bad_answered_instance"),
        (False, bytes(17), "content_bad_answered_instance"),
        (True, bytes(16), "content_accepted_and_withdrawn"),
    ],
)
def test_an_answer_that_is_none_is_refused(accepted: bool, answered: bytes, reason: str) -> None:
    message = content_pb2.Body()
    answer = message.contact_answer
    answer.accepted, answer.answered_instance_id, answer.withdrawn = accepted, answered, True
    answer.name, answer.round = "Zoë", 1
    assert reason_of(decode_pair_content, wire(message)) == reason


@pytest.mark.parametrize("kind", ["contact_request", "contact_answer", "profile_update"])
@pytest.mark.parametrize(
    ("reason", "name", "picture"),
    [
        ("content_bad_name", "", b""),
        ("content_bad_name", "\u202e", b""),
        ("content_bad_name", "x" * (MAX_NAME_CHARACTERS + 1), b""),
        ("content_bad_picture", "Zoë", b"GIF89a"),
        ("content_bad_picture", "Zoë", b"<svg xmlns="),
        ("content_bad_picture", "Zoë", PNG[:-1]),
        ("content_bad_picture", "Zoë", PNG + bytes(MAX_PICTURE_BYTES - len(PNG) + 1)),
    ],
)
def test_names_and_pictures_out_of_bounds_are_refused(
    kind: str, reason: str, name: str, picture: bytes
) -> None:
    message = content_pb2.Body()
    body = getattr(message, kind)
    body.SetInParent()
    body.name, body.picture = name, picture
    if kind == "contact_answer":
        body.accepted, body.round, body.answered_instance_id = True, 1, bytes(16)
    assert reason_of(decode_pair_content, wire(message)) == reason


@pytest.mark.parametrize("magic", [PNG, JPEG])
def test_the_largest_picture_fits(magic: bytes) -> None:
    largest = content(
        ProfileUpdate(name="Zoë", picture=magic + bytes(MAX_PICTURE_BYTES - len(magic)))
    )
    assert decode_pair_content(encode_content(largest)) == largest


def test_nothing_that_a_decline_says_about_its_author_is_believed() -> None:
    message = content_pb2.Body()
    message.contact_answer.round = 7
    message.contact_answer.name = "\u202e"
    message.contact_answer.picture = b"GIF89a"
    said = decode_pair_content(wire(message)).body
    assert said == ContactAnswer(accepted=False, round=7)


@pytest.mark.parametrize("body", OF_PAIRS)
def test_what_belongs_to_pairs_is_unsupported_in_a_group(body: Body) -> None:
    said = decode_content(encode_content(content(body)))
    assert isinstance(said.body, Unsupported)
    assert said.body.kind in {"contact_request", "contact_answer", "profile_update", "files_held"}


def test_a_group_never_looks_into_what_belongs_to_pairs() -> None:
    """Older versions do not know these kinds: all members must judge the same bytes alike."""
    message = content_pb2.Body()
    message.contact_request.picture = bytes(70_000)
    assert decode_content(wire(message)).body == Unsupported(kind="contact_request")


@pytest.mark.parametrize("kind", ["created", "join", "leave", "reaction", "profile"])
def test_what_belongs_to_groups_is_unsupported_in_a_pair(kind: str) -> None:
    message = content_pb2.Body()
    getattr(message, kind).SetInParent()
    assert decode_pair_content(wire(message)).body == Unsupported(kind=kind)


@pytest.mark.parametrize(
    "body",
    [
        ContactRequest(name="", round=1),
        ContactRequest(name="Zoë", round=0),
        ContactRequest(name="Zoë", round=MAX_SAFE_INTEGER + 1),
        ContactRequest(name="Zoë", round=-1),
        ContactRequest(name="Zoë", round=1, picture=b"GIF89a"),
        ContactAnswer(accepted=True, round=1, answered_instance=INSTANCE),
        ContactAnswer(accepted=True, round=1, name="Zoë"),
        ContactAnswer(accepted=True, round=0, answered_instance=INSTANCE, name="Zoë"),
        ContactAnswer(
            accepted=True, round=1, answered_instance=INSTANCE, name="Zoë", withdrawn=True
        ),
        ContactAnswer(accepted=False, round=1, answered_instance=InstanceId(bytes(15))),
        ContactAnswer(accepted=False, round=1, name="Zoë"),
        ContactAnswer(accepted=False, round=1, picture=PNG),
        ProfileUpdate(name="Zoë", picture=PNG + bytes(MAX_PICTURE_BYTES)),
        FilesHeld(()),
        FilesHeld((MessageId("A" * 22),) * (MAX_FILES_HELD + 1)),
        FilesHeld((MessageId("A" * 22), MessageId(""))),
        Unsupported(),
        Created(name="a group's"),
        Leave(),
    ],
)
def test_we_never_say_to_one_what_they_would_not_accept(body: Body) -> None:
    with pytest.raises(LocalProtocolError):
        encode_content(replace(content(body), lamport_timestamp=7))


@pytest.mark.parametrize("lamport_timestamp", [-1, 2**53, 2**64])
def test_our_own_lamport_timestamp_is_checked_too(lamport_timestamp: int) -> None:
    with pytest.raises(LocalProtocolError):
        encode_content(replace(content(Text(text="hi")), lamport_timestamp=lamport_timestamp))
