"""The filter is js-waku's bit for bit, and grows and rolls over without forgetting the newest."""

import hashlib
import json
from pathlib import Path
from typing import Any, cast

import mmh3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import RemoteProtocolError
from engine.core.ids import MessageId
from engine.core.sds.bloom import (
    BITS_PER_ID,
    HASHES,
    JS_BITS,
    JS_BYTES,
    BloomFilter,
    ReceivedBloom,
    base_hashes,
    fill_of,
    positions,
)
from engine.core.sds.config import SdsConfig
from engine.core.sds.js_hash import js_hash
from tests.core.sds.sds_bench import after, member, opened

Vector = dict[str, Any]


def _vectors(name: str) -> dict[str, list[Vector]]:
    path = Path(__file__).parents[2] / "vectors" / "sds" / name
    return cast("dict[str, list[Vector]]", json.loads(path.read_text(encoding="utf-8")))


def false_positive_rate(filter_bytes: bytes) -> float:
    """The probability that an id never added is reported, from the filter's fill."""
    return fill_of(filter_bytes) ** HASHES


VECTORS = _vectors("bloom.json")
FULL = _vectors("bloom_full.json")


def _ids(start: int, end: int) -> list[MessageId]:
    return [
        MessageId(hashlib.sha256(f"sds-vector-{number}".encode()).hexdigest())
        for number in range(start, end)
    ]


@pytest.mark.parametrize(
    "vector", VECTORS["hashN"] + FULL["hashN"], ids=lambda vector: repr(vector["item"])
)
def test_positions(vector: Vector) -> None:
    found = positions(base_hashes(vector["item"]), vector["maxValue"])
    assert list(found) == vector["positions"]


@given(st.text(st.characters(max_codepoint=255), max_size=40))
def test_the_slow_hash_is_the_fast_one_where_both_apply(text: str) -> None:
    """Characters up to 255 are bytes in js-waku's array: plain murmur3 of the Latin-1 text."""
    assert js_hash(text) == mmh3.hash(text.encode("latin-1"))


@given(st.text(max_size=128), st.integers(1, 200_000))
def test_any_text_has_ten_positions_within_the_filter(text: str, bits: int) -> None:
    found = positions(base_hashes(text), bits)
    assert len(found) == 10
    assert all(0 <= at < bits for at in found)


@pytest.mark.parametrize("vector", VECTORS["states"], ids=lambda vector: f"n={vector['n']}")
def test_states(vector: Vector) -> None:
    bloom = BloomFilter(capacity=10_000, fixed=True)
    for message_id in _ids(0, vector["n"]):
        assert not bloom.add(message_id)
    data = bytes(bloom)
    assert data.hex() == vector["hex"]
    assert int.from_bytes(data, "big").bit_count() == vector["popcount"]
    received = ReceivedBloom(data)
    assert all(received.may_contain(base_hashes(item)) for item in _ids(0, vector["n"]))
    found = [
        number
        for number, item in enumerate(_ids(100_000, 120_000), 100_000)
        if received.may_contain(base_hashes(item))
    ]
    assert found == vector["falsePositivesInRange_100000_119999"]


@pytest.mark.parametrize("vector", FULL["states"], ids=lambda vector: f"n={vector['n']}")
def test_a_full_filter_is_wrong_about_the_ids_that_js_waku_is_wrong_about(vector: Vector) -> None:
    """With one hash less, it would be wrong about more of them."""
    bloom = BloomFilter(capacity=10_000, fixed=True)
    bloom.include(_ids(0, vector["n"]))
    data = bytes(bloom)
    assert hashlib.sha256(data).hexdigest() == vector["sha256"]
    received = ReceivedBloom(data)
    found = [
        number
        for number, item in enumerate(_ids(100_000, 120_000), 100_000)
        if received.may_contain(base_hashes(item))
    ]
    assert found == vector["falsePositivesInRange_100000_119999"]
    assert len(found) > 10


@pytest.mark.parametrize("length", [0, 1, 7, 18_751, 18_753])
def test_a_length_that_is_no_whole_number_of_words_is_refused(length: int) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        ReceivedBloom(bytes(length))
    assert caught.value.reason == "bloom_bad_length"


@settings(deadline=None)
@given(st.integers(0, 700))
def test_sized_filter_has_room_and_keeps_the_design_error(count: int) -> None:
    bloom = BloomFilter(capacity=1_000, fixed=False)
    ids = _ids(0, count)
    for number, message_id in enumerate(ids, 1):
        if bloom.add(message_id):
            bloom.rebuild(ids[:number])
    data = bytes(bloom)
    assert len(data) % 8 == 0
    assert len(data) <= 2 * max(count, 16) * 14.4 / 8 + 8
    assert false_positive_rate(data) < 0.003
    received = ReceivedBloom(data)
    assert all(received.may_contain(base_hashes(item)) for item in ids)


def test_a_filter_has_as_many_words_as_its_ids_need_and_no_more() -> None:
    for count in range(1, 700):
        bloom = BloomFilter(capacity=count, fixed=False)
        bloom.rebuild(_ids(0, count))
        needed, bits = BITS_PER_ID * bloom.room, 8 * len(bytes(bloom))
        assert needed <= bits < needed + 64


def test_the_open_filter_always_has_its_one_size() -> None:
    bloom = BloomFilter(capacity=10_000, fixed=True)
    assert len(bytes(bloom)) == JS_BYTES
    assert max(positions(base_hashes("a"), JS_BITS)) < JS_BITS


def test_a_channel_rolls_over_to_the_newest_and_stays_below_the_design_error() -> None:
    alice = member()
    for number in range(1_000):
        alice.send(str(number), now_ms=after(number))
    sent = list(alice.seen.sent)
    (last,) = opened(alice.send("last", now_ms=after(2_000)))
    data = last.message.bloom_filter
    assert data is not None
    assert false_positive_rate(data) < 0.002
    received = ReceivedBloom(data)
    kept = [received.may_contain(base_hashes(item)) for item in sent]
    assert all(kept[-SdsConfig().bloom_capacity // 2 :])
    assert sum(kept[:500]) < 10
