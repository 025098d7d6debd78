"""The sealed envelope of a group: limits its readers, proves its author, and shows any change.

Inside is a *signed part*: SDS bytes, claims and a time under the sender's Ed25519 signature, which
also covers group and epoch.  Around it is a *seal*: AES-256-GCM under a key that HKDF-SHA256 makes
for this one message from the epoch key and 24 random bytes.  The header is associated data and
carries a commitment to the key, compared first, so that no ciphertext opens under two keys.  Beside
the signed part, the seal holds self-signed join statements and padding.  A repair wraps another
member's signed part, as received, in a signed part of the responder's own.

A group has *epochs*, each with a key of its own and an id derived from it.  We seal and sign in the
newest.  A seal opens in any epoch that we know; a signed part is checked within the epoch that it
names, whichever sealed it, because history is repaired in a later one.

``SealedGroup.open`` checks in this order: size, header, group, epoch, commitment, seal, padding,
shape, key, signature, and that the signer's id IS the SDS ``sender_id``.  SDS is parsed only
afterwards.  Membership is checked by the session.  There is no ratchet, so history opens in any
order.  A signed part stays valid when it is sealed again, with another salt, for a retransmission.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from engine.codec.envelope import (
    COMMITMENT_BYTES,
    EPOCH_ID_BYTES,
    GROUP_TAG_BYTES,
    MAX_STATEMENT_BYTES,
    MAX_STATEMENTS,
    MAX_TIME_MS,
    SALT_BYTES,
    VERSION,
    EnvelopeHeader,
    SignedPart,
    decode_envelope,
    decode_header,
    decode_plaintext,
    decode_signed_part,
    encode_envelope,
    encode_header,
    encode_plaintext,
    encode_signed_part,
    sds_sender_of,
)
from engine.codec.holdings import MAX_CLAIM_BYTES, decode_claim, encode_claim
from engine.codec.padding import MAX_PLAINTEXT_BYTES, pad, unpad
from engine.codec.tuples import tuple_bytes
from engine.core.admin_log.acts import TOPIC_NAME_BYTES
from engine.core.entropy import RandomBytes
from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from engine.core.ids import (
    KEY_BYTES,
    SIGNATURE_BYTES,
    ContentTopic,
    ConversationId,
    ParticipantId,
    UnixMs,
)
from engine.core.invite import EPOCH_KEY_BYTES, GROUP_ID_BYTES, conversation_id_of
from engine.core.records import GroupRecord
from engine.core.sds.vocabulary import Claim
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES
from engine.crypto.identity import Identity, participant_id_of, verify

MAX_ENVELOPE_BYTES = MAX_WAKU_MESSAGE_BYTES - 512
"""Our envelopes leave room for the Waku message's other fields; accepted ones may be larger."""


def _largest_repair_of(original: bytes) -> bytes:
    """A plaintext with everything that may surround a signed part."""
    repair = SignedPart(
        sender_public_key=bytes(KEY_BYTES),
        epoch_id=bytes(EPOCH_ID_BYTES),
        signed_ms=UnixMs(MAX_TIME_MS),
        signature=bytes(SIGNATURE_BYTES),
        original=original,
        claims=bytes(MAX_CLAIM_BYTES),
    )
    statements = (bytes(MAX_STATEMENT_BYTES),) * MAX_STATEMENTS
    return encode_plaintext(encode_signed_part(repair), statements)


_LARGE = bytes(MAX_PLAINTEXT_BYTES // 2)
"""Long enough that its length takes as many bytes as that of the largest."""
MAX_SIGNED_PART_BYTES = MAX_PLAINTEXT_BYTES - (len(_largest_repair_of(_LARGE)) - len(_LARGE))
"""Enforced for sending and receiving, so that every logged message can be repaired by any member,
whatever they claim."""

_EPOCH_DOMAIN = "causerie/2/epoch"
_SEAL_DOMAIN = "causerie/2/seal"
_MESSAGE_DOMAIN = "causerie/2/message"
_REPAIR_DOMAIN = "causerie/2/repair"
_GROUP_TAG_DOMAIN = "causerie/2/group-tag"
_TOPIC_DOMAIN = "causerie/1/topic"
_EPOCH_COMMITMENT_BYTES = 32
_AES_KEY_BYTES = 32
_AES_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A checked message.  ``raw`` is its signed part as received, which a repair resends.

    ``claim`` and ``signed_ms`` are the sender's own.  In a repair, ``repaired_by`` is proved too,
    but may not be a member; the rest of the responder's part is checked and not kept.
    """

    sender_id: ParticipantId
    sender_public_key: bytes
    sds_bytes: bytes = field(repr=False)
    claim: Claim | None
    signed_ms: UnixMs
    raw: bytes = field(repr=False)
    repaired_by: ParticipantId | None = None
    statements: tuple[bytes, ...] = ()
    """Join statements under the seal, as received and unchecked."""


class MessageKeys(NamedTuple):
    """The keys that seal one message; ``commitment`` is in its header."""

    key: bytes
    nonce: bytes
    commitment: bytes


class CheckedEnvelope(NamedTuple):
    """An unopened envelope whose header names an epoch of ours and fits its key."""

    header: bytes
    ciphertext: bytes
    keys: MessageKeys


class _Epoch(NamedTuple):
    epoch_id: bytes
    key: bytes
    seal_info: bytes


@dataclass(frozen=True, kw_only=True)
class SealedGroup:
    """One group and its epochs whose keys we know, oldest first.

    Raises LocalProtocolError if a length is wrong or two epochs have the same id.
    """

    group_id: bytes
    epoch_keys: tuple[bytes, ...] = field(repr=False)

    def __post_init__(self) -> None:
        lengths = {len(key) for key in self.epoch_keys}
        if len(self.group_id) != GROUP_ID_BYTES or lengths != {EPOCH_KEY_BYTES}:
            raise LocalProtocolError("a group has an id of 32 bytes and epoch keys of 32 bytes")
        if len(self._epochs) != len(self.epoch_keys):
            raise LocalProtocolError("two epochs with one id")

    @cached_property
    def conversation_id(self) -> ConversationId:
        return conversation_id_of(self.group_id)

    @cached_property
    def group_tag(self) -> bytes:
        """In clear in every header, so that receivers can skip other groups' messages cheaply."""
        return sha256(tuple_bytes(_GROUP_TAG_DOMAIN, self.group_id)).digest()[:GROUP_TAG_BYTES]

    @property
    def epoch_id(self) -> bytes:
        """The newest epoch's id, named by what is sealed and signed now."""
        return self._newest.epoch_id

    @cached_property
    def _epochs(self) -> dict[bytes, _Epoch]:
        """By id, oldest first."""
        epochs: dict[bytes, _Epoch] = {}
        for key in self.epoch_keys:
            epoch_id = epoch_commitment(self.group_id, key)[:EPOCH_ID_BYTES]
            seal_info = tuple_bytes(_SEAL_DOMAIN, VERSION, self.group_id, epoch_id)
            epochs[epoch_id] = _Epoch(epoch_id, key, seal_info)
        return epochs

    @cached_property
    def _newest(self) -> _Epoch:
        return next(reversed(self._epochs.values()))

    def _epoch(self, epoch_id: bytes) -> _Epoch:
        epoch = self._epochs.get(epoch_id)
        if epoch is None:
            raise RemoteProtocolError("unknown_epoch")
        return epoch

    # --- out ------------------------------------------------------------------------------------

    def sign(
        self,
        identity: Identity,
        sds_bytes: bytes,
        claim: Claim | None,
        signed_ms: UnixMs,
        *,
        epoch_id: bytes | None = None,
    ) -> bytes:
        """A signed part, to be kept and, once sealed, broadcast.  ``epoch_id``: None = the newest.

        Raises LocalProtocolError if it is too large or the SDS ``sender_id`` is not ours.
        """
        if sds_sender_of(sds_bytes) != identity.participant_id:
            raise LocalProtocolError("an SDS message that bears somebody else's sender_id")
        epoch = None if epoch_id is None else self._epoch(epoch_id)
        part = self._signed(identity, _MESSAGE_DOMAIN, sds_bytes, claim, signed_ms, epoch=epoch)
        if len(part) > MAX_SIGNED_PART_BYTES:
            raise LocalProtocolError(f"a signed part of {len(part)} bytes is too large")
        return part

    def wrap_repair(
        self, identity: Identity, original: bytes, claim: Claim | None, signed_ms: UnixMs
    ) -> bytes:
        """A signed part of ours around another member's, who remains proved as the sender.

        It names the same epoch.  Raises LocalProtocolError if ``original`` is itself a repair, not
        a signed part, or of an epoch whose key we do not know.
        """
        try:
            part = decode_signed_part(original)
            epoch = self._epoch(part.epoch_id)
        except RemoteProtocolError as error:
            raise LocalProtocolError("only a signed part can be repaired") from error
        if part.original:
            raise LocalProtocolError("a repair of a repair")
        return self._signed(identity, _REPAIR_DOMAIN, original, claim, signed_ms, epoch=epoch)

    def seal(
        self,
        signed_part: bytes,
        *,
        random_bytes: RandomBytes,
        statements: Sequence[bytes] = (),
        epoch_id: bytes | None = None,
    ) -> bytes:
        """A Waku payload of at most MAX_ENVELOPE_BYTES, different at every call.

        ``statements`` are at most two self-signed joins: the sender's, and a repaired author's.
        ``epoch_id``: that of the signed part (``epoch_of``), by default the newest.  In a later one
        somebody could read it who was admitted without the key of the earlier.  Raises
        LocalProtocolError if it becomes too large.
        """
        padded = pad(encode_plaintext(signed_part, statements))
        salt = random_bytes(SALT_BYTES)
        epoch = self._newest if epoch_id is None else self._epoch(epoch_id)
        keys = _message_keys(epoch, salt)
        header = encode_header(
            EnvelopeHeader(
                group_tag=self.group_tag,
                epoch_id=epoch.epoch_id,
                salt=salt,
                commitment=keys.commitment,
            )
        )
        return encode_envelope(header, AESGCM(keys.key).encrypt(keys.nonce, padded, header))

    @staticmethod
    def epoch_of(signed_part: bytes) -> bytes:
        """The id of the epoch that a signed part of ours names."""
        return decode_signed_part(signed_part).epoch_id

    @staticmethod
    def epoch_in(payload: bytes) -> bytes:
        """The id of the epoch that an envelope names, whether it is known or not.

        Raises RemoteProtocolError.
        """
        return decode_header(decode_envelope(payload)[0]).epoch_id

    # --- in -------------------------------------------------------------------------------------

    def precheck(self, payload: bytes) -> CheckedEnvelope:
        """Check only the header.  Passing it takes the epoch key, or a copied header.

        Cheap enough for all incoming messages.  Raises as ``open``, up to ``bad_commitment``.
        """
        header, ciphertext = decode_envelope(payload)
        return CheckedEnvelope(header, ciphertext, self._keys_for(header))

    def open(self, payload: bytes) -> Opened:
        """Check everything but membership.

        Raises RemoteProtocolError ``oversized``, ``malformed``, ``not_canonical``,
        ``unsupported_version``, ``wrong_group``, ``unknown_epoch``, ``bad_padding``,
        ``nested_repair``, ``bad_holdings``; CryptoError ``bad_commitment``, ``bad_seal``,
        ``bad_public_key``, ``small_order_key``, ``mixed_order_key``, ``bad_signature``,
        ``forged_sender``.
        """
        return self.open_checked(self.precheck(payload))

    def open_checked(self, envelope: CheckedEnvelope) -> Opened:
        """The rest of ``open``, after ``precheck``."""
        return self._read(*decode_plaintext(_unseal(envelope)))

    def read(self, signed_part: bytes) -> Opened:
        """As ``open``, for a signed part without a seal around it."""
        return self._read(signed_part, ())

    # --- inside ---------------------------------------------------------------------------------

    def _read(self, signed_part: bytes, statements: tuple[bytes, ...]) -> Opened:
        outer = decode_signed_part(signed_part)
        if not outer.original:
            return self._read_message(outer, signed_part, statements)
        self._check_signature(outer, _REPAIR_DOMAIN, outer.original)
        inner = decode_signed_part(outer.original)
        if inner.original:
            raise RemoteProtocolError("nested_repair")
        decode_claim(outer.claims)
        message = self._read_message(inner, outer.original, statements)
        return Opened(
            sender_id=message.sender_id,
            sender_public_key=message.sender_public_key,
            sds_bytes=message.sds_bytes,
            claim=message.claim,
            signed_ms=message.signed_ms,
            raw=message.raw,
            repaired_by=participant_id_of(outer.sender_public_key),
            statements=statements,
        )

    def _read_message(self, part: SignedPart, raw: bytes, statements: tuple[bytes, ...]) -> Opened:
        if len(raw) > MAX_SIGNED_PART_BYTES:
            raise RemoteProtocolError("oversized", "nobody could repair it")
        self._check_signature(part, _MESSAGE_DOMAIN, part.sds_message)
        sender_id = participant_id_of(part.sender_public_key)
        if sds_sender_of(part.sds_message) != sender_id:
            raise CryptoError("forged_sender")
        return Opened(
            sender_id=sender_id,
            sender_public_key=part.sender_public_key,
            sds_bytes=part.sds_message,
            claim=decode_claim(part.claims),
            signed_ms=part.signed_ms,
            raw=raw,
            statements=statements,
        )

    def _keys_for(self, encoded_header: bytes) -> MessageKeys:
        header = decode_header(encoded_header)
        if header.group_tag != self.group_tag:
            raise RemoteProtocolError("wrong_group")
        keys = _message_keys(self._epoch(header.epoch_id), header.salt)
        if not hmac.compare_digest(keys.commitment, header.commitment):
            raise CryptoError("bad_commitment")
        return keys

    def _signed(  # noqa: PLR0913 - one argument per part of what is signed
        self,
        identity: Identity,
        domain: str,
        body: bytes,
        claim: Claim | None,
        signed_ms: UnixMs,
        *,
        epoch: _Epoch | None = None,
    ) -> bytes:
        claims = encode_claim(claim)
        epoch_id = self.epoch_id if epoch is None else epoch.epoch_id
        to_sign = self._signed_bytes(domain, epoch_id, identity.public_key, signed_ms, body, claims)
        return encode_signed_part(
            SignedPart(
                sender_public_key=identity.public_key,
                epoch_id=epoch_id,
                signed_ms=signed_ms,
                signature=identity.sign(to_sign),
                sds_message=body if domain == _MESSAGE_DOMAIN else b"",
                original=body if domain == _REPAIR_DOMAIN else b"",
                claims=claims,
            )
        )

    def _check_signature(self, part: SignedPart, domain: str, body: bytes) -> None:
        epoch_id = self._epoch(part.epoch_id).epoch_id
        to_check = self._signed_bytes(
            domain, epoch_id, part.sender_public_key, part.signed_ms, body, part.claims
        )
        verify(part.sender_public_key, part.signature, to_check)

    def _signed_bytes(  # noqa: PLR0913, PLR0917 — the signed tuple, one argument per part
        self,
        domain: str,
        epoch_id: bytes,
        sender_public_key: bytes,
        signed_ms: UnixMs,
        body: bytes,
        claims: bytes,
    ) -> bytes:
        return tuple_bytes(
            domain, self.group_id, epoch_id, sender_public_key, signed_ms, body, claims
        )


def _unseal(envelope: CheckedEnvelope) -> bytes:
    key, nonce, _ = envelope.keys
    try:
        padded = AESGCM(key).decrypt(nonce, envelope.ciphertext, envelope.header)
    except InvalidTag as error:
        raise CryptoError("bad_seal") from error
    return unpad(padded)


def _message_keys(epoch: _Epoch, salt: bytes) -> MessageKeys:
    derived = HKDF(
        algorithm=SHA256(),
        length=_AES_KEY_BYTES + _AES_NONCE_BYTES + COMMITMENT_BYTES,
        salt=salt,
        info=epoch.seal_info,
    ).derive(epoch.key)
    nonce_end = _AES_KEY_BYTES + _AES_NONCE_BYTES
    return MessageKeys(
        key=derived[:_AES_KEY_BYTES],
        nonce=derived[_AES_KEY_BYTES:nonce_end],
        commitment=derived[nonce_end:],
    )


def epoch_commitment(group_id: bytes, epoch_key: bytes) -> bytes:
    """32 bytes that fit only one epoch key and reveal nothing about it.

    They begin with the epoch's id.
    """
    return HKDF(
        algorithm=SHA256(),
        length=_EPOCH_COMMITMENT_BYTES,
        salt=None,
        info=tuple_bytes(_EPOCH_DOMAIN, group_id),
    ).derive(epoch_key)


def new_group(random_bytes: RandomBytes) -> SealedGroup:
    """A fresh group id, and the key of its first epoch."""
    return SealedGroup(
        group_id=random_bytes(GROUP_ID_BYTES), epoch_keys=(random_bytes(EPOCH_KEY_BYTES),)
    )


def content_topic_of(first_secret: bytes) -> ContentTopic:
    """The topic where a group meets.

    Only holders of its first epoch key can compute it.  It stays when keys change.
    """
    return topic_named(topic_name_of(first_secret))


def topic_name_of(first_secret: bytes) -> bytes:
    return HKDF(
        algorithm=SHA256(), length=TOPIC_NAME_BYTES, salt=None, info=tuple_bytes(_TOPIC_DOMAIN)
    ).derive(first_secret)


def topic_named(name: bytes) -> ContentTopic:
    return ContentTopic(f"/causerie/1/{name.hex()}/proto")


def topic_of(group: GroupRecord) -> ContentTopic:
    return topic_named(group.topic_name or topic_name_of(group.topic_secret))
