"""MVDS payloads as bytes: 2/MVDS, Wire Protocol, in both generations of field numbers.

The specification and status-im's fork number the fields 5001 … 5004 and 6001 … 6003; draft 0.6 and
vacp2p's reference 1 … 4 and 1 … 3.  Decoding accepts either and returns which it was; a payload
with fields of both counts as the specification's with unknown fields.  Unknown fields are skipped:
4/MVDS-META (6004) and the fork's group offers (5005) are not used.  Ids, groups and peers are not
interpreted here.
"""

from collections.abc import Iterable
from typing import Final

from google.protobuf.message import DecodeError

from engine.codec.mvds_id import GROUP_ID_BYTES
from engine.core.errors import RemoteProtocolError
from engine.core.mvds.vocabulary import GroupId, MvdsId, MvdsMessage, Payload, WireGeneration
from proto import mvds_pb2

MAX_RECEIVED_BYTES: Final = 150 * 1024
"""The most a Waku message can carry; our own payloads end at ``MvdsConfig.max_payload_bytes``."""
MAX_BODY_BYTES: Final = 100 * 1024
ID_BYTES: Final = 32


def encode_payload(payload: Payload, generation: WireGeneration = WireGeneration.RFC) -> bytes:
    """Equal payloads give equal bytes; ascending fields, defaults left out."""
    lists = {"acks": payload.acks, "offers": payload.offers, "requests": payload.requests}
    if generation is WireGeneration.RFC:
        return mvds_pb2.Payload(
            messages=[
                mvds_pb2.Message(
                    group_id=message.group_id, timestamp=message.timestamp, body=message.body
                )
                for message in payload.messages
            ],
            **lists,
        ).SerializeToString(deterministic=True)
    return mvds_pb2.DraftPayload(
        messages=[
            mvds_pb2.DraftMessage(
                group_id=message.group_id, timestamp=message.timestamp, body=message.body
            )
            for message in payload.messages
        ],
        **lists,
    ).SerializeToString(deterministic=True)


def decode_payload(data: bytes) -> tuple[Payload, WireGeneration]:
    """Decode a payload of either generation; an empty one counts as the specification's.

    Raises RemoteProtocolError: ``mvds_oversized``, ``mvds_undecodable``, ``mvds_bad_id``,
    ``mvds_bad_group_id``, ``mvds_body_too_large``.
    """
    if len(data) > MAX_RECEIVED_BYTES:
        raise RemoteProtocolError("mvds_oversized")
    try:
        wire = mvds_pb2.Payload.FromString(data)
        if wire.ListFields() or not data:
            return _payload(wire), WireGeneration.RFC
        draft = mvds_pb2.DraftPayload.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError("mvds_undecodable") from error
    if draft.ListFields():
        return _payload(draft), WireGeneration.DRAFT
    return Payload(), WireGeneration.RFC


def _payload(wire: mvds_pb2.Payload | mvds_pb2.DraftPayload) -> Payload:
    return Payload(
        acks=_ids(wire.acks),
        offers=_ids(wire.offers),
        requests=_ids(wire.requests),
        messages=tuple(_message(message) for message in wire.messages),
    )


def _ids(ids: Iterable[bytes]) -> tuple[MvdsId, ...]:
    found = tuple(map(MvdsId, ids))
    if any(len(message_id) != ID_BYTES for message_id in found):
        raise RemoteProtocolError("mvds_bad_id")
    return found


def _message(wire: mvds_pb2.Message | mvds_pb2.DraftMessage) -> MvdsMessage:
    if len(wire.group_id) != GROUP_ID_BYTES:
        raise RemoteProtocolError("mvds_bad_group_id")
    if len(wire.body) > MAX_BODY_BYTES:
        raise RemoteProtocolError("mvds_body_too_large")
    return MvdsMessage(GroupId(wire.group_id), wire.timestamp, wire.body)
