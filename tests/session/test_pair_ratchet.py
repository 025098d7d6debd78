"""The Olm sessions of a pair over a bad network, with devices that die, and under attack.

Whoever sends repeats what is not acknowledged, as MVDS does, and seals every copy afresh.
"""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from engine.core.ids import InstanceId, UnixMs
from engine.core.ratchet import KeyBundle, RatchetState
from engine.crypto.identity import Identity
from engine.crypto.pair_proof import StaticProof
from engine.session.pair.ratchet import (
    FAILURES,
    MAX_SESSIONS,
    ONE_TIME_KEYS,
    RENEW_EVERY_MS,
    Opened,
    PairRatchet,
    new_state,
)
from tests.session.olm_keys import key_used

ANN, BOB = (
    Identity(signing_key=bytes([number]) * 32, encryption_key=bytes([number + 9]) * 32)
    for number in (1, 2)
)
KEY = bytes(range(32))
STAY = InstanceId(bytes(16))
START = UnixMs(1_790_000_000_000)


def fresh(before: RatchetState | None = None) -> RatchetState:
    number = START if before is None else before.ours.number + 1
    return new_state(stay=STAY, pickle_key=KEY, number=number, before=before)


class Device:
    """One side: what it says, what the other acknowledged, and the state that was committed."""

    def __init__(self, mine: Identity, theirs: Identity, count: int) -> None:
        self._proof = StaticProof(
            mine,
            peer_public_key=theirs.public_key,
            peer_encryption_key=theirs.encryption_public_key,
        )
        self.ratchet = PairRatchet(self._proof, fresh())
        self.committed: RatchetState = self.ratchet.state
        self.unacknowledged = set(range(count))
        self.delivered: list[int] = []
        self.reasons: list[str] = []

    def seal(self, payload: bytes, now_ms: UnixMs = START) -> bytes:
        return self.ratchet.seal(payload, now_ms=now_ms, clock_ms=now_ms)

    def open(self, sealed: bytes, now_ms: UnixMs = START) -> Opened:
        return self.ratchet.open(sealed, now_ms=now_ms, clock_ms=now_ms)

    def take(self, other: "Device") -> bool:
        return self.ratchet.take_bundle(other.ratchet.state.ours)

    def commit(self) -> None:
        self.committed = self.ratchet.state

    def die(self) -> None:
        """Whatever was not committed is gone; the next start reads the rest."""
        self.ratchet = PairRatchet(self._proof, self.committed)

    def go_back_to(self, state: RatchetState) -> None:
        """A profile from a backup: it begins anew, as its keys may have been used since."""
        self.committed = fresh(state)
        self.die()


class Pair:
    def __init__(self, count: int, seed: int, *, loss: float = 0.3, deaths: float = 0.02) -> None:
        self.random = Random(seed)
        self.now_ms = START
        self.devices = (Device(ANN, BOB, count), Device(BOB, ANN, count))
        self._loss, self._deaths = loss, deaths
        self.under_way: list[tuple[int, int, bytes | KeyBundle]] = []
        """When it arrives, where, and what."""
        self.sent: list[bytes] = []
        ann, bob = self.devices
        bob.take(ann)
        ann.take(bob)
        for device in self.devices:
            device.commit()

    def _dies(self, device: Device) -> bool:
        dies = self.random.random() < self._deaths
        if dies:
            device.die()
        return dies

    def send(self, number: int, payload: bytes) -> None:
        """Sealed, committed, sent: it may die in between."""
        device = self.devices[number]
        sealed = device.seal(payload, self.now_ms)
        if self._dies(device):
            return
        device.commit()
        if self._dies(device):
            return
        self.sent.append(sealed)
        if device.ratchet.has_to_tell and self.random.random() > self._loss:
            ours = device.ratchet.state.ours
            self.under_way.append((self.now_ms + self.random.randrange(8_000), 1 - number, ours))
        while self.random.random() > self._loss:
            self.under_way.append((self.now_ms + self.random.randrange(8_000), 1 - number, sealed))
            if self.random.random() > 0.2:
                break

    def arrive(self, number: int, sealed: bytes | KeyBundle) -> None:
        device = self.devices[number]
        if isinstance(sealed, KeyBundle):
            device.ratchet.take_bundle(sealed)
            if not self._dies(device):
                device.commit()
            return
        try:
            opened = device.open(sealed, self.now_ms)
        except RemoteProtocolError as error:
            device.reasons.append(error.reason)
            device.commit()
            if device.ratchet.wants_hello:
                self.send(number, b"")
            return
        if self._dies(device):
            return
        device.commit()
        if opened.payload is None:
            return
        word, _, said = opened.payload.decode().partition(" ")
        if word == "ack":
            device.unacknowledged.discard(int(said))
            return
        if int(said) not in device.delivered:
            device.delivered.append(int(said))
        self.send(number, f"ack {said}".encode())

    def round(self) -> None:
        self.now_ms = UnixMs(self.now_ms + 4_000)
        for number, device in enumerate(self.devices):
            for message in sorted(device.unacknowledged)[:20]:
                self.send(number, f"say {message}".encode())
        due = [each for each in self.under_way if each[0] <= self.now_ms]
        due.sort(key=lambda each: each[:2])
        self.under_way = [each for each in self.under_way if each[0] > self.now_ms]
        for _, number, sealed in due:
            self.arrive(number, sealed)

    def until_all_arrived(self, count: int, rounds: int) -> None:
        for _ in range(rounds):
            if not any(device.unacknowledged for device in self.devices):
                break
            self.round()
        for device in self.devices:
            assert device.unacknowledged == set()
            assert sorted(device.delivered) == list(range(count))


@given(seed=st.integers(0, 2**32))
@settings(max_examples=4, deadline=None)
def test_everything_arrives_through_loss_copies_disorder_and_deaths(seed: int) -> None:
    pair = Pair(40, seed)
    pair.until_all_arrived(40, rounds=200)
    used = [key_used(sealed) for sealed in pair.sent]
    assert len(set(used)) == len(used), "a key encrypted twice"
    best = {device.ratchet.state.sessions[0].session_id for device in pair.devices}
    assert len(best) == 1, "both use the same session"


@given(seed=st.integers(0, 2**32), back=st.integers(1, 12), who=st.integers(0, 1))
@settings(max_examples=4, deadline=None)
def test_a_profile_from_a_backup_comes_back_into_the_talk(seed: int, back: int, who: int) -> None:
    pair = Pair(40, seed, deaths=0)
    device = pair.devices[who]
    kept = [device.committed]
    for _ in range(12):
        pair.round()
        kept.append(device.committed)
    device.go_back_to(kept[-back - 1])
    used = {key_used(sealed) for sealed in pair.sent}
    before = len(pair.sent)
    device.unacknowledged |= {0, 1, 2}
    pair.until_all_arrived(40, rounds=400)
    assert not {key_used(sealed) for sealed in pair.sent[before:]} & used


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_ten_thousand_each_way(seed: int) -> None:
    pair = Pair(10_000, seed, deaths=0.01)
    pair.until_all_arrived(10_000, rounds=100_000)


def test_two_sessions_begun_at_once_become_the_one_with_the_smaller_id() -> None:
    pair = Pair(1, seed=1, loss=0, deaths=0)
    ann, bob = pair.devices
    crossed = (
        ann.seal(b"from Ann"),
        bob.seal(b"from Bob"),
    )
    assert bob.open(crossed[0]).payload == b"from Ann"
    assert ann.open(crossed[1]).payload == b"from Bob"
    again = ann.seal(b"again"), bob.seal(b"and again")
    assert bob.open(again[0]).payload == b"again"
    assert ann.open(again[1]).payload == b"and again"
    ids = [[kept.session_id for kept in each.ratchet.state.sessions] for each in pair.devices]
    assert ids[0] == ids[1] == sorted(ids[0])
    assert len(ids[0]) == 2


def test_a_copy_is_dropped_before_it_is_decrypted_also_after_a_restart() -> None:
    pair = Pair(1, seed=2, loss=0, deaths=0)
    ann, bob = pair.devices
    sealed = ann.seal(b"once")
    bob.open(sealed)
    bob.commit()
    bob.die()
    for _ in range(FAILURES):
        with pytest.raises(CryptoError) as error:
            bob.open(sealed)
        assert error.value.reason == "repeated"
    assert not bob.ratchet.wants_hello


def lost_bob(pair: Pair) -> list[bytes]:
    """Ann and Bob talk; then Bob's state goes back to before that.  What Ann says afterwards."""
    ann, bob = pair.devices
    before = bob.committed
    for _ in range(2):
        bob.open(ann.seal(b"a"))
        ann.open(bob.seal(b"b"))
    bob.committed = before
    bob.die()
    return [ann.seal(b"c") for _ in range(FAILURES + 1)]


def test_only_what_the_other_proved_leads_to_a_new_session_and_once_a_minute() -> None:
    pair = Pair(1, seed=3, loss=0, deaths=0)
    bob = pair.devices[1]
    failing = lost_bob(pair)
    forged = [each[:-1] + bytes([each[-1] ^ 1]) for each in failing]
    for sealed in forged * 3:
        with pytest.raises(CryptoError) as error:
            bob.open(sealed)
        assert error.value.reason == "bad_proof"
    assert bob.ratchet.state.failures == 0
    for number, sealed in enumerate(failing[:FAILURES], start=1):
        with pytest.raises(CryptoError) as error:
            bob.open(sealed)
        assert error.value.reason == "not_decrypted"
        assert bob.ratchet.wants_hello is (number == FAILURES)
    hello = bob.seal(b"")
    assert not bob.ratchet.wants_hello
    for later_ms, wants in ((RENEW_EVERY_MS - 1, False), (RENEW_EVERY_MS, True)):
        for _ in range(FAILURES):
            with pytest.raises(CryptoError):
                bob.open(failing[-1], UnixMs(START + later_ms))
        assert bob.ratchet.wants_hello is wants
    ann = pair.devices[0]
    assert ann.open(hello).payload is None
    assert bob.open(ann.seal(b"d")).payload == b"d"


def test_a_recorded_beginning_does_not_take_the_place_of_the_session_it_began() -> None:
    """Older than the remembered copies, and begun with the fallback key, which still works."""
    pair = Pair(1, seed=4, loss=0, deaths=0)
    ann, bob = pair.devices
    for _ in range(ONE_TIME_KEYS + 1):
        ann.go_back_to(ann.committed)
        bob.take(ann)
    recorded = ann.seal(b"first")
    bob.open(recorded)
    for _ in range(300):
        ann.open(bob.seal(b"b"))
        bob.open(ann.seal(b"a"))
    with pytest.raises(CryptoError) as error:
        bob.open(recorded)
    assert error.value.reason == "not_decrypted"
    sealed = bob.seal(b"still here")
    assert ann.open(sealed).payload == b"still here"


def test_sessions_and_remembered_copies_are_bounded() -> None:
    pair = Pair(1, seed=5, loss=0, deaths=0)
    ann, bob = pair.devices
    for _ in range(20):
        ann.committed = replace(ann.ratchet.state, must_renew=True)
        ann.die()
        bob.open(ann.seal(b""))
    for device in pair.devices:
        generations = [kept.generation for kept in device.ratchet.state.sessions]
        assert generations == [20, 19, 18, 17, 16][:MAX_SESSIONS]


def test_without_the_others_keys_nothing_can_be_said() -> None:
    proof = StaticProof(
        ANN, peer_public_key=BOB.public_key, peer_encryption_key=BOB.encryption_public_key
    )
    with pytest.raises(LocalProtocolError):
        PairRatchet(proof, fresh()).seal(b"x", now_ms=START, clock_ms=START)


@given(data=st.binary(max_size=200))
def test_nothing_that_comes_raises_anything_else(data: bytes) -> None:
    ratchet = Device(BOB, ANN, 0).ratchet
    with pytest.raises(RemoteProtocolError):
        ratchet.open(data, now_ms=START, clock_ms=START)
