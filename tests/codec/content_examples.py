"""Contents to draw and to write: what groups and pairs say, and the bytes of what nobody would."""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.content import (
    MAX_FILES_HELD,
    MAX_PIXELS,
    MAX_SAFE_INTEGER,
    Attachment,
    Body,
    ContactAnswer,
    ContactRequest,
    Content,
    Created,
    Edit,
    FilesHeld,
    Leave,
    ProfileUpdate,
    Reaction,
    Retraction,
    Text,
    clean_name,
    utf16_length,
)
from engine.core.errors import RemoteProtocolError
from engine.core.file_names import clean_file_name
from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, UnixMs
from proto import content_pb2

SOMEBODY = ParticipantId("0123456789-_abcdefghiA")
well_formed = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50)
message_ids = st.none() | st.builds(MessageId, st.text("abc-_", min_size=1, max_size=22))
REASONS = ("accepted", "content_", "ephemeral_", "join_")
targets = st.builds(MessageId, st.text("abc-_", min_size=1, max_size=22))


@st.composite
def texts_with_mentions(draw: st.DrawFn) -> Text:
    """Pieces of text with mentions between them, in UTF-16 units."""
    text, places = draw(well_formed), []
    for name in draw(st.lists(well_formed, max_size=3)):
        places.append((utf16_length(text), 1 + utf16_length(name)))
        text += f"@{name}{draw(well_formed)}"
    return Text(text=text, mentions=(SOMEBODY,) * len(places), mention_places=tuple(places))


captions = st.builds(Text, text=st.just("") | well_formed, reply_to=message_ids)
files = st.builds(
    Attachment,
    name=well_formed.map(lambda name: clean_file_name(name) or "file"),
    media_type=st.sampled_from(["text/plain", "application/octet-stream", "image/png"]),
    data=st.binary(min_size=1, max_size=99),
    caption=captions | texts_with_mentions(),
) | st.builds(
    Attachment,
    name=st.just("a.png"),
    media_type=st.just("image/png"),
    data=st.binary(min_size=1, max_size=9),
    width=st.integers(1, MAX_PIXELS),
    height=st.integers(1, MAX_PIXELS),
)
texts = st.builds(
    Text,
    text=well_formed,
    reply_to=message_ids,
    mentions=st.lists(st.just(SOMEBODY), max_size=3).map(tuple),
    forwarded=st.booleans(),
)
annotation_bodies = st.one_of(
    st.builds(
        Reaction,
        target_id=targets,
        emoji=st.sampled_from(["👍", "❤\ufe0f", "👩\u200d🚀", "🇫🇷", "1\ufe0f\u20e3"]),
        removed=st.booleans(),
    ),
    st.builds(Edit, target_id=targets, text=texts_with_mentions()),
    st.builds(Retraction, target_id=targets),
)
bodies = st.one_of(
    texts,
    texts_with_mentions(),
    files,
    annotation_bodies,
    st.builds(Created, name=st.text("ab cé", min_size=1, max_size=9).filter(str.strip)),
    st.just(Leave()),
)


def _chained(content: Content) -> Content:
    """The first of an instance has no message before it, every other has one."""
    if content.author.sequence == 1:
        return replace(content, previous_id=None)
    return replace(content, previous_id=content.previous_id or MessageId("before"))


contents = st.builds(
    Content,
    author=st.builds(
        AuthorSequence,
        instance_id=st.builds(InstanceId, st.binary(min_size=16, max_size=16)),
        sequence=st.integers(1, 3) | st.integers(1, MAX_SAFE_INTEGER),
    ),
    previous_id=message_ids,
    nonce=st.binary(min_size=16, max_size=16),
    sent_ms=st.builds(UnixMs, st.integers(0, MAX_SAFE_INTEGER)),
    body=bodies,
    replaces=message_ids,
).map(_chained)
PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff\xe0"
names = st.text("ab cé", min_size=1, max_size=9).filter(str.strip).map(clean_name)
pictures = st.just(b"") | st.builds(
    bytes.__add__, st.sampled_from([PNG, JPEG]), st.binary(max_size=99)
)
rounds = st.integers(1, MAX_SAFE_INTEGER)
instances = st.builds(InstanceId, st.binary(min_size=16, max_size=16))
pair_contents = st.builds(
    Content,
    author=st.builds(
        AuthorSequence,
        instance_id=st.just(InstanceId(bytes(16))),
        sequence=st.integers(1, 3),
    ),
    previous_id=message_ids,
    nonce=st.binary(min_size=16, max_size=16),
    sent_ms=st.builds(UnixMs, st.integers(0, MAX_SAFE_INTEGER)),
    lamport_timestamp=st.integers(1, MAX_SAFE_INTEGER),
    body=st.one_of(
        texts,
        files,
        annotation_bodies,
        st.builds(ContactRequest, name=names, picture=pictures, round=rounds),
        st.builds(
            ContactAnswer,
            accepted=st.just(True),
            round=rounds,
            answered_instance=instances,
            name=names,
            picture=pictures,
        ),
        st.builds(
            ContactAnswer,
            accepted=st.just(False),
            round=rounds,
            answered_instance=instances | st.just(InstanceId(b"")),
            withdrawn=st.booleans(),
        ),
        st.builds(ProfileUpdate, name=names, picture=pictures),
        st.builds(
            FilesHeld,
            st.lists(targets, min_size=1, max_size=3).map(tuple),
            let_go=st.booleans(),
            as_of=st.integers(0, MAX_SAFE_INTEGER),
        ),
    ),
).map(_chained)
INSTANCE = InstanceId(bytes(range(16)))
OF_PAIRS: list[Body] = [
    ContactRequest(name="Zoë", picture=PNG, round=MAX_SAFE_INTEGER),
    ContactAnswer(accepted=True, round=1, answered_instance=INSTANCE, name="Zoë", picture=JPEG),
    ContactAnswer(accepted=False, round=1),
    ContactAnswer(accepted=False, round=1, answered_instance=INSTANCE, withdrawn=True),
    ProfileUpdate(name="Zoë"),
    FilesHeld((MessageId("A" * 22),) * MAX_FILES_HELD),
]
TEXT = content_pb2.Body(text=content_pb2.Text(text="hi"))


def content(body: Body) -> Content:
    return Content(
        author=AuthorSequence(instance_id=InstanceId(bytes(16)), sequence=1),
        previous_id=None,
        nonce=bytes(16),
        sent_ms=UnixMs(1),
        body=body,
    )


def wire(body: content_pb2.Body | bytes | None = None, /, **changes: object) -> bytes:
    """A content as protobuf writes it, whatever it says."""
    body = TEXT if body is None else body
    encoded = body if isinstance(body, bytes) else body.SerializeToString(deterministic=True)
    message = content_pb2.Content(instance_id=bytes(16), sequence=1, nonce=bytes(16), body=encoded)
    for name, value in changes.items():
        setattr(message, name, value)
    return message.SerializeToString(deterministic=True)


def reason_of(decode: Callable[[bytes], object], encoded: bytes) -> str:
    with pytest.raises(RemoteProtocolError) as refusal:
        decode(encoded)
    return refusal.value.reason


def refused(decode: Callable[[bytes], object], encoded: bytes) -> str:
    """The reason, or "accepted": bytes that mean something are no failure."""
    try:
        decode(encoded)
    except RemoteProtocolError as error:
        return error.reason
    return "accepted"
