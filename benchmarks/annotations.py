"""Replies, reactions and edits in a store: what pages with them take, and pages without.

A group of 20 000 texts in a new database.  Reads are CPU time of the calling thread, since that is
what the storage thread spends; writes are transactions of 100, or of one where it says so.
"""

import base64
import tempfile
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from benchmarks.report import Figure, Report, figure_of
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.ports import PutAnnotation, PutGroup, PutMessage, StoreWrite
from engine.core.records import AnnotationRecord, GroupRecord, MessageRecord
from engine.persistence.sqlite_store import SqliteProfileStore

TEXTS: Final = 20_000
PAGE: Final = 100
ROUNDS: Final = 200
TOGETHER: Final = 100
ONE_REACTED: Final = 1_000
CROWDED: Final = 100
"""Reactions on each row of a page."""
EDITS: Final = 10_000
CHAIN: Final = 1_000
PAGE_BAR_MS: Final = 16.0
"""A frame."""
GROUP: Final = ConversationId("R" * 43)
BEGINNING: Final = 1_790_000_000_000
PEOPLE: Final = [ParticipantId(f"{number:022}") for number in range(ONE_REACTED)]
EMOJI: Final = "👍❤😂🎉"


def run(quick: bool) -> Report:
    report = Report(name="annotations")
    rounds = ROUNDS // 10 if quick else ROUNDS
    with tempfile.TemporaryDirectory() as place:
        store = SqliteProfileStore.open(Path(place) / "causerie.db", bytes(32))
        report.figures += _measure(store, rounds, EDITS // 10 if quick else EDITS)
        store.close()
    return report


def _measure(store: SqliteProfileStore, rounds: int, edits: int) -> list[Figure]:
    group = GroupRecord(
        conversation_id=GROUP,
        name="Tide",
        epoch_keys=(bytes(32),),
        admin_public_key=bytes(32),
        created_ms=UnixMs(BEGINNING),
    )
    store.apply([PutGroup(group=group)])
    figures = [figure_of("a text is written", _written(store, map(_text, range(TEXTS))), "µs")]

    def page(at: int) -> Callable[[], object]:
        before = _position(at + PAGE // 2)
        return lambda: store.page_before(GROUP, before, limit=PAGE)

    figures.append(_read("a page of 100 without anything", page(10_000), rounds))
    some = [_reaction(n, 5_000 + n % PAGE, PEOPLE[n % 7]) for n in range(3 * PAGE)]
    figures.append(figure_of("a reaction is written", _written(store, some), "µs"))
    figures.append(_read("a page of 100 with 300 reactions", page(5_050), rounds))
    many = [_reaction(1_000 + n, 8_000, who) for n, who in enumerate(PEOPLE)]
    alone = _written(store, many, together=1)
    figures.append(figure_of("one of 1 000 reactions is written, alone", alone, "µs"))
    figures.append(_read("a page with a text that has 1 000", page(8_000), rounds))
    crowded = [
        _reaction(50_000 + n + n // PAGE, 15_000 + n % PAGE, PEOPLE[n // PAGE])
        for n in range(CROWDED * PAGE)
    ]
    _written(store, crowded)
    figures.append(_read("a page of 100 with 100 reactions each", page(15_050), rounds))
    changes = [_edit(3_000 + n, 12_000) for n in range(edits)]
    figures.append(figure_of(f"one of {edits} edits is written", _written(store, changes), "µs"))
    figures.append(_read("a page with the text that was edited", page(12_000), rounds))
    _written(store, [_text(TEXTS + n, answers=TEXTS + n - 1) for n in range(CHAIN)])
    figures.append(_read("a page of replies in a chain of 1 000", page(TEXTS + 500), rounds))
    return figures


def _written(
    store: SqliteProfileStore, writes: Iterable[StoreWrite], together: int = TOGETHER
) -> list[float]:
    """Microseconds of CPU for each, by transaction."""
    every, taken = list(writes), []
    for first in range(0, len(every), together):
        some = every[first : first + together]
        began = time.thread_time()
        store.apply(some)
        taken.append(1e6 * (time.thread_time() - began) / len(some))
    return taken


def _read(name: str, read: Callable[[], object], rounds: int) -> Figure:
    taken = []
    for _ in range(rounds):
        began = time.thread_time()
        read()
        taken.append(1e3 * (time.thread_time() - began))
    return figure_of(name, taken, "ms", PAGE_BAR_MS)


def _id(name: object) -> MessageId:
    """Of the shape that a group's ids have."""
    digest = sha256(str(name).encode()).digest()[:16]
    return MessageId(base64.urlsafe_b64encode(digest).decode().rstrip("="))


def _position(number: int) -> Position:
    return Position(BEGINNING + number, _id(number))


def _text(number: int, *, answers: int | None = None) -> PutMessage:
    return PutMessage(
        message=MessageRecord(
            conversation_id=GROUP,
            position=_position(number),
            sender_id=PEOPLE[number % 2],
            is_own=False,
            kind="text",
            text="x" * 80,
            spans=(),
            sent_ms=UnixMs(BEGINNING),
            received_ms=UnixMs(BEGINNING),
            reply_to=None if answers is None else _id(answers),
        )
    )


def _annotation(number: int, target: int, sender_id: ParticipantId, kind: str) -> AnnotationRecord:
    return AnnotationRecord(
        conversation_id=GROUP,
        position=Position(BEGINNING + 2 * TEXTS + number, _id(f"about {number}")),
        kind=kind,
        target_id=_id(target),
        sender_id=sender_id,
        is_own=False,
        sent_ms=UnixMs(BEGINNING),
        received_ms=UnixMs(BEGINNING),
        emoji=EMOJI[number % len(EMOJI)] if kind == "reaction" else "",
        text=f"edited {number}" if kind == "edit" else "",
    )


def _reaction(number: int, target: int, sender_id: ParticipantId) -> PutAnnotation:
    return PutAnnotation(annotation=_annotation(number, target, sender_id, "reaction"))


def _edit(number: int, target: int) -> PutAnnotation:
    return PutAnnotation(annotation=_annotation(number, target, PEOPLE[target % 2], "edit"))
