"""What a member, or a relay that replays, can make others send and keep.

Bytes are counted where a victim hands them to the network, so what its node relays for others is
not among them.  Minutes go by in steps, each of which everybody does what is due at.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from engine.codec.sds import decode_message
from engine.core.ids import InstanceId, MessageId
from engine.core.sds.config import SdsConfig
from engine.core.sds.vocabulary import Claim, Holdings, SequenceRange
from engine.core.waku import WakuMessage
from tests.security.mallory import Mallory, naming
from tests.security.stage import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    NOTHING_KEPT,
    Stage,
    Victim,
    figure,
    run,
)
from tests.security.test_two_stories import lost, phantoms

KIB = 1024
SMALL = SdsConfig.for_small_group()
LARGE = 60_000
"""Characters; a text has 64 KiB at most."""
BUDGET = SMALL.answer_bytes_per_minute
TALK = 40 * KIB
"""What one says in a minute besides: sync messages above all."""
NOTHING: Holdings = {
    InstanceId(b"nobody's" * 2): (SequenceRange(first=1, last=1, head=bytes(8)),),
}
"""Of anybody whom there is."""


class Sent:
    """What people have sent since this was made."""

    def __init__(self, people: Sequence[Victim]) -> None:
        self._since = {person: len(person.sent) for person in people}

    def envelopes(self) -> int:
        return sum(len(person.sent) - since for person, since in self._since.items())

    def size(self) -> int:
        return sum(person.sent_bytes(since) for person, since in self._since.items())

    def most(self) -> int:
        return max(person.sent_bytes(since) for person, since in self._since.items())


def minutes_since(begun_ms: int, stage: Stage) -> int:
    """How many were begun: what is real passes beside what goes by."""
    return math.ceil((stage.now_ms() - begun_ms) / MINUTE_MS)


async def say_large(stage: Stage, person: Victim, count: int) -> list[MessageId]:
    said = [await person.say(f"{number} " + "x" * LARGE) for number in range(count)]
    await stage.until_alike(stage.victims)
    await stage.goes_by(10_000)
    return said


async def misses(count: int, person: Victim) -> bool:
    return await person.missing() >= count


async def has_placed(texts: Sequence[str], people: Sequence[Victim]) -> bool:
    return all([{*texts} <= {*await person.texts()} for person in people])


async def talk(stage: Stage, people: Sequence[Victim], number: int) -> list[str]:
    """Everybody says something; the last one does not hear the first at once."""
    deaf, said = people[-1], [f"{person.name} says {number}" for person in people]
    deaf.on_the_way = lambda _message: ()
    await people[0].say(said[0])
    await stage.until(partial(has_placed, said[:1], people[:-1]))
    deaf.on_the_way = lambda message: (message,)
    for person, text in zip(people[1:], said[1:], strict=True):
        await person.say(text)
    return said


# --- phantoms -----------------------------------------------------------------------------------


async def test_phantoms_make_a_silent_group_send_little(stage: Stage) -> None:
    stage.settings = NOTHING_KEPT
    people = await stage.founded("Alice", "Bob", "Carol")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(4)
    await stage.goes_by(10_000)
    sent, given = Sent(people), 0
    for _ in range(14):
        payload = mallory.payload(mallory.message("seen these?", history=phantoms(250)))
        given += len(payload)
        await mallory.relay.publish(payload)
    for person in people:
        await stage.until(partial(misses, 1_000, person))
    await stage.goes_by(10 * MINUTE_MS, step_ms=3_000)
    envelopes, size = sent.envelopes(), sent.size()
    said = await talk(stage, people, 1)
    took_s = await stage.until(partial(has_placed, said, people))
    figure(
        f"phantoms: {given // KIB} KiB make three members send {envelopes} envelopes "
        f"({size // KIB} KiB) in 10 minutes, before 594; what is really missing is here after "
        f"{took_s:.1f} s"
    )
    assert envelopes < 150
    assert size < 8 * given


async def test_a_phantom_told_to_one_member_first_does_not_cost_the_others_another_day(
    stage: Stage,
) -> None:
    stage.settings = NOTHING_KEPT
    alice, bob, carol = await stage.founded("Alice", "Bob", "Carol")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(4)
    payload = mallory.payload(mallory.message("for Bob alone", history=phantoms(1)))
    alice.on_the_way = carol.on_the_way = lost(payload)
    await mallory.relay.publish(payload)
    await stage.until(partial(misses, 1, bob))
    await stage.goes_by(DAY_MS + HOUR_MS, step_ms=15 * MINUTE_MS)
    assert await has_placed(["for Bob alone"], [bob])
    await bob.say("who waits for this?")
    await stage.until(partial(misses, 1, alice))
    minutes = 0
    while not await has_placed(["who waits for this?"], [alice, carol]):
        await stage.goes_by(5 * MINUTE_MS, step_ms=5 * MINUTE_MS)
        minutes += 5
        assert minutes <= 24 * 60
    figure(
        f"a phantom told to one first: the others go on after {minutes} minutes, before "
        "after 24 hours"
    )
    assert minutes <= 70


# --- replay -------------------------------------------------------------------------------------


async def test_old_claims_replayed_after_a_restart_are_not_answered(stage: Stage) -> None:
    stage.settings = NOTHING_KEPT
    alice, *_ = await stage.founded("Alice", "Bob", "Carol")
    relay = await stage.relay()
    for person in stage.victims:
        await person.say("hello")
    await stage.until_alike(stage.victims)
    await stage.goes_by(5_000)
    old = [message.payload for message in relay.heard]
    await say_large(stage, alice, 40)

    def only_old(message: WakuMessage) -> Sequence[WakuMessage]:
        return (message,) if message.payload in old else ()

    alice.on_the_way = only_old
    await alice.restart()
    await stage.until_connected()
    sent = Sent([alice])
    for payload in old:
        await relay.publish(payload)
    await stage.goes_by(MINUTE_MS, step_ms=500)
    given, size = sum(map(len, old)), sent.size()
    alice.on_the_way = lambda message: (message,)
    await alice.say("after it")
    took_s = await stage.heals(["after it"])
    figure(
        f"replay: {given} bytes make the victim send {size // KIB} KiB in the minute after a "
        f"restart, before 2 405 KiB; all alike after {took_s:.1f} s"
    )
    assert size < 8 * given
    assert alice.counted("sds.stale_claim")


# --- requests and claims ------------------------------------------------------------------------


Asking = Callable[[Mallory, Sequence[MessageId]], bytes]


def asks(mallory: Mallory, wanted: Sequence[MessageId]) -> bytes:
    return mallory.payload(mallory.sync(repair_request=naming(*wanted)))


def claims_to_hold_nothing(mallory: Mallory, _wanted: Sequence[MessageId]) -> bytes:
    return mallory.payload(mallory.sync(), Claim(holdings=NOTHING))


def ask_for_a_minute(place: Path, asking: Asking, words: str, before: str) -> None:
    async def scenario(stage: Stage) -> None:
        stage.settings = NOTHING_KEPT
        people = await stage.founded("Alice", "Bob", "Carol")
        mallory = await Mallory.joined(stage, await stage.relay())
        await stage.until_members(4)
        large = await say_large(stage, people[0], 12)
        sent, given, said = Sent(people), 0, list[str]()
        number, begun_ms = 0, stage.now_ms()
        while stage.now_ms() < begun_ms + MINUTE_MS - 2_000:
            payload = asking(mallory, large)
            given += len(payload)
            await mallory.relay.publish(payload)
            await stage.goes_by(1_000, step_ms=500)
            number += 1
            if number % 10 == 0:
                said += await talk(stage, people, number)
        size, most, minutes = sent.size(), sent.most(), minutes_since(begun_ms, stage)
        took_s = await stage.until(partial(has_placed, said, people))
        figure(
            f"{words}: {given // KIB} KiB make three members send {size // KIB} KiB in a "
            f"minute, before {before}; {len(said)} of {len(said)} honest texts placed after "
            f"{took_s:.1f} s"
        )
        assert most <= max(minutes * BUDGET, 8 * given) + minutes * TALK
        assert any(person.counted("sds.answer_put_off") for person in people)

    run(scenario, place)


def test_requests_for_the_same_large_messages_are_answered_within_a_budget(
    tmp_path: Path,
) -> None:
    ask_for_a_minute(tmp_path, asks, "requests", "67 373 KiB")


def test_who_claims_to_hold_nothing_is_sent_it_within_a_budget(tmp_path: Path) -> None:
    ask_for_a_minute(tmp_path, claims_to_hold_nothing, "claims of nothing", "25 517 KiB")


async def test_who_claims_to_hold_nothing_is_not_sent_the_same_for_ever(stage: Stage) -> None:
    stage.settings = NOTHING_KEPT
    people = await stage.founded("Alice", "Bob", "Carol")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(4)
    for number in range(3):
        await people[0].say(f"a short text, {number}")
    await stage.until_alike(people)
    await stage.goes_by(10_000)
    copies = []
    for _ in range(2):
        sent = Sent(people)
        for _ in range(60):
            await mallory.relay.publish(claims_to_hold_nothing(mallory, ()))
            await stage.goes_by(5_000, step_ms=2_500)
        copies.append(sent.envelopes())
    figure(f"the same again: {copies} envelopes of three members in each of two 5 minutes")
    assert copies[1] < 60


async def test_a_newcomer_who_lacks_much_gets_all_of_it_in_a_few_minutes(stage: Stage) -> None:
    stage.settings = NOTHING_KEPT
    people = await stage.founded("Alice", "Bob", "Carol")
    await say_large(stage, people[0], 24)
    dora = await stage.victim("Dora")
    await stage.join(dora)
    await stage.until_all_known()
    minutes, most = 0, 0.0
    while len(await dora.texts()) < 24:
        sent, begun_ms = Sent(people), stage.now_ms()
        while stage.now_ms() < begun_ms + MINUTE_MS - 2_000:
            await stage.goes_by(1_000)
        size, passed = sent.most(), minutes_since(begun_ms, stage)
        minutes, most = minutes + passed, max(most, size / passed)
        assert minutes < 10
    figure(
        f"a newcomer without any Store: 1 400 KiB of three members in {minutes} minutes, "
        f"{most / KIB:.0f} KiB of one in a minute at most"
    )
    assert most <= BUDGET + TALK


# --- room ---------------------------------------------------------------------------------------


async def test_identities_that_fill_the_buffer_leave_room_for_who_has_less_there(
    stage: Stage,
) -> None:
    stage.settings = NOTHING_KEPT
    alice, bob = await stage.founded("Alice", "Bob")
    relay = await stage.relay()
    little, *much = [await Mallory.joined(stage, relay, f"Sybil {n}") for n in range(18)]
    await stage.until_members(20)
    alice.on_the_way = lambda message: () if len(message.payload) > LARGE else (message,)
    for sybil in much:
        for _ in range(36):
            message = sybil.message("x" * LARGE, history=phantoms(1))
            await relay.publish(sybil.payload(message))
    for _ in range(100):  # And what room is left.
        message = little.message("x" * 400, history=phantoms(1))
        await relay.publish(little.payload(message))
    await little.say("all of it is here")
    await stage.until(partial(has_placed, ["all of it is here"], [bob]))
    bob.on_the_way = lambda _message: ()
    await alice.say("lost on the way")
    await stage.until(partial(has_placed, ["lost on the way"], [alice]))

    def but_the_first(message: WakuMessage) -> Sequence[WakuMessage]:
        said = decode_message(little.sealed.open(message.payload).sds_bytes).content
        return () if b"lost on the way" in (said or b"") else (message,)

    bob.on_the_way = but_the_first
    waits = await alice.say("waits for that")
    await little.say("this as well")
    await stage.until(partial(has_placed, ["this as well"], [bob]))
    incoming = {entry.message.message_id for entry in (await bob.state()).incoming}
    bob.on_the_way = lambda message: (message,)
    said = ["lost on the way", "waits for that"]
    took_s = await stage.while_time_goes_by(partial(has_placed, said, [bob]))
    figure(
        f"a full buffer: with {len(incoming)} messages of 18 strangers, {waits in incoming:d} "
        f"of 1 that has to wait is kept, before 0 of 1, and placed after {took_s:.1f} s"
    )
    assert waits in incoming
