"""What a text costs on the wire: the Waku message with seal, signature, history, hints and filter.

Two real sessions talk; every copy is accepted, so that each entry of a causal history bears its
retrieval hint.  The filter grows with what is held, so the size depends on how much was said.
"""

import statistics
from typing import Final

from benchmarks.report import Figure, Report
from engine.core.content import Text
from engine.core.ids import UnixMs
from engine.sim.network import Outgoing
from engine.sim.session_participant import SessionParticipant

START: Final = UnixMs(1_800_000_000_000)
TEXT: Final = Text(text="x" * 100)
SAMPLES: Final = 6
HISTORY: Final = 10
BAR_KIB: Final = 1.6
LOGS: Final = {HISTORY + 2: BAR_KIB, 100: None, 1_000: None}
"""Texts in the log, and the bar, where there is little more than a history in the filter."""


def run(_quick: bool) -> Report:
    report = Report(name="envelope")
    sizes = _sizes(max(LOGS) + SAMPLES)
    for texts, bar in LOGS.items():
        kib = [size / 1_024 for size in sizes[texts : texts + SAMPLES]]
        report.figures.append(
            Figure(
                figure=f"sealed Waku message of a text of 100 bytes, ten entries with hints, "
                f"{texts} texts in the log",
                value=statistics.median(kib),
                unit="KiB",
                spread=(min(kib), max(kib)),
                bar=bar,
            )
        )
    return report


def _sizes(texts: int) -> list[int]:
    """Bytes of each text, as they take turns."""
    people = [SessionParticipant(name, seed=1, now_ms=START) for name in ("Alice", "Bob")]
    people[0].create_group("Tide", now_ms=START)
    _give(people[1].join_group(people[0].invite_link(), now_ms=START), people[0], START)
    sizes = []
    for number in range(texts):
        now_ms = UnixMs(START + 1_000 * number)
        speaker, listener = people[number % 2], people[(number + 1) % 2]
        said = speaker.say(TEXT, now_ms=now_ms)
        sizes.append(len(said[0].payload))
        _give(said, listener, now_ms)
    return sizes


def _give(sent: list[Outgoing], listener: SessionParticipant, now_ms: UnixMs) -> None:
    for copy in sent:
        listener.receive(copy.payload, now_ms=now_ms)
        if copy.accepted is not None:
            copy.accepted(1, now_ms)
