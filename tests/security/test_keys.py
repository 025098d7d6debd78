"""Keys with a part of small order, in joins, links and inboxes: valid signatures, all refused.

A signature under such a key can be valid, which the forger shows before it is sent: what refuses it
is the look at the key, nothing else.
"""

import os
from collections.abc import Callable
from functools import cached_property
from hashlib import sha512
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from engine.codec.contact_link import CONTACT_FORM, read_contact_link
from engine.codec.content import encode_content
from engine.codec.invite import INVITE_FORM
from engine.codec.mvds import encode_payload
from engine.core.content import NONCE_BYTES, ContactRequest, Content
from engine.core.errors import InviteError
from engine.core.ids import AuthorSequence, InstanceId
from engine.core.mvds.vocabulary import MvdsMessage, Payload
from engine.crypto.identity import Identity
from engine.crypto.links import parse_contact_link
from engine.crypto.pair import MvdsPart, PairSeal, inbox_topic_of
from proto import contact_pb2, invite_pb2
from tests.crypto.test_public_key_import import (
    NEUTRAL,
    ORDER,
    P,
    Point,
    add,
    multiply,
    point_with_y,
    small_order_points,
)
from tests.security.mallory import Mallory
from tests.security.stage import Stage, figure


def _base() -> Point:
    point = point_with_y(4 * pow(5, P - 2, P) % P)
    assert point is not None
    x, y = point
    return (x, y) if x % 2 == 0 else (P - x, y)


BASE: Final = _base()
TORSION: Final = next(p for p in small_order_points() if multiply(p, 4) != NEUTRAL)
"""Of order 8."""


def encoded(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def on_curve25519(point: Point) -> bytes:
    return ((1 + point[1]) * pow(1 - point[1], P - 2, P) % P).to_bytes(32, "little")


class Forger(Identity):
    """An identity whose points have a part of small order, or nothing else."""

    @cached_property
    def scalar(self) -> int:
        return int.from_bytes(self.signing_key, "little") % ORDER

    @cached_property
    def public_key(self) -> bytes:
        return encoded(add(multiply(BASE, self.scalar), TORSION))

    def sign(self, message: bytes) -> bytes:
        """Again and again, until the small part falls out of the equation."""
        while True:
            secret = int.from_bytes(os.urandom(40), "little") % ORDER
            commitment = encoded(multiply(BASE, secret))
            hashed = sha512(commitment + self.public_key + message).digest()
            challenge = int.from_bytes(hashed, "little") % ORDER
            if challenge % 8 == 0:
                break
        response = (secret + challenge * self.scalar) % ORDER
        signature = commitment + response.to_bytes(32, "little")
        # It is valid by all but the look at the key.
        Ed25519PublicKey.from_public_bytes(self.public_key).verify(signature, message)
        return signature


class OfSmallOrder(Forger):
    """There is no secret at all: anybody can sign for it."""

    @cached_property
    def scalar(self) -> int:
        return 0

    @cached_property
    def public_key(self) -> bytes:
        return encoded(TORSION)


class MixedReceiver(Identity):
    @cached_property
    def encryption_public_key(self) -> bytes:
        return on_curve25519(add(multiply(BASE, 8 * ORDER // 9), TORSION))


class SmallReceiver(Identity):
    @cached_property
    def encryption_public_key(self) -> bytes:
        return on_curve25519(TORSION)


KEYS: Final[list[tuple[type[Identity], str]]] = [
    (Forger, "mixed_order_key"),
    (OfSmallOrder, "small_order_key"),
    (MixedReceiver, "mixed_order_key"),
    (SmallReceiver, "small_order_key"),
]
of_all_kinds: Callable[..., pytest.MarkDecorator] = pytest.mark.parametrize(
    ("kind", "reason"), KEYS, ids=[f"{kind.__name__}" for kind, _ in KEYS]
)


@of_all_kinds
async def test_who_joins_with_such_a_key_is_nobody(
    stage: Stage, kind: type[Identity], reason: str
) -> None:
    alice, bob = await stage.founded("Alice", "Bob")
    relay = await stage.relay()
    forger = await Mallory.joined(stage, relay, identity=kind.generate(os.urandom))
    await forger.say("let me in")
    for person in (alice, bob):
        await stage.until_counted(person, f"group.{reason}")
    await alice.say("who was that?")
    took_s = await stage.heals(["who was that?"])
    members = [person.member_count() for person in (alice, bob)]
    figure(f"{kind.__name__} joins: refused as {reason}, {members} members, {took_s:.1f} s")
    assert members == [2, 2]
    for person in (alice, bob):
        assert "let me in" not in await person.texts()


@of_all_kinds
async def test_links_that_name_such_a_key_are_refused(
    stage: Stage, kind: type[Identity], reason: str
) -> None:
    alice, bob = await stage.founded("Alice", "Bob")
    forger = kind.generate(os.urandom)
    contact = contact_pb2.ContactLink.FromString(
        CONTACT_FORM.read(await alice.engine.people.make_contact_link())
    )
    contact.public_key, contact.encryption_key = forger.public_key, forger.encryption_public_key
    unsigned = CONTACT_FORM.write(contact.SerializeToString(deterministic=True))
    contact.signature = forger.sign(read_contact_link(unsigned).signed)
    link = CONTACT_FORM.write(contact.SerializeToString(deterministic=True))
    with pytest.raises(InviteError, match="bad_key"):
        bob.engine.people.preview_contact(link)
    with pytest.raises(InviteError, match="bad_key"):
        await bob.engine.people.add(link)
    refused = 1
    if issubclass(kind, Forger):
        invite = invite_pb2.Invite.FromString(INVITE_FORM.read(await stage.link()))
        invite.group_id, invite.admin_public_key = os.urandom(32), forger.public_key
        link = INVITE_FORM.write(invite.SerializeToString(deterministic=True))
        with pytest.raises(InviteError, match="bad_key"):
            await bob.engine.groups.join(link)
        refused += 1
    figure(f"links that name {kind.__name__}'s keys ({reason}): {refused} refused")
    assert len(await bob.engine.conversations()) == 1


@of_all_kinds
async def test_requests_under_such_a_key_reach_nobody(
    stage: Stage, kind: type[Identity], reason: str
) -> None:
    alice, _ = await stage.founded("Alice", "Bob")
    relay = await stage.relay()
    link = parse_contact_link(await alice.engine.people.make_contact_link(), now_ms=stage.now_ms())

    async def asks(identity: Identity) -> None:
        seal = PairSeal(
            identity,
            peer_public_key=link.public_key,
            peer_encryption_key=link.encryption_key,
        )
        content = Content(
            author=AuthorSequence(instance_id=InstanceId(os.urandom(16)), sequence=1),
            previous_id=None,
            nonce=os.urandom(NONCE_BYTES),
            sent_ms=stage.now_ms(),
            body=ContactRequest(name="Eve", round=1),
            lamport_timestamp=stage.now_ms(),
        )
        request = MvdsMessage(seal.group_id, stage.now_ms() // 1000, encode_content(content))
        part = MvdsPart(payload=encode_payload(Payload(messages=(request,))))
        payload = seal.seal(part, signed_ms=stage.now_ms())
        await relay.publish(payload, topic=inbox_topic_of(link.public_key))

    await asks(kind.generate(os.urandom))
    await stage.until_counted(alice, f"inbox.{reason}")
    asked = len(await alice.engine.conversations()) - 1
    await asks(Identity.generate(os.urandom))  # Somebody honest is heard.

    async def heard() -> bool:
        return len(await alice.engine.conversations()) == 2

    await stage.until(heard)
    figure(f"{kind.__name__} asks to talk: refused as {reason}, {asked} requests shown")
    assert asked == 0
    assert alice.counted("inbox.crashed") == 0
