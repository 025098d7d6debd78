"""Replies, reactions, edits, deletions and mentions between engines, in a group and in a pair."""

import asyncio
from collections.abc import Callable

import pytest

from engine.answers import Arrival
from engine.core.content import Mention
from engine.core.emoji import MAX_EMOJI_EACH
from engine.core.errors import CommandError, CommandRefusal, InputError
from engine.core.ids import ConversationId, DeliveryState, MessageId, ParticipantId
from engine.core.ports import PutDelivery
from engine.core.records import DeliveryRecord
from engine.events import (
    AnnotationKind,
    ConversationChanged,
    EngineEvent,
    GapUpdated,
    MessageAdded,
    MessageChanged,
    MessageView,
    ReactionReceived,
    TimelineChanged,
)
from engine.persistence.rules import MAX_QUOTING
from engine.text_spans import SpanKind
from tests.patience import PATIENCE_S
from tests.runtime.conftest import MakePerson, Person
from tests.runtime.test_engine_pairs_set_right import friends


def shown(wanted: Callable[[MessageView], bool]) -> Callable[[EngineEvent], bool]:
    return lambda event: isinstance(event, MessageAdded | MessageChanged) and wanted(event.message)


async def row(person: Person, text: str) -> MessageView:
    event = await person.until(shown(lambda message: message.text == text))
    assert isinstance(event, MessageAdded | MessageChanged)
    return event.message


def own_id(person: Person) -> ParticipantId:
    identity = person.engine.identity()
    assert identity is not None
    return identity.participant_id


@pytest.fixture(params=["group", "pair"])
async def talk(
    request: pytest.FixtureRequest, person: MakePerson
) -> tuple[Person, Person, ConversationId]:
    alice, bob = await person("Alice"), await person("Bob")
    if request.param == "pair":
        return alice, bob, await friends(alice, bob)
    group = await alice.engine.groups.create("Friends")
    await bob.join(alice, group)
    return alice, bob, group


Talk = tuple[Person, Person, ConversationId]


async def test_a_reply_shows_what_it_answers(talk: Talk) -> None:
    alice, bob, place = talk
    asked = await alice.engine.timeline.send_text(place, "Tea or coffee?")
    await row(bob, "Tea or coffee?")
    await bob.engine.timeline.send_text(place, "Tea!", reply_to=asked)
    answer = await row(alice, "Tea!")
    assert answer.quote is not None
    assert (answer.quote.message_id, answer.quote.text) == (asked, "Tea or coffee?")
    assert (answer.quote.is_own, answer.quote.sender_name) == (True, "Alice")
    await alice.engine.timeline.edit(place, asked, "Tea or cocoa?")
    changed = await bob.until(
        shown(lambda m: m.quote is not None and m.quote.text == "Tea or cocoa?")
    )
    assert isinstance(changed, MessageChanged)
    assert changed.message.text == "Tea!"


async def test_a_quote_of_what_is_not_here_says_so(talk: Talk) -> None:
    alice, bob, place = talk
    lost = MessageId("A" * 22)
    await alice.engine.timeline.send_text(place, "As I said", reply_to=lost)
    answer = await row(bob, "As I said")
    assert answer.quote is not None
    assert (answer.quote.message_id, answer.quote.position) == (lost, None)


async def test_reactions_are_counted_and_taken_back(talk: Talk) -> None:
    alice, bob, place = talk
    text = await alice.engine.timeline.send_text(place, "Done!")
    await row(bob, "Done!")
    await bob.engine.timeline.react(place, text, "🎉", active=True)
    await alice.engine.timeline.react(place, text, "🎉", active=True)
    for person, names in ((alice, ("Bob",)), (bob, ("Alice",))):
        both = shown(lambda m: [r.count for r in m.reactions] == [2] and not m.reactions[0].pending)
        event = await person.until(both)
        assert isinstance(event, MessageChanged)
        (reaction,) = event.message.reactions
        assert (reaction.emoji, reaction.mine, reaction.names) == ("🎉", True, names)
    told = await alice.until(lambda event: isinstance(event, ReactionReceived))
    assert isinstance(told, ReactionReceived)
    assert (told.annotation.emoji, told.annotation.target_text) == ("🎉", "Done!")
    assert told.annotation.sender_name == "Bob"
    reactors = await alice.engine.timeline.reactors(place, text)
    assert {(one.name, one.emoji, one.is_own) for one in reactors} == {
        ("Alice", "🎉", True),
        ("Bob", "🎉", False),
    }
    bob.told.clear()
    await alice.engine.timeline.react(place, text, "🎉", active=False)
    left = await bob.until(shown(lambda m: [r.count for r in m.reactions] == [1]))
    assert isinstance(left, MessageChanged)
    assert not any(isinstance(event, ReactionReceived) for event in bob.told)


async def test_who_reacts_learns_which_reaction_counts_no_more(talk: Talk) -> None:
    alice, _bob, place = talk
    timeline = alice.engine.timeline
    text = await timeline.send_text(place, "Done!")
    many = [chr(0x1F400 + number) for number in range(MAX_EMOJI_EACH)]
    for emoji in many:
        assert not await timeline.react(place, text, emoji, active=True)
    assert not await timeline.react(place, text, many[3], active=True), "it is there already"
    assert list(await timeline.react(place, text, "❤️", active=True)) == many[:1]
    assert not await timeline.react(place, text, "❤", active=False)
    given = await timeline.reactors(place, text)
    assert [one.emoji for one in given] == many[1:]


async def test_the_list_speaks_of_a_reaction_that_is_newer_than_the_last_message(
    talk: Talk,
) -> None:
    alice, bob, place = talk
    text = await alice.engine.timeline.send_text(place, "Done!")
    await row(bob, "Done!")
    await bob.engine.timeline.react(place, text, "👍", active=True)
    event = await alice.until(
        lambda event: (
            isinstance(event, ConversationChanged)
            and event.conversation.last_annotation is not None
        )
    )
    assert isinstance(event, ConversationChanged)
    said = event.conversation.last_annotation
    assert said is not None
    assert (said.kind, said.sender_name, said.emoji) == (AnnotationKind.REACTION, "Bob", "👍")
    alice.told.clear()
    await alice.engine.timeline.send_text(place, "Next")
    await alice.until(
        lambda event: (
            isinstance(event, ConversationChanged)
            and event.conversation.last_message is not None
            and event.conversation.last_message.text == "Next"
            and event.conversation.last_annotation is None
        )
    )


async def test_an_edit_changes_the_text_and_keeps_the_versions(talk: Talk) -> None:
    alice, bob, place = talk
    text = await alice.engine.timeline.send_text(place, "Meet at 8")
    await row(bob, "Meet at 8")
    await alice.engine.timeline.edit(place, text, "Meet at 9 https://example.org")
    event = await bob.until(shown(lambda m: m.edited_ms is not None))
    assert isinstance(event, MessageChanged)
    assert (event.message.message_id, event.message.is_own) == (text, False)
    assert event.message.text == "Meet at 9 https://example.org"
    assert [span.kind for span in event.message.spans] == [SpanKind.LINK]
    for person in (alice, bob):
        versions = await person.engine.timeline.versions(place, text)
        assert [(v.text, v.is_shown) for v in versions] == [
            ("Meet at 8", False),
            ("Meet at 9 https://example.org", True),
        ]
        assert [v.delivery is not None for v in versions] == [person is alice] * 2
    with pytest.raises(CommandError) as refused:
        await bob.engine.timeline.edit(place, text, "Meet at 10")
    assert refused.value.refusal is CommandRefusal.NOT_OURS


async def test_the_tick_of_an_edited_message_is_that_of_its_edit(talk: Talk) -> None:
    alice, bob, place = talk
    text = await alice.engine.timeline.send_text(place, "One")
    await alice.until(shown(lambda m: m.delivery is not None and m.delivery.state == "held"))
    await bob.engine.stop()
    alice.told.clear()
    await alice.engine.timeline.edit(place, text, "Two")
    event = await alice.until(shown(lambda m: m.text == "Two"))
    assert isinstance(event, MessageChanged)
    assert event.message.delivery is not None
    assert event.message.delivery.state is DeliveryState.SAVED


async def test_a_retraction_leaves_no_text(talk: Talk) -> None:
    alice, bob, place = talk
    text = await alice.engine.timeline.send_text(place, "Secret")
    await row(bob, "Secret")
    await bob.engine.timeline.react(place, text, "👀", active=True)
    await bob.engine.timeline.send_text(place, "Psst", reply_to=text)
    await alice.engine.timeline.edit(place, text, "Secret!")
    await alice.engine.timeline.retract(place, text)
    for person in (alice, bob):
        event = await person.until(shown(lambda m: m.retracted))
        assert isinstance(event, MessageChanged)
        assert (event.message.text, event.message.reactions) == ("", ())
        versions = await person.engine.timeline.versions(place, text)
        assert {version.text for version in versions} == {""}
        quoting = await person.until(shown(lambda m: m.quote is not None and m.quote.retracted))
        assert isinstance(quoting, MessageChanged)
        assert quoting.message.quote is not None
        assert quoting.message.quote.text == ""
    for refused in (
        bob.engine.timeline.react(place, text, "👍", active=True),
        alice.engine.timeline.edit(place, text, "Again"),
    ):
        with pytest.raises(CommandError) as error:
            await refused
        assert error.value.refusal is CommandRefusal.RETRACTED
    await alice.engine.timeline.retract(place, text)


async def test_who_is_mentioned_sees_it_by_their_present_name(talk: Talk) -> None:
    alice, bob, place = talk
    await bob.engine.set_muted(place, muted=True)
    mention = Mention(participant_id=own_id(bob), start=4, length=8)
    await alice.engine.timeline.send_text(place, "Hi, @Bobbbby!", mentions=[mention])
    event = await bob.until(shown(lambda m: m.mentions_me))
    assert isinstance(event, MessageAdded)
    assert event.notify, "although the conversation is muted"
    assert event.message.text == "Hi, @Bob!"
    assert [(s.kind, s.start, s.length) for s in event.message.spans] == [(SpanKind.MENTION, 4, 4)]
    changed = await bob.until(
        lambda e: isinstance(e, ConversationChanged) and e.conversation.mentions == 1
    )
    assert isinstance(changed, ConversationChanged)
    assert changed.conversation.first_mention == event.message.position
    own = await row(alice, "Hi, @Bob!")
    assert not own.mentions_me
    await bob.engine.timeline.mark_read(place, event.message.position)
    read = await bob.engine.conversations()
    assert [(view.mentions, view.first_mention) for view in read if view.unread == 0][:1] == [
        (0, None)
    ]


async def test_an_edit_that_mentions_somebody_counts_until_it_is_read_and_does_not_ring(
    talk: Talk,
) -> None:
    alice, bob, place = talk
    said = await alice.engine.timeline.send_text(place, "The pump is back")
    first = await row(bob, "The pump is back")
    mention = Mention(participant_id=own_id(bob), start=4, length=4)
    await alice.engine.timeline.edit(place, said, "Hi, @Bob", mentions=[mention])
    changed = await bob.until(
        lambda e: isinstance(e, ConversationChanged) and e.conversation.mentions == 1
    )
    assert isinstance(changed, ConversationChanged)
    assert changed.conversation.first_mention == first.position
    rung = [e.message.text for e in bob.told if isinstance(e, MessageAdded) and e.notify]
    assert rung[-1] == "The pump is back"
    assert not any(isinstance(e, ReactionReceived) for e in bob.told)
    await bob.engine.timeline.mark_read(place, first.position)
    read = await bob.engine.conversations()
    assert [view.mentions for view in read if view.conversation_id == place] == [0]


async def test_a_forwarded_text_says_so_and_info_says_how_it_came(talk: Talk) -> None:
    alice, bob, place = talk
    text = await alice.engine.timeline.send_text(place, "By somebody else", forwarded=True)
    received = await row(bob, "By somebody else")
    assert received.forwarded
    there = await bob.engine.timeline.info(place, text)
    assert (there.message.message_id, there.arrival, there.repaired_by) == (text, Arrival.LIVE, "")
    here = await alice.engine.timeline.info(place, text)
    assert here.arrival is Arrival.WRITTEN_HERE
    assert here.received_ms <= there.received_ms
    with pytest.raises(CommandError) as refused:
        await bob.engine.timeline.info(place, MessageId("B" * 22))
    assert refused.value.refusal is CommandRefusal.NO_MESSAGE


async def test_what_cannot_be_said_is_refused(talk: Talk) -> None:
    alice, bob, place = talk
    timeline = alice.engine.timeline
    text = await timeline.send_text(place, "Hi @Bob")
    wrong = [
        Mention(participant_id=own_id(bob), start=start, length=length)
        for start, length in ((0, 2), (3, 5), (3, 1), (-3, 4))
    ]
    for mention in wrong:
        with pytest.raises(InputError):
            await timeline.send_text(place, "Hi @Bob", mentions=[mention])
    for emoji in ("", "no", "👍👍", "<b>"):
        with pytest.raises(InputError):
            await timeline.react(place, text, emoji, active=True)
    for message_id in (MessageId("C" * 22), MessageId("")):
        with pytest.raises(CommandError):
            await timeline.react(place, message_id, "👍", active=True)


async def test_what_is_quoted_and_nowhere_becomes_a_gap_that_is_looked_for(
    person: MakePerson,
) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    place = await alice.engine.groups.create("Friends")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(place))
    answer = await alice.engine.timeline.send_text(place, "Yes", reply_to=MessageId("Q" * 22))
    await row(bob, "Yes")
    await bob.engine.timeline.fetch_quoted(place, answer)
    event = await bob.until(lambda e: isinstance(e, GapUpdated) and e.gap is not None)
    assert isinstance(event, GapUpdated)
    assert event.gap is not None
    (gap,) = event.gap.places
    assert (gap.missing, gap.before and gap.before.message_id) == (1, answer)


async def test_nothing_is_looked_for_that_is_here_or_not_quoted(talk: Talk) -> None:
    alice, bob, place = talk
    first = await alice.engine.timeline.send_text(place, "One")
    answer = await alice.engine.timeline.send_text(place, "Two", reply_to=first)
    await row(bob, "Two")
    for message_id in (first, answer):
        await bob.engine.timeline.fetch_quoted(place, message_id)
    gap = await bob.engine.timeline.gap(place)
    assert gap is None


async def test_info_says_who_else_has_the_message_of_another(person: MakePerson) -> None:
    alice, bob, carol = await person("Alice"), await person("Bob"), await person("Carol")
    place = await alice.engine.groups.create("Friends")
    for one in (bob, carol):
        await one.engine.groups.join(await alice.engine.groups.make_invite_link(place))
    text = await alice.engine.timeline.send_text(place, "Do you hear me?")
    for one in (bob, carol):
        await row(one, "Do you hear me?")
    await bob.until(
        lambda e: isinstance(e, ConversationChanged) and len(e.conversation.members) == 3
    )
    async with asyncio.timeout(PATIENCE_S):
        while not (info := await bob.engine.timeline.info(place, text)).holders[0].certain:
            bob.passed_ms += 10_000
            carol.passed_ms += 10_000
            await asyncio.sleep(0)
    (holder,) = info.holders
    assert (holder.name, holder.source) == ("Carol", "holdings")
    assert info.size > 0


async def test_who_quotes_what_was_deleted_here_shows_it_no_more(talk: Talk) -> None:
    alice, bob, place = talk
    first = await alice.engine.timeline.send_text(place, "Hide me")
    await alice.engine.timeline.send_text(place, "As I said", reply_to=first)
    await row(bob, "As I said")
    await bob.engine.timeline.delete_locally(place, first)
    event = await bob.until(shown(lambda m: m.quote is not None and m.quote.hidden))
    assert isinstance(event, MessageChanged)
    assert event.message.quote is not None
    assert (event.message.text, event.message.quote.text) == ("As I said", "")


async def test_an_edit_is_held_like_a_text(talk: Talk) -> None:
    alice, bob, place = talk
    text = await alice.engine.timeline.send_text(place, "One")
    await row(bob, "One")
    await alice.engine.timeline.edit(place, text, "Two")
    await bob.engine.timeline.send_text(place, "I see")
    await alice.until(
        shown(lambda m: m.text == "Two" and m.delivery is not None and m.delivery.state == "held")
    )
    first, second = await alice.engine.timeline.versions(place, text)
    assert second.delivery is not None
    assert second.delivery.held_by == (own_id(bob),)
    holders = await alice.engine.timeline.holders(place, text)
    assert [(holder.name, holder.certain) for holder in holders] == [("Bob", True)]
    assert first.delivery is not None


async def test_what_is_shown_is_sent_again(talk: Talk) -> None:
    """The edit, although its message was delivered long ago."""
    alice, bob, place = talk
    text = await alice.engine.timeline.send_text(place, "One")
    await alice.until(shown(lambda m: m.delivery is not None and m.delivery.state == "held"))
    bob.transport.set_online(False)
    await alice.engine.timeline.edit(place, text, "Two")
    _, edit = await alice.engine.timeline.versions(place, text)
    given_up = PutDelivery(
        conversation_id=place,
        message_id=edit.message_id,
        delivery=DeliveryRecord(state=DeliveryState.FAILED),
    )
    await alice.engine.runner(place).write(given_up)
    bob.transport.set_online(True)
    await alice.engine.timeline.resend(place, text)
    await row(bob, "Two")


async def test_a_retracted_text_leaves_all_quotes_however_many(talk: Talk) -> None:
    """Few rows that quote it are told one by one; for more, the timeline is to be read again."""
    alice, bob, place = talk
    text = await alice.engine.timeline.send_text(place, "Secret")
    await row(bob, "Secret")
    many = MAX_QUOTING + 6
    for number in range(many):
        await bob.engine.timeline.send_text(place, f"Re {number}", reply_to=text)
    await row(alice, f"Re {many - 1}")
    for person in (alice, bob):
        person.told.clear()
    await alice.engine.timeline.retract(place, text)
    for person in (alice, bob):
        await person.until(lambda event: isinstance(event, TimelineChanged))


async def test_one_that_many_quote_is_deleted_here_from_all_quotes(talk: Talk) -> None:
    alice, _, place = talk
    text = await alice.engine.timeline.send_text(place, "Hide me")
    for number in range(MAX_QUOTING + 6):
        await alice.engine.timeline.send_text(place, f"Re {number}", reply_to=text)
    alice.told.clear()
    await alice.engine.timeline.delete_locally(place, text)
    await alice.until(lambda event: isinstance(event, TimelineChanged))
