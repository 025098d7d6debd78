"""Content that is a file: the largest fits, its name is cleaned, others need a newer version."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from engine.codec.content import (
    decode_content,
    decode_pair_content,
    encode_content,
)
from engine.core.blobs.manifest import MAX_BLOB_BYTES, ChunkName, Manifest
from engine.core.content import (
    MAX_CAPTION_BYTES,
    MAX_FILE_BYTES,
    MAX_PIXELS,
    MAX_SAFE_INTEGER,
    Attachment,
    Content,
    Text,
    Unsupported,
)
from engine.core.errors import LocalProtocolError
from engine.core.file_names import ANY_FILE, MAX_FILE_NAME_BYTES, NAMELESS
from engine.core.ids import AuthorSequence, InstanceId, MessageId, UnixMs
from engine.core.mvds.config import MvdsConfig
from proto import content_pb2
from tests.codec.content_examples import SOMEBODY, content, wire


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
        {"size": MAX_BLOB_BYTES + 1, "chunk_count": 401},
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


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("../../\u202egnp.exe", "gnp.exe"),
        ("..", NAMELESS),
        ("C:\\Users\\x\\..\\con", "_con"),
        ("LPT1.txt", "_LPT1.txt"),
        ("a\x00\x1b[2J\r\n.txt", "a[2J .txt"),
        ("setup.exe:Zone.Identifier", "setup.exe_Zone.Identifier"),
    ],
)
def test_what_a_manifest_says_of_its_file_is_cleaned(name: str, cleaned: str) -> None:
    lying = content_pb2.Attachment()
    lying.CopyFrom(BLOB)
    lying.name, lying.media_type = name, "x; y"
    lying.thumbnail = b"<svg/>"
    read = decode_content(wire(content_pb2.Body(attachment=lying))).body
    assert isinstance(read, Attachment)
    assert (read.name, read.media_type) == (cleaned, ANY_FILE)
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
