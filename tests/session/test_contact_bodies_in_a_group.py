"""What belongs to pairs, said in a group: a row that this cannot be shown, and nothing breaks."""

import os

import pytest

from engine.codec.content import encode_ephemeral
from engine.codec.sds import encode_message
from engine.codec.waku import encode_waku_message
from engine.core.content import (
    Body,
    ContactAnswer,
    ContactRequest,
    FilesHeld,
    Presence,
    ProfileUpdate,
    Text,
)
from engine.core.ids import ChannelId, InstanceId, MessageId, UnixMs
from engine.core.sds.vocabulary import Message
from engine.core.waku import WakuMessage
from engine.runtime.views import message_view
from engine.sim.session_participant import SessionParticipant
from tests.forging import sealed_group_of

NOW = UnixMs(1_800_000_000_000)
OTHER = InstanceId(bytes(16))


def members() -> tuple[SessionParticipant, SessionParticipant]:
    alice, bob = (SessionParticipant(name, seed=5, now_ms=NOW) for name in ("Alice", "Bob"))
    alice.create_group("Tide", now_ms=NOW)
    for sent in bob.join_group(alice.invite_link(), now_ms=NOW):
        alice.receive(sent.payload, now_ms=NOW)
    return alice, bob


def rows(someone: SessionParticipant) -> list[tuple[str, str]]:
    conversation_id = someone.store.groups()[0].conversation_id
    page = someone.store.latest_page(conversation_id, limit=100)
    views = [
        message_view(m, someone.session.members(), someone.participant_id) for m in page.messages
    ]
    return [(view.kind, view.text) for view in views if view.kind in {"unsupported", "text"}]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (ContactRequest(name="Bob", round=1), "contact_request"),
        (
            ContactAnswer(accepted=True, round=1, answered_instance=OTHER, name="Bob"),
            "contact_answer",
        ),
        (ContactAnswer(accepted=False, round=1), "contact_answer"),
        (ProfileUpdate(name="Bob"), "profile_update"),
        (FilesHeld((MessageId("A" * 22),)), "files_held"),
    ],
)
def test_contact_bodies_are_shown_as_unsupported_and_what_follows_is_delivered(
    body: Body, kind: str
) -> None:
    alice, bob = members()
    for said in (body, Text(text="and now something else")):
        for sent in bob.say(said, now_ms=NOW):
            alice.receive(sent.payload, now_ms=NOW)
    assert rows(alice) == rows(bob) == [("unsupported", kind), ("text", "and now something else")]


def test_a_presence_is_dropped_and_counted() -> None:
    alice, bob = members()
    presence = Message(
        sender_id=bob.participant_id,
        message_id=MessageId("ephemeral"),
        channel_id=ChannelId("0"),
        lamport_timestamp=None,
        content=encode_ephemeral(Presence(answer_wanted=True)),
    )
    group = sealed_group_of(bob.store.groups()[0])
    signed = group.sign(bob.identity, encode_message(presence), None, NOW)
    message = WakuMessage(
        payload=group.seal(signed, random_bytes=os.urandom),
        content_topic=alice.session.content_topic,
        timestamp_ns=NOW * 1_000_000,
    )
    alice.receive(encode_waku_message(message), now_ms=NOW)
    assert alice.counters["group.ephemeral_unsupported"] == 1
    assert alice.session.typing_now() == ()
