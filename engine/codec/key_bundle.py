"""A person's keys for Olm ↔ bytes (``proto/pair.proto``, KeyBundle).

They travel signed, in an envelope of the pair (``engine.codec.pair``), and are kept in this form.
Every length is fixed or bounded, and a bundle has one form.  Whether the keys can be genuine is
checked in ``engine.crypto.keys``.
"""

from google.protobuf.message import DecodeError

from engine.codec.canonical import one_form
from engine.core.content import MAX_SAFE_INTEGER
from engine.core.errors import RemoteProtocolError
from engine.core.ids import KEY_BYTES
from engine.core.ratchet import MAX_ONE_TIME_KEYS, KeyBundle
from proto import pair_pb2

VERSION = 1
MAX_BUNDLE_BYTES = 512


def encode_key_bundle(bundle: KeyBundle) -> bytes:
    return pair_pb2.KeyBundle(
        version=VERSION,
        number=bundle.number,
        identity_key=bundle.identity_key,
        one_time_keys=bundle.one_time_keys,
        fallback_key=bundle.fallback_key,
    ).SerializeToString(deterministic=True)


def decode_key_bundle(data: bytes) -> KeyBundle:
    """Raises RemoteProtocolError ``malformed``, ``unsupported_version`` or ``not_canonical``."""
    if len(data) > MAX_BUNDLE_BYTES:
        raise RemoteProtocolError("malformed", "key bundle")
    try:
        wire = pair_pb2.KeyBundle.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError("malformed", "key bundle") from error
    if wire.version != VERSION:
        raise RemoteProtocolError("unsupported_version")
    keys = (wire.identity_key, *wire.one_time_keys, wire.fallback_key)
    if (
        any(len(key) != KEY_BYTES for key in keys)
        or len(wire.one_time_keys) > MAX_ONE_TIME_KEYS
        or not 1 <= wire.number <= MAX_SAFE_INTEGER
    ):
        raise RemoteProtocolError("malformed", "key bundle")
    if one_form(wire) != data:
        raise RemoteProtocolError("not_canonical", "key bundle")
    return KeyBundle(
        number=wire.number,
        identity_key=wire.identity_key,
        one_time_keys=tuple(wire.one_time_keys),
        fallback_key=wire.fallback_key,
    )
