"""Sweeps: the same rows from Spark, however it is cut, and from runs in this process."""

import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from engine.core.errors import ConfigError
from engine.delivery.contract import DELIVERY_EVENT, Kind
from engine.delivery.sqlite_log import LogReader, find_logs
from pipeline.cli import parser
from pipeline.commands import simulate
from pipeline.commands.simulate import grid
from pipeline.report.svg import Chart, Line, Mark, svg
from pipeline.simulate.case import NEVER_MS, Case, deal, share_ms, values
from pipeline.simulate.kept import kept_below
from pipeline.simulate.plot_list import PLOTS
from pipeline.simulate.plots import draw, write_csv, write_figures
from pipeline.simulate.study import study
from pipeline.simulate.sweep import COLUMNS, row_of, run_case, sweep, tasks_for

CASES = [
    Case(members=4, messages=6, gap_ms=20_000, offline=0.4, churn=60.0, latency_ms=300),
    Case(members=3, messages=8, loss=0.3, seed=1),
    Case(members=3, messages=8, loss=0.3, seed=2),
    Case(members=4, messages=6, loss=0.2, sealed=False, bloom_capacity=16),
    Case(members=3, messages=5, loss=0.9, heal_ms=2_000),  # Much never comes in time.
    Case(protocol="mvds", messages=5, offline=0.5, mode="interactive", config="reference"),
    Case(protocol="mvds", messages=5, offline=0.3, presence=True, store_copies=True),
]


def test_spark_and_this_process_give_the_same_bits(spark: SparkSession) -> None:
    by_run = {case.run: row_of(case, run_case(case)) for case in CASES}
    for tasks in (1, 4):
        rows = [tuple(row) for row in sweep(spark, CASES, tasks=tasks).collect()]
        width = len(values(CASES[1]))
        assert {row[width + 1]: row for row in rows} == by_run
    assert any(NEVER_MS in row for row in by_run.values())


def test_finished_runs_are_kept_to_the_last_bit(tmp_path: Path, spark: SparkSession) -> None:
    kept = kept_below(tmp_path)
    kept.open()
    rows = {tuple(row) for row in sweep(spark, CASES, tasks=3, kept=kept).collect()}
    assert {kept.row(case, len(COLUMNS)) for case in CASES} == rows
    assert kept.count() == len(rows) == len(CASES)


def test_a_sweep_that_was_killed_goes_on_and_ends_the_same(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["simulate", "--protocol", "mvds", "--messages", "5", "--seeds", "4"]
    cases = grid(["protocol=mvds", "messages=5"], 4)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert simulate.run(parser().parse_args([*words, "--out", str(whole)]), spark) == 0
    kept = kept_below(broken)
    kept.open()
    for case in cases[:2]:
        kept.keep(case.run, row_of(case, run_case(case)))
    (kept.place / f"{cases[2].run}.json").write_text('["cut', encoding="utf-8")
    older = kept.place.with_name("unfinished-of-another-program")
    older.mkdir()
    capsys.readouterr()
    assert simulate.run(parser().parse_args([*words, "--out", str(broken)]), spark) == 0
    assert "2 runs are there from before" in capsys.readouterr().out
    assert (broken / "runs.csv").read_bytes() == (whole / "runs.csv").read_bytes()
    assert not older.exists()
    assert not kept.place.exists()


def test_a_run_repeats_itself_and_a_seed_makes_a_difference() -> None:
    assert run_case(CASES[1]) == run_case(CASES[1])
    assert run_case(CASES[1]) != replace(run_case(CASES[2]), run=CASES[1].run)


def test_recording_changes_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    for case in (CASES[0], CASES[1], CASES[5]):
        assert run_case(case, tmp_path) == run_case(case)
        logs = find_logs(tmp_path / case.run)
        before = [path.read_bytes() for path in logs]
        assert run_case(case, tmp_path) == run_case(case)
        assert [path.read_bytes() for path in logs] == before
        assert len(logs) == (case.members if case.protocol == "sds" else 2)
        kind = DELIVERY_EVENT.names.index("kind")
        sent = 0
        for path in logs:
            with LogReader(path) as log:
                checked = list(log.checked(DELIVERY_EVENT))
            assert [problem for _, problem in checked if problem] == []
            sent += sum(row[kind] == Kind.SENT for row, _ in checked)
        assert sent == run_case(case).messages
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (Case(protocol="xmpp"), "protocol is sds or mvds, not 'xmpp'"),
        (Case(members=1), "members is 2 or more, not 1"),
        (Case(messages=0), "messages is 1 or more"),
        (Case(loss=-0.1), "loss is 0 or more"),
        (Case(offline=1.0), "offline is less than 1"),
        (Case(churn=0.0), "churn is more than 0"),
        (Case(config="theirs"), "config is one of ours, reference, not 'theirs'"),
        (Case(back_off_first_ms=9, back_off_longest_ms=8), "back_off_longest_ms is less than"),
        (Case(latency_ms=70_000), "out of range"),
        (Case(loss=1.5), "loss=1.5 is out of range"),
        (Case(protocol="mvds", mode="eager"), "'eager' is not a valid Mode"),
    ],
)
def test_what_cannot_be_run_is_named(case: Case, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as raised:
        run_case(case)
    assert str(raised.value).startswith(case.run)


@given(st.lists(st.floats(0, 1e9) | st.just(NEVER_MS), min_size=1), st.floats(0.01, 1))
@settings(max_examples=100, deadline=None)
def test_a_percentile_is_the_smallest_that_so_many_do_not_exceed(
    times: list[float], share: float
) -> None:
    found = share_ms(times, share)
    assert found in times
    assert sum(time <= found for time in times) >= share * len(times) - 1e-6
    assert sum(time < found for time in times) < share * len(times) + 1e-6


@given(st.lists(st.integers(2, 40), min_size=1, max_size=60), st.integers(1, 9))
@settings(max_examples=50, deadline=None)
def test_work_is_dealt_evenly(sizes: list[int], hands: int) -> None:
    cases = [Case(members=size) for size in sizes]
    loads = [0.0] * hands
    for case, hand in zip(cases, deal(cases, hands), strict=True):
        loads[hand] += case.work_s
    assert max(loads) <= sum(loads) / hands + max(case.work_s for case in cases) + 1e-9
    assert loads == sorted(loads, reverse=True), "whoever works them off has the small ones last"


def test_a_runs_name_is_fit_for_a_directory_and_no_others(tmp_path: Path) -> None:
    odd = [Case(sweep=name) for name in ("../up", "..", "é" * 90, "a/b", "a_b", "", "x" * 400)]
    names = [one.run for one in (*odd, *CASES, Case(loss=0.3), Case(loss=0.30000001))]
    assert len(set(names)) == len(names)
    for name in names:
        (tmp_path / name).mkdir()
        assert (tmp_path / name).resolve().parent == tmp_path.resolve()


def test_the_study_is_whole_and_no_run_is_there_twice() -> None:
    cases = study(2, large=True)
    assert len({case.run for case in cases}) == len(cases)
    assert max(case.members for case in cases) == 1_000
    assert {plot.sweep for plot in PLOTS} == {case.sweep for case in cases}
    for plot in PLOTS:
        turned = {getattr(case, plot.x) for case in cases if case.sweep == plot.sweep}
        assert len(turned) > 3, plot.file
    for sweep_name in ("mvds-offline", "mvds-missed"):
        modes = {case.mode for case in cases if case.sweep == sweep_name}
        assert modes == {"batch", "interactive", "mixed"}
    assert 1 <= tasks_for(cases, 2) <= len(cases)


def test_plots_are_well_formed_and_leave_out_what_never_came(tmp_path: Path) -> None:
    points = [(1.0, 5.0, 4.0, 6.0), (2.0, math.inf, 4.0, math.inf), (3.0, 9.0, 9.0, 9.0)]
    marks = [Mark("theirs <", 2.0, 100.0, 1_000.0), Mark("once", 1.0, 7.0, 7.0)]
    lines = [Line("l&m", points)]
    text = svg(Chart(title="a < b", x="x", y="y", lines=lines, marks=marks, log_y=True))
    root = ET.fromstring(text)  # noqa: S314 - our own
    assert len(root.findall("{http://www.w3.org/2000/svg}circle")) == 2
    words = {found.text for found in root.findall("{http://www.w3.org/2000/svg}text")}
    assert {"a < b", "x", "y", "l&m", "theirs <", "once", "1000"} <= words
    rows = [
        dict(
            zip([*Case.__dataclass_fields__, "delivered_share"], (*values(case), 1.0), strict=True)
        )
        | dict.fromkeys(("bytes_per_message", "delivery_p50_ms", "delivery_p95_ms"), 1.0)
        for case in study(1)
        if case.sweep == "mvds-offline"
    ]
    drawn = draw(rows, tmp_path)
    write_csv(rows, tmp_path / "runs.csv")
    write_figures(drawn, rows, tmp_path / "figures.md")
    assert [plot.file for plot, _ in drawn] == [
        "mvds-bandwidth", "mvds-latency-p50", "mvds-latency-p95",
    ]  # fmt: skip
    told = (tmp_path / "figures.md").read_text()
    assert "published, interactive: 100 to 1 000 times, at 0.9" in told
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == len(rows) + 1
    for plot, _ in drawn:
        assert f"({plot.file}.svg)" in (tmp_path / "figures.md").read_text()
