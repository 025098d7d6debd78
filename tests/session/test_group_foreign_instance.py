"""A member who writes under somebody else's author instance, before that one was heard."""

from engine.codec.content import decode_content, encode_content
from engine.codec.message_id import message_id_in
from engine.codec.sds import decode_message
from engine.codec.waku import decode_waku_message
from engine.core.content import NONCE_BYTES, Content, Text
from engine.core.ids import AuthorSequence, MessageId, UnixMs
from engine.core.sds.vocabulary import Message
from engine.crypto.sealed import Opened
from engine.session.group.author_binding import bound_author
from engine.sim.network import Outgoing
from engine.sim.session_participant import SessionParticipant
from tests.session.test_group_hostile_member import CHANNEL, NOW, Mallory


def test_nobody_is_made_to_claim_what_it_does_not_hold() -> None:
    """Alice missed Dave's join, and Mallory uses his numbers for what Alice does hear."""
    mallory = Mallory()
    dave = SessionParticipant("Dave", seed=11, now_ms=NOW)
    joined = dave.join_group(mallory.alice.invite_link(), now_ms=NOW)
    (message,) = (decode_message(opened(mallory, sent).sds_bytes) for sent in joined)
    assert message.content is not None
    squatted = decode_content(message.content).author
    for sequence in range(1, squatted.sequence + 3):
        author = AuthorSequence(instance_id=squatted.instance_id, sequence=sequence)
        mallory.tell(_under(mallory, author))
    for _ in range(20):
        deadline_ms = mallory.alice.next_deadline()
        if deadline_ms is None:
            break
        for sent in mallory.alice.advance(now_ms=deadline_ms):
            dave.receive(sent.payload, now_ms=deadline_ms)
    # Nobody has his join, and whoever is wrongly believed to would end its rebroadcast.
    kept = [entry.message_id for entry in dave.session.channel.snapshot().outgoing]
    assert kept == [message.message_id]
    for sent in joined:
        mallory.alice.receive(sent.payload, now_ms=UnixMs(NOW + 60_000))
    said = live(mallory.alice, NOW + 60_000, NOW + 120_000)
    claims = [opened(mallory, sent).claim for sent in said]
    author = bound_author(dave.participant_id, squatted)
    # And what is his does count once it is there.
    assert any(claim and author.instance_id in (claim.holdings or {}) for claim in claims)


def live(someone: SessionParticipant, start_ms: int, end_ms: int) -> list[Outgoing]:
    """All that falls due in between."""
    sent: list[Outgoing] = []
    now_ms = start_ms
    while (deadline_ms := someone.next_deadline()) is not None and deadline_ms <= end_ms:
        now_ms = max(now_ms, deadline_ms)
        sent += someone.advance(now_ms=UnixMs(now_ms))
    return sent


def opened(mallory: Mallory, sent: Outgoing) -> Opened:
    return mallory.group.open(decode_waku_message(sent.payload).payload)


def _under(mallory: Mallory, author: AuthorSequence) -> Message:
    content = encode_content(
        Content(
            author=author,
            previous_id=None if author.sequence == 1 else MessageId("before"),
            nonce=bytes(NONCE_BYTES),
            sent_ms=NOW,
            body=Text(text=f"I am number {author.sequence}"),
        )
    )
    sender_id, lamport = mallory.identity.participant_id, NOW + author.sequence
    message_id = message_id_in(mallory.group_id)(sender_id, CHANNEL, lamport, (), content)
    return mallory.content("x", lamport, content=content, message_id=message_id)
