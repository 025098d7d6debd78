"""What a timeline shows of each kind of content, and what makes no row at all."""

import pytest

from engine.core.content import (
    Body,
    ContactAnswer,
    ContactRequest,
    Content,
    Created,
    Edit,
    FilesHeld,
    Leave,
    ProfileUpdate,
    Reaction,
    Retraction,
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
from engine.session.rows import makes_row, retargeted, row_of, spans_in

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
        (Unsupported(kind="poll"), MessageKind.UNSUPPORTED, "poll"),
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


@pytest.mark.parametrize(
    "body",
    [
        ProfileUpdate(name="Zoë"),
        FilesHeld((MessageId("m"),)),
        Reaction(target_id=MessageId("m"), emoji="👍"),
        Edit(target_id=MessageId("m"), text=Text(text="better")),
        Retraction(target_id=MessageId("m")),
    ],
)
def test_what_speaks_of_something_else_makes_no_row(body: Body) -> None:
    assert not makes_row(body)
    with pytest.raises(LocalProtocolError):
        row(body)


@pytest.mark.parametrize("kind", ["reaction", "edit", "retraction"])
def test_a_malformed_annotation_is_not_shown_as_something_newer(kind: str) -> None:
    assert not makes_row(Unsupported(kind=kind))


def test_a_text_keeps_what_it_answers_and_whom_it_means() -> None:
    carol = ParticipantId("0123456789-_abcdefghiA")
    text = Text(
        text="@Carol https://example.org",
        reply_to=MessageId("m"),
        mentions=(carol,),
        mention_places=((0, 6),),
        forwarded=True,
    )
    record = row(text)
    assert (record.reply_to, record.forwarded, record.mentions_me) == ("m", True, False)
    assert [(s.kind, s.start, s.length, s.target) for s in record.spans] == [
        ("mention", 0, 6, carol),
        ("link", 7, 19, "https://example.org"),
    ]


def test_a_link_that_overlaps_a_mention_is_none() -> None:
    carol = ParticipantId("0123456789-_abcdefghiA")
    text = Text(text="bob@example.org", mentions=(carol,), mention_places=((3, 8),))
    assert [span.kind for span in spans_in(Text(text=text.text))] == ["link"]
    assert [span.kind for span in spans_in(text)] == ["mention"]


def test_no_style_begins_or_ends_within_a_mention() -> None:
    carol = ParticipantId("c" * 22)
    text = Text(text="**@b_o_ *b* c*** d", mentions=(carol,), mention_places=((2, 5),))
    assert [(span.kind, span.start, span.length) for span in spans_in(text)] == [
        ("mention", 2, 5),
        ("italic", 8, 3),
        ("hidden", 8, 1),
        ("hidden", 10, 1),
    ]


def test_what_is_said_again_speaks_of_what_was_said_again() -> None:
    old, new, other = MessageId("old"), MessageId("new"), MessageId("other")
    replaced = {old: new}
    bodies: list[Body] = [
        Text(text="yes", reply_to=old),
        Reaction(target_id=old, emoji="👍"),
        Edit(target_id=old, text=Text(text="better")),
        Retraction(target_id=old),
    ]
    again: list[Body] = [
        Text(text="yes", reply_to=new),
        Reaction(target_id=new, emoji="👍"),
        Edit(target_id=new, text=Text(text="better")),
        Retraction(target_id=new),
    ]
    assert [retargeted(body, replaced) for body in bodies] == again
    assert [retargeted(body, {other: new}) for body in bodies] == bodies
    assert retargeted(Leave(), replaced) == Leave()
