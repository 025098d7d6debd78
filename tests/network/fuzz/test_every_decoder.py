"""Whatever bytes come: a decoder refuses them or reads them, soon, and in little memory.

Every decoder of ``decoders.py`` gets well-formed inputs bent by Hypothesis, inputs as long as they
may be that are made of as many small parts as fit, and noise.  Nothing but a refusal may come out.
Memory is traced always, as far as Python knows of it; what the protobuf library takes besides, and
time, which a busy machine spoils, are measured in the long tests.
"""

import ast
import itertools
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.network.fuzz.decoders import DECODERS, MIB, NO_DECODERS, SEEDS, Decoder
from tests.network.fuzz.hard_inputs import crammed, is_refused

ROOT = Path(__file__).parents[3]
MOST_MEMORY = 64 * MIB
LONGEST_S = 0.25  # of CPU: what grows out of proportion takes far longer
EXAMPLES, LONG_EXAMPLES = 60, 3_000
by_name = pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)


# --- nobody is forgotten --------------------------------------------------------------------------


def takers_of_bytes() -> Iterator[str]:
    """Public functions and methods whose first argument is bytes, as ``module.name``."""
    for root in ("codec", "network"):
        for path in sorted((ROOT / "engine" / root).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT / "engine").with_suffix("").parts)
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    arguments = [*node.args.posonlyargs, *node.args.args]
                    first = [each for each in arguments if each.arg not in {"self", "cls"}][:1]
                    kinds = [ast.unparse(each.annotation) for each in first if each.annotation]
                    takes = any("bytes" in kind.split(" | ") for kind in kinds)
                    if takes and not node.name.startswith("_"):
                        yield f"{module}.{node.name}"


def is_no_decoder(taker: str) -> bool:
    name = taker.rpartition(".")[2]
    return any(
        name.startswith(listed) if listed.endswith("_") else f".{taker}".endswith(f".{listed}")
        for listed in NO_DECODERS
    )


def test_whatever_takes_bytes_is_in_the_table_or_no_decoder() -> None:
    takers = set(takers_of_bytes())
    covered = {taker for decoder in DECODERS for taker in decoder.covers}
    assert covered - takers == set(), "in the table and gone"
    assert {taker for taker in takers - covered if not is_no_decoder(taker)} == set(), "forgotten"
    assert len(takers) > 60


def test_no_excuse_is_left_over() -> None:
    takers = set(takers_of_bytes())
    for listed in NO_DECODERS:
        used = [taker for taker in takers if listed in taker and is_no_decoder(taker)]
        assert used, listed


def test_every_decoder_has_seeds_of_its_own() -> None:
    names = [decoder.name for decoder in DECODERS]
    assert sorted(names) == sorted(SEEDS)
    for decoder in DECODERS:
        if decoder.name not in {"socks", "websocket client upgrade", "websocket server frames"}:
            read = 0
            for seed in decoder.seeds:
                read += not is_refused(decoder, seed)
            assert read, f"{decoder.name} reads none of its seeds"


# --- what they are given --------------------------------------------------------------------------


def bent(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """A seed after a few accidents."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(("set", "cut", "insert", "double", "splice", "length"))):
            case "set" if at < len(data):
                data[at] = draw(st.integers(0, 255))
            case "cut":
                del data[at : at + draw(st.integers(0, 40))]
            case "insert":
                data[at:at] = draw(st.binary(max_size=20))
            case "double":
                data[at:at] = data[at : at + draw(st.integers(0, 200))]
            case "splice":
                data[at:] = draw(st.sampled_from(seeds))[at:]
            case _:
                data[at : at + 1] = draw(st.sampled_from((b"\xff" * 9, b"\xff\xff\xff\x7f", b"\0")))
    return bytes(data)


def inputs(decoder: Decoder) -> st.SearchStrategy[bytes]:
    seeds = decoder.seeds

    @st.composite
    def bent_seed(draw: st.DrawFn) -> bytes:
        return bent(draw, seeds)

    return st.binary(max_size=400) | bent_seed()


# --- what must hold -------------------------------------------------------------------------------


@by_name
def test_nothing_but_a_refusal_comes_out(decoder: Decoder) -> None:
    @given(inputs(decoder))
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def never_crashes(data: bytes) -> None:
        is_refused(decoder, data)

    never_crashes()


@by_name
def test_the_largest_inputs_take_little_memory(decoder: Decoder) -> None:
    tracemalloc.start()
    try:
        for data in crammed(decoder):
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            is_refused(decoder, data)
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < MOST_MEMORY, data[:40]
    finally:
        tracemalloc.stop()


@pytest.mark.long
@by_name
def test_nothing_but_a_refusal_comes_out_of_very_many(decoder: Decoder) -> None:
    @given(inputs(decoder))
    @settings(
        max_examples=LONG_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    def never_crashes(data: bytes) -> None:
        is_refused(decoder, data)

    never_crashes()


@pytest.mark.long
def test_the_largest_inputs_take_little_memory_of_the_library_too() -> None:
    """All of them in one process of its own, which must never have been larger than this."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.network.fuzz.hard_inputs"],
        cwd=ROOT,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    )
    assert int(done.stdout) < MOST_MEMORY // 1024


@pytest.mark.long
@by_name
def test_every_input_is_done_with_soon(decoder: Decoder) -> None:
    """Of three times the shortest, in time of this process: what others do does not count."""
    for data in itertools.chain(crammed(decoder), decoder.seeds):
        took_s = []
        for _ in range(3):
            began = time.process_time()
            is_refused(decoder, data)
            took_s.append(time.process_time() - began)
        assert min(took_s) < LONGEST_S, (min(took_s), data[:40])
