"""The id of a one-to-one message in a timeline: base64url, without padding, of its MVDS id."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

from engine.core.errors import LocalProtocolError
from engine.core.ids import MessageId
from engine.core.mvds.types import MvdsId

MVDS_ID_BYTES = 32


def message_id_of(mvds_id: MvdsId) -> MessageId:
    return MessageId(urlsafe_b64encode(mvds_id).decode().rstrip("="))


def mvds_id_of_row(message_id: MessageId) -> MvdsId:
    """Raises LocalProtocolError for what is no such id."""
    try:
        raw = urlsafe_b64decode(message_id + "=" * (-len(message_id) % 4))
    except ValueError as error:
        raise LocalProtocolError("no such message") from error
    if len(raw) != MVDS_ID_BYTES:
        raise LocalProtocolError("no such message")
    return MvdsId(raw)
