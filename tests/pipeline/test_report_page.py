"""The report's files: whole, self-contained, escaped; and what two inputs' difference is worth."""

import csv
import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from engine.core.message_link import linked_message
from pipeline.metrics.compute import Silver
from pipeline.metrics.figures import NEVER_BUCKET, bucket_end_ms
from pipeline.report.build import (
    comparison_page,
    comparison_rows,
    content_of,
    sample_of,
    with_trend,
    write_page,
)
from pipeline.report.compare import Sample, compare
from pipeline.report.content import Content
from pipeline.report.numbers import bytes_text, ms_text, share_text
from pipeline.report.observed import observed
from pipeline.report.page import page
from pipeline.report.tables import write_tables
from pipeline.report.traces import traces, worth_seeing
from pipeline.simulate.case import Case
from pipeline.summary import Summary, Tried
from pipeline.witness import Story, Witness
from tests.pipeline.recorded_group import RecordedGroup

MESSAGE = "ab" * 32
REFUSED = "table string, file string, reason string, log_id string, seq bigint, rows bigint"
COVERAGE = (
    "channel string, participant string, has_log boolean, problems array<string>, dropped bigint,"
    " unobserved bigint, offset_ms bigint"
)
COVERAGE_ROWS = [
    ("c", "ada", True, ["ends early", "gap"], 3, 7, 1_000),
    ("c", "bob", False, ["other key"], 0, 0, 0),
]
STAY = "channel string, participant string, joined_ms bigint, left_ms bigint"
LOG = "participant string, from_ms bigint, until_ms bigint"
SUMMARY = Summary(
    command="report",
    exit_code=1,
    counts={"missing": 1, "identical": 1},
    stories=[
        Story(
            channel="c1",
            participant="<script>",
            verdict="missing",
            counts={"expected": 12, "held": 11, "missing": 1},
            witnesses=[
                Witness(
                    channel="c1",
                    participant="<script>",
                    kind=kind,
                    message_id=message_id,
                    mid=n,
                    parent_message_id=parent,
                    sender="<i>",
                    holders=["<u>"],
                    holding=1,
                )
                for n, (kind, message_id, parent) in enumerate(
                    [
                        ("missing", "</script><b>", ""),
                        ("causal", MESSAGE, "causerie:join/x"),
                    ]
                )
            ],
            total=40,
        )
    ],
    tried=[Tried(participant="<s>", detail="<img>", times=3, first_ms=0, last_ms=1)],
    notices=["<em>a file</em>"],
)


def summary(counts: dict[str, int]) -> Summary:
    return Summary(command="report", exit_code=0, counts=counts)


class _Checker(HTMLParser):
    """Every element is closed in order; no address is fetched."""

    VOID = frozenset({"meta", "br", "link", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.tables = 0
        self.captions = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        found = dict(attrs)
        assert tag != "th" or found.get("scope") in {"col", "row", "rowgroup"}
        assert not any(name.startswith("on") for name in found)
        self.tables += tag == "table"
        self.captions += tag in {"caption", "figcaption"}
        self.fetched += [found[name] or "" for name in ("src",) if name in found]
        if tag == "link":
            self.fetched.append(found.get("href") or "")
        if tag == "a":
            self.links.append(found.get("href") or "")
        if "id" in found:
            self.ids.add(found["id"] or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag


def _checked(text: str) -> _Checker:
    checker = _Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    assert checker.captions >= checker.tables
    assert checker.fetched == []
    return checker


def test_a_report_from_tables_to_page(spark: SparkSession, tmp_path: Path) -> None:
    silver = RecordedGroup(Case(members=4, messages=12, loss=0.2)).silver(spark)
    written = write_tables(
        spark,
        Silver(event=silver.event, message=silver.message, member=silver.member, log=silver.log),
        tmp_path / "tables",
        {"verdicts": spark.createDataFrame([(12, 1), (12, 0)], "expected bigint, missing bigint")},
    )
    for name, told in written.figures.items():
        with (tmp_path / "tables" / f"{name}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == len(told), name
        for row, one in zip(rows, told, strict=True):
            assert row == {key: "" if value is None else str(value) for key, value in one.items()}
        assert pq.read_table(tmp_path / "tables" / name).to_pylist() == told
    refused = spark.createDataFrame(
        [("delivery_event", "x.delivery.db", "file.corrupt", None, None, 1)], REFUSED
    )
    content = content_of(written, SUMMARY, refused, now_ms=1_760_000_000_000)
    assert content.headline == "1 of 2 logs differs from the canonical conversation"
    assert content.total("delivery")["delivered"] == 12 * 3
    assert {curve.points[-1][1] for curve in content.curves} == {1.0}
    assert {curve.figure for curve in content.curves} == {"delivery", "ack", "held", "known"}
    chosen = worth_seeing(written.figures["messages"], ())
    drawn = traces(silver.event, silver.member, written.figures["clock"], chosen)
    assert len(drawn) == len(chosen) > 0
    assert all(len(trace.lanes) == 4 for trace in drawn), "the sender and three others"
    seen = observed(
        spark.createDataFrame(COVERAGE_ROWS, COVERAGE),
        spark.createDataFrame([("c", "ada", 0, 5), ("c", "ada", 9, None)], STAY),
        spark.createDataFrame([("ada", 1_010, 1_090), ("bob", 10, 20)], LOG),
    )
    assert [one.participant for one in seen] == ["bob", "ada"]
    assert (seen[0].spans, seen[0].problems) == ([], ["other key"])
    assert (seen[1].spans, seen[1].stays) == ([(10, 90)], [(0, 5), (9, None)])
    content = replace(
        content,
        observed=seen,
        members=4,
        seen=4,
        traces=drawn,
    )
    path = tmp_path / "report.html"
    write_page(with_trend(content, tmp_path, now_ms=1_760_000_000_000), path)
    limits = (
        '; <span class="n">ends early, 7 messages sent after that</span>; <span class="n">3 rows'
    )
    assert limits in path.read_text(encoding="utf-8")
    assert path.stat().st_size < 300_000
    text = path.read_text(encoding="utf-8")
    found = _checked(text)
    inside = [link for link in found.links if link.startswith("#")]
    assert inside
    assert all(link.removeprefix("#") in found.ids for link in inside)
    opening = {link for link in found.links if not link.startswith("#")}
    assert f"causerie:message/{MESSAGE}" in opening
    assert all(linked_message(link) for link in opening)
    assert "&lt;/script&gt;&lt;b&gt;" in text
    assert not {"script", "u", "s", "em", "img"} & found.tags
    assert "and 38 more" in text
    assert "file.corrupt" in text
    for heading in ("What was observed", "Who reaches whom", "The way of single messages", "When"):
        assert f"<h2>{heading}</h2>" in text
    same = compare(
        sample_of("a", written.figures["histogram"]), sample_of("b", written.figures["histogram"])
    )
    assert not any(one.is_clear for one in same)


def test_an_empty_report_says_that_nothing_could_be_judged() -> None:
    content = Content(
        title="t", made="m", summary=summary({}), groups={}, curves=[], false_acks=[], clocks=[],
    )  # fmt: skip
    whole = page(content)
    _checked(whole)
    assert "No log could be judged" in whole


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ({"identical": 5}, "All 5 logs hold the same conversations, in the same order"),
        ({"identical": 5, "prefix": 2}, "2 of 7 logs differ from the canonical conversation"),
        ({"identical": 5, "unknown": 1}, "1 of 6 logs cannot be judged, the others agree"),
    ],
)
def test_the_verdict_comes_first(verdicts: dict[str, int], said: str) -> None:
    content = Content(
        title="t", made="m", summary=summary(verdicts), groups={}, curves=[], false_acks=[],
        clocks=[],
    )  # fmt: skip
    assert content.headline == said
    assert content.is_same == (set(verdicts) == {"identical"})


def _sample(name: str, seed: int, *, slower: float = 1.0, lost: float = 0.0) -> Sample:
    random = np.random.Generator(np.random.PCG64(seed))
    pairs: dict[tuple[int, int], int] = {}
    for block in range(30):
        for _ in range(200):
            ms = float(random.lognormal(5, 1)) * slower
            never = random.random() < lost
            bucket = NEVER_BUCKET if never else math.floor(math.log1p(ms) / 0.05)
            pairs[block, bucket] = pairs.get((block, bucket), 0) + 1
    return Sample(name=name, pairs={"delivery": pairs})


def test_a_real_difference_is_found_and_chance_is_not() -> None:
    base = _sample("a", 1)
    assert not any(one.is_clear for one in compare(base, _sample("b", 2)))
    worse = {one.figure: one for one in compare(base, _sample("b", 3, slower=1.5, lost=0.03))}
    assert worse["delivered"].is_clear
    assert worse["delivered"].high < 0
    assert worse["delivered, p50"].is_clear
    assert worse["delivered, p50"].low > 0
    # A hundredth of what is never is still within: 3 % lost makes the 99th percentile infinite.
    assert worse["delivered, p99"].b == math.inf
    assert worse["delivered, p99"].low > 0


def test_the_interval_is_the_same_every_time_and_is_shown() -> None:
    a, b = _sample("a", 1), _sample("b", 3, slower=2.0)
    found = compare(a, b)
    assert found == compare(a, b)
    assert all(one.low <= one.b - one.a <= one.high for one in found if math.isfinite(one.b))
    _checked(comparison_page("<a>", "b", found))
    assert "&lt;a&gt;" in comparison_page("<a>", "b", found)
    assert len(comparison_rows(found)) == len(found) + 1
    assert "There is nothing to compare" in comparison_page("a", "b", [])


def test_a_clear_difference_says_which_is_worse() -> None:
    good, bad = _sample("good", 1), _sample("bad", 3, slower=1.5, lost=0.03)
    worse = comparison_page("good", "bad", compare(good, bad))
    assert "B is worse" in worse
    assert "B is better" not in worse
    assert "points" in worse
    better = comparison_page("bad", "good", compare(bad, good))
    assert "B is better" in better
    assert "B is worse" not in better


def test_numbers_as_people_read_them() -> None:
    assert [ms_text(v) for v in (None, 4.0, 1_500.0, 90_000.0, math.inf)] == [
        "\u2013", "4 ms", "1.5 s", "1.5 min", "never",
    ]  # fmt: skip
    assert [share_text(v) for v in (None, 0.5, 1.0, 0.999999)] == [
        "\u2013", "50 %", "100 %", "99.99 %",
    ]  # fmt: skip
    assert bytes_text(2048) == "2 KiB"
    assert bucket_end_ms(0) == pytest.approx(math.exp(0.05) - 1)
    assert bucket_end_ms(NEVER_BUCKET) == math.inf
