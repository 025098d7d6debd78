"""The id of an MVDS message: 2/MVDS, Message Identifiers, laid out as both references do.

sha256("MESSAGE_ID" ‖ group id ‖ timestamp as 8 bytes little-endian ‖ body), nothing in between.
Because nothing is, only one length of group id can be allowed: 32 bytes and 33 can be cut so that
two different messages have one id.
"""

from hashlib import sha256
from typing import Final

from engine.core.errors import RemoteProtocolError
from engine.core.mvds.types import MvdsId, MvdsMessage

GROUP_ID_BYTES: Final = 32

_PREFIX: Final = b"MESSAGE_ID"
_TIMESTAMP_BYTES: Final = 8


def mvds_id_of(message: MvdsMessage) -> MvdsId:
    """Raises RemoteProtocolError: ``mvds_bad_group_id``, ``mvds_bad_timestamp``."""
    if len(message.group_id) != GROUP_ID_BYTES:
        raise RemoteProtocolError("mvds_bad_group_id")
    try:
        timestamp = message.timestamp.to_bytes(_TIMESTAMP_BYTES, "little", signed=True)
    except OverflowError as error:
        raise RemoteProtocolError("mvds_bad_timestamp") from error
    return MvdsId(sha256(_PREFIX + message.group_id + timestamp + message.body).digest())
