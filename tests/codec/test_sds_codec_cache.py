"""What the codec remembers of strangers' bytes is bounded in bytes, not only in number."""

from engine.codec.sds import decode_message, encode_message
from engine.core.ids import ChannelId, MessageId, ParticipantId
from engine.core.sds.vocabulary import HistoryEntry, Message
from proto import sds_pb2

UNKNOWN_FIELD = b"\xfa\x07"
"""Field 127, with a length: no version of the protocol has it."""


def test_an_entry_padded_with_unknown_fields_is_read_and_not_remembered() -> None:
    plain = HistoryEntry(MessageId("an id"), None, ParticipantId("Bob"))
    frame = sds_pb2.MessageFrame.FromString(
        encode_message(
            Message(
                sender_id=ParticipantId("Bob"),
                message_id=MessageId("one"),
                channel_id=ChannelId("0"),
                lamport_timestamp=1,
                causal_history=(plain,),
                bloom_filter=None,
                repair_request=(),
                content=b"hello",
            )
        )
    )
    (first,), (second,) = history_of(frame), history_of(frame)
    assert first is second
    padding = b"x" * 100_000
    frame.causal_history[0] += (
        UNKNOWN_FIELD
        + bytes([len(padding) & 127 | 128, len(padding) >> 7 & 127 | 128, len(padding) >> 14])
        + padding
    )
    (read,), (again,) = history_of(frame), history_of(frame)
    assert read == again == plain
    assert read is not again


def history_of(frame: sds_pb2.MessageFrame) -> tuple[HistoryEntry, ...]:
    return decode_message(frame.SerializeToString()).causal_history
