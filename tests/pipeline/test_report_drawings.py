"""What a report draws, from plain figures: curves, traces, heat maps, what was observed, trends."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from engine.delivery.contract import INT64, Kind
from pipeline.metrics.flow import MOST_PARTS, width_of
from pipeline.report import trend
from pipeline.report.charts import Series, Steps, bars, curves, stacked
from pipeline.report.charts import trend as trend_chart
from pipeline.report.content import Content
from pipeline.report.live import live_page
from pipeline.report.numbers import amount_text, ms_text, share_text
from pipeline.report.observed import Observed
from pipeline.report.page import heat_map, page
from pipeline.report.traces import MOST_LANES, trace_of
from pipeline.report.trend import Run
from pipeline.summary import Summary
from pipeline.witness import Story

EVIL = "<svg onload=x>'\"&</svg>"
CONTENT = Content(
    title="t",
    made="m",
    summary=Summary(command="report", exit_code=0, counts={"identical": 2, "missing": 1}),
    groups={},
    curves=[],
    false_acks=[],
    clocks=[],
)


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - our own


def path_of(svg: str, kind: str) -> list[tuple[float, float]]:
    (path,) = (one for one in parsed(svg).iter("path") if one.get("class") == kind)
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path.get("d") or "")]


def test_a_curve_of_one_bucket_is_a_line_that_rises() -> None:
    points = path_of(curves("x", [Steps(name="all", begin_ms=90, points=[(100, 1.0)])]), "l0")
    (left, low), (right, high) = points
    assert left < right
    assert low > high, "upwards"


def test_a_curve_that_ends_below_all_stays_there() -> None:
    drawn = curves("x", [Steps(name=EVIL, begin_ms=0, points=[(10, 0.25), (1_000, 0.5)])])
    assert "50 % within 1 s" in drawn
    assert parsed(drawn).find("path/title") is not None
    assert "<svg onload" not in drawn


@pytest.mark.parametrize("values", [[], [0.0], [3.0, 0.0, 7.0], [0.25]])
def test_amounts_of_any_size_are_drawn(values: list[float]) -> None:
    drawn = stacked("x", list(range(len(values))), str, [Series(name=EVIL, values=values)])
    titles = [
        one.findtext("title") for one in parsed(drawn).iter("rect") if one.find("title") is not None
    ]
    assert len(titles) == sum(value > 0 for value in values)
    parsed(bars("x", [(EVIL, value) for value in values], amount_text))
    parsed(trend_chart("x", [None, *values, float("inf")], ["r"] * (len(values) + 2), ms_text))


@pytest.mark.parametrize("span_ms", [0, 1, 95_000, 97_000, 3_600_000, 86_400_000 * 400, 2**62])
def test_any_time_has_few_parts(span_ms: int) -> None:
    assert 0 <= span_ms // width_of(span_ms) <= MOST_PARTS + 1


def happened(participant: str, kind: str, at_ms: int, **more: object) -> dict[str, object]:
    return {
        "participant": participant, "kind": kind, "at_ms": at_ms, "message_id": "m1",
        "channel": "c1", "via": None, "detail": None, **more,
    }  # fmt: skip


def member(name: str, joined_ms: int = 0, left_ms: int | None = None) -> dict[str, object]:
    return {"participant": name, "joined_ms": joined_ms, "left_ms": left_ms}


EVENTS = [
    happened("ada", "sent", 1_000),
    happened("ada", "delivered", 1_000),
    happened("bea", "received", 1_200, via="relay"),
    happened("bea", "delivered", 1_250),
    happened("cyd", "missing", 1_500),
    happened("cyd", "repair_requested", 1_700),
    happened("bea", "repair_sent", 1_800),
    happened("cyd", "fault", 1_850, detail="delayed_in"),
    happened("cyd", "received", 2_000, via="repair"),
    happened("cyd", "delivered", 2_000),
    happened("dan", "received", 9_100, via="relay"),
]


def test_a_trace_has_a_row_for_who_holds_it_and_for_who_never_did() -> None:
    members = [member(name) for name in ("ada", "bea", "cyd", "dan", "eve")]
    gone, late = member("fay", 0, 900), member("gus", 1_001)
    made = trace_of(EVENTS, [*members, gone, late], {("ada", "dan"): 8_000}, "why")
    assert made is not None
    assert [lane.participant for lane in made.lanes] == ["ada", "bea", "cyd", "dan", "eve"]
    spans = {
        lane.participant: [(span.kind, span.begin_ms, span.end_ms) for span in lane.spans]
        for lane in made.lanes
    }
    end = made.end_ms
    assert spans["ada"] == [("held", 0, end)]
    assert spans["bea"] == [("way", 0, 200), ("waiting", 200, 250), ("held", 250, end)]
    assert spans["cyd"] == [("way", 0, 500), ("missing", 500, 1_000), ("held", 1_000, end)]
    assert spans["dan"] == [("way", 0, 100), ("waiting", 100, end)], "its clock is 8 s ahead"
    assert spans["eve"] == [("way", 0, end)]
    cyd = made.lanes[2]
    assert (cyd.held_ms, cyd.via) == (1_000, "repair")
    assert [mark.kind for mark in cyd.marks] == ["repair_requested", "fault"]
    assert "tried on purpose" in cyd.marks[1].text


def test_without_the_senders_log_a_trace_begins_with_the_first_sign() -> None:
    made = trace_of(EVENTS[2:5], [], {}, "why")
    assert made is not None
    assert made.sender == ""
    assert made.sent_ms == 1_200
    assert trace_of([], [member("ada")], {}, "why") is None


def test_of_many_members_the_quickest_and_the_slowest_are_shown() -> None:
    events = [EVENTS[0], *(happened(f"p{n:03}", "delivered", 1_000 + n) for n in range(100))]
    made = trace_of(events, [], {}, "why")
    assert made is not None
    assert len(made.lanes) == MOST_LANES
    assert made.left_out == 101 - MOST_LANES
    assert made.lanes[0].participant == "ada"
    assert made.lanes[-1].participant == "p099"


def link(sender: str, receiver: str, loss: float | None, p95: float | None) -> dict[str, object]:
    return {
        "sender": sender, "receiver": receiver, "loss": loss, "delivery_p95_ms": p95,
        "expected": 10, "delivered": 9,
    }  # fmt: skip


def test_a_heat_map_shows_the_first_lost_message_and_what_nobody_can_see() -> None:
    heat = heat_map(
        [
            link("a", "b", 0.001, float("inf")),
            link("b", "a", 0.0, 100.0),
            link("a", "c", None, None),
        ]
    )
    cells = heat["cells"]
    assert isinstance(cells, dict)
    assert cells["a", "b"]["loss_heat"] >= 10
    assert cells["b", "a"]["loss_heat"] == 0
    assert cells["a", "b"]["late_heat"] > cells["b", "a"]["late_heat"] > 0
    assert cells["a", "c"]["late_heat"] == 0
    assert heat_map([]) == {}


def test_tiles_never_say_all_beside_one_that_is_missing() -> None:
    delivery = {"dimension": "all", "value": "", "expected": 200_000, "delivered": 200_000}
    whole = replace(
        CONTENT,
        sums={"expected": 200_000, "missing": 1},
        groups={"delivery": {"all": [delivery | dict.fromkeys(COLUMNS)]}},
    )
    text = unescape(page(whole))
    tiles = text[text.index('class="tiles"') : text.index("</dl>")]
    assert "99.99 %" in tiles
    assert "100 %" not in tiles
    assert "1 of these are not in the final logs any more" in text
    assert share_text(1 - 1e-9) == "99.99 %"
    assert share_text(1e-9) == "0.01 %"


COLUMNS = (
    "unobserved", "delivery_rate", "delivery_p50_ms", "delivery_p90_ms", "delivery_p95_ms",
    "delivery_p99_ms",
)  # fmt: skip


@pytest.mark.parametrize(("exit_code", "tone"), [(0, "good"), (3, "unknown")])
def test_agreement_is_green_only_if_there_is_nothing_to_look_at(exit_code: int, tone: str) -> None:
    agreed = Summary(command="report", exit_code=exit_code, counts={"identical": 3})
    assert f'<section class="verdict {tone}">' in page(replace(CONTENT, summary=agreed))


def test_whose_log_is_not_here_is_said_before_any_figure() -> None:
    seen = [
        Observed(channel="c", participant=EVIL, stays=[(0, None)], spans=[]),
        Observed(
            channel="c",
            participant="p",
            stays=[(0, 5)],
            spans=[(1, 9)],
            problems=["gap"],
            dropped=3,
        ),
    ]
    text = page(replace(CONTENT, observed=seen, members=1_000, seen=10))
    assert "Observed: 10 of 1\u202f000 members' logs" in unescape(text)
    assert text.index("not observed") < text.index("<h2>How fast</h2>")
    assert "3 rows dropped" in text
    assert "<svg onload" not in text


def test_a_log_that_differs_has_a_number_for_what_is_wrong_with_it() -> None:
    counts = {"expected": 5, "held": 5, "missing": 0, "conflict": 7, "unconfirmed": 0}
    story = Story(channel="c", participant="p", verdict="conflict", counts=counts)
    text = page(replace(CONTENT, summary=replace(CONTENT.summary, stories=[story])))
    table = text[text.index("Logs that differ") : text.index("Compared with the canonical log")]
    assert '<th scope="col">conflict</th>' in table
    assert '<td class="n">7</td>' in table
    assert "unconfirmed" not in table
    assert "early" not in table, "a narrow page has no room for it"


def live_sum(*, problem: str | None = None, newest_ms: int = 1) -> dict[str, object]:
    return {
        "channel": "c", "participant": "p", "kind": "delivered", "problem": problem, "events": 1,
        "ids": 1, "marks": 1, "newest_ms": newest_ms,
    }  # fmt: skip


def test_a_clock_off_by_any_time_does_not_end_the_live_page() -> None:
    told = live_page([live_sum(newest_ms=INT64)], [Kind.SENT], now_ms=0, every_s=5)
    assert "a time that no calendar has" in told


def test_the_live_page_says_that_all_is_well_only_of_what_could_be_read() -> None:
    fine = live_page([live_sum()], [Kind.SENT], now_ms=0, every_s=5)
    assert "<h1 class='good'>Everybody has everything" in fine
    refused = [live_sum(), live_sum(problem="row.unreadable")]
    for rows, unread in ((refused, []), ([live_sum()], ["x.delivery.db: it is damaged"])):
        told = live_page(rows, [Kind.SENT], now_ms=0, every_s=5, unread=unread)
        assert "<h1 class=''>Of what could be read, everybody has everything" in told


def test_runs_are_remembered_and_a_damaged_line_is_left_out(tmp_path: Path) -> None:
    first = Run(made_ms=1, logs=2, differing=0, missing=0, delivery_p95_ms=float("inf"))
    assert trend.add(tmp_path, first) == [first]
    with (tmp_path / trend.FILE).open("a", encoding="utf-8") as file:
        file.write("nonsense,\x00\n\n1,2\n")
    second = replace(first, made_ms=2, missing=3, delivery_p95_ms=4.5)
    runs = trend.add(tmp_path, second)
    assert runs == [first, second]
    assert "Run by run" in page(replace(CONTENT, runs=runs))
    assert "Run by run" not in page(replace(CONTENT, runs=runs[:1]))
