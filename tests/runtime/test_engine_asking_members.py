"""Somebody of a group is asked to talk: no link is needed, and nothing new is said on the wire."""

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from engine.core.contacts import ContactState
from engine.core.errors import CommandError, LocalProtocolError, StorageError
from engine.core.ids import ConversationId, ParticipantId
from engine.core.ports import PutContact, StoreWrite
from engine.events import ConversationAdded, ConversationChanged, EngineEvent, MessageKind
from tests.runtime.conftest import MakePerson, Person
from tests.runtime.test_engine_contacts import contact_of, delivered, rows, shows, state_is
from tests.runtime.test_engine_governed import added, id_of, let_in


async def until_known(person: Person, group: ConversationId, *others: Person) -> None:
    """They are in the group, and their keys are here."""

    def knows(event: EngineEvent) -> bool:
        if not isinstance(event, ConversationChanged | ConversationAdded):
            return False
        view = event.conversation
        there = {m.participant_id for m in view.members if m.has_keys and not m.has_left}
        return view.conversation_id == group and there >= set(map(id_of, others))

    await person.until(knows)


async def until_gone(person: Person, group: ConversationId, other: Person) -> None:
    """What was removed in the log is so among the members, too, who are read when one asks."""

    def knows(event: EngineEvent) -> bool:
        if not isinstance(event, ConversationChanged | ConversationAdded):
            return False
        view = event.conversation
        gone = {m.participant_id for m in view.members if m.has_left}
        return view.conversation_id == group and id_of(other) in gone

    await person.until(knows)


async def together(*people: Person) -> ConversationId:
    """A group that anyone with the link is in."""
    first, *others = people
    group = await first.engine.groups.create("Walks")
    link = await first.engine.groups.make_invite_link(group)
    for one in others:
        await one.engine.groups.join(link)
    for one in people:
        await until_known(one, group, *people)
    return group


async def with_roles(owner: Person, *others: Person) -> ConversationId:
    """A group of people who are let in."""
    group = await owner.engine.governing.create("Walks")
    for one in others:
        await let_in(one, owner, group)
    return group


async def ask(one: Person, other: Person, group: ConversationId) -> ConversationId:
    return await one.engine.people.ask_member(group, id_of(other))


async def pairs(person: Person) -> list[ConversationId]:
    return [v.conversation_id for v in await person.engine.conversations() if v.contact]


async def test_a_member_is_asked_accepts_and_the_two_talk(person: MakePerson) -> None:
    alice, bob, carol = await person("Alice"), await person("Bob"), await person("Carol")
    group = await together(alice, bob, carol)
    pair = await ask(alice, bob, group)
    assert (await contact_of(alice, pair)).state is ContactState.ASKED
    await bob.until(state_is(ContactState.ASKING))
    asking = await contact_of(bob, pair)
    assert (asking.name, asking.participant_id) == ("Alice", id_of(alice))
    await bob.engine.people.accept(pair)
    await alice.until(state_is(ContactState.ACCEPTED))
    await alice.engine.timeline.send_text(pair, "hello Bob")
    await bob.until(shows("hello Bob"))
    await bob.engine.timeline.send_text(pair, "hello Alice")
    await alice.until(shows("hello Alice"))
    await alice.until(delivered("hello Bob"))
    assert await pairs(carol) == []


async def test_in_a_group_of_people_who_are_let_in_any_member_is_asked(person: MakePerson) -> None:
    olga, anna, ben = await person("Olga"), await person("Anna"), await person("Ben")
    group = await with_roles(olga, anna, ben)
    await until_known(ben, group, anna)
    pair = await ask(ben, anna, group)
    await anna.until(state_is(ContactState.ASKING))
    await anna.engine.people.accept(pair)
    await ben.until(state_is(ContactState.ACCEPTED))
    assert await pairs(olga) == []


async def test_asking_again_opens_what_is_there(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group = await together(alice, bob)
    first, second = await asyncio.gather(ask(alice, bob, group), ask(alice, bob, group))
    assert first == second
    await bob.until(state_is(ContactState.ASKING))
    assert await ask(alice, bob, group) == first
    await bob.engine.people.decline(first)
    await alice.until(state_is(ContactState.DECLINED))
    assert await ask(alice, bob, group) == first
    assert (await contact_of(alice, first)).state is ContactState.DECLINED
    assert [kind for kind, _ in await rows(alice, first)] == [
        MessageKind.ASKED,
        MessageKind.DECLINED,
    ]


async def test_who_asks_whom_already_asks_agrees(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group = await together(alice, bob)
    pair = await ask(alice, bob, group)
    await bob.until(state_is(ContactState.ASKING))
    assert await ask(bob, alice, group) == pair
    await alice.until(state_is(ContactState.ACCEPTED))


async def test_two_who_ask_each_other_at_once_have_agreed(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group = await together(alice, bob)
    hers, his = await asyncio.gather(ask(alice, bob, group), ask(bob, alice, group))
    assert hers == his
    await alice.until(state_is(ContactState.ACCEPTED))
    await bob.until(state_is(ContactState.ACCEPTED))
    await alice.engine.timeline.send_text(hers, "you too?")
    await bob.until(shows("you too?"))


async def test_one_asks_from_the_group_and_the_other_by_a_link(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group = await together(alice, bob)
    link = await alice.engine.people.make_contact_link()
    hers, his = await asyncio.gather(ask(alice, bob, group), bob.engine.people.add(link))
    assert hers == his
    await alice.until(state_is(ContactState.ACCEPTED))
    await bob.until(state_is(ContactState.ACCEPTED))


async def test_who_is_away_is_asked_when_they_come_back_and_a_restart_is_no_matter(
    person: MakePerson,
) -> None:
    alice, bob, _ = await person("Alice"), await person("Bob"), await person("Carol")
    group = await together(alice, bob)
    bob.transport.set_online(False)
    pair = await ask(alice, bob, group)
    await alice.restart()
    assert (await contact_of(alice, pair)).state is ContactState.ASKED
    bob.transport.set_online(True)
    await bob.until_in_time(state_is(ContactState.ASKING), group, alice)
    await bob.engine.people.accept(pair)
    await alice.until(state_is(ContactState.ACCEPTED))


async def test_a_crash_after_the_contact_is_written_loses_no_request(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group = await together(alice, bob)
    store = alice.store
    assert store is not None
    written: list[PutContact] = []

    def die_afterwards(writes: Sequence[StoreWrite]) -> None:
        if written:
            raise StorageError("The disk is gone.")
        written.extend(write for write in writes if isinstance(write, PutContact))

    store.before_write = die_afterwards
    with pytest.raises(StorageError):
        await ask(alice, bob, group)
    assert not any(map(state_is(ContactState.ASKING), bob.told))
    store.before_write = None
    await alice.restart()
    await bob.until(state_is(ContactState.ASKING))
    assert [kind for kind, _ in await rows(alice, (await pairs(alice))[0])] == [MessageKind.ASKED]


async def test_a_program_of_before_is_asked_and_answers(person: MakePerson) -> None:
    """It knows neither Olm nor this command, and needs to know neither."""
    alice, bob = await person("Alice"), await person("Bob")
    bob.parts = replace(bob.parts, pairs_by_olm=False)
    await bob.restart()
    group = await together(alice, bob)
    pair = await ask(alice, bob, group)
    await bob.until(state_is(ContactState.ASKING))
    await bob.engine.people.accept(pair)
    await alice.until(state_is(ContactState.ACCEPTED))
    await bob.engine.timeline.send_text(pair, "as ever")
    await alice.until(shows("as ever"))


# --- who cannot be asked --------------------------------------------------------------------------


async def test_oneself_strangers_and_other_conversations_are_refused(person: MakePerson) -> None:
    alice, bob, carol = await person("Alice"), await person("Bob"), await person("Carol")
    group = await together(alice, bob)
    for who in (id_of(alice), id_of(carol), ParticipantId("nobody")):
        with pytest.raises(CommandError, match="no_member"):
            await alice.engine.people.ask_member(group, who)
    pair = await ask(alice, bob, group)
    with pytest.raises(LocalProtocolError):
        await alice.engine.people.ask_member(pair, id_of(bob))
    with pytest.raises(CommandError, match="no_conversation"):
        await alice.engine.people.ask_member(ConversationId("none"), id_of(bob))
    assert await pairs(alice) == [pair]


async def test_who_left_is_asked_no_more_but_a_conversation_stays_open(person: MakePerson) -> None:
    alice, bob, carol = await person("Alice"), await person("Bob"), await person("Carol")
    group = await together(alice, bob, carol)
    pair = await ask(alice, bob, group)
    for one in (bob, carol):
        await one.engine.groups.leave(group)
    await alice.until(
        lambda event: (
            isinstance(event, ConversationChanged)
            and sum(m.has_left for m in event.conversation.members) == 2
        )
    )
    with pytest.raises(CommandError, match="left_group"):
        await ask(alice, carol, group)
    assert await ask(alice, bob, group) == pair


async def test_after_a_removal_neither_side_asks_the_other(person: MakePerson) -> None:
    olga, anna, ben = await person("Olga"), await person("Anna"), await person("Ben")
    group = await with_roles(olga, anna, ben)
    await until_known(ben, group, anna)
    await olga.engine.governing.remove(group, id_of(ben))
    await until_gone(anna, group, ben)
    await until_gone(ben, group, ben)
    with pytest.raises(CommandError, match="left_group"):
        await ask(anna, ben, group)
    with pytest.raises(CommandError, match="not_in_group"):
        await ask(ben, anna, group)
    assert await pairs(anna) == await pairs(ben) == []


async def test_of_whom_nothing_has_come_the_keys_are_not_known(person: MakePerson) -> None:
    """A link that opens a group has the identity key of who made it, and no other."""
    alice, bob, carol = await person("Alice"), await person("Bob"), await person("Carol")
    group = await alice.engine.groups.create("Walks")
    link = await alice.engine.groups.make_invite_link(group)
    alice.transport.set_online(False)
    await bob.engine.groups.join(link)
    await bob.until(added(group))
    (view,) = await bob.engine.conversations()
    assert {m.has_keys for m in view.members if m.participant_id == id_of(alice)} == {False}
    with pytest.raises(CommandError, match="keys_not_here"):
        await ask(bob, alice, group)
    assert await pairs(bob) == []
    alice.transport.set_online(True)
    await bob.until_in_time(
        lambda event: (
            isinstance(event, ConversationChanged)
            and any(
                m.participant_id == id_of(alice) and m.has_keys for m in event.conversation.members
            )
        ),
        group,
        alice,
    )
    await ask(bob, alice, group)
    await alice.until(state_is(ContactState.ASKING))
    assert await pairs(carol) == []


async def test_whom_one_blocked_stays_blocked(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group = await together(alice, bob)
    pair = await ask(alice, bob, group)
    await bob.until(state_is(ContactState.ASKING))
    await bob.engine.people.set_blocked(pair, blocked=True)
    assert await ask(bob, alice, group) == pair
    assert (await contact_of(bob, pair)).state is ContactState.BLOCKED
    assert (await contact_of(alice, pair)).state is ContactState.ASKED
