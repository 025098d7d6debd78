"""People, a group and real SDS bytes for the tests of what protects them."""

import os
from collections.abc import Callable
from hashlib import shake_256

import pytest

from engine.core.entropy import RandomBytes
from engine.core.ids import ParticipantId
from engine.crypto.identity import Identity
from engine.crypto.sealed import SealedGroup, new_group
from proto import sds_pb2
from tests.crypto.sealed_examples import CLAIM, NOW

SdsBytes = Callable[[ParticipantId], bytes]


def seeded(seed: str) -> RandomBytes:
    """A stream of bytes that a seed determines: the n-th call differs from every other."""
    calls = 0

    def random_bytes(count: int) -> bytes:
        nonlocal calls
        calls += 1
        return shake_256(f"{seed}/{calls}".encode()).digest(count)

    return random_bytes


@pytest.fixture
def random_bytes() -> RandomBytes:
    return seeded("test")


@pytest.fixture
def alice() -> Identity:
    return Identity.generate(seeded("alice"))


@pytest.fixture
def bob() -> Identity:
    return Identity.generate(seeded("bob"))


@pytest.fixture
def group() -> SealedGroup:
    return new_group(seeded("group"))


@pytest.fixture
def sds_bytes() -> SdsBytes:
    def of(sender_id: ParticipantId) -> bytes:
        return sds_pb2.Message(
            sender_id=sender_id,
            message_id="AAAAAAAAAAAAAAAAAAAAAA",
            channel_id="0",
            lamport_timestamp=1_700_000_000_000,
            content=b"Bonjour",
        ).SerializeToString()

    return of


@pytest.fixture
def payload(alice: Identity, group: SealedGroup, sds_bytes: SdsBytes) -> bytes:
    signed = group.sign(alice, sds_bytes(alice.participant_id), CLAIM, NOW)
    return group.seal(signed, random_bytes=os.urandom)
