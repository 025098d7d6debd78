"""The sealed envelope of a pair: only one person can read it, and it proves its author.

HPKE (RFC 9180, base mode: X25519, HKDF-SHA256, AES-256-GCM) seals to the recipient, who is also
named in the application-supplied ``info``.  HPKE alone is anonymous: anyone could forge an
acknowledgement.  So under the seal is an Ed25519 signature over (domain, sender's identity and
encryption key, recipient's identity key, group id, time, kind, payload).  It fits one recipient,
one pair, one direction and one kind only; the recipient cannot seal it again for another person.

The order of checks is: size, version, seal, padding, shape, claimed sender, keys, signature.  MVDS
and content are parsed only afterwards.  There is no forward secrecy and no protection against
replay here: MVDS delivers a message once, and receivers of ephemeral content check ``signed_ms``.
So this seal carries what comes before Olm: requests, answers that decline, and the keys for Olm
(``engine.session.pair.sealing``), everything to a program that does not know Olm, and what is said
about joining a group (``engine.runtime.joining``).
"""

from functools import cached_property, lru_cache
from hashlib import sha256, sha512

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import Struct

from engine.codec.content import MAX_EPHEMERAL_BYTES
from engine.codec.padding import pad, unpad
from engine.codec.pair import (
    VERSION,
    EphemeralPart,
    JoiningPart,
    KeysPart,
    MvdsPart,
    PairBody,
    PairPlaintext,
    decode_pair_envelope,
    decode_pair_plaintext,
    encode_pair_envelope,
    encode_pair_plaintext,
)
from engine.codec.tuples import tuple_bytes
from engine.core.content import MAX_SAFE_INTEGER
from engine.core.errors import CryptoError, LocalProtocolError
from engine.core.ids import ContentTopic, ConversationId, ParticipantId, UnixMs
from engine.core.invite import conversation_id_of
from engine.core.mvds.vocabulary import GroupId
from engine.crypto.identity import Identity, digit_groups, participant_id_of, verify
from engine.crypto.keys import require_encryption_key, require_public_key

__all__ = [
    "EphemeralPart",
    "JoiningPart",
    "KeysPart",
    "MvdsPart",
    "OpenedPair",
    "PairBody",
    "PairSeal",
    "inbox_topic_of",
    "open_from_anybody",
    "pair_group_id",
    "safety_number",
]

_PAIR_DOMAIN = "causerie/2/pair"
_SEAL_DOMAIN = "causerie/2/pair-seal"
_GROUP_DOMAIN = "causerie/1/pair-group"
_TOPIC_DOMAIN = "causerie/1/pair-topic"
_INBOX_DOMAIN = "causerie/1/inbox"
_SAFETY_DOMAIN = "causerie/1/safety-number"
_MVDS_KIND = "mvds"
_EPHEMERAL_KIND = "ephemeral"
_KEYS_KIND = "keys"
_JOINING_KIND = "joining"
_TOPIC_NAME_BYTES = 16
_SAFETY_GROUPS = 12
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


class OpenedPair(Struct, frozen=True, kw_only=True):
    """Proved to be written by ``sender_public_key`` for us, at ``signed_ms`` by its clock.

    To anybody if it was signed, to us alone ``by_olm``.
    """

    sender_public_key: bytes
    sender_encryption_key: bytes
    """X25519, vouched for by the same signature."""
    signed_ms: UnixMs
    body: PairBody
    by_olm: bool = False

    @property
    def sender_id(self) -> ParticipantId:
        return participant_id_of(self.sender_public_key)


class PairSeal:
    """Our side of one pair.

    Raises CryptoError if a key of the peer cannot be genuine, LocalProtocolError if it is our own.
    """

    def __init__(
        self, identity: Identity, *, peer_public_key: bytes, peer_encryption_key: bytes
    ) -> None:
        require_public_key(peer_public_key)
        require_encryption_key(peer_encryption_key)
        self._identity = identity
        self._peer_public_key = peer_public_key
        self._peer_encryption_key = peer_encryption_key
        self._seal_to = X25519PublicKey.from_public_bytes(peer_encryption_key)
        self.group_id: GroupId = pair_group_id(identity.public_key, peer_public_key)
        self.conversation_id: ConversationId = conversation_id_of(self.group_id)

    @cached_property
    def content_topic(self) -> ContentTopic:
        """The topic where the pair meets, which only the two can compute."""
        shared = self._identity.decryption_key.exchange(self._seal_to)
        name = HKDF(
            algorithm=SHA256(),
            length=_TOPIC_NAME_BYTES,
            salt=None,
            info=tuple_bytes(_TOPIC_DOMAIN, self.group_id),
        ).derive(shared)
        return _topic_named(name)

    def seal(self, body: PairBody, *, signed_ms: UnixMs) -> bytes:
        """A Waku payload of at most MAX_ENVELOPE_BYTES, different at every call.

        Raises LocalProtocolError for an empty or too large body, or a time out of bounds.
        """
        _check(body, signed_ms)
        to_sign = _signed_bytes(
            self._identity.public_key,
            self._identity.encryption_public_key,
            self._peer_public_key,
            signed_ms,
            body,
        )
        plaintext = encode_pair_plaintext(
            PairPlaintext(
                sender_public_key=self._identity.public_key,
                sender_encryption_key=self._identity.encryption_public_key,
                signed_ms=signed_ms,
                signature=self._identity.sign(to_sign),
                body=body,
            )
        )
        info = _info_for(self._peer_public_key)
        return encode_pair_envelope(_SUITE.encrypt(pad(plaintext), self._seal_to, info))

    def open(self, payload: bytes) -> OpenedPair:
        """As ``open_from_anybody``; also raises CryptoError ``forged_sender``.

        That is raised if the sender is not the peer, or names another encryption key than the
        peer's.
        """
        return self.open_sealed(decode_pair_envelope(payload))

    def open_sealed(self, sealed: bytes) -> OpenedPair:
        """Do the rest of ``open`` with the content of the envelope."""
        plaintext = _unseal(self._identity, sealed)
        claimed = (plaintext.sender_public_key, plaintext.sender_encryption_key)
        if claimed != (self._peer_public_key, self._peer_encryption_key):
            raise CryptoError("forged_sender")
        return _verified(self._identity, plaintext)


def open_from_anybody(identity: Identity, payload: bytes) -> OpenedPair:
    """Open a message from our inbox: the sender is proved, but may be a stranger.

    Raises RemoteProtocolError ``oversized``, ``malformed``, ``not_canonical``,
    ``unsupported_version``, ``bad_padding``, ``empty``, ``ephemeral_oversized``; CryptoError
    ``bad_seal``, ``bad_public_key``, ``bad_encryption_key``, ``small_order_key``,
    ``mixed_order_key``, ``bad_signature``, and ``forged_sender`` if it claims to be from ourselves.
    """
    return _verified(identity, _unseal(identity, decode_pair_envelope(payload)))


def pair_group_id(a: bytes, b: bytes) -> GroupId:
    """The MVDS group of two people, from their Ed25519 identity keys in any order, 32 bytes.

    Raises LocalProtocolError if both are the same.
    """
    return GroupId(sha256(tuple_bytes(_GROUP_DOMAIN, *_in_order(a, b))).digest())


def inbox_topic_of(public_key: bytes) -> ContentTopic:
    """The topic for requests to talk; anyone who has the identity key can compute it."""
    digest = sha256(tuple_bytes(_INBOX_DOMAIN, public_key)).digest()
    return _topic_named(digest[:_TOPIC_NAME_BYTES])


@lru_cache(maxsize=4096)
def safety_number(a: bytes, b: bytes) -> str:
    """60 digits in 12 groups of 5 over both Ed25519 identity keys, in any order.

    About 199 bits.  Raises LocalProtocolError if both are the same.
    """
    digest = sha512(tuple_bytes(_SAFETY_DOMAIN, *_in_order(a, b))).digest()
    return digit_groups(digest, _SAFETY_GROUPS)


def _in_order(a: bytes, b: bytes) -> tuple[bytes, bytes]:
    if a == b:
        raise LocalProtocolError("a pair is two people")
    return (a, b) if a < b else (b, a)


def _check(body: PairBody, signed_ms: UnixMs) -> None:
    if not 0 <= signed_ms <= MAX_SAFE_INTEGER:
        raise LocalProtocolError("a time that no receiver accepts")
    _, carried = _kind_and_bytes(body)
    if not carried:
        raise LocalProtocolError("an empty body")
    if isinstance(body, EphemeralPart) and len(carried) > MAX_EPHEMERAL_BYTES:
        raise LocalProtocolError(f"an ephemeral content of {len(carried)} bytes is too large")


def _unseal(identity: Identity, sealed: bytes) -> PairPlaintext:
    info = _info_for(identity.public_key)
    try:
        padded = _SUITE.decrypt(sealed, identity.decryption_key, info)
    except InvalidTag as error:
        raise CryptoError("bad_seal") from error
    return decode_pair_plaintext(unpad(padded))


def _verified(identity: Identity, plaintext: PairPlaintext) -> OpenedPair:
    if plaintext.sender_public_key == identity.public_key:
        raise CryptoError("forged_sender")
    require_encryption_key(plaintext.sender_encryption_key)
    to_check = _signed_bytes(
        plaintext.sender_public_key,
        plaintext.sender_encryption_key,
        identity.public_key,
        plaintext.signed_ms,
        plaintext.body,
    )
    verify(plaintext.sender_public_key, plaintext.signature, to_check)
    return OpenedPair(
        sender_public_key=plaintext.sender_public_key,
        sender_encryption_key=plaintext.sender_encryption_key,
        signed_ms=plaintext.signed_ms,
        body=plaintext.body,
    )


def _signed_bytes(
    sender_public_key: bytes,
    sender_encryption_key: bytes,
    recipient_public_key: bytes,
    signed_ms: UnixMs,
    body: PairBody,
) -> bytes:
    return tuple_bytes(
        _PAIR_DOMAIN,
        sender_public_key,
        sender_encryption_key,
        recipient_public_key,
        pair_group_id(sender_public_key, recipient_public_key),
        signed_ms,
        *_kind_and_bytes(body),
    )


def _kind_and_bytes(body: PairBody) -> tuple[str, bytes]:
    match body:
        case MvdsPart():
            return _MVDS_KIND, body.payload
        case EphemeralPart():
            return _EPHEMERAL_KIND, body.content
        case KeysPart():
            return _KEYS_KIND, body.keys
        case JoiningPart():
            return _JOINING_KIND, body.joining


def _info_for(recipient_public_key: bytes) -> bytes:
    """Name the recipient by identity: an encryption key may be copied into another's link."""
    return tuple_bytes(_SEAL_DOMAIN, VERSION, recipient_public_key)


def _topic_named(name: bytes) -> ContentTopic:
    return ContentTopic(f"/causerie/1/{name.hex()}/proto")
