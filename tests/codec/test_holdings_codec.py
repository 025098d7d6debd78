"""Holdings on the wire: compact, one encoding for one set, bounded in both directions."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.holdings import (
    MAX_AUTHORS,
    MAX_CLAIM_BYTES,
    MAX_HELD_ASIDE,
    MAX_RANGES_PER_AUTHOR,
    MAX_WHOLE_FILES,
    decode_claim,
    encode_claim,
)
from engine.codec.message_id import id_text
from engine.core.content import MAX_SAFE_INTEGER
from engine.core.errors import RemoteProtocolError
from engine.core.ids import InstanceId, MessageId
from engine.core.sds.vocabulary import Claim, Holdings, SequenceRange
from proto import envelope_pb2

AUTHOR = bytes(range(16))
HEAD = b"the head"


def encode_holdings(holdings: Holdings | None) -> bytes:
    return encode_claim(Claim(holdings))


def decode_holdings(encoding: bytes) -> Holdings | None:
    claim = decode_claim(encoding)
    return None if claim is None else claim.holdings


def ranges_of(distances: list[tuple[int, int]]) -> tuple[SequenceRange, ...]:
    ranges: list[SequenceRange] = []
    last = -1
    for gap, length in distances:
        first = last + 2 + gap
        last = first + length
        ranges.append(SequenceRange(first=first, last=last, head=last.to_bytes(8, "big")))
    return tuple(ranges)


small = st.integers(0, 1000)
range_lists = st.lists(st.tuples(small, small), min_size=1, max_size=6).map(ranges_of)
instances = st.builds(InstanceId, st.binary(min_size=16, max_size=16))
holdings_of_all_kinds = st.dictionaries(instances, range_lists, max_size=5)


def encoded(*ranges: int, author: bytes = AUTHOR) -> bytes:
    holdings = envelope_pb2.AuthorHoldings(
        instance_id=author, ranges=ranges, heads=HEAD * (len(ranges) // 2)
    )
    return envelope_pb2.Claims(authors=[holdings]).SerializeToString()


def read(encoding: bytes) -> Holdings | Literal["bad_holdings"] | None:
    """The set, or the only reason for which there may be none."""
    try:
        return decode_holdings(encoding)
    except RemoteProtocolError as error:
        if error.reason == "bad_holdings":
            return "bad_holdings"
        raise


@given(holdings_of_all_kinds)
def test_what_is_encoded_is_decoded(holdings: Holdings) -> None:
    assert decode_holdings(encode_holdings(holdings)) == (holdings or None)


@given(holdings_of_all_kinds)
def test_one_set_has_one_encoding(holdings: Holdings) -> None:
    backwards = dict(reversed(holdings.items()))
    assert encode_holdings(holdings) == encode_holdings(backwards)


def test_nothing_held_is_no_bytes() -> None:
    assert encode_holdings(None) == encode_holdings({}) == b""
    assert encode_holdings({InstanceId(AUTHOR): ()}) == b""
    assert decode_holdings(b"") is None


def test_it_is_compact() -> None:
    held: Holdings = {InstanceId(AUTHOR): (SequenceRange(first=1, last=100_000, head=HEAD),)}
    assert len(encode_holdings(held)) <= 36


@pytest.mark.parametrize(
    "ranges",
    [
        (),
        (1,),
        (0, 5),
        (1, 5, 1, 3),
        (1, 5, 0, 3),
        (1, 5, 2),
        (1, 2**53 - 1),
        (2**53, 0),
        (2**64 - 1, 2**64 - 1),
        (1, 0) + (2, 0) * MAX_RANGES_PER_AUTHOR,
    ],
)
def test_ranges_that_lie_about_their_shape_are_refused(ranges: tuple[int, ...]) -> None:
    with pytest.raises(RemoteProtocolError) as refusal:
        decode_holdings(encoded(*ranges))
    assert refusal.value.reason == "bad_holdings"


def test_the_largest_numbers_are_accepted() -> None:
    last = 2**53 - 1
    assert decode_holdings(encoded(1, last - 1)) == {
        InstanceId(AUTHOR): (SequenceRange(first=1, last=last, head=HEAD),)
    }


def test_authors_must_ascend_and_be_instances() -> None:
    first, second = encoded(1, 1, author=bytes(16)), encoded(1, 1)
    assert decode_holdings(first + second) is not None
    bad = [second + first, second + second, encoded(1, 1, author=bytes(15)), b"\x08\x01\xff"]
    for wrong in bad:
        with pytest.raises(RemoteProtocolError):
            decode_holdings(wrong)


def test_too_much_is_refused_from_others_and_left_out_of_our_own() -> None:
    def held(count: int) -> Holdings:
        return {
            InstanceId(number.to_bytes(16, "big")): (SequenceRange(first=1, last=1, head=HEAD),)
            for number in reversed(range(count))
        }

    kept = decode_holdings(encode_holdings(held(2 * MAX_AUTHORS)))
    assert kept is not None
    assert len(encode_holdings(kept)) <= MAX_CLAIM_BYTES
    assert 400 < len(kept) <= MAX_AUTHORS
    assert InstanceId((2 * MAX_AUTHORS - 1).to_bytes(16, "big")) in kept
    with pytest.raises(RemoteProtocolError):
        decode_holdings(encode_holdings(kept) + bytes(MAX_CLAIM_BYTES))


def test_of_too_many_ranges_the_newest_are_kept() -> None:
    many = ranges_of([(0, 0)] * (MAX_RANGES_PER_AUTHOR + 10))
    kept = decode_holdings(encode_holdings({InstanceId(AUTHOR): many}))
    assert kept == {InstanceId(AUTHOR): many[-MAX_RANGES_PER_AUTHOR:]}


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_reads_as_a_set(garbage: bytes) -> None:
    holdings = read(garbage)
    if holdings != "bad_holdings":
        assert (decode_holdings(encode_holdings(holdings)) or None) == (holdings or None)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=12))
def test_any_distances_are_refused_or_read_as_a_set(distances: list[int]) -> None:
    holdings = read(encoded(*distances))
    if holdings != "bad_holdings":
        assert encode_holdings(holdings) == encoded(*distances)


# --- heads, and what is held aside ----------------------------------------------------------------


@pytest.mark.parametrize("heads", [b"", HEAD[:7], HEAD + b"x", HEAD * 2])
def test_each_range_has_its_head(heads: bytes) -> None:
    author = envelope_pb2.AuthorHoldings(instance_id=AUTHOR, ranges=(1, 5), heads=heads)
    with pytest.raises(RemoteProtocolError, match="heads"):
        decode_claim(envelope_pb2.Claims(authors=[author]).SerializeToString())


ids = st.binary(min_size=16, max_size=16).map(id_text)


@given(holdings_of_all_kinds, st.lists(ids, max_size=6).map(tuple))
def test_what_is_held_aside_comes_back(
    holdings: Holdings, held_aside: tuple[MessageId, ...]
) -> None:
    claim = Claim(holdings, held_aside)
    decoded = decode_claim(encode_claim(claim))
    assert decoded == (claim if holdings or held_aside else None)


def test_of_much_that_is_held_aside_the_last_are_named() -> None:
    many = tuple(id_text(number.to_bytes(16, "big")) for number in range(MAX_HELD_ASIDE + 9))
    decoded = decode_claim(encode_claim(Claim({}, many)))
    assert decoded == Claim({}, many[9:])
    for wrong in ([bytes(15)], [bytes(17)], [b""], [bytes(16)] * (MAX_HELD_ASIDE + 1)):
        with pytest.raises(RemoteProtocolError):
            decode_claim(envelope_pb2.Claims(held_aside=wrong).SerializeToString())


some_ids = st.lists(ids, max_size=6).map(tuple)


@given(holdings_of_all_kinds, some_ids, some_ids, st.integers(0, MAX_SAFE_INTEGER))
def test_which_files_are_whole_and_which_were_let_go_comes_back(
    holdings: Holdings,
    whole_files: tuple[MessageId, ...],
    let_go_files: tuple[MessageId, ...],
    files_as_of: int,
) -> None:
    claim = Claim(holdings, (), whole_files, let_go_files, files_as_of)
    decoded = decode_claim(encode_claim(claim))
    assert decoded == (claim if claim != Claim({}) else None)


def test_a_claim_that_was_let_go_is_no_more_than_any_other() -> None:
    for wrong in (
        envelope_pb2.Claims(let_go_files=[bytes(15)]),
        envelope_pb2.Claims(let_go_files=[bytes(16)] * (MAX_WHOLE_FILES + 1)),
        envelope_pb2.Claims(files_as_of=MAX_SAFE_INTEGER + 1),
    ):
        with pytest.raises(RemoteProtocolError):
            decode_claim(wrong.SerializeToString())
    full = Claim({}, (), (id_text(bytes(16)),) * 70, (id_text(bytes(16)),) * 70, MAX_SAFE_INTEGER)
    assert len(encode_claim(full)) < MAX_CLAIM_BYTES


def test_of_many_whole_files_the_last_are_named() -> None:
    many = tuple(id_text(number.to_bytes(16, "big")) for number in range(MAX_WHOLE_FILES + 9))
    assert decode_claim(encode_claim(Claim({}, (), many))) == Claim({}, (), many[9:])
    for wrong in ([bytes(15)], [b""], [bytes(16)] * (MAX_WHOLE_FILES + 1)):
        with pytest.raises(RemoteProtocolError):
            decode_claim(envelope_pb2.Claims(whole_files=wrong).SerializeToString())


def test_what_a_newer_version_claims_claims_nothing() -> None:
    unknown = b"\xa2\x06\x03abc"  # field 100
    assert decode_claim(unknown) == Claim({}, ())
    known = encode_claim(Claim({InstanceId(AUTHOR): ranges_of([(1, 2)])}))
    assert decode_claim(known + unknown) == decode_claim(known)
