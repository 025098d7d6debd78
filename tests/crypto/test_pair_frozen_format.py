"""Golden vectors of one-to-one chats: what will be in links, on disks and at Stores.

Beside today's code stands a second implementation: HPKE by the book (RFC 9180, section 4 to 7),
from HMAC and X25519 up, first held against the RFC's own vector and then against what the library
that we use seals; and every topic, number and signature derived again by hand.
"""

import hmac
import json
from base64 import urlsafe_b64decode
from hashlib import sha256, sha512
from pathlib import Path
from typing import NamedTuple, TypedDict

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.codec.content import (
    decode_pair_content,
    decode_pair_ephemeral,
    encode_content,
    encode_ephemeral,
)
from engine.core.contacts import ContactLink
from engine.core.content import (
    Body,
    ContactAnswer,
    ContactRequest,
    Content,
    Edit,
    FilesHeld,
    Presence,
    ProfileUpdate,
    Reaction,
    Retraction,
    Text,
)
from engine.core.ids import AuthorSequence, InstanceId, MessageId, UnixMs
from engine.crypto.identity import Identity
from engine.crypto.links import encode_contact_link, parse_contact_link
from engine.crypto.pair import (
    EphemeralPart,
    MvdsPart,
    PairSeal,
    inbox_topic_of,
    open_from_anybody,
    safety_number,
)
from proto import contact_pb2, pair_pb2
from tests.crypto.test_frozen_formats import tuple_of

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "crypto"


class PairVector(TypedDict):
    group_id: str
    conversation_id: str
    content_topic: str
    inbox_topic_of_bob: str
    safety_number: str
    signed_ms: int
    mvds: str
    mvds_payload: str
    presence: str
    presence_payload: str
    picture: str
    contents: dict[str, str]
    contact_link: str
    contact_link_expires_ms: int


def text_of(name: str) -> str:
    return (VECTORS / name).read_text(encoding="utf-8")


IDENTITIES: list[dict[str, str]] = json.loads(text_of("identities.json"))
RFC: dict[str, str] = json.loads(text_of("hpke_rfc9180_a1.json"))
PAIR: PairVector = json.loads(text_of("pair.json"))
ALICE, BOB = (
    Identity(
        signing_key=bytes.fromhex(vector["signing_key"]),
        encryption_key=bytes.fromhex(vector["encryption_key"]),
    )
    for vector in IDENTITIES
)
ALICES, BOBS = (
    PairSeal(
        mine,
        peer_public_key=theirs.public_key,
        peer_encryption_key=theirs.encryption_public_key,
    )
    for mine, theirs in ((ALICE, BOB), (BOB, ALICE))
)
PICTURE = bytes.fromhex(PAIR["picture"])
BODIES: dict[str, Body] = {
    "contact_request": ContactRequest(name="Zoë", picture=PICTURE, round=PAIR["signed_ms"]),
    "accepted": ContactAnswer(
        accepted=True,
        round=PAIR["signed_ms"],
        answered_instance=InstanceId(bytes(range(16))),
        name="Zoë",
        picture=PICTURE,
    ),
    "declined": ContactAnswer(
        accepted=False,
        round=PAIR["signed_ms"],
        answered_instance=InstanceId(bytes(range(16))),
    ),
    "withdrawn": ContactAnswer(accepted=False, round=PAIR["signed_ms"], withdrawn=True),
    "profile_update": ProfileUpdate(name="Zoë"),
    "text": Text(text="Bonjour !"),
    "reaction": Reaction(target_id=MessageId("A" * 22), emoji="👍"),
    "edit": Edit(target_id=MessageId("A" * 22), text=Text(text="Bonsoir !")),
    "retraction": Retraction(target_id=MessageId("A" * 22)),
    "files_held": FilesHeld((MessageId("A" * 22), MessageId("B" * 22))),
}


# --- a second implementation --------------------------------------------------------------------


def extract(salt: bytes, secret: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), secret, "sha256")


def expand(key: bytes, info: bytes, length: int) -> bytes:
    output, block = b"", b""
    while len(output) < length:
        block = hmac.digest(key, block + info + bytes([len(output) // 32 + 1]), "sha256")
        output += block
    return output[:length]


class Labelled(NamedTuple):
    """LabeledExtract and LabeledExpand of one suite."""

    suite_id: bytes

    def extract(self, salt: bytes, label: bytes, secret: bytes) -> bytes:
        return extract(salt, b"HPKE-v1" + self.suite_id + label + secret)

    def expand(self, key: bytes, label: bytes, info: bytes, length: int) -> bytes:
        labelled = length.to_bytes(2, "big") + b"HPKE-v1" + self.suite_id + label + info
        return expand(key, labelled, length)


class Schedule(NamedTuple):
    shared_secret: bytes
    key: bytes
    base_nonce: bytes


def schedule_of(private: bytes, enc: bytes, info: bytes, *, aead_id: int) -> Schedule:
    """Decap of DHKEM(X25519, HKDF-SHA256), then KeySchedule in base mode."""
    own = X25519PrivateKey.from_private_bytes(private)
    kem = Labelled(b"KEM" + (0x20).to_bytes(2, "big"))
    shared = own.exchange(X25519PublicKey.from_public_bytes(enc))
    shared_secret = kem.expand(
        kem.extract(b"", b"eae_prk", shared),
        b"shared_secret",
        enc + own.public_key().public_bytes_raw(),
        32,
    )
    suite = Labelled(b"HPKE" + b"".join(n.to_bytes(2, "big") for n in (0x20, 1, aead_id)))
    context = (
        b"\0" + suite.extract(b"", b"psk_id_hash", b"") + suite.extract(b"", b"info_hash", info)
    )
    secret = suite.extract(shared_secret, b"secret", b"")
    return Schedule(
        shared_secret=shared_secret,
        key=suite.expand(secret, b"key", context, 16 * aead_id),
        base_nonce=suite.expand(secret, b"base_nonce", context, 12),
    )


def open_by_the_book(payload: bytes) -> pair_pb2.PairPlaintext:
    """As Bob, with AES-256-GCM."""
    envelope = pair_pb2.PairEnvelope.FromString(payload)
    assert envelope.version == 2
    enc, ciphertext = envelope.sealed[:32], envelope.sealed[32:]
    info = tuple_of("causerie/2/pair-seal", 2, BOB.public_key)
    schedule = schedule_of(BOB.encryption_key, enc, info, aead_id=2)
    padded = AESGCM(schedule.key).decrypt(schedule.base_nonce, ciphertext, b"")
    end = 4 + int.from_bytes(padded[:4], "big")
    assert len(padded) == (256 if end <= 256 else -(-end // 16) * 16)
    assert not any(padded[end:])
    return pair_pb2.PairPlaintext.FromString(padded[4:end])


def check_by_the_book(wire: pair_pb2.PairPlaintext, kind: str, carried: bytes) -> None:
    assert wire.sender_public_key == ALICE.public_key
    assert wire.sender_encryption_key == ALICE.encryption_public_key
    assert wire.signed_ms == PAIR["signed_ms"]
    signed = tuple_of(
        "causerie/2/pair",
        ALICE.public_key,
        ALICE.encryption_public_key,
        BOB.public_key,
        bytes.fromhex(PAIR["group_id"]),
        wire.signed_ms,
        kind,
        carried,
    )
    Ed25519PublicKey.from_public_bytes(ALICE.public_key).verify(wire.signature, signed)


# --- the RFC, the vectors, today's code -----------------------------------------------------------


def test_the_second_implementation_is_the_rfcs() -> None:
    raw = {name: bytes.fromhex(value) for name, value in RFC.items() if name != "source"}
    schedule = schedule_of(raw["skRm"], raw["enc"], raw["info"], aead_id=1)
    assert schedule == (raw["shared_secret"], raw["key"], raw["base_nonce"])
    opened = AESGCM(schedule.key).decrypt(schedule.base_nonce, raw["ct"], raw["aad"])
    assert opened == raw["pt"]


def test_frozen_payloads_open_by_the_book() -> None:
    mvds = open_by_the_book(bytes.fromhex(PAIR["mvds_payload"]))
    assert mvds.mvds_payload.hex() == PAIR["mvds"]
    check_by_the_book(mvds, "mvds", mvds.mvds_payload)
    presence = open_by_the_book(bytes.fromhex(PAIR["presence_payload"]))
    assert presence.ephemeral.hex() == PAIR["presence"]
    check_by_the_book(presence, "ephemeral", presence.ephemeral)


def test_frozen_payloads_open_today() -> None:
    for payload, body in (
        (PAIR["mvds_payload"], MvdsPart(payload=bytes.fromhex(PAIR["mvds"]))),
        (PAIR["presence_payload"], EphemeralPart(content=bytes.fromhex(PAIR["presence"]))),
    ):
        opened = BOBS.open(bytes.fromhex(payload))
        assert opened == open_from_anybody(BOB, bytes.fromhex(payload))
        assert (opened.body, opened.signed_ms) == (body, PAIR["signed_ms"])
        assert opened.sender_id == ALICE.participant_id


def test_what_is_sealed_today_opens_by_the_book() -> None:
    carried = bytes.fromhex(PAIR["mvds"])
    signed_ms = UnixMs(PAIR["signed_ms"])
    wire = open_by_the_book(ALICES.seal(MvdsPart(payload=carried), signed_ms=signed_ms))
    check_by_the_book(wire, "mvds", wire.mvds_payload)
    assert wire.SerializeToString(deterministic=True) == (
        open_by_the_book(bytes.fromhex(PAIR["mvds_payload"])).SerializeToString(deterministic=True)
    )


def test_group_topics_and_safety_number_by_the_book() -> None:
    keys = sorted((ALICE.public_key, BOB.public_key))
    group_id = sha256(tuple_of("causerie/1/pair-group", *keys)).digest()
    shared = X25519PrivateKey.from_private_bytes(BOB.encryption_key).exchange(
        X25519PublicKey.from_public_bytes(ALICE.encryption_public_key)
    )
    name = expand(extract(b"", shared), tuple_of("causerie/1/pair-topic", group_id), 16)
    inbox = sha256(tuple_of("causerie/1/inbox", BOB.public_key)).digest()[:16]
    digest = sha512(tuple_of("causerie/1/safety-number", *keys)).digest()
    digits = [
        f"{int.from_bytes(digest[at : at + 5], 'big') % 100_000:05}" for at in range(0, 60, 5)
    ]
    assert group_id.hex() == PAIR["group_id"]
    assert f"/causerie/1/{name.hex()}/proto" == PAIR["content_topic"]
    assert f"/causerie/1/{inbox.hex()}/proto" == PAIR["inbox_topic_of_bob"]
    assert " ".join(digits) == PAIR["safety_number"]


def test_group_topics_and_safety_number_today() -> None:
    for seal in (ALICES, BOBS):
        assert seal.group_id.hex() == PAIR["group_id"]
        assert seal.conversation_id == PAIR["conversation_id"]
        assert seal.content_topic == PAIR["content_topic"]
    assert inbox_topic_of(BOB.public_key) == PAIR["inbox_topic_of_bob"]
    assert safety_number(BOB.public_key, ALICE.public_key) == PAIR["safety_number"]


def test_contents_are_written_and_read_as_frozen() -> None:
    assert PAIR["contents"].keys() == BODIES.keys()
    for number, (kind, encoded) in enumerate(PAIR["contents"].items(), start=1):
        content = Content(
            author=AuthorSequence(instance_id=InstanceId(bytes(range(16))), sequence=number),
            previous_id=MessageId("previous") if number > 1 else None,
            nonce=bytes([number]) * 16,
            sent_ms=UnixMs(PAIR["signed_ms"] + number),
            body=BODIES[kind],
            lamport_timestamp=PAIR["signed_ms"] + number,
        )
        assert encode_content(content).hex() == encoded
        assert decode_pair_content(bytes.fromhex(encoded)) == content
    presence = Presence(answer_wanted=True)
    assert encode_ephemeral(presence).hex() == PAIR["presence"]
    assert decode_pair_ephemeral(bytes.fromhex(PAIR["presence"])) == presence


def test_the_contact_link_is_written_and_read_as_frozen() -> None:
    expires_ms = UnixMs(PAIR["contact_link_expires_ms"])
    addresses = ("/ip4/192.0.2.7/tcp/60000",)
    assert PAIR["contact_link"] == encode_contact_link(
        ALICE, name="Zoë", expires_ms=expires_ms, node_addresses=addresses
    )
    assert parse_contact_link(PAIR["contact_link"], now_ms=UnixMs(0)) == ContactLink(
        public_key=ALICE.public_key,
        encryption_key=ALICE.encryption_public_key,
        name="Zoë",
        expires_ms=expires_ms,
        node_addresses=addresses,
    )


def test_the_contact_link_by_the_book() -> None:
    text = PAIR["contact_link"].removeprefix("causerie:contact/")
    packed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    assert packed[:4] == sha256(tuple_of("causerie/1/contact", packed[4:])).digest()[:4]
    wire = contact_pb2.ContactLink.FromString(packed[4:])
    signed = tuple_of(
        "causerie/1/contact-link",
        1,
        ALICE.public_key,
        ALICE.encryption_public_key,
        "Zoë",
        PAIR["contact_link_expires_ms"],
        1,
        "/ip4/192.0.2.7/tcp/60000",
    )
    Ed25519PublicKey.from_public_bytes(ALICE.public_key).verify(wire.signature, signed)
