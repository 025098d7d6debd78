"""Asking to be let into a governed group: the proof of an ask, and what makes an admission genuine.

An ask proves that its author has the invitation's token, by an HMAC over their own key, so that it
serves nobody else.  An admission proves itself, whoever sends it: its log starts with the entry
that the link names, each entry is signed, somebody who may let others in lets us in, and keys are
taken only if they fit what that log gives us.  They are sealed to a key made for this answer.
docs/invitations.md has the rules, ``engine.codec.joining`` the bytes.
"""

import hmac
from collections.abc import Container, Sequence
from hashlib import sha256
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from engine.codec.admin_entry import decode_entry, entry_id_bytes
from engine.codec.join import decode_join
from engine.codec.joining import decode_admission
from engine.codec.packing import unpack
from engine.codec.tuples import tuple_bytes
from engine.core.admin_log.acts import Entry, EntryId
from engine.core.admin_log.log import AdminLog
from engine.core.content import Join
from engine.core.errors import CryptoError, RemoteProtocolError
from engine.core.governed import Admission
from engine.core.ids import ParticipantId
from engine.core.invite import StrongInvite
from engine.core.joining import MAX_ADMISSION_BYTES, AdmissionParts, Ask
from engine.core.prekeys import TheirPrekey, newer
from engine.crypto.admin_entry import verify_entry
from engine.crypto.epochs import WrapOpener, seal_earlier_keys, verify_prekey
from engine.crypto.identity import Identity
from engine.crypto.join import verify_join
from engine.crypto.keys import require_encryption_key

_PROOF_DOMAIN: Final = "causerie/1/join-ask"


def token_hash_of(token: bytes) -> bytes:
    """What the ``Invite`` entry says of the token."""
    return sha256(token).digest()


def make_ask(identity: Identity, invite: StrongInvite, answer_key: bytes, statement: bytes) -> Ask:
    """``answer_key``: the private half of a key made for this; ``statement``: of ``build_join``."""
    public_key = public_answer_key(answer_key)
    return Ask(
        proof=_proof(
            invite.token, invite.group_id, invite.invitation_id, identity.public_key, public_key
        ),
        statement=statement,
        answer_key=public_key,
    )


def public_answer_key(answer_key: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(answer_key).public_key().public_bytes_raw()


def check_proof(
    ask: Ask, *, token: bytes, group_id: bytes, invitation_id: EntryId, public_key: bytes
) -> None:
    """Whether ``public_key`` has the token.  Cheap.  Raises CryptoError ``join_bad_proof``."""
    expected = _proof(token, group_id, invitation_id, public_key, ask.answer_key)
    if not hmac.compare_digest(expected, ask.proof):
        raise CryptoError("join_bad_proof")


def check_ask(ask: Ask, *, group_id: bytes, public_key: bytes, encryption_key: bytes) -> Join:
    """The newcomer's join statement.  Raises RemoteProtocolError, CryptoError."""
    require_encryption_key(ask.answer_key)
    join = decode_join(ask.statement)
    verify_join(join, group_id=group_id)
    if (join.public_key, join.encryption_key) != (public_key, encryption_key):
        raise RemoteProtocolError("foreign_join")
    return join


def _proof(
    token: bytes, group_id: bytes, invitation_id: EntryId, public_key: bytes, answer_key: bytes
) -> bytes:
    proved = tuple_bytes(
        _PROOF_DOMAIN, group_id, entry_id_bytes(invitation_id), public_key, answer_key
    )
    return hmac.digest(token, proved, sha256)


# --- admissions -----------------------------------------------------------------------------------


def seal_admission(admission: Admission, who: ParticipantId, answer_key: bytes) -> AdmissionParts:
    """Raises LocalProtocolError if there is no key for them."""
    keys = seal_earlier_keys(admission.epoch_keys, who, answer_key, group_id=admission.group_id)
    return AdmissionParts(
        entries=admission.entries,
        statements=admission.statements,
        prekeys=admission.prekeys,
        keys=keys,
        before=admission.before,
    )


def open_admission(
    packed: bytes, invite: StrongInvite, own_id: ParticipantId, answer_key: bytes
) -> Admission:
    """Check all of it.  Some 0.1 ms for each entry: not on the loop.

    Raises RemoteProtocolError ``joining_malformed``, ``join_other_log``, ``join_not_admitted``,
    ``join_no_key``, or as ``unpack``, ``verify_entry`` and ``WrapOpener`` do.
    """
    parts, group_id = decode_admission(unpack(packed, MAX_ADMISSION_BYTES)), invite.group_id
    known = dict[EntryId, bytes]()
    read = list[Entry]()
    creator = b""
    for data in parts.entries:
        entry = verify_entry(data, group_id=group_id)
        if entry.entry_id in known:
            continue
        if entry.entry_id == invite.first_entry:
            creator = decode_entry(data).author_key
        read.append(entry)
        known[entry.entry_id] = data
    if not creator:
        raise RemoteProtocolError("join_other_log")
    state = AdminLog(invite.first_entry, read).state
    if own_id not in state.roles:
        raise RemoteProtocolError("join_not_admitted")
    given = [one.commitment for one in reversed(state.epochs) if own_id in one.readers]
    opener = WrapOpener(own_id, (answer_key,), group_id=group_id)
    opened = opener.open_earlier(parts.keys, wanted=frozenset(given))
    keys = {one.commitment: one.key for one in opened}
    if not keys:
        raise CryptoError("join_no_key")
    members = (_member(data, group_id) for data in dict.fromkeys(parts.statements))
    return Admission(
        group_id=group_id,
        group_name=state.name,
        first_entry=invite.first_entry,
        entries=tuple(known.values()),
        epoch_keys=tuple(keys[each] for each in given if each in keys),
        admin_public_key=creator,
        roles=state.roles,
        statements=tuple(join.statement for who, join in members if who in state.roles),
        prekeys=_newest_prekeys(parts.prekeys, state.roles, group_id),
        service_nodes=invite.service_nodes,
        before=parts.before,
        topic_name=state.topic_name,
    )


def _newest_prekeys(
    told: Sequence[bytes], members: Container[ParticipantId], group_id: bytes
) -> tuple[bytes, ...]:
    """Raises RemoteProtocolError, CryptoError."""
    newest: dict[ParticipantId, TheirPrekey] = {}
    for data in told:
        prekey = verify_prekey(data, group_id=group_id)
        if prekey.author in members:
            newest[prekey.author] = newer(newest.get(prekey.author), prekey)
    return tuple(prekey.signed for prekey in newest.values())


def _member(statement: bytes, group_id: bytes) -> tuple[ParticipantId, Join]:
    """Raises RemoteProtocolError, CryptoError."""
    join = decode_join(statement)
    return verify_join(join, group_id=group_id), join
