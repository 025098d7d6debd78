"""Clocks that strangers bring: throw-away identities a year ahead, and yesterday, replayed."""

from functools import partial

from engine.core.waku import WakuMessage
from engine.events import NoticeRaised
from tests.security.mallory import Mallory
from tests.security.stage import HOUR_MS, MINUTE_MS, YEAR_MS, Relay, Stage, Victim, figure

AHEAD_MS = 5 * MINUTE_MS
"""What is believed of a Lamport timestamp."""


async def has_heard(relay: Relay, count: int) -> bool:
    return len(relay.heard) >= count


async def test_four_throw_away_identities_a_year_ahead_move_no_clock(stage: Stage) -> None:
    people = await stage.founded("Alice", "Bob", "Carol")
    for number in range(4):
        relay = await stage.relay()
        sybil = await Mallory.joined(stage, relay, f"Sybil {number}", ahead_ms=YEAR_MS)
        await sybil.say(f"from next year, {number}")
        await sybil.leave()
    for person in people:
        await person.say(f"still here, {person.name}")
    await stage.heals(f"still here, {person.name}" for person in people)
    from_next_year = {f"from next year, {number}" for number in range(4)}
    for person in people:
        assert set(await person.held()) >= from_next_year, "readable and marked"
        assert not from_next_year & set(await person.texts())
    ahead_ms = [await person.lamport_ahead_ms() for person in people]
    assert max(ahead_ms) <= AHEAD_MS
    for person in people:
        await person.restart()
    said = [f"{person.name} {number}" for number in range(3) for person in people]
    for number in range(3):
        for person in people:
            await person.say(f"{person.name} {number}")
    took_s = await stage.heals(said)
    placed = min([len(set(said) & set(await person.texts())) for person in people])
    figure(
        f"sybil clock: {placed} of 9 texts placed at everybody after {took_s:.1f} s, before "
        f"3 of 9; Lamports {max(ahead_ms)} ms ahead, before 1 year"
    )
    assert placed == 9
    assert not any(person.judged() for person in people)


async def test_yesterday_replayed_by_who_has_no_key_dates_nothing(stage: Stage) -> None:
    alice, bob, carol = await stage.founded("Alice", "Bob", "Carol")
    relay = await stage.relay()
    for number in range(18):
        for person in (alice, bob, carol):
            await person.say(f"yesterday, {person.name} {number}")
    await stage.until(lambda: has_heard(relay, 54))
    await stage.until_alike([alice, bob, carol])
    yesterday = [message.payload for message in relay.heard[-54:]]
    await stage.next_day()
    # For a newcomer all of it is new, and nothing of today comes before it.
    dora = await stage.victim("Dora")
    await stage.join(dora)
    relay = await stage.relay()
    for payload in yesterday:
        await relay.publish(payload)
    said = []
    for number, person in enumerate((alice, bob, carol, dora, alice)):
        said.append(f"today, {number}")
        await person.say(said[-1])
        await relay.publish(yesterday[number])
    took_s = await stage.heals(said)
    placed = min([len(set(said) & set(await each.texts())) for each in stage.victims])
    told = sum(len(each.judged()) for each in stage.victims)
    figure(
        f"replayed clock: {placed} of 5 texts of today placed at everybody after {took_s:.1f} "
        f"s, before 0 of 5; {told} told that their right clock is wrong"
    )
    assert placed == 5
    assert told == 0
    for each in stage.victims:
        assert await each.held() == []
        assert -60_000 < await each.lamport_ahead_ms() <= AHEAD_MS
        assert not any(isinstance(e, NoticeRaised) for e in each.told)


async def test_echoes_that_a_relay_keeps_back_or_repeats_say_nothing_of_a_right_clock(
    stage: Stage,
) -> None:
    alice, bob, carol = await stage.founded("Alice", "Bob", "Carol")
    relay = await stage.relay()
    kept: list[bytes] = []

    def keep(message: WakuMessage) -> tuple[WakuMessage, ...]:
        kept.append(message.payload)
        return ()

    alice.on_the_way = keep
    await alice.say("who hears this?")
    for number in range(3):
        for person in (bob, carol):
            await person.say(f"we do, {person.name} {number}")
    await stage.heals(
        [f"we do, {person.name} {n}" for person in (bob, carol) for n in range(3)], [bob, carol]
    )
    stage.all_sleep(5 * MINUTE_MS)
    alice.on_the_way = lambda message: (message,)
    for _ in range(3):
        for payload in kept:
            await relay.publish(payload)
    took_s = await stage.heals(
        ["who hears this?", *(f"we do, {p.name} {n}" for p in (bob, carol) for n in range(3))]
    )
    told = sum(len(each.judged()) for each in stage.victims)
    figure(
        f"echoes kept back for 5 min and repeated: {told} told that their right clock is "
        f"wrong; all placed after {took_s:.1f} s"
    )
    assert told == 0


async def test_strangers_from_next_year_leave_room_for_whose_clock_is_an_hour_ahead(
    stage: Stage,
) -> None:
    alice, bob, wanda = await stage.founded("Alice", "Bob", "Wanda")
    await wanda.say("in time")
    await stage.heals(["in time"])
    relay = await stage.relay()
    for number in range(8):
        sybil = await Mallory.joined(stage, relay, f"Sybil {number}", ahead_ms=YEAR_MS)
        for _ in range(40):
            await sybil.say("next year")
    for person in (alice, bob):
        await stage.until(partial(holds_aside, person, 250))
    wanda.set_clock(HOUR_MS)
    await wanda.say("can you read me?")
    await alice.say("a fence")
    await stage.until(lambda: reads([alice, bob, wanda], "a fence"))
    for person in (alice, bob):
        await stage.until(partial(holds, person, "can you read me?"))
    figure(
        f"held aside: with {len((await alice.state()).incoming)} of strangers, what an honest "
        "member's fast clock says is readable at 2 of 2"
    )


async def holds(person: Victim, text: str) -> bool:
    return text in await person.held()


async def holds_aside(person: Victim, count: int) -> bool:
    return len((await person.state()).incoming) >= count


async def reads(people: list[Victim], text: str) -> bool:
    return all([text in await one.texts() for one in people])
