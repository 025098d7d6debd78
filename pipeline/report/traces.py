"""The way of single messages: for each member, when a copy came, was missed, asked for and held.

A few messages are worth looking at: those that somebody lacks, the one that most had to be asked
for, the slowest.  They are drawn as traces of requests are: a row for each member, the sender's
first, time from left to right on the sender's clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from engine.core.message_link import message_link
from engine.delivery.contract import Kind
from pipeline.witness import Step, Story, step_text

MOST_TRACES: Final = 4
MOST_LANES: Final = 12
MOST_MARKS: Final = 40
_MOST_EVENTS: Final = 4_000
_SHOWN: Final = (
    Kind.SENT,
    Kind.PUBLISHED,
    Kind.RETRANSMITTED,
    Kind.RECEIVED,
    Kind.DELIVERED,
    Kind.MISSING,
    Kind.LOST,
    Kind.REPAIR_REQUESTED,
    Kind.REPAIR_SENT,
    Kind.STORE_HIT,
    Kind.GIVEN_UP,
    Kind.FAULT,
)
MARKS: Final[Mapping[str, tuple[str, str]]] = {
    Kind.RETRANSMITTED.value: ("again", "sent again"),
    Kind.REPAIR_REQUESTED.value: ("asked", "asked for"),
    Kind.REPAIR_SENT.value: ("repair", "sent for somebody else"),
    Kind.STORE_HIT.value: ("store", "found at a Store"),
    Kind.LOST.value: ("lost", "given up"),
    Kind.GIVEN_UP.value: ("lost", "given up"),
    Kind.FAULT.value: ("fault", "done on purpose"),
}
"""Kind → class on the page, words of the legend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """``after_ms``: since the message was sent, on the sender's clock."""

    participant: str
    kind: str
    after_ms: int
    via: str = ""
    detail: str = ""

    @property
    def text(self) -> str:
        step = Step(
            kind=self.kind,
            first_ms=0,
            last_ms=0,
            via=self.via,
            detail=self.detail if self.kind == Kind.FAULT.value else "",
        )
        return step_text(step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """``kind``: way, missing, waiting or held; times as in ``Happening``."""

    kind: str
    begin_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    participant: str
    spans: Sequence[Span]
    marks: Sequence[Happening]
    held_ms: int | None
    """None: never, as far as its log tells."""
    via: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    message_id: str
    channel: str
    why: str
    sender: str
    """Empty: its log is not here, and the picture begins with the first sign of the message."""
    sent_ms: int
    lanes: Sequence[Lane]
    left_out: int
    """Members that have no row."""
    end_ms: int
    """Where the picture ends."""
    happenings: Sequence[Happening]

    @property
    def link(self) -> str:
        return message_link(self.message_id)


# --- which ones -----------------------------------------------------------------------------------


def worth_seeing(
    worst: Sequence[Mapping[str, object]], stories: Sequence[Story]
) -> dict[tuple[str, int], str]:
    """(channel, mid) → why; at most ``MOST_TRACES``.  ``worst``: of the figures, ``messages``."""
    found: dict[tuple[str, int], str] = {}
    for story in stories[: MOST_TRACES // 2]:
        first = next((one for one in story.witnesses if one.kind == "missing"), None)
        if first is not None:
            found.setdefault((first.channel, first.mid), "missing in a log")
    for column, why in (
        ("undelivered", "not delivered to everybody"),
        ("missed", "missed by the most members, and brought back"),
        ("slowest_ms", "took longest to reach somebody"),
    ):
        ordered = sorted(
            (-_int(row[column]), str(row["channel"]), _int(row["mid"])) for row in worst
        )
        new = [
            (channel, mid) for much, channel, mid in ordered if much and (channel, mid) not in found
        ]
        if new and len(found) < MOST_TRACES:
            found[new[0]] = why
    return found


# --- what happened to them ------------------------------------------------------------------------


def traces(
    event: DataFrame,
    member: DataFrame,
    clock: Sequence[Mapping[str, object]],
    chosen: Mapping[tuple[str, int], str],
) -> list[Trace]:
    """``clock``: of the figures."""
    if not chosen:
        return []
    channels = sorted({channel for channel, _ in chosen})
    members = member.where(F.col("has_log") & F.col("channel").isin(*channels)).limit(_MOST_EVENTS)
    logs = [row.asDict() for row in members.collect()]
    rows = (
        event.where(
            F.col("mid").isin(*sorted({mid for _, mid in chosen}))
            & F.col("channel").isin(*channels)
            & F.col("kind").isin(*(kind.value for kind in _SHOWN))
        )
        .orderBy("at_ms", "log_id", "seq")
        .limit(_MOST_EVENTS)
        .select("channel", "mid", "message_id", "participant", "kind", "at_ms", "via", "detail")
        .collect()
    )
    ahead = {
        (str(row["sender"]), str(row["receiver"])): _int(row["offset_ms"])
        for row in clock
        if row["corrected"]
    }
    found = []
    for key, why in chosen.items():
        events = [row.asDict() for row in rows if (row["channel"], row["mid"]) == key]
        made = trace_of(events, [one for one in logs if one["channel"] == key[0]], ahead, why)
        if made is not None:
            found.append(made)
    return found


def trace_of(
    events: Sequence[Mapping[str, object]],
    members: Sequence[Mapping[str, object]],
    ahead: Mapping[tuple[str, str], int],
    why: str,
) -> Trace | None:
    """``ahead``: (sender, receiver) → by how much the receiver's clock is.  None: of no event.

    ``members``: who has a log, with ``joined_ms`` and ``left_ms``; no event is a row, too.
    """
    if not events:
        return None
    sent = next((one for one in events if one["kind"] == Kind.SENT.value), events[0])
    sender = str(sent["participant"]) if sent["kind"] == Kind.SENT.value else ""
    sent_ms = _int(sent["at_ms"])
    of_sender = {receiver: ms for (whose, receiver), ms in ahead.items() if whose == sender}
    happenings = sorted(
        (_happening(one, sent_ms, of_sender) for one in events), key=lambda one: one.after_ms
    )
    end_ms = 1 + max(one.after_ms for one in happenings) * 11 // 10
    by_member: dict[str, list[Happening]] = {sender: []} if sender else {}
    for one in members:
        if _int(one["joined_ms"]) <= sent_ms and not 0 < _int(one["left_ms"]) <= sent_ms:
            by_member.setdefault(str(one["participant"]), [])
    for happening in happenings:
        by_member.setdefault(happening.participant, []).append(happening)
    lanes = [_lane(name, of, end_ms, name == sender) for name, of in by_member.items()]
    lanes.sort(key=lambda lane: (lane.participant != sender, _late(lane), lane.participant))
    shown = (
        lanes
        if len(lanes) <= MOST_LANES
        else [*lanes[: MOST_LANES // 2], *lanes[-MOST_LANES // 2 :]]
    )
    return Trace(
        message_id=str(sent["message_id"] or ""),
        channel=str(sent["channel"]),
        why=why,
        sender=sender,
        sent_ms=sent_ms,
        lanes=shown,
        left_out=len(lanes) - len(shown),
        end_ms=end_ms,
        happenings=happenings,
    )


def _happening(event: Mapping[str, object], sent_ms: int, ahead: Mapping[str, int]) -> Happening:
    participant = str(event["participant"])
    at_ms = _int(event["at_ms"]) - ahead.get(participant, 0)
    return Happening(
        participant=participant,
        kind=str(event["kind"]),
        after_ms=max(at_ms - sent_ms, 0),
        via=str(event["via"] or ""),
        detail=str(event["detail"] or ""),
    )


def _late(lane: Lane) -> float:
    return float("inf") if lane.held_ms is None else lane.held_ms


def _lane(name: str, of: Sequence[Happening], end_ms: int, is_sender: bool) -> Lane:
    def first(*kinds: Kind) -> int | None:
        values = {kind.value for kind in kinds}
        return next((one.after_ms for one in of if one.kind in values), None)

    received, missing = first(Kind.RECEIVED), first(Kind.MISSING)
    held = 0 if is_sender else first(Kind.DELIVERED)
    came = received if received is not None else held
    stop = came if came is not None else end_ms
    spans = []
    if not is_sender:
        spans.append(Span(kind="way", begin_ms=0, end_ms=min(stop, missing or stop)))
        if missing is not None and missing < stop:
            spans.append(Span(kind="missing", begin_ms=missing, end_ms=stop))
        if received is not None and (held is None or held > received):
            spans.append(
                Span(kind="waiting", begin_ms=received, end_ms=end_ms if held is None else held)
            )
    if held is not None:
        spans.append(Span(kind="held", begin_ms=held, end_ms=end_ms))
    via = next((one.via for one in of if one.kind == Kind.RECEIVED.value), "")
    return Lane(
        participant=name,
        spans=[span for span in spans if span.end_ms > span.begin_ms],
        marks=[one for one in of if one.kind in MARKS][:MOST_MARKS],
        held_ms=held,
        via=via,
    )


def marks_of(traces: Iterable[Trace]) -> list[tuple[str, str]]:
    """Class and words of each mark that is in a picture, for its legend."""
    there = {one.kind for trace in traces for lane in trace.lanes for one in lane.marks}
    return list(dict.fromkeys(MARKS[kind] for kind in MARKS if kind in there))


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
