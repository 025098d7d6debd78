"""What a timeline shows of each kind of content, and what makes no row at all."""

import pytest

from engine.core.content import (
    Body,
    ContactAnswer,
    ContactRequest,
    Content,
    Created,
    Leave,
    ProfileUpdate,
    Text,
    Unsupported,
)
from engine.core.errors import LocalProtocolError
from engine.core.ids import (
    AuthorSequence,
    ConversationId,
    InstanceId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.records import MessageRecord
from engine.events import MessageKind
from engine.session.rows import makes_row, row_of

POSITION = Position(lamport_timestamp=7, message_id=MessageId("x"))


def row(body: Body) -> MessageRecord:
    content = Content(
        author=AuthorSequence(instance_id=InstanceId(bytes(16)), sequence=1),
        previous_id=None,
        nonce=bytes(16),
        sent_ms=UnixMs(1),
        body=body,
        lamport_timestamp=7,
    )
    return row_of(
        ConversationId("pair"),
        content,
        position=POSITION,
        sender_id=ParticipantId("bob"),
        is_own=False,
        now_ms=UnixMs(2),
    )


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (Text(text="see https://example.org"), MessageKind.TEXT, "see https://example.org"),
        (Created(name="https://example.org"), MessageKind.CREATED, "https://example.org"),
        (Leave(), MessageKind.LEFT, ""),
        (ContactRequest(name="Zoë", round=1), MessageKind.ASKED, "Zoë"),
        (
            ContactAnswer(accepted=True, round=1, name="https://a.org"),
            MessageKind.ACCEPTED,
            "https://a.org",
        ),
        (ContactAnswer(accepted=False, round=1), MessageKind.DECLINED, ""),
        (ContactAnswer(accepted=False, round=1, withdrawn=True), MessageKind.WITHDRAWN, ""),
        (Unsupported(kind="edit"), MessageKind.UNSUPPORTED, "edit"),
    ],
)
def test_every_kind_has_its_row_and_only_texts_have_links(
    body: Body, kind: MessageKind, text: str
) -> None:
    record = row(body)
    assert makes_row(body)
    assert (MessageKind(record.kind), record.text) == (kind, text)
    assert bool(record.spans) == (kind is MessageKind.TEXT)
    assert (record.position, record.sent_ms, record.received_ms) == (POSITION, 1, 2)


def test_a_profile_update_makes_no_row() -> None:
    body = ProfileUpdate(name="Zoë")
    assert not makes_row(body)
    with pytest.raises(LocalProtocolError):
        row(body)
