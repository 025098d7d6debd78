"""A witness in words: from logs on disk, through ingest and audit, to sentences, JSON and JUnit.

One conversation, in which one member's log lacks messages for every reason that a log can tell.
"""

import json
from collections.abc import Sequence
from datetime import UTC
from xml.etree import ElementTree as ET

import pytest
from pyspark.sql import SparkSession

from engine.delivery.contract import DELIVERY_EVENT, LOG_SNAPSHOT, MEMBERSHIP, MESSAGE
from pipeline.audit import audit
from pipeline.evidence import Evidence, counted, differing, judged, stories, tried
from pipeline.lake import Lake
from pipeline.prepare import prepare
from pipeline.summary import Refused, Summary, as_json, as_junit, lines
from pipeline.witness import Story, Witness, happened, origin, since_ms, times_of, why
from tests.pipeline.log_files import (
    CHANNEL,
    conversation_log,
    event,
    header,
    membership,
    message,
    name_of,
    snapshot,
    write_log,
)

NOON_MS = 1_760_011_200_000
"""2025-10-09 12:00:00 UTC"""
EVIL = "\x1b[2J</failure>'\"&<b>\x00\n3 logs of channels: 3 agree"
REASONS = ("gone", "stuck", "lost", "asked", "thrown", "away", "silent")


def at(minute: int, second: int = 0) -> int:
    return NOON_MS + (minute * 60 + second) * 1_000


@pytest.fixture(scope="module")
def found(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """Ada and Bea hold everything that Ada wrote, Cleo holds one message and a stray."""
    place = tmp_path_factory.mktemp("witness")
    ids = ["held", *REASONS]
    told = [
        {**message(at(minute), name, "ada"), "sent_ms": at(minute, 5)}
        for minute, name in enumerate(ids)
    ]
    entries = [(at(minute), name) for minute, name in enumerate(ids)]
    members = ("ada", "bea", "cleo")
    for owner in ("ada", "bea"):
        path = place / f"{owner}.delivery.db"
        conversation_log(path, owner, entries, told if owner == "ada" else (), members)
    stray = {**message(at(59), EVIL, "bea"), "sent_ms": None}

    def of(
        name: str, kind: str, minute: int, second: int = 0, **more: object
    ) -> tuple[str, dict[str, object]]:
        return kind, {"message_id": name, "at_ms": at(minute, second), "lamport": 1, **more}

    profile: list[tuple[str, dict[str, object]]] = [
        ("started", {"at_ms": at(0)}),
        ("online", {"at_ms": at(0)}),
    ]
    of_ids = [
        of("held", "delivered", 0, 8),
        of("gone", "received", 1, 7, via="relay"),
        of("gone", "delivered", 1, 8),
        of("stuck", "received", 2, 7, via="store"),
        of("lost", "missing", 3, 30),
        *(of("lost", "repair_requested", 3, 40 + n) for n in range(3)),
        of("lost", "lost", 20),
        of("asked", "missing", 4, 30),
        of("thrown", "fault", 5, 6, detail="lost_in", amount=0),
    ]
    later: list[tuple[str, dict[str, object]]] = [
        ("offline", {"at_ms": at(6, 1)}),
        ("online", {"at_ms": at(7, 1)}),
    ]
    events = [
        event(seq, kind, **fields)
        for seq, (kind, fields) in enumerate([*profile, *of_ids, *later], start=1)
    ]
    events.append(event(len(events) + 1, "snapshot", channel=CHANNEL, protocol="sds", at_ms=at(10)))
    write_log(
        place / "cleo.delivery.db",
        header("cleo"),
        {
            DELIVERY_EVENT: events,
            LOG_SNAPSHOT: snapshot([(at(0), "held"), (at(59), EVIL)], taken_ms=at(10)),
            MESSAGE: [stray],
            MEMBERSHIP: membership(members),
        },
    )
    lake = Lake(place / "lake")
    prepare(spark, [place], lake)
    done = audit(lake.audited(spark), lake.steps)
    tables = ("coverage", "event", "entry", "message")
    evidence = Evidence(**{name: lake.silver(spark, name) for name in tables})
    return Summary(
        command="audit",
        exit_code=1,
        counts=counted(done.verdicts),
        logs=judged(done.verdicts),
        stories=stories(evidence, *differing(done.verdicts, done.witnesses, few=8)),
        tried=tried(evidence.event),
        refused=[Refused(file="x<.delivery.db", reason="file.corrupt", rows=1)],
    )


@pytest.fixture(scope="module")
def cleo(found: Summary) -> Story:
    (story,) = found.stories
    assert story.participant == name_of("cleo")
    return story


def of_id(story: Story, message_id: str) -> Witness:
    return next(one for one in story.witnesses if one.message_id == message_id)


def test_each_reason_why_a_message_is_not_there_is_told(cleo: Story) -> None:
    def reason(name: str) -> str:
        return why(of_id(cleo, name), times_of(of_id(cleo, name), UTC))

    assert reason("gone").startswith(
        "it was there and is gone since after 12:01:08 and before 12:10:00"
    )
    assert reason("stuck").startswith("it came 12:02:07 and was never delivered")
    assert reason("lost") == "it never came; it was looked for and given up 12:20:00"
    assert reason("asked") == "known to be missing since 12:04:30, and it never came"
    assert reason("thrown") == (
        "no copy came; a copy for it was thrown away (tried on purpose) 12:05:06"
    )
    assert reason("away") == "its device was offline since 12:06:01; nothing named it later"
    assert reason("silent") == "no copy came, and nothing that came later named it"


def test_what_the_log_itself_says_and_who_holds_it_stand_beside(cleo: Story) -> None:
    gone = of_id(cleo, "gone")
    times = times_of(gone, UTC)
    assert happened(gone, times) == (
        "received by relay 12:01:07, delivered 12:01:08, gone in the snapshot of 12:10:00"
    )
    said = origin(gone, times)
    assert f"written by {name_of('ada')[:12]}, 2025-10-09 12:01:05 UTC" in said
    assert "in 2 of 3 logs" in said
    assert name_of("bea")[:12] in said
    assert since_ms(gone) == at(1, 8)
    assert gone.link == "causerie:message/gone"
    lost = of_id(cleo, "lost")
    assert "others asked for it 12:03:40 and 2 times more until 12:03:42" in happened(lost, times)


def test_a_stray_with_a_hostile_id_is_named_and_has_no_link(cleo: Story) -> None:
    stray = next(one for one in cleo.witnesses if one.kind == "extra")
    assert stray.message_id == EVIL
    assert stray.link == ""
    assert f"the log of {name_of('bea')[:12]} does not know it" in why(stray, times_of(stray, UTC))


def test_the_terminal_shows_a_few_and_says_how_many_more(found: Summary, cleo: Story) -> None:
    few = Story(
        channel=cleo.channel,
        participant=cleo.participant,
        verdict=cleo.verdict,
        counts=cleo.counts,
        witnesses=cleo.witnesses[:2],
        total=cleo.total,
    )
    assert cleo.total == len(REASONS) + 1
    shown = Summary(
        command="audit", exit_code=1, counts=found.counts, logs=found.logs, stories=[few],
        tried=found.tried,
    )  # fmt: skip
    told = list(lines(shown, UTC))
    assert told[0] == "3 logs of channels: 2 agree, 1 differ"
    assert f"    … and {cleo.total - 2} more" in told
    tried_by = f"a bad network was tried on purpose by {name_of('cleo')[:12]}"
    assert told[-1] == f"{tried_by}: incoming copies thrown away 1"
    assert sum(line.lstrip().startswith("its own log:") for line in told) == 2


def test_json_and_junit_say_the_same(found: Summary, cleo: Story) -> None:
    told = json.loads(as_json(found, UTC))
    assert told["format"] == 1
    assert told["exit_code"] == 1
    assert told["verdicts"] == {"identical": 2, cleo.verdict: 1}
    (log,) = told["differing"]
    assert log["missing"] == len(REASONS)
    thrown = next(one for one in log["witnesses"] if one["message_id"] == "thrown")
    assert [one["on_purpose"] for one in thrown["events"]] == [True]
    assert told["tried_on_purpose"][0]["detail"] == "lost_in"
    suite = ET.fromstring(as_junit(found, UTC)).find("testsuite")  # noqa: S314 - our own
    assert suite is not None
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["4", "1", "1", "0"]
    (failure,) = suite.iter("failure")
    assert failure.get("type") == cleo.verdict
    assert "\x1b" not in (failure.text or "")
    assert "\ufffd[2J</failure>'\"&<b>\ufffd\ufffd3 logs of channels" in (failure.text or "")
    assert _names(suite)[0] == f"log of {name_of('cleo')}"


def _names(suite: ET.Element) -> Sequence[str | None]:
    return [case.get("name") for case in suite.iter("testcase")]


@pytest.mark.parametrize("at_ms", [-(2**63), 2**63 - 1, 0])
def test_a_clock_that_is_off_by_ages_is_still_told(at_ms: int) -> None:
    one = Witness(
        channel="c", participant="p", kind="missing", message_id="m", mid=1, sent_ms=at_ms
    )
    assert "by that clock" in origin(one, times_of(one))
