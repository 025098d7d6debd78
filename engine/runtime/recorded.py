"""What a runner tells a recorder of deliveries, where there is one.

Each slice once it is durable, and each copy once the network has it.
"""

from engine.core.ports import ContactRecord
from engine.delivery.book import Copy, Which
from engine.delivery.contract import Protocol
from engine.delivery.recorder import Recorder
from engine.network.transport import Receipt
from engine.runtime.inbox import S
from engine.runtime.slice import Slice
from engine.session.session import ConversationRecord
from engine.session.types import Publish


def which_is(record: ConversationRecord) -> Which:
    protocol = Protocol.MVDS if isinstance(record, ContactRecord) else Protocol.SDS
    return Which(record.conversation_id, protocol)


def record_slice(recorder: Recorder, record: ConversationRecord, slice_: Slice[S]) -> None:
    if slice_.steps:
        recorder.took(which_is(record), slice_.steps, slice_.writes)


def record_copy(
    recorder: Recorder, record: ConversationRecord, publish: Publish, receipt: Receipt
) -> None:
    copy = Copy(
        publish.purpose,
        publish.message_ids,
        publish.repairs,
        receipt.waku_hash,
        len(publish.message.payload),
        receipt.peers,
    )
    recorder.published(which_is(record), copy)
