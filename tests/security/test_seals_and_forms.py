"""What a member hangs on to others' words: shadows under their headers, padding, other forms."""

import os
from collections.abc import Callable
from typing import Final

import pytest

from engine.codec.envelope import decode_envelope, decode_signed_part, encode_plaintext
from engine.codec.padding import pad as pad_plainly
from engine.codec.sds import decode_message, encode_message
from engine.core.waku import WakuMessage
from engine.crypto.sealed import Opened
from engine.events import MessageKind
from proto import content_pb2, envelope_pb2
from tests.forging import signed_repair
from tests.security.mallory import Mallory
from tests.security.stage import NOTHING_KEPT, Stage, Victim, figure, now

UNKNOWN: Final = b"\xa2\x06" + b"\x80\x80\x06" + bytes(98_304)
"""Field 100, which no message of ours has: 96 KiB."""


@pytest.mark.parametrize("shadow", ["of a member", "of junk"])
async def test_what_is_sealed_under_a_seen_header_keeps_nothing_out(
    stage: Stage, shadow: str
) -> None:
    stage.settings = NOTHING_KEPT
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    shadows = 0

    def overtake(message: WakuMessage) -> tuple[WakuMessage, ...]:
        nonlocal shadows
        opened = mallory.sealed.open(message.payload)
        is_content = bool(decode_message(opened.sds_bytes).content)
        if opened.sender_id != bob.participant_id or message.ephemeral or not is_content:
            return (message,)
        plaintext = b"junk"
        if shadow == "of a member":
            signed = mallory.sign(mallory.message(f"shadow {shadows}"))
            plaintext = encode_plaintext(signed, (mallory.join.statement,))
        payload = mallory.seal_under(mallory.header_of(message.payload), plaintext)
        shadows += 1
        return (stage.waku(payload), message)

    alice.on_the_way = overtake
    said = [f"bob {number}" for number in range(20)]
    for text in said:
        await bob.say(text)

    async def read() -> bool:
        return {*said} <= {*await alice.texts()}

    took_s = await stage.until(read)
    figure(
        f"header shadowing {shadow}: {len(said)} of 20 texts after {took_s:.1f} s under "
        f"{shadows} shadows, {alice.counted('group.replayed')} refused; before 0 of 20"
    )
    assert shadows == 20
    assert alice.counted("group.replayed") == 0


# --- padding ------------------------------------------------------------------------------------

Pad = Callable[[Mallory, WakuMessage, Opened], bytes]
"""Bob's envelope, as heard and as opened → what Mallory sends instead."""


def in_bob_s_signed_part(mallory: Mallory, _heard: WakuMessage, bobs: Opened) -> bytes:
    return mallory.sealed.seal(bobs.raw + UNKNOWN, random_bytes=os.urandom)


def in_bob_s_signed_part_that_is_repaired(
    mallory: Mallory, _heard: WakuMessage, bobs: Opened
) -> bytes:
    original = bobs.raw + UNKNOWN
    repair = signed_repair(mallory.sealed, mallory.identity, original, signed_ms=mallory.clock_ms())
    return mallory.seal(repair)


def fields_in_another_order(mallory: Mallory, _heard: WakuMessage, bobs: Opened) -> bytes:
    part = decode_signed_part(bobs.raw)
    first = envelope_pb2.SignedPart(epoch_id=part.epoch_id).SerializeToString()
    rest = envelope_pb2.SignedPart.FromString(bobs.raw)
    rest.ClearField("epoch_id")
    return mallory.sealed.seal(first + rest.SerializeToString(), random_bytes=os.urandom)


def in_the_plaintext(mallory: Mallory, _heard: WakuMessage, bobs: Opened) -> bytes:
    return mallory.seal_plaintext(encode_plaintext(bobs.raw, bobs.statements) + UNKNOWN)


def in_the_envelope(_mallory: Mallory, heard: WakuMessage, _bobs: Opened) -> bytes:
    """Anybody can, also without the key."""
    return heard.payload + UNKNOWN


def in_the_header(mallory: Mallory, heard: WakuMessage, bobs: Opened) -> bytes:
    header = decode_envelope(heard.payload)[0] + b"\xa2\x06\x40" + bytes(64)
    return mallory.seal_under(header, encode_plaintext(bobs.raw, bobs.statements))


def in_the_padding(mallory: Mallory, _heard: WakuMessage, bobs: Opened) -> bytes:
    return mallory.seal_padded(pad_plainly(encode_plaintext(bobs.raw, bobs.statements))[:-1] + b"x")


def in_longer_padding(mallory: Mallory, _heard: WakuMessage, bobs: Opened) -> bytes:
    return mallory.seal_padded(
        pad_plainly(encode_plaintext(bobs.raw, bobs.statements)) + bytes(65_536)
    )


def in_sds_bytes(mallory: Mallory, _heard: WakuMessage, _bobs: Opened) -> bytes:
    return mallory.seal(mallory.sign(encode_message(mallory.message("padded")) + UNKNOWN))


def in_the_content(mallory: Mallory, _heard: WakuMessage, _bobs: Opened) -> bytes:
    """Outside of its body."""
    content = (mallory.message("padded").content or b"") + b"\xa2\x06\x80\x02" + bytes(256)
    return mallory.payload(mallory.with_unreadable_content(content))


PLACES: Final[list[tuple[Pad, str]]] = [
    (in_bob_s_signed_part, "group.not_canonical"),
    (in_bob_s_signed_part_that_is_repaired, "group.not_canonical"),
    (fields_in_another_order, "group.not_canonical"),
    (in_the_plaintext, "group.not_canonical"),
    (in_the_envelope, "group.not_canonical"),
    (in_the_header, "group.not_canonical"),
    (in_the_padding, "group.bad_padding"),
    (in_longer_padding, "group.bad_padding"),
    (in_sds_bytes, "group.not_canonical"),
    (in_the_content, "group.content_not_canonical"),
]


@pytest.mark.parametrize(
    ("pad", "counter"), PLACES, ids=lambda value: getattr(value, "__name__", "")
)
async def test_padding_is_refused_and_neither_kept_nor_handed_on(
    stage: Stage, pad: Pad, counter: str
) -> None:
    stage.settings = NOTHING_KEPT
    alice, bob, carol = await stage.founded("Alice", "Bob", "Carol")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(4)
    alice.on_the_way = carol.on_the_way = lambda _message: ()
    before = len(mallory.heard_of(bob.participant_id))
    words = await bob.say("bob's words")
    await stage.until(lambda: now(len(mallory.heard_of(bob.participant_id)) > before))
    heard, opened = mallory.heard_of(bob.participant_id)[-1]
    payload = pad(mallory, heard, opened)
    alice.on_the_way = lambda message: (message,) if message.payload == payload else ()
    await mallory.relay.publish(payload)
    await stage.until_counted(alice, counter)
    assert await alice.raw(words) is None
    assert "padded" not in await alice.texts()
    alice.on_the_way = carol.on_the_way = lambda message: (message,)
    took_s = await stage.heals(["bob's words"])
    kept = [await person.raw(words) for person in stage.victims]
    assert {*kept} == {opened.raw}
    figure(
        f"padding {pad.__name__}: refused as {counter}, {len(payload)} bytes sent, "
        f"{max(len(raw or b'') for raw in kept)} kept of Bob's, healed after {took_s:.1f} s"
    )


# --- what newer versions say --------------------------------------------------------------------


async def test_an_unknown_kind_is_logged_held_repaired_and_said_to_need_a_newer_version(
    stage: Stage,
) -> None:
    stage.settings = NOTHING_KEPT
    alice, bob, carol = await stage.founded("Alice", "Bob", "Carol")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(4)
    carol.on_the_way = lambda _message: ()
    plain = mallory.message("in a newer version")
    wire = content_pb2.Content.FromString(plain.content or b"")
    wire.body = b"\xa2\x06\x05newer"
    message = mallory.with_content(wire.SerializeToString(deterministic=True))
    signed = mallory.sign_with_claims(message, b"\xa2\x06\x05newer")
    mallory.advance(message)
    await mallory.relay.publish(mallory.seal(signed))
    await stage.until(lambda: shows_newer([alice, bob]))
    await mallory.relay.node.stop()
    carol.on_the_way = lambda message: (message,)
    said = await alice.say("what was that?")
    took_s = await stage.heals(["what was that?"])
    await stage.until(lambda: shows_newer([alice, bob, carol]))
    assert {await one.raw(message.message_id) for one in stage.victims} == {signed}
    holders = await alice.engine.timeline.holders(stage.group, said)
    false = sum(one.participant_id == mallory.me and one.certain for one in holders)
    figure(
        f"an unknown kind: shown as needing a newer version by 3 of 3, repaired to Carol after "
        f"{took_s:.1f} s; unknown claims claimed {false} things"
    )
    assert false == 0


async def shows_newer(people: list[Victim]) -> bool:
    kinds = [[row.kind for row in await one.rows() if not row.waiting] for one in people]
    return all(MessageKind.UNSUPPORTED in each for each in kinds)
