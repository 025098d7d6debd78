"""Requests to talk by the dozen, under keys that cost nothing: others still get through."""

import asyncio

from engine.core.contacts import ContactState
from engine.core.content import Leave
from engine.events import ConversationView
from engine.runtime.people import MAX_OPEN_OF_A_GROUP, MAX_OPEN_OF_STRANGERS, MAX_OPEN_REQUESTS
from tests.patience import PATIENCE_S
from tests.security.mallory import Mallory
from tests.security.stage import Relay, Stage, Victim, figure
from tests.session.pair_stage import PairPerson

FLOOD = 60
IDENTITIES = MAX_OPEN_OF_A_GROUP + 5


async def asking(victim: Victim) -> list[ConversationView]:
    views = await victim.engine.conversations()
    return [v for v in views if v.contact and v.contact.state is ContactState.ASKING]


async def ask(relay: Relay, person: PairPerson, link: str) -> None:
    for message in person.ask(link):
        await relay.publish(message.payload, topic=message.content_topic)


async def until_refused(victim: Victim, reason: str, number: int) -> None:
    """A counter tells nobody: look again at every turn of the loop."""
    async with asyncio.timeout(PATIENCE_S):
        while victim.counted(f"inbox.{reason}") < number:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def until_gone(victim: Victim, number: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            views = await victim.engine.conversations()
            if sum(member.has_left for view in views for member in view.members) == number:
                return
            await asyncio.sleep(0)


async def comes_through(stage: Stage, victim: Victim, friend: Victim, link: str) -> None:
    await friend.engine.people.add(link)

    async def is_asking() -> bool:
        return any(view.name == friend.name for view in await asking(victim))

    await stage.until(is_asking)


async def test_strangers_leave_room_for_who_shares_a_group(stage: Stage) -> None:
    alice, bob = await stage.founded("Alice", "Bob")
    relay = await stage.relay()
    link = await alice.engine.people.make_contact_link()
    for number in range(FLOOD):
        await ask(relay, PairPerson(f"Stranger {number}"), link)
    await until_refused(alice, "too_many_of_strangers", FLOOD - MAX_OPEN_OF_STRANGERS)
    assert len(await asking(alice)) == MAX_OPEN_OF_STRANGERS
    await comes_through(stage, alice, bob, link)
    figure(
        f"{FLOOD} strangers: {MAX_OPEN_OF_STRANGERS} of {MAX_OPEN_REQUESTS} places taken (all"
        " of them before), and somebody of a shared group gets one"
    )


async def test_members_of_one_group_leave_room_for_those_of_another(stage: Stage) -> None:
    (alice,) = await stage.founded("Alice")
    relay = await stage.relay()
    people = [PairPerson(f"Mallory {number}") for number in range(IDENTITIES)]
    for person in people:
        await Mallory.joined(stage, relay, person.name, identity=person.identity)
    await stage.until_members(1 + IDENTITIES)
    link = await alice.engine.people.make_contact_link()
    for person in people:
        await ask(relay, person, link)
    await until_refused(alice, "too_many_of_a_group", IDENTITIES - MAX_OPEN_OF_A_GROUP)
    assert len(await asking(alice)) == MAX_OPEN_OF_A_GROUP

    bob = await stage.victim("Bob")
    other_group = await alice.engine.groups.create("Ebb")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(other_group))

    async def are_two() -> bool:
        views = await alice.engine.conversations()
        return any(v.name == "Ebb" and len(v.members) == 2 for v in views)

    await stage.until(are_two)
    await comes_through(stage, alice, bob, link)
    figure(f"{IDENTITIES} identities in one group: {MAX_OPEN_OF_A_GROUP} places taken")


async def test_who_left_a_group_takes_no_room_from_its_members(stage: Stage) -> None:
    alice, bob = await stage.founded("Alice", "Bob")
    relay = await stage.relay()
    people = [PairPerson(f"Mallory {number}") for number in range(IDENTITIES)]
    for person in people:
        mallory = await Mallory.joined(stage, relay, person.name, identity=person.identity)
        await mallory.say(Leave())
    await stage.until_members(2)
    await until_gone(alice, IDENTITIES)
    link = await alice.engine.people.make_contact_link()
    for person in people:
        await ask(relay, person, link)

    async def are_asking() -> bool:
        return len(await asking(alice)) == IDENTITIES

    await stage.until(are_asking)
    assert alice.counted("inbox.too_many_of_a_group") == 0
    await comes_through(stage, alice, bob, link)
    figure(f"{IDENTITIES} identities that left: they have the places of strangers")
