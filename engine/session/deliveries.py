"""The delivery state of an own message, from the state of SDS's outgoing buffer.

"Saved" until the network took a copy, then "sent"; "failed" if it never did.
"""

from engine.core.ids import ConversationId, DeliveryState, MessageId
from engine.core.ports import PutDelivery
from engine.core.problems import FailureReason
from engine.core.records import DeliveryRecord
from engine.core.sds.vocabulary import OutgoingChanged, OutgoingState
from engine.session.transitions import RowChanged, TransitionBuilder


def tell_outgoing(
    conversation_id: ConversationId, event: OutgoingChanged, builder: TransitionBuilder
) -> None:
    if event.state is OutgoingState.FAILED:
        state = DeliveryState.FAILED
    elif event.accepted or event.state is OutgoingState.ACKNOWLEDGED:
        state = DeliveryState.SENT
    else:
        state = DeliveryState.SAVED
    attempts = event.attempts if state is DeliveryState.FAILED else 0
    put = delivery_write(conversation_id, event.message_id, state, attempts=attempts)
    builder.writes.append(put)
    builder.notes.append(RowChanged(message_id=event.message_id))


def delivery_write(
    conversation_id: ConversationId,
    message_id: MessageId,
    state: DeliveryState,
    *,
    attempts: int = 0,
) -> PutDelivery:
    failed = state is DeliveryState.FAILED
    return PutDelivery(
        conversation_id=conversation_id,
        message_id=message_id,
        delivery=DeliveryRecord(
            state=state,
            attempts=attempts,
            failure=FailureReason.NOBODY_TOOK_IT if failed else None,
        ),
    )
