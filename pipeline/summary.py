"""What a run found, as one value: lines for a terminal, JSON for programs, JUnit XML for CI.

All three say the same, and each says how much it left out.  A log that differs is a failed test
case, one that nobody can judge a skipped one, and input that could not be read an error; a channel
is a class of cases.  The JSON's layout has a number, ``FORMAT``; docs/pipeline.md describes it.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import tzinfo
from typing import Final, cast
from xml.etree import ElementTree as ET

from pipeline.witness import (
    AGREEING,
    COUNTED,
    Story,
    Witness,
    happened,
    origin,
    short,
    since_ms,
    step_text,
    times_of,
    tried_text,
    why,
)

FORMAT: Final = 1
IDENTICAL: Final = "identical"
MOST_SHOWN: Final = 50
"""Logs on the terminal."""
MOST_LOGS: Final = 10_000
"""Logs in JSON and JUnit XML; those that differ come first."""
_NAME: Final = "causerie-pipeline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Of a participant's log of a channel."""

    channel: str
    participant: str
    verdict: str
    expected: int = 0
    held: int = 0
    missing: int = 0
    extra: int = 0
    reordered: int = 0
    causal: int = 0
    early: int = 0
    unconfirmed: int = 0
    conflict: int = 0

    @property
    def differs(self) -> bool:
        return self.verdict not in AGREEING


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A file in quarantine, or rows of it."""

    file: str
    reason: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """Faults that somebody tried on purpose, as the log of the one who did tells."""

    participant: str
    detail: str
    times: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    command: str
    exit_code: int
    counts: Mapping[str, int]
    """Logs by verdict."""
    logs: Sequence[Verdict] = ()
    """At most ``MOST_LOGS``, those that differ first."""
    stories: Sequence[Story] = ()
    coverage: Sequence[Mapping[str, object]] = ()
    """What was observed of whom."""
    tried: Sequence[Tried] = ()
    notices: Sequence[str] = ()
    refused: Sequence[Refused] = ()

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def differing(self) -> int:
        return sum(count for verdict, count in self.counts.items() if verdict not in AGREEING)


def headline(counts: Mapping[str, int]) -> str:
    """Of logs by verdict; never that all agree while one of them could not be judged."""
    total = sum(counts.values())
    if not total:
        return "No log could be judged"
    if counts.get(IDENTICAL, 0) == total:
        whole = f"All {total} logs hold" if total > 1 else "The only log holds"
        return f"{whole} the same conversations, in the same order"
    differing = sum(count for verdict, count in counts.items() if verdict not in AGREEING)
    if not differing:
        unjudged = total - counts.get(IDENTICAL, 0)
        others = ", the others agree" if unjudged < total else ""
        return f"{unjudged} of {total} logs cannot be judged{others}"
    verb = "differs" if differing == 1 else "differ"
    noun = "log" if total == 1 else "logs"
    return f"{differing} of {total} {noun} {verb} from the canonical conversation"


# --- for a terminal -------------------------------------------------------------------------------


def lines(summary: Summary, zone: tzinfo | None = None) -> Iterator[str]:
    unjudged = summary.total - summary.differing - summary.counts.get(IDENTICAL, 0)
    unknown = f", {unjudged} cannot be judged" if unjudged else ""
    agree = summary.counts.get(IDENTICAL, 0)
    yield from coverage_lines(summary.coverage)
    yield f"{summary.total} logs of channels: {agree} agree, {summary.differing} differ{unknown}"
    for log in summary.logs[:MOST_SHOWN]:
        yield f"  {short(log.channel)}  {short(log.participant)}  {log.verdict}{_of(log)}"
    if summary.total > MOST_SHOWN:
        yield f"  … and {summary.total - MOST_SHOWN} more"
    if summary.stories:
        yield "what differs:"
    for story in summary.stories:
        yield from _told(story, zone)
    told = summary.differing - len(summary.stories)
    if summary.stories and told > 0:
        yield f"  … and {told} more logs that differ"
    yield from tried_lines(summary.tried)


def coverage_lines(coverage: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """What was observed: of each channel how many members' logs, and what limits them."""
    channels: dict[str, list[Mapping[str, object]]] = {}
    for row in coverage:
        channels.setdefault(str(row["channel"]), []).append(row)
    for channel, rows in sorted(channels.items())[:MOST_SHOWN]:
        there = sum(bool(row["has_log"]) for row in rows)
        limits = Counter(
            str(what) for row in rows for what in cast("Sequence[object]", row["problems"])
        )
        said = "".join(f", {what}: {count}" for what, count in sorted(limits.items()))
        yield f"observed: {short(channel)}  {there} of {len(rows)} participants' logs{said}"
    if len(channels) > MOST_SHOWN:
        yield f"  … and {len(channels) - MOST_SHOWN} more channels"


def _of(log: Verdict) -> str:
    return f"  ({log.held} of {log.expected})"


def _told(story: Story, zone: tzinfo | None) -> Iterator[str]:
    yield f"  {short(story.participant)} in {short(story.channel)}: {story.verdict}"
    for witness in story.witnesses:
        times = times_of(witness, zone)
        place = "" if witness.place is None else f" at place {witness.place}"
        yield f"    {witness.kind}: {witness.message_id}{place}"
        yield f"      {origin(witness, times)}"
        yield f"      its own log: {happened(witness, times)}"
        yield f"      {why(witness, times)}"
        if witness.link:
            yield f"      {witness.link}"
    if story.left_out > 0:
        yield f"    … and {story.left_out} more"


def tried_lines(tried: Sequence[Tried]) -> Iterator[str]:
    """What was done on purpose, a line for each participant."""
    by_participant: dict[str, list[Tried]] = {}
    for one in tried:
        by_participant.setdefault(one.participant, []).append(one)
    for participant, found in by_participant.items():
        done = ", ".join(f"{tried_text(one.detail)} {one.times}" for one in found)
        yield f"a bad network was tried on purpose by {short(participant)}: {done}"


# --- JSON -----------------------------------------------------------------------------------------


def as_json(summary: Summary, zone: tzinfo | None = None) -> str:
    """One object, indented; the same words as on the terminal, the figures beside them."""
    found = {
        "format": FORMAT,
        "command": summary.command,
        "exit_code": summary.exit_code,
        "headline": headline(summary.counts),
        "verdicts": dict(sorted(summary.counts.items())),
        "logs": [asdict(log) for log in summary.logs],
        "logs_left_out": summary.total - len(summary.logs),
        "differing": [_story_object(story, zone) for story in summary.stories],
        "differing_left_out": summary.differing - len(summary.stories),
        "coverage": [dict(row) for row in summary.coverage],
        "tried_on_purpose": [asdict(one) for one in summary.tried],
        "notices": list(summary.notices),
        "refused": [asdict(one) for one in summary.refused],
    }
    return json.dumps(found, indent=2, default=str)


def _story_object(story: Story, zone: tzinfo | None) -> Mapping[str, object]:
    return {
        "channel": story.channel,
        "participant": story.participant,
        "verdict": story.verdict,
        **story.counts,
        "first_place": story.first_place,
        "witnesses": [_witness_object(witness, zone) for witness in story.witnesses],
        "witnesses_left_out": story.left_out,
    }


def _witness_object(witness: Witness, zone: tzinfo | None) -> Mapping[str, object]:
    times = times_of(witness, zone)
    return {
        "kind": witness.kind,
        "message_id": witness.message_id,
        "link": witness.link or None,
        "place": witness.place,
        "position": witness.position,
        "expected_position": witness.expected_position,
        "lamport": witness.lamport,
        "parent_message_id": witness.parent_message_id or None,
        "sender": witness.sender or None,
        "sent_ms": witness.sent_ms,
        "holders": list(witness.holders),
        "holding": witness.holding,
        "logs": witness.logs,
        "events": [
            {**asdict(step), "on_purpose": step.is_on_purpose, "text": step_text(step)}
            for step in witness.steps
        ],
        "snapshot_ms": witness.snapshot_ms,
        "since_ms": since_ms(witness),
        "why": why(witness, times),
    }


# --- JUnit XML ------------------------------------------------------------------------------------


def as_junit(summary: Summary, zone: tzinfo | None = None) -> str:
    """A suite of one case for each log and each file that was refused."""
    told = {(story.channel, story.participant): story for story in summary.stories}
    suite = ET.Element("testsuite", name=f"{_NAME} {summary.command}")
    skipped = 0
    for log in summary.logs:
        case = _case(suite, f"channel.{log.channel}", f"log of {log.participant}")
        if log.differs:
            story = told.get((log.channel, log.participant))
            failure = ET.SubElement(
                case, "failure", message=_xml(_gist(log)), type=_xml(log.verdict)
            )
            failure.text = "\n".join(map(_xml, _told(story, zone))) if story else None
        elif log.verdict != IDENTICAL:
            skipped += 1
            ET.SubElement(case, "skipped", message=_xml(log.verdict))
    for one in summary.refused:
        case = _case(suite, "input", one.file)
        message = f"{one.reason}, {one.rows} row{'' if one.rows == 1 else 's'}"
        ET.SubElement(case, "error", message=_xml(message), type=_xml(one.reason))
    suite.set("tests", str(len(summary.logs) + len(summary.refused)))
    suite.set("failures", str(sum(log.differs for log in summary.logs)))
    suite.set("errors", str(len(summary.refused)))
    suite.set("skipped", str(skipped))
    out = [headline(summary.counts), *summary.notices, *tried_lines(summary.tried)]
    ET.SubElement(suite, "system-out").text = "\n".join(map(_xml, out))
    whole = ET.Element("testsuites")
    whole.append(suite)
    ET.indent(whole)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(whole, "unicode")}\n'


def _case(suite: ET.Element, group: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_xml(group), name=_xml(name))


def _gist(log: Verdict) -> str:
    wrong = [f"{getattr(log, name)} {name}" for name in COUNTED if getattr(log, name)]
    return f"{log.verdict}: {', '.join(wrong) or 'see the report'}{_of(log)}"


def _xml(text: str) -> str:
    """A line: XML 1.0 knows no control characters, not even as entities."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
