"""The live page: who is behind in which channel, rewritten as a whole after each batch.

It has no script and fetches nothing; the browser loads it again every few seconds.  Whoever holds
what was sent in a channel is known by a digest over those messages, not by their number.  What was
sent is what the senders' own logs say; where more was delivered than that, because somebody's log
is not there, it is what the participant with the most holds.
"""

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from engine.delivery.contract import Kind
from pipeline.report.numbers import utc_text

MOST_ROWS: Final = 200
_STYLE: Final = """
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--text:#1d2026;--weak:#5c6370;
--line:#dfe2e8;--bad:#b3261e;--good:#176b43}
@media(prefers-color-scheme:dark){:root{--page:#14161a;--card:#1c1f25;--text:#e6e8ec;
--weak:#a0a7b4;--line:#333842;--bad:#ff8a80;--good:#63d29b}}
body{margin:0;background:var(--page);color:var(--text);font:15px/1.5 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:26px 22px}h1{font-size:24px;margin:0 0 4px}
h1.good{color:var(--good)}h1.bad{color:var(--bad)}p{color:var(--weak);margin:2px 0 16px}
p.n{color:var(--bad)}
div{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:10px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:6px 12px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--weak);font-weight:600}.l{text-align:left}.n{color:var(--bad);font-weight:600}
code{font:13px ui-monospace,monospace}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRow:
    channel: str
    participant: str
    counts: Mapping[str, int]
    behind: int
    differs: bool
    """It holds as many as it should, or more, and not the same ones."""
    newest_ms: int

    @property
    def is_fine(self) -> bool:
        return not self.behind and not self.differs


@dataclass(frozen=True, slots=True)
class Held:
    """So many messages, and which."""

    events: int = 0
    ids: int = 0
    marks: int = 0

    def and_also(self, other: "Held") -> "Held":
        return Held(self.events + other.events, self.ids ^ other.ids, self.marks ^ other.marks)


def live_rows(sums: Iterable[Mapping[str, object]]) -> tuple[list[LiveRow], int, int]:
    """Those that are furthest behind first; all events; rows that could not be used."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    newest: dict[tuple[str, str], int] = {}
    sent: dict[str, Held] = {}
    held: dict[tuple[str, str], Held] = {}
    total = refused = 0
    for row in sums:
        events = _int(row["events"])
        total += events
        if row["problem"] is not None:
            refused += events
        elif row["channel"] is not None:
            key = (str(row["channel"]), str(row["participant"]))
            counts.setdefault(key, {})[str(row["kind"])] = events
            newest[key] = max(newest.get(key, 0), _int(row["newest_ms"]))
            these = Held(events, _int(row["ids"]), _int(row["marks"]))
            if row["kind"] == Kind.SENT.value:
                sent[key[0]] = sent.get(key[0], Held()).and_also(these)
            elif row["kind"] == Kind.DELIVERED.value:
                held[key] = these
    wanted = _wanted(sent, held)
    rows = [
        LiveRow(
            channel=channel,
            participant=participant,
            counts=found,
            behind=max(wanted[channel].events - held.get((channel, participant), Held()).events, 0),
            differs=_differs(held.get((channel, participant), Held()), wanted[channel]),
            newest_ms=newest[channel, participant],
        )
        for (channel, participant), found in counts.items()
    ]
    rows.sort(key=lambda row: (row.is_fine, -row.behind, row.channel, row.participant))
    return rows, total, refused


def _wanted(
    sent: Mapping[str, Held], held: Mapping[tuple[str, str], Held]
) -> defaultdict[str, Held]:
    """Of each channel what everybody should hold: what was sent, once somebody holds that."""
    of: defaultdict[str, list[Held]] = defaultdict(list)
    for channel, participant in sorted(held):
        of[channel].append(held[channel, participant])
    found = defaultdict(Held, sent)
    for channel, all_ in of.items():
        if found[channel] not in all_:
            found[channel] = max([found[channel], *all_], key=lambda one: one.events)
    return found


def _differs(held: Held, wanted: Held) -> bool:
    return held.events >= wanted.events and held != wanted


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def live_page(
    sums: Iterable[Mapping[str, object]],
    kinds: Sequence[Kind],
    *,
    now_ms: int,
    every_s: int,
    unread: Sequence[str] = (),
) -> str:
    """``unread``: of files that cannot be read, a line each."""
    rows, total, refused = live_rows(sums)
    behind, differ = sum(row.behind > 0 for row in rows), sum(row.differs for row in rows)
    heading = "Everybody has everything" if rows else "Nothing was recorded yet"
    is_whole = not refused and not unread
    if rows and not is_whole:
        heading = "Of what could be read, everybody has everything"
    if differ:
        heading = f"{differ} of {len(rows)} logs hold other messages, {behind} are behind"
    elif behind:
        heading = f"{behind} of {len(rows)} logs are behind"
    tone = "bad" if behind or differ else ("good" if rows and is_whole else "")
    heads = ["<th class=l>channel<th class=l>participant<th>behind by"]
    heads += [f"<th>{escape(kind.value.replace('_', ' '))}" for kind in kinds]
    lines = [
        f"<tr><td class=l><code>{escape(row.channel)}</code>"
        f"<td class=l><code>{escape(row.participant)}</code>"
        f"<td{'' if row.is_fine else ' class=n'}>{'others' if row.differs else f'{row.behind:,}'}"
        + "".join(f"<td>{row.counts.get(kind.value, 0):,}" for kind in kinds)
        + f"<td>{utc_text(row.newest_ms)}"
        for row in rows[:MOST_ROWS]
    ]
    more = f", {len(rows) - MOST_ROWS} more logs" if len(rows) > MOST_ROWS else ""
    aside = "".join(f"<p class=n>{escape(line)}</p>" for line in unread[:MOST_ROWS])
    unusable = f", {refused:,} rows that could not be used" if refused else ""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        f"<meta http-equiv=refresh content={every_s}><title>{escape(heading)}</title>"
        f"<style>{_STYLE}</style><main><h1 class='{tone}'>{escape(heading)}</h1>"
        f"<p>{total:,} events{unusable}{more}, as of {utc_text(now_ms)} UTC</p>{aside}"
        f"<div><table><tr>{''.join(heads)}<th>newest, UTC{''.join(lines)}</table></div></main>"
        "</html>"
    )


def write_whole(path: Path, text: str) -> None:
    """A reader sees the old page or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).chmod(0o644)
    Path(name).replace(path)
