"""Every parameter of a sweep does something real: turned alone, it changes what it should.

One table: a case, the value that is turned, and what must be so of both outcomes.  A parameter that
is missing in it is a failure, and so is one that does nothing.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import pytest

from engine.core.errors import ConfigError
from engine.core.faults import SeededRandom
from engine.core.mvds.config import back_off
from engine.sim.back_off import doubling
from engine.sim.sessions import sessions
from pipeline.commands import simulate
from pipeline.simulate.case import BOTH, MVDS, SDS, Case, Outcome
from pipeline.simulate.sds_run import config_of
from pipeline.simulate.sweep import run_case

GROUP = Case(members=4, messages=20, seed=3)
LOSSY = replace(GROUP, loss=0.3)
PATIENT = replace(LOSSY, prompt=False, messages=30)
MANY = replace(GROUP, messages=60, gap_ms=500, history=2)
LONG = replace(GROUP, gap_ms=20_000, heal_ms=3_600_000)
PAIR = Case(protocol="mvds", messages=20, gap_ms=60_000, size_bytes=500, seed=2)
ABSENT = replace(PAIR, offline=0.6)
NOT_TURNED = {"sweep", "protocol", "seed"}
"""Labels, what is simulated at all, and chance."""


@dataclass(frozen=True)
class Turn:
    name: str
    of: str
    case: Case
    value: object
    holds: Callable[[Outcome, Outcome], bool]
    """Of the outcome before and the one after."""


def same_people_hear_more(before: Outcome, after: Outcome) -> bool:
    return after.expected > before.expected and after.delivered_share == 1


TURNS = [
    Turn("members", SDS, GROUP, 7, same_people_hear_more),
    Turn("messages", SDS, GROUP, 40, lambda a, b: b.messages == 2 * a.messages),
    Turn("people", MVDS, PAIR, 4, same_people_hear_more),
    Turn("messages", MVDS, PAIR, 40, lambda a, b: b.messages == 2 * a.messages),
    # Said all at once, they share sync messages, and payloads.
    Turn("gap_ms", SDS, GROUP, 50, lambda a, b: b.syncs_per_message < a.syncs_per_message),
    Turn("gap_ms", MVDS, replace(PAIR, config="reference", mode="batch"), 20,
         lambda a, b: b.bytes_per_message < a.bytes_per_message),
    Turn("size_bytes", SDS, GROUP, 5_000,
         lambda a, b: b.bytes_per_message > a.bytes_per_message + 4_000),
    Turn("size_bytes", MVDS, PAIR, 2_500,
         lambda a, b: b.bytes_per_message >= a.bytes_per_message + 2_000),
    Turn("loss", SDS, GROUP, 0.4, lambda a, b: b.delivery_p95_ms > 2 * a.delivery_p95_ms),
    Turn("loss", MVDS, PAIR, 0.6,
         lambda a, b: b.bytes_per_message > 1.5 * a.bytes_per_message
         and b.delivery_p95_ms > a.delivery_p95_ms),
    Turn("latency_ms", SDS, GROUP, 2_000, lambda a, b: b.delivery_p50_ms > a.delivery_p50_ms + 1_900
         and b.ack_p50_ms > a.ack_p50_ms + 3_000),
    Turn("latency_ms", MVDS, PAIR, 2_000,
         lambda a, b: abs(b.delivery_p50_ms - a.delivery_p50_ms - 1_950) <= 100),
    Turn("jitter_ms", SDS, GROUP, 4_000,
         lambda a, b: b.delivery_p95_ms > a.delivery_p95_ms + 1_500),
    Turn("jitter_ms", MVDS, PAIR, 4_000,
         lambda a, b: b.delivery_p95_ms > a.delivery_p95_ms + 1_500),
    Turn("duplication", SDS, GROUP, 1.0, lambda a, b: b.delivery_p50_ms < a.delivery_p50_ms),
    Turn("duplication", MVDS, PAIR, 1.0, lambda a, b: b.bytes_per_message > a.bytes_per_message),
    Turn("reorder", SDS, GROUP, 0.9, lambda a, b: b.delivery_p50_ms > a.delivery_p50_ms),
    Turn("reorder", MVDS, PAIR, 0.9, lambda a, b: b.delivery_p50_ms > a.delivery_p50_ms),
    Turn("offline", SDS, LONG, 0.5, lambda a, b: b.delivery_p95_ms > 20 * a.delivery_p95_ms),
    Turn("offline", MVDS, PAIR, 0.6, lambda a, b: b.delivery_p95_ms > 20 * a.delivery_p95_ms),
    # Often and short instead of seldom and long.
    Turn("churn", SDS, replace(LONG, offline=0.5, churn=1.0), 120.0,
         lambda a, b: b.delivery_p95_ms < a.delivery_p95_ms / 10),
    Turn("churn", MVDS, replace(ABSENT, config="reference", mode="batch"), 120.0,
         lambda a, b: b.delivery_p95_ms < a.delivery_p95_ms / 2),
    Turn("crashes", SDS, GROUP, 8, lambda a, b: b.delivery_p95_ms > a.delivery_p95_ms),
    Turn("partitions", SDS, GROUP, 3, lambda a, b: b.delivery_p95_ms > 5 * a.delivery_p95_ms),
    Turn("back_off_first_ms", SDS, PATIENT, 500,
         lambda a, b: b.retransmissions > a.retransmissions
         and b.bytes_per_message > a.bytes_per_message),
    Turn("back_off_first_ms", MVDS, replace(ABSENT, mode="batch"), 1_800_000,
         lambda a, b: b.copies_per_message < a.copies_per_message),
    Turn("back_off_longest_ms", SDS, replace(PATIENT, loss=0.8, back_off_first_ms=500), 500,
         lambda a, b: b.retransmissions > 1.5 * a.retransmissions),
    Turn("back_off_longest_ms", MVDS, replace(ABSENT, mode="batch"), 10_000,
         lambda a, b: b.copies_per_message > 2 * a.copies_per_message
         and b.delivery_p95_ms <= a.delivery_p95_ms),
    Turn("config", SDS, LOSSY, "reference",
         lambda a, b: b.bytes_per_message > 3 * a.bytes_per_message
         and b.delivery_p95_ms > a.delivery_p95_ms),
    Turn("config", MVDS, replace(ABSENT, mode="batch"), "reference",
         lambda a, b: b.copies_per_message > a.copies_per_message),
    Turn("mode", MVDS, replace(PAIR, mode="batch"), "interactive",
         lambda a, b: b.delivery_p50_ms > 2 * a.delivery_p50_ms),
    Turn("mode", MVDS, replace(ABSENT, mode="batch"), "interactive",
         lambda a, b: b.bytes_per_message < a.bytes_per_message),
    Turn("store_copies", MVDS, replace(ABSENT, offline=0.9), True,
         lambda a, b: b.delivery_p50_ms < a.delivery_p50_ms),
    Turn("presence", MVDS, replace(ABSENT, offline=0.8), True,
         lambda a, b: b.delivery_p95_ms < a.delivery_p95_ms),
    Turn("history", SDS, MANY, 50, lambda a, b: b.bytes_per_message > a.bytes_per_message + 500),
    Turn("history", SDS, replace(MANY, config="reference", history=0), 2,
         lambda a, b: b.bytes_per_message < a.bytes_per_message),
    # One that is rolled over early forgets before everybody heard its word.
    Turn("bloom_capacity", SDS, replace(MANY, sealed=False, bloom_capacity=4), 1_000,
         lambda a, b: b.maybe_acks == b.expected > a.maybe_acks),
    Turn("sync_interval_ms", SDS, PATIENT, 240_000,
         lambda a, b: b.syncs_per_message < a.syncs_per_message and b.ack_p95_ms > a.ack_p95_ms),
    Turn("sealed", SDS, LOSSY, False,
         lambda a, b: a.acked_share == 1 > b.acked_share == 0 and b.maybe_acks > a.maybe_acks),
    Turn("prompt", SDS, LOSSY, False,
         lambda a, b: b.ack_p95_ms > 2 * a.ack_p95_ms
         and b.bytes_per_message < a.bytes_per_message),
    Turn("heal_ms", SDS, replace(GROUP, loss=0.6), 500,
         lambda a, b: b.delivered_share < a.delivered_share == 1),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["batch", "interactive", "mixed"])
def test_what_holds_no_message_is_counted_and_not_inferred(mode: str) -> None:
    """A payload may hold several messages, so copies may outnumber payloads."""
    told = run_case(replace(PAIR, mode=mode, gap_ms=20, people=3))
    assert told.syncs_per_message >= 0
    assert told.expected == 2 * told.messages == told.delivered
    assert told.held_by_all_share == told.acked_share == 1
    assert told.retransmissions == round(told.copies_per_message * told.messages) - told.expected


@pytest.mark.parametrize("turn", TURNS, ids=lambda one: f"{one.of}-{one.name}-{one.value}")
def test_what_is_turned_changes_what_it_should(turn: Turn) -> None:
    turned = {turn.name: turn.value}
    before = run_case(turn.case)
    after = run_case(replace(turn.case, **turned))  # type: ignore[arg-type]
    assert turn.holds(before, after), f"{before}\n{after}"


def test_each_parameter_is_in_the_table_for_each_protocol_that_knows_it() -> None:
    known = {
        (field.name, protocol)
        for field in fields(Case)
        if field.name not in NOT_TURNED
        for protocol in ((SDS, MVDS) if field.metadata["of"] == BOTH else (field.metadata["of"],))
    }
    assert known == {(turn.name, turn.of) for turn in TURNS}


def test_each_parameter_is_an_option_of_the_command() -> None:
    parser = argparse.ArgumentParser()
    simulate.add_arguments(parser)
    for field in fields(Case):
        if field.name != "seed":
            option = f"--{field.name.replace('_', '-')}"
            words = [option, str(field.default).lower()]
            assert parser.parse_args(words).vary == [f"{field.name}={words[1]}"]
            assert f"{option} A,B" in parser.format_help()
    words = ["--latency-ms", "50,200", "--churn", "6,60", "--vary", "offline=0.2", "--seeds", "2"]
    asked = parser.parse_args(words)
    cases = simulate.grid(asked.vary, asked.seeds)
    assert {(one.latency_ms, one.churn, one.offline, one.seed) for one in cases} == {
        (latency_ms, churn, 0.2, seed)
        for latency_ms in (50, 200) for churn in (6.0, 60.0) for seed in (1, 2)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("varied", "said"),
    [
        (["loss=0.1", "loss=0.2"], "loss is given twice"),
        (["lag=1"], "no parameter 'lag'"),
        (["loss=much"], "loss='much' is not of the kind float"),
        (["sealed=perhaps"], "sealed='perhaps' is not of the kind bool"),
    ],
)
def test_what_is_no_grid_is_named(varied: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        simulate.grid(varied, 1)


def test_the_back_off_that_is_made_of_two_numbers_is_the_cores_own_by_its_numbers() -> None:
    ours, made = SeededRandom(1), SeededRandom(1)
    assert [back_off(n, ours) for n in range(1, 60)] == [
        doubling(4, 3_600)(n, made) for n in range(1, 60)
    ]
    waits = [doubling(2, 5)(n, lambda: 0.5) for n in range(1, 7)]
    assert waits == [2, 4, 5, 5, 5, 5]


def test_what_a_case_leaves_open_is_as_its_config_has_it() -> None:
    ours, theirs = (config_of(Case(config=config)) for config in ("ours", "reference"))
    assert (ours.causal_history_size, theirs.causal_history_size) == (10, 200)
    assert (ours.bloom_capacity, theirs.bloom_capacity) == (32, 10_000)
    turned = config_of(Case(config="reference", back_off_first_ms=5_000))
    assert turned.resend_unacknowledged_ms == (5_000, 30_000)
    short = config_of(Case(back_off_longest_ms=4_000))
    assert short.resend_unacknowledged_ms == (4_000, 4_000)


@pytest.mark.parametrize("offline", [0.1, 0.5, 0.9])
def test_absence_is_the_share_of_the_time_that_was_asked_for(offline: float) -> None:
    hour_ms = 3_600_000
    end_ms = 4_000 * hour_ms
    changes = list(sessions(SeededRandom(7), 0, end_ms, offline=offline, session_ms=hour_ms / 6))
    assert [online for _, online in changes] == [n % 2 == 1 for n in range(len(changes))]
    times = [at_ms for at_ms, _ in changes]
    assert times == sorted(times)
    away_ms = sum(times[1::2]) - sum(times[::2])
    assert abs(away_ms / end_ms - offline) < 0.03
    assert list(sessions(SeededRandom(7), 0, end_ms, offline=0, session_ms=hour_ms)) == []
