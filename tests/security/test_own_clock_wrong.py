"""A member whose own clock is wrong: heard meanwhile, told by echoes, alike with all once right."""

from collections.abc import Awaitable, Callable

import pytest

from engine.core.ids import MessageId
from engine.events import ClockJudged, OwnClockView
from tests.security.mallory import Mallory, naming
from tests.security.stage import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    YEAR_MS,
    Stage,
    Victim,
    figure,
)

ROUGHLY_MS = 5_000


async def an_old_member(stage: Stage, error_ms: int) -> Victim:
    """All have known one another for a day when the system's time is set wrong."""
    _, _, wanda = await stage.founded("Alice", "Bob", "Wanda")
    for person in stage.victims:
        await person.say(f"yesterday, {person.name}")
    await stage.heals(f"yesterday, {person.name}" for person in stage.victims)
    await stage.next_day()
    await stage.next_day()
    await stage.until_connected()
    wanda.set_clock(error_ms)
    return wanda


async def a_newcomer(stage: Stage, error_ms: int) -> Victim:
    await stage.founded("Alice", "Bob")
    wanda = await stage.victim("Wanda", ahead_ms=error_ms)
    await stage.join(wanda)
    return wanda


async def a_founder(stage: Stage, error_ms: int) -> Victim:
    wanda = await stage.victim("Wanda", ahead_ms=error_ms)
    await stage.found(wanda)
    for name in ("Alice", "Bob"):
        await stage.join(await stage.victim(name))
    return wanda


def last_judged(person: Victim) -> OwnClockView | None:
    told = [event.clock for event in person.told if isinstance(event, ClockJudged)]
    return told[-1] if told else None


async def ids_kept(person: Victim) -> set[MessageId]:
    """Of all that is kept: in the log, waiting, held aside, still to be sent."""
    state = await person.state()
    return {
        *(entry.position.message_id for entry in state.log),
        *(entry.message.message_id for entry in state.incoming),
        *(entry.message_id for entry in state.outgoing),
    }


@pytest.mark.parametrize("who", [an_old_member, a_newcomer, a_founder])
@pytest.mark.parametrize("error_ms", [HOUR_MS, -HOUR_MS, YEAR_MS, -YEAR_MS])
async def test_what_it_says_is_heard_and_once_put_right_all_logs_are_alike(
    stage: Stage, who: Callable[[Stage, int], Awaitable[Victim]], error_ms: int
) -> None:
    wanda = await who(stage, error_ms)
    others = [person for person in stage.victims if person is not wanda]
    await stage.until_all_known()
    old_ids = [await wanda.say("wanda 1")]
    await stage.until(lambda: reads(others, "wanda 1"))
    for person in others:
        await person.say(f"{person.name} 1")
    await stage.until(lambda: reads([wanda], *(f"{person.name} 1" for person in others)))
    old_ids.append(await wanda.say("wanda 2"))
    await stage.until(lambda: reads(others, "wanda 2"))
    if error_ms > 0:
        for person in others:
            assert {"wanda 1", "wanda 2"} <= set(await person.held()), "readable and marked"
            assert await person.lamport_ahead_ms() <= 5 * MINUTE_MS
    else:
        assert {f"{person.name} 1" for person in others} <= set(await wanda.held())

    async def knows() -> bool:
        clock = last_judged(wanda)
        return clock is not None and abs(clock.behind_ms + error_ms) < ROUGHLY_MS

    learnt_s = await stage.until(knows)
    clock = last_judged(wanda)
    assert clock is not None
    assert set(clock.by) <= {person.name for person in others}
    if who is an_old_member:
        assert clock.known_long
        # Until they have heard each other, too, all that they know is one wrong clock's word.
        await stage.until(lambda: are_told_nothing(others))
    told = [view for person in others for view in person.judged()]
    assert all(view.by == ("Wanda",) for view in told), "their clocks are right"

    wanda.set_clock(0)
    said = ["wanda 1", "wanda 2", *(f"{person.name} 1" for person in others)]
    healed_s = await stage.heals(said)
    figure(
        f"{getattr(who, '__name__', '')}, {error_ms / HOUR_MS:+.0f} h: "
        f"learnt after {learnt_s:.1f} s to be {clock.behind_ms / HOUR_MS:+.2f} h behind "
        f"({', '.join(clock.by)}), put right, "
        f"healed after {healed_s:.1f} s"
    )
    await stage.while_time_goes_by(lambda: are_told_nothing(stage.victims))
    for person in stage.victims:
        texts = await person.texts()
        assert [texts.count(text) for text in said] == [1] * len(said), "once each"
        assert await person.held() == []
        assert await person.lamport_ahead_ms() <= 5 * MINUTE_MS
        if error_ms > 0:
            assert not {*old_ids} & await ids_kept(person), "nobody has the old ones"
            assert [await person.raw(old_id) for old_id in old_ids] == [None, None]
    for person in stage.victims:
        await person.restart()
    await stage.until_connected()
    await wanda.say("wanda 3")
    await stage.heals([*said, "wanda 3"])


async def are_told_nothing(people: list[Victim]) -> bool:
    return all(last_judged(one) is None for one in people)


async def reads(people: list[Victim], *texts: str) -> bool:
    return all([{*texts} <= {*await one.texts(), *await one.held()} for one in people])


async def test_strangers_of_today_do_not_outvote_those_known_for_days(stage: Stage) -> None:
    """They were heard just before the clock went wrong, and say that it is right."""
    alice, bob, wanda = await stage.founded("Alice", "Bob", "Wanda")
    await stage.next_day()
    await stage.next_day()
    await stage.until_connected()
    relay = await stage.relay()
    sybils = [
        await Mallory.joined(stage, relay, f"Sybil {number}", ahead_ms=2 * DAY_MS)
        for number in range(3)
    ]
    await stage.until_members(6)
    wanda.set_clock(2 * DAY_MS)
    said = await wanda.say("what time is it?")
    for sybil in sybils:
        await relay.publish(sybil.payload(sybil.sync(history=naming(said))))
    await stage.until(lambda: reads([alice, bob], "what time is it?"))
    await alice.say("two days ago")
    await bob.say("two days ago, yes")

    async def knows() -> bool:
        clock = last_judged(wanda)
        return clock is not None and set(clock.by) == {"Alice", "Bob"}

    learnt_s = await stage.until(knows)
    figure(
        f"strangers who say that a wrong clock is right: it is learnt all the same after "
        f"{learnt_s:.1f} s"
    )
