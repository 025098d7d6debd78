"""Message ids: everything that makes a message its own is in them, nothing else is."""

from base64 import urlsafe_b64encode
from hashlib import sha256

import pytest
from msgspec.structs import replace

from engine.codec.content import encode_content
from engine.codec.message_id import message_id_in, message_id_of
from engine.core.content import Content, Text
from engine.core.errors import RemoteProtocolError
from engine.core.ids import (
    AuthorSequence,
    ChannelId,
    InstanceId,
    MessageId,
    ParticipantId,
    UnixMs,
)

GROUP = bytes(range(32))
ALICE, BOB = ParticipantId("a" * 32), ParticipantId("b" * 32)
CHANNEL = ChannelId("0")
HISTORY = [MessageId("older"), MessageId("newer")]
OK = Content(
    author=AuthorSequence(instance_id=InstanceId(bytes(16)), sequence=1),
    previous_id=None,
    nonce=bytes(16),
    sent_ms=UnixMs(1),
    body=Text(text="ok"),
)


def test_the_id_is_what_is_documented() -> None:
    content = encode_content(OK)

    def part(kind: bytes, raw: bytes) -> bytes:
        return kind + len(raw).to_bytes(4, "big") + raw

    hashed = b"".join(
        [
            part(b"s", b"causerie/2/message-id"),
            part(b"b", GROUP),
            part(b"s", b"0"),
            part(b"s", ALICE.encode()),
            part(b"b", bytes(16)),
            part(b"i", (1).to_bytes(8, "big")),
            part(b"s", b""),
            part(b"b", bytes(16)),
            part(b"i", (77).to_bytes(8, "big")),
            part(b"b", bytes([5, 5])),
            part(b"s", b"oldernewer"),
            part(b"b", content),
        ]
    )
    expected = urlsafe_b64encode(sha256(hashed).digest()[:16]).decode().rstrip("=")
    assert message_id_of(GROUP, ALICE, CHANNEL, 77, HISTORY, content, OK) == expected
    assert message_id_in(GROUP)(ALICE, CHANNEL, 77, HISTORY, content) == expected
    assert len(expected) == 22


def test_everything_counts() -> None:
    """Two people who both say "ok", or one who says it twice or in two groups, share no id."""
    again = replace(OK, nonce=bytes([1] * 16))
    second = replace(OK, author=replace(OK.author, sequence=2), previous_id=MessageId("first"))
    other_chain = replace(second, previous_id=MessageId("other"))
    restored = replace(OK, author=replace(OK.author, instance_id=InstanceId(bytes([1] * 16))))
    other_text = replace(OK, body=Text(text="no"))
    ids = [
        message_id_in(GROUP)(ALICE, CHANNEL, 1, (), encode_content(OK)),
        message_id_in(bytes(32))(ALICE, CHANNEL, 1, (), encode_content(OK)),
        message_id_in(GROUP)(BOB, CHANNEL, 1, (), encode_content(OK)),
        message_id_in(GROUP)(ALICE, ChannelId("1"), 1, (), encode_content(OK)),
        message_id_in(GROUP)(ALICE, CHANNEL, 2, (), encode_content(OK)),
        message_id_in(GROUP)(ALICE, CHANNEL, 1, HISTORY, encode_content(OK)),
        message_id_in(GROUP)(ALICE, CHANNEL, 1, HISTORY[::-1], encode_content(OK)),
        message_id_in(GROUP)(ALICE, CHANNEL, 1, [MessageId("oldernewer")], encode_content(OK)),
        message_id_in(GROUP)(
            ALICE, CHANNEL, 1, list(map(MessageId, ("old", "ernewer"))), encode_content(OK)
        ),
        *(
            message_id_in(GROUP)(ALICE, CHANNEL, 1, (), encode_content(other))
            for other in (again, second, other_chain, restored, other_text)
        ),
    ]
    assert len(set(ids)) == len(ids)


def test_a_history_with_an_id_that_no_message_bears_has_no_id() -> None:
    with pytest.raises(RemoteProtocolError, match="sds_id_too_long"):
        message_id_in(GROUP)(ALICE, CHANNEL, 1, [MessageId("x" * 256)], encode_content(OK))


def test_content_that_cannot_be_read_has_no_id() -> None:
    with pytest.raises(RemoteProtocolError):
        message_id_in(GROUP)(ALICE, CHANNEL, 1, (), b"ok")
    for lamport in (-1, 2**64):
        with pytest.raises(RemoteProtocolError):
            message_id_in(GROUP)(ALICE, CHANNEL, lamport, (), encode_content(OK))
