"""Golden vectors of strong invitations and of asking: what will be in links and at Stores.

Every signature, proof and hash is derived again by hand; what is sealed is opened by the second
implementation of HPKE beside the vectors of one-to-one chats.
"""

import hmac
import json
import lzma
from hashlib import sha256
from typing import TypedDict

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from engine.codec.admin_entry import entry_id_bytes, entry_id_from
from engine.codec.joining import (
    decode_admission,
    decode_joining,
    encode_admission,
    encode_joining,
)
from engine.codec.message_id import id_text
from engine.codec.packing import unpack
from engine.core.admin_log.acts import EntryId
from engine.core.ids import UnixMs
from engine.core.invite import StrongInvite
from engine.core.joining import MAX_ADMISSION_BYTES, Chunk, Joining, Reason, Refusal
from engine.crypto.joining import make_ask, open_admission, public_answer_key, token_hash_of
from engine.crypto.links import encode_strong_invite, parse_any_invite
from engine.crypto.pair import JoiningPart, open_from_anybody
from proto import epochs_pb2, invite_pb2
from tests.codec.test_strong_invite import encoded_in
from tests.crypto.test_frozen_formats import ALICE, BOB, VECTORS, tuple_of
from tests.crypto.test_pair_frozen_format import check_by_the_book, open_by_the_book


class JoiningVector(TypedDict):
    link: str
    group_id: str
    first_entry: str
    invitation: str
    token: str
    expires_ms: int
    node_addresses: list[str]
    service_nodes: list[str]
    answer_key: str
    epoch_key: str
    statement: str
    proof: str
    ask: str
    ask_payload: str
    refusal_payload: str
    signed_ms: int
    refusals: dict[str, str]
    prekey: str
    admission: str
    packed: str
    chunk: str
    entries: list[str]


JOINING: JoiningVector = json.loads((VECTORS / "joining.json").read_text(encoding="utf-8"))
GROUP = bytes.fromhex(JOINING["group_id"])
INVITATION = EntryId(JOINING["invitation"])
ANSWER_KEY = bytes.fromhex(JOINING["answer_key"])
INVITE = StrongInvite(
    group_id=GROUP,
    first_entry=EntryId(JOINING["first_entry"]),
    group_name="Les amis",
    inviter_name="Zoë",
    public_key=ALICE.public_key,
    encryption_key=ALICE.encryption_public_key,
    invitation_id=INVITATION,
    token=bytes.fromhex(JOINING["token"]),
    expires_ms=UnixMs(JOINING["expires_ms"]),
    node_addresses=tuple(JOINING["node_addresses"]),
    service_nodes=tuple(JOINING["service_nodes"]),
)


def test_strong_invitation_links_stay() -> None:
    assert parse_any_invite(JOINING["link"], now_ms=None) == INVITE
    assert encode_strong_invite(ALICE, INVITE) == JOINING["link"]
    wire = invite_pb2.StrongInvite.FromString(encoded_in(JOINING["link"]))
    signed = tuple_of(
        "causerie/1/strong-invite",
        3,
        GROUP,
        entry_id_bytes(INVITE.first_entry),
        "Les amis",
        "Zoë",
        ALICE.public_key,
        ALICE.encryption_public_key,
        entry_id_bytes(INVITATION),
        INVITE.token,
        INVITE.expires_ms,
        1,
        *INVITE.service_nodes,
        1,
        *INVITE.node_addresses,
    )
    Ed25519PublicKey.from_public_bytes(ALICE.public_key).verify(wire.signature, signed)
    assert token_hash_of(INVITE.token) == sha256(INVITE.token).digest()


def test_the_prekey_is_signed_as_the_document_says() -> None:
    wire = epochs_pb2.Prekey.FromString(bytes.fromhex(JOINING["prekey"]))
    signed = tuple_of("causerie/2/prekey", GROUP, ALICE.public_key, wire.number, wire.key)
    Ed25519PublicKey.from_public_bytes(ALICE.public_key).verify(wire.signature, signed)


def test_asks_stay() -> None:
    ask = make_ask(BOB, INVITE, ANSWER_KEY, bytes.fromhex(JOINING["statement"]))
    joining = Joining(group_id=GROUP, invitation_id=INVITATION, kind=ask)
    assert encode_joining(joining).hex() == JOINING["ask"]
    assert decode_joining(bytes.fromhex(JOINING["ask"])) == joining
    proved = tuple_of(
        "causerie/1/join-ask",
        GROUP,
        entry_id_bytes(INVITATION),
        BOB.public_key,
        public_answer_key(ANSWER_KEY),
    )
    assert hmac.digest(INVITE.token, proved, "sha256") == ask.proof
    assert ask.proof.hex() == JOINING["proof"]


def test_a_sealed_answer_opens_by_the_book() -> None:
    wire = open_by_the_book(bytes.fromhex(JOINING["refusal_payload"]))
    assert wire.joining.hex() == JOINING["refusals"]["waits"]
    check_by_the_book(wire, "joining", wire.joining)


def test_sealed_asks_and_answers_open_today() -> None:
    answer = open_from_anybody(BOB, bytes.fromhex(JOINING["refusal_payload"]))
    assert answer.body == JoiningPart(joining=bytes.fromhex(JOINING["refusals"]["waits"]))
    opened = open_from_anybody(ALICE, bytes.fromhex(JOINING["ask_payload"]))
    assert opened.sender_public_key == BOB.public_key
    assert opened.body == JoiningPart(joining=bytes.fromhex(JOINING["ask"]))
    assert opened.signed_ms == JOINING["signed_ms"]


def test_answers_stay() -> None:
    key = public_answer_key(ANSWER_KEY)
    for reason in Reason:
        refusal = Refusal(reason=reason, answer_key=key)
        joining = Joining(group_id=GROUP, invitation_id=INVITATION, kind=refusal)
        assert encode_joining(joining).hex() == JOINING["refusals"][reason.value]
        assert decode_joining(bytes.fromhex(JOINING["refusals"][reason.value])) == joining
    said = decode_joining(bytes.fromhex(JOINING["chunk"]))
    assert isinstance(said.kind, Chunk)
    packed, whole = bytes.fromhex(JOINING["packed"]), bytes.fromhex(JOINING["admission"])
    assert said.kind == Chunk(digest=sha256(packed).digest(), number=0, count=1, part=packed)
    window = [{"id": lzma.FILTER_LZMA2, "dict_size": 256 * 1024}]
    assert lzma.decompress(packed, lzma.FORMAT_RAW, filters=window) == whole
    parts = decode_admission(whole)
    assert [entry.hex() for entry in parts.entries] == JOINING["entries"]
    assert parts.before == tuple(map(id_text, (bytes(range(16)), bytes(range(16, 32)))))
    assert [statement.hex() for statement in parts.statements] == [JOINING["statement"]]
    assert [prekey.hex() for prekey in parts.prekeys] == [JOINING["prekey"]]
    (made,) = encode_admission(parts)
    assert unpack(made.part, MAX_ADMISSION_BYTES) == whole, "whatever the compressor found"
    admission = open_admission(packed, INVITE, BOB.participant_id, ANSWER_KEY)
    assert [prekey.hex() for prekey in admission.prekeys] == [JOINING["prekey"]]
    assert admission.epoch_keys == (bytes.fromhex(JOINING["epoch_key"]),)
    assert entry_id_from(entry_id_bytes(INVITATION)) == INVITATION
