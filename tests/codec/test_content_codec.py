"""Content: what is written comes back, and nothing out of bounds gets in or out."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.content import (
    MAX_CONTENT_BYTES,
    decode_content,
    decode_ephemeral,
    decode_pair_content,
    decode_pair_ephemeral,
    encode_content,
    encode_ephemeral,
)
from engine.core.blobs.manifest import MAX_BLOB_BYTES, MAX_CHUNKS, ChunkName, Manifest
from engine.core.contacts import MAX_PICTURE_BYTES
from engine.core.content import (
    MAX_CAPTION_BYTES,
    MAX_FILE_BYTES,
    MAX_NAME_CHARACTERS,
    MAX_PIXELS,
    MAX_SAFE_INTEGER,
    MAX_TEXT_BYTES,
    Attachment,
    Body,
    ContactAnswer,
    ContactRequest,
    Content,
    Created,
    Edit,
    EphemeralContent,
    Leave,
    Presence,
    ProfileUpdate,
    Reaction,
    Retraction,
    Text,
    Typing,
    Unsupported,
    clean_name,
    utf16_length,
)
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.file_names import ANY_FILE, MAX_FILE_NAME_BYTES, clean_file_name
from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, UnixMs
from engine.core.mvds.config import MvdsConfig
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
    ),
).map(_chained)
INSTANCE = InstanceId(bytes(range(16)))
OF_PAIRS: list[Body] = [
    ContactRequest(name="Zoë", picture=PNG, round=MAX_SAFE_INTEGER),
    ContactAnswer(accepted=True, round=1, answered_instance=INSTANCE, name="Zoë", picture=JPEG),
    ContactAnswer(accepted=False, round=1),
    ContactAnswer(accepted=False, round=1, answered_instance=INSTANCE, withdrawn=True),
    ProfileUpdate(name="Zoë"),
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


@pytest.mark.parametrize("decode", [decode_content, decode_pair_content])
def test_the_largest_file_fits_with_all_that_may_go_with_it(
    decode: Callable[[bytes], Content],
) -> None:
    """Also into a message of MVDS, which has the least room."""
    caption = Text(
        text="@x" * (MAX_CAPTION_BYTES // 2),
        reply_to=MessageId("r" * 64),
        mentions=(SOMEBODY,) * 64,
        mention_places=tuple((2 * number, 2) for number in range(64, 128)),
    )
    file = Attachment(
        name="é" * (MAX_FILE_NAME_BYTES // 2),
        media_type="image/" + "x" * 58,
        data=bytes(MAX_FILE_BYTES),
        caption=caption,
        width=MAX_PIXELS,
        height=MAX_PIXELS,
    )
    largest = Content(
        author=AuthorSequence(instance_id=InstanceId(bytes(16)), sequence=MAX_SAFE_INTEGER),
        previous_id=MessageId("p" * 64),
        nonce=bytes(16),
        sent_ms=UnixMs(MAX_SAFE_INTEGER),
        body=file,
        lamport_timestamp=MAX_SAFE_INTEGER if decode is decode_pair_content else 0,
        replaces=None if decode is decode_pair_content else MessageId("r" * 64),
    )
    encoded = encode_content(largest)
    assert decode(encoded) == largest
    assert len(encoded) <= MvdsConfig().max_body_bytes


@pytest.mark.parametrize("decode", [decode_content, decode_pair_content])
def test_what_a_file_says_of_itself_is_cleaned(decode: Callable[[bytes], Content]) -> None:
    said = content_pb2.Attachment(
        name="../\u202egnp.exe",
        media_type="image/png; x",
        size=2**63,
        inline=b"MZ",
        key=b"k",
        root=b"r",
        chunk_count=9,
        thumbnail=b"t",
        width=2**31,
        height=5,
    )
    assert decode(wire(content_pb2.Body(attachment=said))).body == Attachment(
        name="gnp.exe", media_type=ANY_FILE, data=b"MZ"
    )
    nameless = content_pb2.Attachment(name="..", media_type="image/png", inline=b"x", width=5)
    assert decode(wire(content_pb2.Body(attachment=nameless))).body == Attachment(
        name="file", media_type="image/png", data=b"x"
    )


@pytest.mark.parametrize(
    "malformed",
    [
        content_pb2.Attachment(),
        content_pb2.Attachment(name="large.iso", size=10**8, key=bytes(32), root=bytes(32)),
        content_pb2.Attachment(name="a", inline=bytes(MAX_FILE_BYTES + 1)),
        content_pb2.Attachment(
            inline=b"x", caption=content_pb2.Text(text="x" * (MAX_CAPTION_BYTES + 1))
        ),
        content_pb2.Attachment(inline=b"x", caption=content_pb2.Text(mentions=["nobody"])),
    ],
)
@pytest.mark.parametrize("decode", [decode_content, decode_pair_content])
def test_other_files_need_a_newer_version(
    decode: Callable[[bytes], Content], malformed: content_pb2.Attachment
) -> None:
    """Versions before files took all of them, so that refusing one would leave a gap."""
    body = content_pb2.Body(attachment=malformed)
    assert decode(wire(body)).body == Unsupported(kind="attachment")


BLOB = content_pb2.Attachment(
    name="film.mkv",
    media_type="video/x-matroska",
    size=300_000,
    key=bytes(range(32)),
    root=b"r" * 32,
    chunk_count=2,
    thumbnail=b"\xff\xd8\xffsmall",
)


@pytest.mark.parametrize("decode", [decode_content, decode_pair_content])
def test_a_larger_file_says_where_to_find_it(decode: Callable[[bytes], Content]) -> None:
    manifest = Manifest(
        key=bytes(range(32)),
        root=ChunkName(b"r" * 32),
        size=300_000,
        thumbnail=b"\xff\xd8\xffsmall",
    )
    expected = Attachment(
        name="film.mkv", media_type="video/x-matroska", data=b"", manifest=manifest
    )
    read = decode(wire(content_pb2.Body(attachment=BLOB)))
    assert read.body == expected
    assert expected.size == 300_000
    is_pair = decode is decode_pair_content
    said = replace(content(expected), lamport_timestamp=1) if is_pair else content(expected)
    assert decode(encode_content(said)).body == expected


@pytest.mark.parametrize(
    "lie",
    [
        {"size": 0, "chunk_count": 0},
        {"size": 2**63},
        {"size": MAX_BLOB_BYTES + 1, "chunk_count": MAX_CHUNKS + 1},
        {"chunk_count": 3},
        {"key": b"short"},
        {"root": bytes(31)},
        {"caption": content_pb2.Text(text="x" * (MAX_CAPTION_BYTES + 1))},
    ],
)
def test_a_manifest_that_cannot_be_meant_needs_a_newer_version(lie: dict[str, object]) -> None:
    lying = content_pb2.Attachment()
    lying.CopyFrom(BLOB)
    for name, value in lie.items():
        if isinstance(value, content_pb2.Text):
            lying.caption.CopyFrom(value)
        else:
            setattr(lying, name, value)
    body = content_pb2.Body(attachment=lying)
    assert decode_content(wire(body)).body == Unsupported(kind="attachment")


def test_what_a_manifest_says_of_its_file_is_cleaned() -> None:
    lying = content_pb2.Attachment()
    lying.CopyFrom(BLOB)
    lying.name, lying.media_type = "../../\u202egnp.exe", "x; y"
    lying.thumbnail = b"<svg/>"
    read = decode_content(wire(content_pb2.Body(attachment=lying))).body
    assert isinstance(read, Attachment)
    assert (read.name, read.media_type) == ("gnp.exe", ANY_FILE)
    assert read.manifest is not None
    assert read.manifest.thumbnail == b""


@pytest.mark.parametrize(
    "unusable",
    [
        Attachment(name="a", media_type="image/png", data=b""),
        Attachment(name="a", media_type="image/png", data=bytes(MAX_FILE_BYTES + 1)),
        Attachment(name="../a", media_type="image/png", data=b"x"),
        Attachment(name="a", media_type="png", data=b"x"),
        Attachment(name="a", media_type="text/plain", data=b"x", width=1, height=1),
        Attachment(name="a", media_type="image/png", data=b"x", caption=Text(text="x" * 1025)),
    ],
)
def test_nobody_sends_a_file_that_others_would_see_in_another_way(unusable: Attachment) -> None:
    with pytest.raises(LocalProtocolError):
        encode_content(content(unusable))


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


def test_names_are_cleaned_on_arrival() -> None:
    body = content_pb2.Body()
    body.created.name = "  Team\u202e\u2066 \n\tgnp.exe\u200b\x00 "
    assert decode_content(wire(body)).body == Created(name="Team gnp.exe")
    body.created.name = "\u202e\u200b"
    assert reason_of(decode_content, wire(body)) == "content_bad_name"
    body.created.name = "x" * (MAX_NAME_CHARACTERS + 1)
    assert reason_of(decode_content, wire(body)) == "content_bad_name"


@given(st.text(max_size=80))
def test_a_clean_name_is_short_visible_and_stays_as_it_is(name: str) -> None:
    try:
        cleaned = clean_name(name)
    except ValueError:
        return
    assert 1 <= len(cleaned) <= MAX_NAME_CHARACTERS
    assert clean_name(cleaned) == cleaned
    assert not set(cleaned) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\n\0")


@pytest.mark.parametrize(
    "name",
    [
        "Zoë",
        "李小龙",
        "👩\u200d🚀",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "O'Neil, J.",
    ],
)
def test_real_names_stay_as_they_are(name: str) -> None:
    assert clean_name(name) == name


@pytest.mark.parametrize("name", ["", " ", "\u200d", "\u3164", "\u200c \u200d", "\U000e0041"])
def test_names_that_nobody_could_see_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="nothing is left"):
        clean_name(name)


@pytest.mark.parametrize("active", [True, False])
def test_typing_comes_back(active: bool) -> None:
    assert decode_ephemeral(encode_ephemeral(Typing(active=active))) == Typing(active=active)


def test_other_ephemeral_content_may_be_dropped() -> None:
    assert reason_of(decode_ephemeral, b"") == "ephemeral_unsupported"
    assert reason_of(decode_ephemeral, b"\xa2\x06\x03abc") == "ephemeral_unsupported"
    assert reason_of(decode_ephemeral, bytes(1025)) == "ephemeral_oversized"
    assert reason_of(decode_ephemeral, b"\xff") == "ephemeral_malformed"


# --- one to one -----------------------------------------------------------------------------------


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
    assert said.body.kind in {"contact_request", "contact_answer", "profile_update"}


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


@pytest.mark.parametrize(
    "said",
    [
        Typing(active=True),
        Typing(active=False),
        Presence(answer_wanted=True),
        Presence(answer_wanted=False),
    ],
)
def test_what_is_not_kept_comes_back_too(said: EphemeralContent) -> None:
    assert decode_pair_ephemeral(encode_ephemeral(said)) == said


def test_a_presence_is_nothing_for_a_group() -> None:
    encoded = encode_ephemeral(Presence(answer_wanted=True))
    assert reason_of(decode_ephemeral, encoded) == "ephemeral_unsupported"


def test_other_ephemeral_content_of_a_pair_may_be_dropped() -> None:
    assert reason_of(decode_pair_ephemeral, b"") == "ephemeral_unsupported"
    assert reason_of(decode_pair_ephemeral, b"\xa2\x06\x03abc") == "ephemeral_unsupported"
    assert reason_of(decode_pair_ephemeral, bytes(1025)) == "ephemeral_oversized"
    assert reason_of(decode_pair_ephemeral, b"\xff") == "ephemeral_malformed"
