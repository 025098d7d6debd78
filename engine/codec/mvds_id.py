"""The id of an MVDS message: 2/MVDS, Message Identifiers, laid out as in both references.

sha256("MESSAGE_ID" ‖ group id ‖ timestamp as 8 bytes little-endian ‖ body), without separators.
Group ids must therefore have one fixed length: with 32 and 33 bytes, two different messages could
have one id.  In a timeline, a one-to-one message is identified by its MVDS id in base64url, without
padding.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Final

from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import MessageId
from engine.core.mvds.vocabulary import MvdsId, MvdsMessage

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


MVDS_ID_BYTES = 32


def message_id_of(mvds_id: MvdsId) -> MessageId:
    return MessageId(urlsafe_b64encode(mvds_id).decode().rstrip("="))


def mvds_id_of_row(message_id: MessageId) -> MvdsId:
    """Raises LocalProtocolError for a malformed id."""
    try:
        raw = urlsafe_b64decode(message_id + "=" * (-len(message_id) % 4))
    except ValueError as error:
        raise LocalProtocolError("no such message") from error
    if len(raw) != MVDS_ID_BYTES:
        raise LocalProtocolError("no such message")
    return MvdsId(raw)
