"""People as the window meets them: links, requests, answers, blocking, names, presence."""

import asyncio
from collections.abc import Callable

import pytest

from engine.core.contacts import ContactState
from engine.core.errors import CommandError, ConfigError, InviteError, LocalProtocolError
from engine.core.ids import ConversationId, DeliveryState
from engine.events import (
    ContactView,
    ConversationAdded,
    ConversationChanged,
    ConversationRemoved,
    EngineEvent,
    MessageAdded,
    MessageChanged,
    MessageKind,
    TypingChanged,
)
from tests.patience import PATIENCE_S
from tests.runtime.conftest import MakePerson, Person

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8_000)


def shows(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: isinstance(event, MessageAdded) and event.message.text == text


def delivered(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, MessageChanged)
        and event.message.text == text
        and event.message.delivery is not None
        and event.message.delivery.state is DeliveryState.HELD
    )


def contact_is(wanted: Callable[[ContactView], bool]) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, ConversationChanged | ConversationAdded)
        and event.conversation.contact is not None
        and wanted(event.conversation.contact)
    )


def state_is(state: ContactState) -> Callable[[EngineEvent], bool]:
    return contact_is(lambda contact: contact.state is state)


async def contact_of(person: Person, pair: ConversationId) -> ContactView:
    views = {view.conversation_id: view for view in await person.engine.conversations()}
    contact = views[pair].contact
    assert contact is not None
    return contact


async def friends(person: MakePerson) -> tuple[Person, Person, ConversationId]:
    """Alice asked Bob, and he accepted."""
    alice, bob = await person("Alice"), await person("Bob")
    pair = await alice.engine.people.add(await bob.engine.people.make_contact_link())
    await bob.until(state_is(ContactState.ASKING))
    await bob.engine.people.accept(pair)
    await alice.until(state_is(ContactState.ACCEPTED))
    return alice, bob, pair


async def rows(person: Person, pair: ConversationId) -> list[tuple[MessageKind, str]]:
    return [(m.kind, m.text) for m in (await person.engine.timeline.latest_page(pair)).messages]


async def texts(person: Person, pair: ConversationId) -> list[str]:
    return [text for kind, text in await rows(person, pair) if kind is MessageKind.TEXT]


async def test_a_request_is_shown_accepted_and_then_they_talk_both_ways(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    link = await bob.engine.people.make_contact_link()
    preview = alice.engine.people.preview_contact(link)
    assert (preview.name, preview.known) == ("Bob", None)
    pair = await alice.engine.people.add(link)
    assert pair == preview.conversation_id
    assert alice.engine.people.preview_contact(link).known is ContactState.ASKED
    added = await bob.until(lambda event: isinstance(event, ConversationAdded))
    assert isinstance(added, ConversationAdded)
    assert added.conversation.name == "Alice"
    assert added.conversation.contact is not None
    assert added.conversation.contact.state is ContactState.ASKING
    await bob.engine.people.accept(pair)
    await alice.until(state_is(ContactState.ACCEPTED))
    await alice.engine.timeline.send_text(pair, "hello Bob")
    shown = await bob.until(shows("hello Bob"))
    assert isinstance(shown, MessageAdded)
    assert shown.notify
    assert shown.message.sender_name == "Alice"
    await alice.until(delivered("hello Bob"))
    await bob.engine.timeline.send_text(pair, "hello Alice")
    await alice.until(shows("hello Alice"))
    await bob.until(delivered("hello Alice"))
    expected = [
        (MessageKind.ASKED, "Alice"),
        (MessageKind.ACCEPTED, "Bob"),
        (MessageKind.TEXT, "hello Bob"),
        (MessageKind.TEXT, "hello Alice"),
    ]
    assert await rows(alice, pair) == await rows(bob, pair) == expected


async def test_both_see_the_same_safety_number_and_each_other(person: MakePerson) -> None:
    alice, bob, pair = await friends(person)
    hers, his = await contact_of(alice, pair), await contact_of(bob, pair)
    assert hers.safety_number == his.safety_number
    bobs, alices = bob.engine.identity(), alice.engine.identity()
    assert bobs is not None
    assert alices is not None
    assert (hers.fingerprint, his.fingerprint) == (bobs.fingerprint, alices.fingerprint)
    (view,) = await alice.engine.conversations()
    assert {(m.name, m.is_self) for m in view.members} == {("Alice", True), ("Bob", False)}


async def test_delivered_is_of_one_and_the_inspector_names_them(person: MakePerson) -> None:
    alice, bob, pair = await friends(person)
    message_id = await alice.engine.timeline.send_text(pair, "who has it?")
    changed = await alice.until(delivered("who has it?"))
    assert isinstance(changed, MessageChanged)
    delivery = changed.message.delivery
    assert delivery is not None
    bobs = bob.engine.identity()
    assert bobs is not None
    assert (delivery.of, delivery.held_by) == (1, (bobs.participant_id,))
    (line,) = await alice.engine.timeline.holders(pair, message_id)
    assert (line.name, line.certain) == ("Bob", True)


async def test_before_both_want_it_no_text_can_be_sent(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    pair = await alice.engine.people.add(await bob.engine.people.make_contact_link())
    with pytest.raises(CommandError, match="not_answered"):
        await alice.engine.timeline.send_text(pair, "hello?")
    await bob.until(state_is(ContactState.ASKING))
    with pytest.raises(CommandError, match="accept_first"):
        await bob.engine.timeline.send_text(pair, "who are you?")


async def test_a_declined_request_is_told_and_can_be_made_again_from_either_side(
    person: MakePerson,
) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    pair = await alice.engine.people.add(await bob.engine.people.make_contact_link())
    await bob.until(state_is(ContactState.ASKING))
    await bob.engine.people.decline(pair)
    await alice.until(state_is(ContactState.DECLINED))
    assert (await rows(alice, pair))[-1][0] is MessageKind.DECLINED
    alice.told.clear()
    bob.told.clear()
    await bob.engine.people.accept(pair)
    await alice.until(state_is(ContactState.ASKING))
    await alice.engine.people.accept(pair)
    await bob.until(state_is(ContactState.ACCEPTED))
    await bob.engine.timeline.send_text(pair, "I thought again")
    await alice.until(shows("I thought again"))


async def test_whom_we_declined_today_is_not_shown_again(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    link = await bob.engine.people.make_contact_link()
    pair = await alice.engine.people.add(link)
    await bob.until(state_is(ContactState.ASKING))
    await bob.engine.people.decline(pair)
    await alice.until(state_is(ContactState.DECLINED))
    before = await rows(bob, pair)
    bob.told.clear()
    alice.told.clear()
    await alice.engine.people.add(link)
    await bob.until_counted("pair.before_agreeing", 1)
    assert await rows(bob, pair) == before
    assert (await contact_of(bob, pair)).state is ContactState.DECLINED
    assert not [event for event in bob.told if isinstance(event, MessageAdded)]


async def test_a_request_is_withdrawn_and_made_again(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    pair = await alice.engine.people.add(await bob.engine.people.make_contact_link())
    await bob.until(state_is(ContactState.ASKING))
    bob.told.clear()
    await alice.engine.people.withdraw(pair)
    await bob.until(state_is(ContactState.DECLINED))
    with pytest.raises(CommandError, match="nothing_to_decline"):
        await bob.engine.people.decline(pair)
    with pytest.raises(CommandError, match="nothing_to_withdraw"):
        await alice.engine.people.withdraw(pair)
    for one, name in ((alice, "Alice"), (bob, "Alice")):
        asked, withdrawn = await rows(one, pair)
        assert asked == (MessageKind.ASKED, name)
        assert withdrawn[0] is MessageKind.WITHDRAWN
    bob.told.clear()
    await alice.engine.people.accept(pair)
    await bob.until(state_is(ContactState.ASKING))
    await bob.engine.people.accept(pair)
    await alice.until(state_is(ContactState.ACCEPTED))


async def test_who_both_ask_have_both_accepted(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    hers, his = (
        await alice.engine.people.make_contact_link(),
        await bob.engine.people.make_contact_link(),
    )
    first, second = await asyncio.gather(alice.engine.people.add(his), bob.engine.people.add(hers))
    assert first == second
    await alice.until(state_is(ContactState.ACCEPTED))
    await bob.until(state_is(ContactState.ACCEPTED))
    await alice.engine.timeline.send_text(first, "you too?")
    await bob.until(shows("you too?"))


@pytest.mark.parametrize("accepts", [True, False])
async def test_who_answers_a_request_as_soon_as_it_is_listed_answers_that_request(
    person: MakePerson, accepts: bool
) -> None:
    """It is in the list before it is handled; the answer waits for that, and opens nothing anew."""
    alice, bob = await person("Alice"), await person("Bob")
    pair = await alice.engine.people.add(await bob.engine.people.make_contact_link())
    async with asyncio.timeout(PATIENCE_S):
        while not await bob.engine.conversations():  # noqa: ASYNC110 - no event tells of it yet
            await asyncio.sleep(0)
    people = bob.engine.people
    await (people.accept(pair) if accepts else people.decline(pair))
    await alice.until(state_is(ContactState.ACCEPTED if accepts else ContactState.DECLINED))
    answer = MessageKind.ACCEPTED if accepts else MessageKind.DECLINED
    for one in (alice, bob):
        asked, answered = await rows(one, pair)
        assert (asked, answered[0]) == ((MessageKind.ASKED, "Alice"), answer)


async def test_adding_somebody_who_asks_already_accepts(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    pair = await alice.engine.people.add(await bob.engine.people.make_contact_link())
    await bob.until(state_is(ContactState.ASKING))
    assert await bob.engine.people.add(await alice.engine.people.make_contact_link()) == pair
    await alice.until(state_is(ContactState.ACCEPTED))


async def test_one_s_own_link_and_a_broken_one_are_refused_with_a_sentence(
    person: MakePerson,
) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    own = await alice.engine.people.make_contact_link()
    with pytest.raises(InviteError, match="own"):
        alice.engine.people.preview_contact(own)
    with pytest.raises(InviteError, match="own"):
        await alice.engine.people.add(own)
    link = await bob.engine.people.make_contact_link()
    with pytest.raises(InviteError):
        await alice.engine.people.add(link[:-9])
    assert await alice.engine.conversations() == []


async def test_who_is_blocked_is_not_heard_and_not_told(person: MakePerson) -> None:
    alice, bob, pair = await friends(person)
    await bob.engine.people.set_blocked(pair, blocked=True)
    alice.told.clear()
    await alice.engine.timeline.send_text(pair, "are you there?")
    await alice.engine.timeline.set_typing(pair, active=True)
    await alice.until(
        lambda event: (
            isinstance(event, MessageChanged)
            and event.message.delivery is not None
            and event.message.delivery.state is DeliveryState.SENT
        )
    )
    await bob.engine.set_muted(pair, muted=True)  # In turn with what has arrived by now.
    assert bob.engine.counters()["pair.blocked"] >= 1
    assert (await contact_of(bob, pair)).state is ContactState.BLOCKED
    assert await texts(bob, pair) == []
    assert (await contact_of(alice, pair)).state is ContactState.ACCEPTED
    assert not any(delivered("are you there?")(event) for event in alice.told)
    with pytest.raises(CommandError, match="blocked"):
        await bob.engine.timeline.send_text(pair, "no")
    with pytest.raises(InviteError, match="blocked"):
        await bob.engine.people.add(await alice.engine.people.make_contact_link())
    await bob.engine.people.set_blocked(pair, blocked=False)
    assert (await contact_of(bob, pair)).state is ContactState.ACCEPTED
    await bob.until(shows("are you there?"))
    await alice.until(delivered("are you there?"))


async def test_a_block_survives_a_restart_and_so_does_what_was_before(person: MakePerson) -> None:
    _, bob, pair = await friends(person)
    await bob.engine.people.set_blocked(pair, blocked=True)
    await bob.engine.stop()
    again = await person("Bob")
    assert (await contact_of(again, pair)).state is ContactState.BLOCKED
    await again.engine.people.set_blocked(pair, blocked=False)
    assert (await contact_of(again, pair)).state is ContactState.ACCEPTED


async def test_a_name_of_one_s_own_for_somebody_survives_a_restart(person: MakePerson) -> None:
    alice, bob, pair = await friends(person)
    await bob.engine.people.rename(pair, "  Alice from  work ")
    with pytest.raises(ConfigError):
        await bob.engine.people.rename(pair, "x" * 65)
    await alice.engine.timeline.send_text(pair, "hi")
    shown = await bob.until(shows("hi"))
    assert isinstance(shown, MessageAdded)
    assert shown.message.sender_name == "Alice from work"
    await bob.engine.stop()
    again = await person("Bob")
    (view,) = await again.engine.conversations()
    assert view.name == "Alice from work"
    assert view.contact is not None
    assert (view.contact.name, view.contact.local_name) == ("Alice", "Alice from work")
    await again.engine.people.rename(pair, "")
    (view,) = await again.engine.conversations()
    assert view.name == "Alice"


async def test_name_and_picture_are_told_and_kept(person: MakePerson) -> None:
    alice, bob, pair = await friends(person)
    made = await alice.engine.set_profile(name="Alicia", picture=PNG)
    assert (made.name, made.picture) == ("Alicia", PNG)
    await bob.until(contact_is(lambda c: c.name == "Alicia" and c.picture == PNG))
    assert len(await rows(bob, pair)) == 2
    with pytest.raises(ConfigError):
        await alice.engine.set_profile(name="Alicia", picture=b"GIF89a")
    await alice.engine.stop()
    again = await person("Alice")
    identity = again.engine.identity()
    assert identity is not None
    assert (identity.name, identity.picture) == ("Alicia", PNG)


async def test_a_request_with_a_picture_reaches_somebody_who_was_away(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    await alice.engine.set_profile(name="Alice", picture=PNG)
    link = await bob.engine.people.make_contact_link()
    bob.transport.set_online(False)
    carol = await person("Carol")
    await alice.engine.people.add(link)
    bob.transport.set_online(True)
    await bob.until(contact_is(lambda c: c.state is ContactState.ASKING and c.picture == PNG))
    assert carol.engine.counters().get("pair.blocked", 0) == 0
    assert await carol.engine.conversations() == []


async def test_both_see_that_the_other_is_there(person: MakePerson) -> None:
    alice, bob, pair = await friends(person)
    await alice.until(contact_is(lambda c: c.is_online and c.last_seen_ms is not None))
    await bob.until(contact_is(lambda c: c.is_online and c.last_seen_ms is not None))
    bob.transport.set_online(False)  # Who is cut off knows nothing of the others.
    await bob.until(contact_is(lambda c: not c.is_online))
    bob.transport.set_online(True)
    await bob.until(contact_is(lambda c: c.is_online))
    await bob.engine.stop()
    alice.transport.set_online(False)
    again = await person("Bob")
    seen = await contact_of(again, pair)
    assert seen.last_seen_ms is not None
    assert not seen.is_online


async def test_typing_is_heard_and_ends_with_the_message(person: MakePerson) -> None:
    alice, bob, pair = await friends(person)
    await alice.engine.timeline.set_typing(pair, active=True)
    await bob.until(lambda e: isinstance(e, TypingChanged) and e.names == ("Alice",))
    await alice.engine.timeline.send_text(pair, "done")
    await bob.until(lambda e: isinstance(e, TypingChanged) and e.names == ())


async def test_a_removed_contact_is_forgotten_and_can_be_met_again(person: MakePerson) -> None:
    alice, bob, pair = await friends(person)
    await alice.engine.timeline.send_text(pair, "before")
    await bob.until(shows("before"))
    await alice.engine.people.remove(pair)
    await alice.until(lambda event: isinstance(event, ConversationRemoved))
    assert await alice.engine.conversations() == []
    with pytest.raises(LocalProtocolError):
        await alice.engine.timeline.send_text(pair, "still?")
    alice.told.clear()
    assert await alice.engine.people.add(await bob.engine.people.make_contact_link()) == pair
    await alice.until(state_is(ContactState.ACCEPTED))
    await alice.engine.timeline.send_text(pair, "after")
    await bob.until(shows("after"))
    await bob.engine.timeline.send_text(pair, "welcome back")
    await alice.until(shows("welcome back"))
    assert await texts(bob, pair) == ["before", "after", "welcome back"]


async def test_group_commands_refuse_a_pair_and_the_other_way_round(person: MakePerson) -> None:
    alice, _, pair = await friends(person)
    group = await alice.engine.groups.create("Tide")
    with pytest.raises(LocalProtocolError):
        await alice.engine.groups.make_invite_link(pair)
    with pytest.raises(LocalProtocolError):
        await alice.engine.groups.leave(pair)
    with pytest.raises(LocalProtocolError):
        await alice.engine.people.remove(group)
    with pytest.raises(LocalProtocolError):
        await alice.engine.people.accept(group)
    await alice.engine.set_muted(pair, muted=True)
    await alice.engine.timeline.save_draft(pair, "dear Bob")
    views = {v.conversation_id: v for v in await alice.engine.conversations()}
    assert (views[pair].muted, views[pair].draft) == (True, "dear Bob")
    assert views[group].contact is None


async def test_whom_one_compared_is_remembered_also_after_a_restart(person: MakePerson) -> None:
    alice, bob, pair = await friends(person)
    alices = (await contact_of(bob, pair)).participant_id
    assert bob.engine.people.verified() == frozenset()
    await bob.engine.people.set_verified(alices, verified=True)
    await bob.engine.stop()
    again = await person("Bob")
    assert again.engine.people.verified() == {alices}
    assert alice.engine.people.verified() == frozenset()
    await again.engine.people.set_verified(alices, verified=False)
    await again.engine.stop()
    assert (await person("Bob")).engine.people.verified() == frozenset()
