"""One author, two stories: dependencies, sequence numbers and forms that differ by the listener."""

import json
import os
import shutil
from base64 import b64decode
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from engine.answers import HolderView
from engine.codec.sds import decode_message
from engine.core.ids import MessageId
from engine.core.sds.config import SdsConfig
from engine.core.sds.vocabulary import HistoryEntry
from engine.core.waku import WakuMessage
from tests.security.mallory import Mallory, naming
from tests.security.stage import NOTHING_KEPT, Stage, Victim, figure

PHANTOMS = 20


def phantoms(count: int = PHANTOMS) -> tuple[HistoryEntry, ...]:
    """Ids of ours that nobody ever made."""
    return naming(*(MessageId(os.urandom(12).hex()[:21] + "A") for _ in range(count)))


def lost(*payloads: bytes) -> Callable[[WakuMessage], Sequence[WakuMessage]]:
    """Who relays keeps these from somebody."""
    return lambda message: () if message.payload in payloads else (message,)


async def test_one_signed_id_has_the_same_dependencies_at_everybody(stage: Stage) -> None:
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    plain = mallory.message("which came first?")
    loaded = replace(plain, causal_history=phantoms())
    for_alice, for_bob = mallory.payload(plain), mallory.payload(loaded)
    alice.on_the_way, bob.on_the_way = lost(for_bob), lost(for_alice)
    await mallory.relay.publish(for_bob)
    await mallory.relay.publish(for_alice)
    await stage.until_counted(bob, "group.id_mismatch")
    await alice.say("I read it")
    took_s = await stage.heals(["which came first?", "I read it"])
    waits = sum(row.waiting for row in await bob.rows())
    figure(
        f"phantom dependencies: {waits} messages wait at Bob, {await bob.missing()} looked for "
        f"after {took_s:.1f} s; before, he waited 24 hours for {PHANTOMS}"
    )
    assert (waits, await bob.missing()) == (0, 0)


async def test_who_names_phantoms_to_everybody_waits_alone(stage: Stage) -> None:
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    await mallory.say("nobody reads this for a day", history=phantoms())
    await mallory.relay.publish(mallory.payload(mallory.sync(history=phantoms())))
    said = [f"{person.name} {number}" for number in range(5) for person in (alice, bob)]
    for number in range(5):
        for person in (alice, bob):
            await person.say(f"{person.name} {number}")

    async def read() -> bool:
        return all([{*said} <= {*await one.texts()} for one in (alice, bob)])

    took_s = await stage.until(read)
    waiting = [len((await one.state()).incoming) for one in (alice, bob)]
    figure(
        f"phantoms for everybody: 10 of 10 honest texts placed after {took_s:.1f} s, "
        f"{waiting} of Mallory's own wait at Alice and Bob"
    )
    assert waiting == [1, 1]


async def test_two_messages_under_one_number_are_both_placed_and_shown_with_proof(
    stage: Stage,
) -> None:
    alice, bob, carol = await stage.founded("Alice", "Bob", "Carol")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(4)
    base = await mallory.say("before the fork")
    await stage.heals(["before the fork"])
    one, other = mallory.message("I am for it"), mallory.message("I am against it")
    for_alice, for_others = mallory.payload(one), mallory.payload(other)
    alice.on_the_way = lost(for_others)
    bob.on_the_way = carol.on_the_way = lost(for_alice)
    await mallory.relay.publish(for_alice)
    await mallory.relay.publish(for_others)
    mallory.advance(one)
    after = mallory.message("as I said", history=naming(base.message_id))
    await mallory.relay.publish(mallory.payload(after))
    took_s = await stage.heals(["I am for it", "I am against it", "as I said"])
    shown = 0
    for person in (alice, bob, carol):
        await stage.until(partial(forked, stage, person))
        (fork,) = await person.engine.timeline.forks(stage.group)
        assert fork.sender_id == mallory.me
        # The two of one number, or one of them and a third that comes after the other.
        assert {fork.first_id, fork.second_id} < {
            one.message_id,
            other.message_id,
            after.message_id,
        }
        assert other.message_id in {fork.first_id, fork.second_id}
        proof = await person.engine.timeline.fork_proof(fork)
        assert len({row.text for row in proof.messages if row}) == 2
        for part in json.loads(proof.text)["messages"]:
            signed = mallory.sealed.read(b64decode(part["signed_part"]))
            assert signed.sender_id == mallory.me
            assert decode_message(signed.sds_bytes).message_id == part["message_id"]
        shown += 1
    figure(
        f"equivocation: 3 of 3 logs alike after {took_s:.1f} s, shown with its proof at "
        f"{shown} of 3; before, logs differed for ever and nobody was told"
    )
    for person in stage.victims:
        await person.restart()
    await stage.until_connected()
    await alice.say("and now?")
    await stage.heals(["I am for it", "I am against it", "as I said", "and now?"])
    for person in stage.victims:
        assert len(await person.engine.timeline.forks(stage.group)) == 1


async def test_replacements_that_contradict_one_another_are_judged_alike(stage: Stage) -> None:
    stage.settings = NOTHING_KEPT
    alice, bob, carol = await stage.founded("Alice", "Bob", "Carol")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(4)
    now_ms = stage.now_ms()
    old = mallory.message("said or unsaid?", lamport=now_ms + 50_000)
    earlier = mallory.replacing(old, "said earlier", lamport=now_ms + 10_000)
    later = mallory.replacing(old, "said later", lamport=now_ms + 90_000)
    order = {
        alice: [mallory.payload(each) for each in (earlier, old, later)],
        bob: [mallory.payload(each) for each in (later, earlier, old)],
        carol: [mallory.payload(each) for each in (later, old, earlier)],
    }
    for person in order:
        person.on_the_way = lost(*(p for one in order if one is not person for p in order[one]))
    for payloads in order.values():
        for payload in payloads:
            await mallory.relay.publish(payload)
    for person in order:
        await stage.until(partial(reads, person, "said later"))
        await stage.until(partial(reads, person, "said earlier"))
    for person in order:
        person.on_the_way = lambda message: (message,)
    await alice.say("alike?")
    took_s = await stage.heals(["said earlier", "said later", "alike?"])
    kept = ["said or unsaid?" in await person.texts() for person in order]
    figure(
        f"replacements that contradict: the replaced one is kept by {sum(kept)} of 3, logs "
        f"alike after {took_s:.1f} s"
    )
    assert not any(kept)


async def test_who_holds_a_copy_s_message_is_not_told_to_hold_ours(
    stage: Stage, tmp_path: Path
) -> None:
    """A profile that was copied forks in good faith: same number, two messages."""
    stage.settings = NOTHING_KEPT
    alice, bob = await stage.founded("Alice", "Bob")
    await alice.say("before the copy")
    await stage.heals(["before the copy"])
    await alice.stop()
    shutil.copytree(tmp_path / "Alice", tmp_path / "copied")
    bob.on_the_way = lambda _message: ()
    await alice.restart()
    await stage.until_connected()
    ours = await alice.say("at home")
    await alice.stop()
    shutil.move(tmp_path / "Alice", tmp_path / "at home")
    shutil.copytree(tmp_path / "copied", tmp_path / "Alice")
    bob.on_the_way = lambda message: (message,)
    await alice.restart()
    await stage.until_connected()
    await alice.say("on the train")
    await stage.heals(["on the train"])
    await alice.stop()

    shutil.rmtree(tmp_path / "Alice")
    shutil.move(tmp_path / "at home", tmp_path / "Alice")
    bob.on_the_way = lambda _message: ()
    await alice.restart()
    await stage.until_connected()
    for number in range(25):  # Holdings come with every twentieth, and with syncs.
        await bob.say(f"bob {number}")
    await stage.until(lambda: has_heard(alice, 25))
    assert await bob.raw(ours) is None
    false = sum(map(is_certain, await alice.engine.timeline.holders(stage.group, ours)))
    bob.on_the_way = lambda message: (message,)
    took_s = await stage.heals(["at home", "on the train"])
    await stage.until(lambda: is_held(stage, alice, ours))
    figure(
        f"a copied profile: {false} falsely said to hold our message, logs alike after "
        f"{took_s:.1f} s"
    )
    assert false == 0


async def test_another_form_of_a_known_id_is_refused_and_the_first_stays(stage: Stage) -> None:
    alice, bob, carol = await stage.founded("Alice", "Bob", "Carol")
    mallory = await Mallory.joined(stage, await stage.relay())
    base = await mallory.say("before")
    await stage.heals(["before"])
    first = mallory.message("one id", history=naming(base.message_id))
    mallory.advance(first)
    hinted = (HistoryEntry(base.message_id, b"\1" * 32, alice.participant_id),)
    forms = [
        first,
        replace(first, causal_history=hinted),
        replace(first, bloom_filter=bytes(16)),
        replace(first, repair_request=phantoms(3)),
    ]
    raws = [mallory.sign(form) for form in forms]
    payloads = [mallory.seal(raw) for raw in raws]
    alice.on_the_way = lost(payloads[1])
    bob.on_the_way = lost(payloads[0])
    carol.on_the_way = lost(*payloads)
    await mallory.relay.publish(payloads[0])
    await mallory.relay.publish(payloads[1])
    await stage.until(lambda: reads(alice, "one id"))
    await stage.until(lambda: reads(bob, "one id"))
    for payload in payloads[2:]:
        await mallory.relay.publish(payload)
    took_s = await stage.heals(["one id"])
    refused = [person.counted("group.another_form") for person in (alice, bob)]
    assert await alice.raw(first.message_id) == raws[0]
    assert await bob.raw(first.message_id) == raws[1]
    assert await carol.raw(first.message_id) in raws[:2], "what was logged, from who logged it"
    await alice.restart()
    await stage.until_connected()
    for raw in raws[1:]:
        await mallory.relay.publish(mallory.seal(raw))
    await alice.say("after")
    await stage.heals(["one id", "after"])
    assert await alice.raw(first.message_id) == raws[0]
    figure(
        f"another form of a known id: {refused} refused at Alice and Bob, the first stays; "
        f"logs alike after {took_s:.1f} s"
    )
    assert min(refused) >= 2


def is_certain(holder: HolderView) -> bool:
    return holder.certain and holder.source is not None


async def is_held(stage: Stage, person: Victim, message_id: MessageId) -> bool:
    return all(map(is_certain, await person.engine.timeline.holders(stage.group, message_id)))


async def forked(stage: Stage, person: Victim) -> bool:
    return bool(await person.engine.timeline.forks(stage.group))


async def has_heard(person: Victim, count: int) -> bool:
    """So many wait for what is not here."""
    return len((await person.state()).incoming) >= count


async def reads(person: Victim, text: str) -> bool:
    return text in await person.texts()


async def test_ten_thousand_phantoms_of_strangers_leave_room_for_what_really_lacks(
    stage: Stage,
) -> None:
    stage.settings = NOTHING_KEPT
    alice, bob, carol = await stage.founded("Alice", "Bob", "Carol")
    relay = await stage.relay()
    sybils = [await Mallory.joined(stage, relay, f"Sybil {number}") for number in range(11)]
    await stage.until_members(14)
    for sybil in sybils:
        for _ in range(4):
            message = sybil.sync(history=phantoms(250))
            await relay.publish(sybil.payload(message))
    await stage.until_counted(bob, "sds.missing_overflow")
    bob.on_the_way = lambda _message: ()
    await carol.say("this is lost on the way")
    await stage.until(partial(reads, alice, "this is lost on the way"))
    bob.on_the_way = lambda message: (message,)
    await alice.say("and this names it")
    said = ["this is lost on the way", "and this names it"]
    took_s = await stage.until(partial(read_all, bob, said))
    figure(
        f"phantoms of 11 strangers: with {await bob.missing()} looked for, before 10 000, what "
        f"really lacked and what named it are placed after {took_s:.1f} s"
    )
    assert await bob.missing() <= 11 * SdsConfig().max_missing_named_by_syncs


async def read_all(person: Victim, texts: list[str]) -> bool:
    return {*texts} <= {*await person.texts()}
