"""``proto/joining.proto``: asking to be let into a governed group, and the answers, as bytes.

They travel signed, in an envelope of the pair (``engine.codec.pair``).  Every length is fixed or
bounded, and each has one form.  An admission is packed and cut into chunks of one size; it has no
Protocol Buffer of its own, since millions of empty entries would take a parser more memory than
they have bytes.  Keys, proofs and entries are checked in ``engine.crypto.joining``.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import chain, islice, repeat
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from engine.codec.admin_entry import ENTRY_ID_BYTES, MAX_ENTRY_BYTES, entry_id_bytes, entry_id_from
from engine.codec.canonical import one_form
from engine.codec.envelope import MAX_STATEMENT_BYTES
from engine.codec.epochs import MAX_EARLIER_BYTES, MAX_PREKEY_BYTES
from engine.codec.message_id import ID_BYTES, id_bytes, id_text
from engine.codec.packing import pack
from engine.core.admin_log.acts import MAX_PASSED_ON
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.governed import MAX_BEFORE
from engine.core.ids import KEY_BYTES
from engine.core.invite import GROUP_ID_BYTES
from engine.core.joining import (
    CHUNK_BYTES,
    MAX_ADMISSION_BYTES,
    MAX_CHUNKS,
    MAX_PACKED_BYTES,
    AdmissionParts,
    Ask,
    Chunk,
    Joining,
    JoiningKind,
    Reason,
    Refusal,
)
from engine.core.membership.members import MAX_MEMBERS
from proto import joining_pb2

PROOF_BYTES: Final = 32
DIGEST_BYTES: Final = 32
_LENGTH_BYTES: Final = 4
_MAX_STATEMENTS_BYTES: Final = MAX_MEMBERS * (_LENGTH_BYTES + MAX_STATEMENT_BYTES)
_MAX_PREKEYS_BYTES: Final = MAX_MEMBERS * (_LENGTH_BYTES + MAX_PREKEY_BYTES)
_BEFORE_ENTRIES: Final = 4
"""Parts of an admission that are no entries."""
MAX_JOINING_BYTES: Final = CHUNK_BYTES + 256
_REASONS: Final = {
    Reason.WAITS: joining_pb2.REASON_WAITS,
    Reason.REFUSED: joining_pb2.REASON_REFUSED,
    Reason.SPENT: joining_pb2.REASON_SPENT,
    Reason.EXPIRED: joining_pb2.REASON_EXPIRED,
    Reason.REVOKED: joining_pb2.REASON_REVOKED,
    Reason.FULL: joining_pb2.REASON_FULL,
}
_REASON_OF: Final = {number: reason for reason, number in _REASONS.items()}
_M = TypeVar("_M", bound=Message)


def encode_joining(joining: Joining) -> bytes:
    wire = joining_pb2.Joining(
        group_id=joining.group_id, invitation=entry_id_bytes(joining.invitation_id)
    )
    match joining.kind:
        case Ask(proof=proof, statement=statement, answer_key=answer_key):
            wire.ask.proof, wire.ask.statement = proof, statement
            wire.ask.answer_key = answer_key
        case Refusal(reason=reason, answer_key=answer_key):
            wire.refusal.reason, wire.refusal.answer_key = _REASONS[reason], answer_key
        case Chunk(digest=digest, number=number, count=count, part=part):
            wire.chunk.digest, wire.chunk.part = digest, part
            wire.chunk.number, wire.chunk.count = number, count
    return wire.SerializeToString(deterministic=True)


def decode_joining(data: bytes) -> Joining:
    """Checks shape and bounds only.

    Raises RemoteProtocolError ``joining_malformed``, ``joining_unsupported`` or ``not_canonical``.
    """
    wire = _parsed(joining_pb2.Joining, data, MAX_JOINING_BYTES)
    if len(wire.group_id) != GROUP_ID_BYTES or len(wire.invitation) != ENTRY_ID_BYTES:
        raise _malformed("ids")
    return Joining(
        group_id=wire.group_id,
        invitation_id=entry_id_from(wire.invitation),
        kind=_kind(wire),
    )


def _kind(wire: joining_pb2.Joining) -> JoiningKind:
    match wire.WhichOneof("kind"):
        case "ask":
            ask = wire.ask
            lengths = len(ask.proof), len(ask.answer_key)
            if lengths != (PROOF_BYTES, KEY_BYTES):
                raise _malformed("ask")
            if not 1 <= len(ask.statement) <= MAX_STATEMENT_BYTES:
                raise _malformed("statement")
            return Ask(proof=ask.proof, statement=ask.statement, answer_key=ask.answer_key)
        case "refusal":
            reason = _REASON_OF.get(wire.refusal.reason)
            if reason is None:
                raise RemoteProtocolError("joining_unsupported", "reason")
            if len(wire.refusal.answer_key) != KEY_BYTES:
                raise _malformed("refusal")
            return Refusal(reason=reason, answer_key=wire.refusal.answer_key)
        case "chunk":
            return _chunk(wire.chunk)
        case _:
            raise RemoteProtocolError("joining_unsupported")


def _chunk(wire: joining_pb2.Chunk) -> Chunk:
    """All chunks but the last one are full."""
    is_last = wire.number + 1 == wire.count
    if len(wire.digest) != DIGEST_BYTES or not wire.number < wire.count <= MAX_CHUNKS:
        raise _malformed("chunk")
    if not 1 <= len(wire.part) <= CHUNK_BYTES or (len(wire.part) < CHUNK_BYTES and not is_last):
        raise _malformed("chunk size")
    return Chunk(digest=wire.digest, number=wire.number, count=wire.count, part=wire.part)


# --- admissions -----------------------------------------------------------------------------------


def encode_admission(admission: AdmissionParts) -> tuple[Chunk, ...]:
    """Sealed keys, ids of messages before, join statements, prekeys, and each entry.

    Each of these is written after its length, and so is each one among the statements and prekeys.
    A length has 4 bytes, big-endian, and an id 16.  It is packed and cut up: not on the loop.

    Raises LocalProtocolError if it is too large for anyone to take.
    """
    before = b"".join(map(id_bytes, admission.before))
    statements = _joined(admission.statements)
    prekeys = _joined(admission.prekeys)
    whole = _joined((admission.keys, before, statements, prekeys, *admission.entries))
    if (
        len(whole) > MAX_ADMISSION_BYTES
        or len(admission.entries) > MAX_PASSED_ON
        or max(len(admission.statements), len(admission.prekeys)) > MAX_MEMBERS
    ):
        raise LocalProtocolError(f"an admission of {len(whole)} bytes")
    packed = pack(whole)
    if len(packed) > MAX_PACKED_BYTES:
        raise LocalProtocolError(f"a packed admission of {len(packed)} bytes")
    digest = sha256(packed).digest()
    parts = [packed[at : at + CHUNK_BYTES] for at in range(0, len(packed), CHUNK_BYTES)]
    return tuple(
        Chunk(digest=digest, number=number, count=len(parts), part=part)
        for number, part in enumerate(parts)
    )


def decode_admission(whole: bytes) -> AdmissionParts:
    """``whole``: unpacked.  Checks shape and bounds only.

    Raises RemoteProtocolError ``joining_malformed``.
    """
    if len(whole) > MAX_ADMISSION_BYTES:
        raise _malformed("admission")
    of_the_first = (
        MAX_EARLIER_BYTES,
        MAX_BEFORE * ID_BYTES,
        _MAX_STATEMENTS_BYTES,
        _MAX_PREKEYS_BYTES,
    )
    bounds = chain(of_the_first, repeat(MAX_ENTRY_BYTES))
    pieces = _pieces(whole, islice(bounds, _BEFORE_ENTRIES + MAX_PASSED_ON))
    if len(pieces) <= _BEFORE_ENTRIES:
        raise _malformed("admission")
    keys, before, joined_statements, joined_prekeys, *entries = pieces
    statements = _pieces(joined_statements, repeat(MAX_STATEMENT_BYTES, MAX_MEMBERS))
    prekeys = _pieces(joined_prekeys, repeat(MAX_PREKEY_BYTES, MAX_MEMBERS))
    if b"" in (*entries, *statements, *prekeys) or len(before) % ID_BYTES:
        raise _malformed("admission")
    ids = (before[at : at + ID_BYTES] for at in range(0, len(before), ID_BYTES))
    return AdmissionParts(
        entries=tuple(entries),
        statements=tuple(statements),
        prekeys=tuple(prekeys),
        keys=keys,
        before=tuple(map(id_text, ids)),
    )


def _joined(pieces: Iterable[bytes]) -> bytes:
    return b"".join(len(piece).to_bytes(_LENGTH_BYTES, "big") + piece for piece in pieces)


def _pieces(joined: bytes, bounds: Iterator[int]) -> list[bytes]:
    """``bounds``: how long each may be, and with that how many there may be."""
    at, pieces = 0, list[bytes]()
    while at < len(joined):
        begin = at + _LENGTH_BYTES
        at = begin + int.from_bytes(joined[at:begin], "big")
        if not begin <= at <= min(len(joined), begin + next(bounds, -1)):
            raise _malformed("admission")
        pieces.append(joined[begin:at])
    return pieces


def _malformed(what: str) -> RemoteProtocolError:
    return RemoteProtocolError("joining_malformed", what)


def _parsed(kind: type[_M], data: bytes, most: int) -> _M:
    if len(data) > most:
        raise _malformed("oversized")
    try:
        wire = kind.FromString(data)
    except DecodeError as error:
        raise _malformed("encoding") from error
    if one_form(wire) != data:
        raise RemoteProtocolError("not_canonical", "joining")
    return wire
