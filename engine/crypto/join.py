"""Makes and verifies join statements; ``engine.codec.join`` defines their bytes.

Whether the newcomer may join is not decided here: in a simple group anyone with the key may.
"""

from engine.codec.join import decode_join, encode_join, signed_join
from engine.core.content import Join
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import SIGNATURE_BYTES, ParticipantId, UnixMs
from engine.crypto.identity import Identity, participant_id_of, verify
from engine.crypto.keys import require_encryption_key


def build_join(identity: Identity, *, group_id: bytes, name: str, joined_ms: UnixMs) -> Join:
    """A signed statement.  Raises LocalProtocolError if the name is unusable."""

    def statement(signature: bytes) -> bytes:
        return encode_join(
            public_key=identity.public_key,
            encryption_key=identity.encryption_public_key,
            name=name,
            joined_ms=joined_ms,
            signature=signature,
        )

    try:
        _, to_sign = signed_join(statement(bytes(SIGNATURE_BYTES)), group_id=group_id)
        return decode_join(statement(identity.sign(to_sign)))
    except (RemoteProtocolError, ValueError) as error:
        raise LocalProtocolError(f"a join that nobody would accept: {error}") from error


def verify_join(join: Join, *, group_id: bytes) -> ParticipantId:
    """The verified newcomer.  Only ``join.statement`` is trusted.

    Raises RemoteProtocolError or CryptoError; also if the fields differ from what was signed.
    """
    if decode_join(join.statement) != join:
        raise RemoteProtocolError("join_malformed")
    require_encryption_key(join.encryption_key)
    signature, signed = signed_join(join.statement, group_id=group_id)
    verify(join.public_key, signature, signed)
    return participant_id_of(join.public_key)
