"""Golden vectors: formats that will be on disks and in links must not change by accident.

Two directions: today's code makes and reads exactly these bytes, and a second implementation below,
from the standard library's HMAC up, opens the sealed ones by the book.  If a test here fails, the
code is wrong; from the first tagged release on, or a new version of the format is needed beside the
old one.  Until then vectors move with a line in the CHANGELOG.
"""

import hmac
import json
from base64 import urlsafe_b64decode
from dataclasses import replace
from hashlib import sha256
from math import ceil, floor, log2
from pathlib import Path
from typing import NamedTuple, TypedDict

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.codec.content import decode_content, decode_ephemeral, encode_content
from engine.codec.holdings import decode_claim, encode_claim
from engine.codec.join import decode_join
from engine.codec.message_id import message_id_in
from engine.core.content import (
    Created,
    Edit,
    Join,
    Leave,
    Reaction,
    Retraction,
    Text,
    Typing,
)
from engine.core.ids import ChannelId, InstanceId, MessageId, ParticipantId, UnixMs
from engine.core.sds.vocabulary import Claim, SequenceRange
from engine.crypto.identity import Identity, fingerprint_of, participant_id_of
from engine.crypto.join import build_join, verify_join
from engine.crypto.links import encode_invite, parse_invite
from engine.crypto.sealed import SealedGroup, content_topic_of

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "crypto"


class IdentityVector(TypedDict):
    name: str
    signing_key: str
    encryption_key: str
    public_key: str
    encryption_public_key: str
    participant_id: str
    fingerprint: str


class SealedVector(TypedDict):
    group_id: str
    epoch_keys: list[str]
    epoch_ids: list[str]
    content_topic: str
    group_tag: str
    salt: str
    sds_bytes: str
    signed_ms: int
    repaired_ms: int
    holdings: dict[str, list[tuple[int, int, str]]]
    held_aside: list[str]
    encoded_claim: str
    signed_part: str
    payload: str
    repair: str
    repair_payload: str
    statement: str


class ContentVector(TypedDict):
    kind: str
    content: str
    sender: str
    lamport: int
    history: list[str]
    message_id: str


class ContentsVector(TypedDict):
    group_id: str
    channel: str
    instance_id: str
    contents: list[ContentVector]
    typing: str


class JoinVector(TypedDict):
    group_id: str
    statement: str
    participant_id: str
    name: str
    joined_ms: int


class InviteVector(TypedDict):
    link: str
    group_id: str
    group_name: str
    epoch_key: str
    admin_public_key: str
    inviter_name: str
    node_addresses: list[str]


def text_of(name: str) -> str:
    return (VECTORS / name).read_text(encoding="utf-8")


IDENTITIES: list[IdentityVector] = json.loads(text_of("identities.json"))
SEALED: SealedVector = json.loads(text_of("sealed.json"))
CONTENTS: ContentsVector = json.loads(text_of("contents.json"))
JOIN: JoinVector = json.loads(text_of("join.json"))
INVITE: InviteVector = json.loads(text_of("invite.json"))
ALICE, BOB = (
    Identity(
        signing_key=bytes.fromhex(vector["signing_key"]),
        encryption_key=bytes.fromhex(vector["encryption_key"]),
    )
    for vector in IDENTITIES
)
GROUP = SealedGroup(
    group_id=bytes.fromhex(SEALED["group_id"]),
    epoch_keys=tuple(bytes.fromhex(key) for key in SEALED["epoch_keys"]),
)
CLAIM = Claim(
    {
        InstanceId(bytes.fromhex(author)): tuple(
            SequenceRange(first=first, last=last, head=bytes.fromhex(head))
            for first, last, head in ranges
        )
        for author, ranges in SEALED["holdings"].items()
    },
    tuple(map(MessageId, SEALED["held_aside"])),
)


# --- a second implementation --------------------------------------------------------------------


def hkdf(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869 with SHA-256, from HMAC."""
    key = hmac.digest(salt or bytes(32), secret, "sha256")
    output, block = b"", b""
    while len(output) < length:
        block = hmac.digest(key, block + info + bytes([len(output) // 32 + 1]), "sha256")
        output += block
    return output[:length]


def tuple_of(*parts: bytes | str | int) -> bytes:
    encoded = b""
    for part in parts:
        kind, raw = (
            (b"b", part)
            if isinstance(part, bytes)
            else (b"s", part.encode())
            if isinstance(part, str)
            else (b"i", part.to_bytes(8, "big"))
        )
        encoded += kind + len(raw).to_bytes(4, "big") + raw
    return encoded


def varint(raw: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = raw[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


class Fields(NamedTuple):
    numbers: dict[int, int]
    strings: dict[int, bytes]


def fields_of(raw: bytes) -> Fields:
    """Protobuf by hand: varints and length-delimited fields."""
    fields, at = Fields({}, {}), 0
    while at < len(raw):
        tag, at = varint(raw, at)
        value, at = varint(raw, at)
        if tag & 7 == 2:
            fields.strings[tag >> 3] = raw[at : at + value]
            at += value
        else:
            assert tag & 7 == 0
            fields.numbers[tag >> 3] = value
    return fields


def epoch_id_of(epoch_key: bytes) -> bytes:
    return hkdf(epoch_key, b"", tuple_of("causerie/2/epoch", GROUP.group_id), 32)[:8]


def padded_size(size: int) -> int:
    """Padmé, as its authors write it, and 256 at least."""
    exponent = floor(log2(size))
    low_bits = exponent - (floor(log2(exponent)) + 1)
    return max(256, ceil(size / (1 << low_bits)) << low_bits)


def unpad_by_the_book(padded: bytes) -> bytes:
    end = 4 + int.from_bytes(padded[:4], "big")
    assert len(padded) == padded_size(end)
    assert not any(padded[end:])
    return padded[4:end]


def open_by_the_book(payload: bytes, epoch_key: bytes) -> bytes:
    envelope = fields_of(payload).strings
    header = fields_of(envelope[1])
    assert header.numbers == {1: 2}
    assert (
        header.strings[2] == sha256(tuple_of("causerie/2/group-tag", GROUP.group_id)).digest()[:8]
    )
    assert header.strings[3] == epoch_id_of(epoch_key)
    info = tuple_of("causerie/2/seal", 2, GROUP.group_id, header.strings[3])
    derived = hkdf(epoch_key, header.strings[4], info, 76)
    assert header.strings[5] == derived[44:]
    padded = AESGCM(derived[:32]).decrypt(derived[32:44], envelope[2], envelope[1])
    parts = fields_of(unpad_by_the_book(padded)).strings
    assert parts.get(2, b"").hex() == SEALED["statement"]
    return parts[1]


def check_by_the_book(signed_part: bytes, domain: str, body_field: int) -> bytes:
    """Check a signed part's signature; returns what it is around."""
    part = fields_of(signed_part)
    key, body = part.strings[1], part.strings[body_field]
    signed = tuple_of(
        domain,
        GROUP.group_id,
        part.strings[7],
        key,
        part.numbers[4],
        body,
        part.strings.get(3, b""),
    )
    Ed25519PublicKey.from_public_bytes(key).verify(part.strings[5], signed)
    return body


def test_the_sealed_envelope_opens_by_the_book() -> None:
    first, second = GROUP.epoch_keys
    signed = open_by_the_book(bytes.fromhex(SEALED["payload"]), first)
    assert check_by_the_book(signed, "causerie/2/message", 2) == bytes.fromhex(SEALED["sds_bytes"])
    assert fields_of(signed).strings[7] == epoch_id_of(first)
    repair = open_by_the_book(bytes.fromhex(SEALED["repair_payload"]), first)
    assert check_by_the_book(repair, "causerie/2/repair", 6) == signed
    assert fields_of(repair).strings[7] == epoch_id_of(first)
    assert [epoch_id_of(key).hex() for key in (first, second)] == SEALED["epoch_ids"]


def test_the_topic_is_what_is_documented() -> None:
    name = hkdf(GROUP.epoch_keys[0], b"", tuple_of("causerie/1/topic"), 16).hex()
    assert SEALED["content_topic"] == f"/causerie/1/{name}/proto"


def test_the_link_is_what_is_documented() -> None:
    payload = INVITE["link"].removeprefix("causerie:join/")
    packed = urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    assert packed[:4] == sha256(tuple_of("causerie/1/invite", packed[4:])).digest()[:4]
    fields = fields_of(packed[4:])
    assert fields.numbers == {1: 2}
    assert fields.strings[4].hex() == INVITE["epoch_key"]


# --- today's code -------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", IDENTITIES, ids=lambda vector: vector["name"])
def test_identities_stay(vector: IdentityVector) -> None:
    identity = Identity(
        signing_key=bytes.fromhex(vector["signing_key"]),
        encryption_key=bytes.fromhex(vector["encryption_key"]),
    )
    assert identity.public_key.hex() == vector["public_key"]
    assert identity.encryption_public_key.hex() == vector["encryption_public_key"]
    assert participant_id_of(identity.public_key) == vector["participant_id"]
    assert fingerprint_of(identity.public_key) == vector["fingerprint"]


def test_envelopes_stay() -> None:
    sds = bytes.fromhex(SEALED["sds_bytes"])
    first = replace(GROUP, epoch_keys=GROUP.epoch_keys[:1])
    signed = first.sign(ALICE, sds, CLAIM, UnixMs(SEALED["signed_ms"]))
    repair = GROUP.wrap_repair(BOB, signed, None, UnixMs(SEALED["repaired_ms"]))
    salt = bytes.fromhex(SEALED["salt"])
    assert signed.hex() == SEALED["signed_part"]
    assert repair.hex() == SEALED["repair"]
    payloads = ((first, signed, SEALED["payload"]), (GROUP, repair, SEALED["repair_payload"]))
    for group, part, payload in payloads:
        sealed = group.seal(
            part,
            random_bytes=lambda _: salt,
            statements=[bytes.fromhex(SEALED["statement"])],
            epoch_id=group.epoch_of(part),
        )
        assert sealed.hex() == payload
    assert GROUP.group_tag.hex() == SEALED["group_tag"]
    assert content_topic_of(GROUP.epoch_keys[0]) == SEALED["content_topic"]


def test_envelopes_still_open() -> None:
    opened = GROUP.open(bytes.fromhex(SEALED["payload"]))
    assert opened.sds_bytes.hex() == SEALED["sds_bytes"]
    assert (opened.sender_id, opened.signed_ms) == (ALICE.participant_id, SEALED["signed_ms"])
    assert opened.claim == CLAIM
    assert opened.statements == (bytes.fromhex(SEALED["statement"]),)
    repaired = GROUP.open(bytes.fromhex(SEALED["repair_payload"]))
    assert repaired.raw == opened.raw
    assert repaired.repaired_by == BOB.participant_id


def test_claims_stay() -> None:
    encoded = bytes.fromhex(SEALED["encoded_claim"])
    assert encode_claim(CLAIM) == encoded
    assert decode_claim(encoded) == CLAIM


@pytest.mark.parametrize("vector", CONTENTS["contents"], ids=lambda vector: vector["kind"])
def test_contents_and_their_ids_stay(vector: ContentVector) -> None:
    encoded = bytes.fromhex(vector["content"])
    content = decode_content(encoded)
    assert encode_content(content) == encoded
    assert content.author.instance_id.hex() == CONTENTS["instance_id"]
    message_id = message_id_in(bytes.fromhex(CONTENTS["group_id"]))(
        ParticipantId(vector["sender"]),
        ChannelId(CONTENTS["channel"]),
        vector["lamport"],
        list(map(MessageId, vector["history"])),
        encoded,
    )
    assert message_id == vector["message_id"]
    expected = {
        "text": Text(
            text="Bonjour, ça va ?",
            reply_to=MessageId("AAAAAAAAAAAAAAAAAAAAAA"),
            mentions=(BOB.participant_id,),
        ),
        "created": Created(name="Les amis"),
        "join": decode_join(bytes.fromhex(JOIN["statement"])),
        "leave": Leave(),
        "forwarded": Text(
            text="👋 @Bob !",
            mentions=(BOB.participant_id,),
            mention_places=((3, 4),),
            forwarded=True,
        ),
        "reaction": Reaction(target_id=MessageId("A" * 22), emoji="❤\ufe0f", removed=True),
        "edit": Edit(
            target_id=MessageId("A" * 22),
            text=Text(text="@Bob", mentions=(BOB.participant_id,), mention_places=((0, 4),)),
        ),
        "retraction": Retraction(target_id=MessageId("A" * 22)),
    }
    assert content.body == expected[vector["kind"]]


def test_typing_stays() -> None:
    assert decode_ephemeral(bytes.fromhex(CONTENTS["typing"])) == Typing(active=True)


def test_join_statements_stay() -> None:
    group_id = bytes.fromhex(JOIN["group_id"])
    join = decode_join(bytes.fromhex(JOIN["statement"]))
    assert isinstance(join, Join)
    assert verify_join(join, group_id=group_id) == JOIN["participant_id"]
    again = build_join(
        BOB, group_id=group_id, name=JOIN["name"], joined_ms=UnixMs(JOIN["joined_ms"])
    )
    assert again == join


def test_invitation_links_stay() -> None:
    invite = parse_invite(INVITE["link"])
    assert encode_invite(invite) == INVITE["link"]
    assert invite.group_id.hex() == INVITE["group_id"]
    assert invite.epoch_key.hex() == INVITE["epoch_key"]
    assert invite.admin_public_key.hex() == INVITE["admin_public_key"]
    assert (invite.group_name, invite.inviter_name) == (INVITE["group_name"], "Zoë")
    assert list(invite.node_addresses) == INVITE["node_addresses"]
