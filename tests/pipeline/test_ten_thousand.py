"""Ten thousand people with a message each: everybody is judged, and who lacks something is named.

They hand in a file each, which is much and takes Spark, or there is one export of all, which is
little and takes no Java.

Nobody stays for long: each belongs to the channel for ten messages, its own among them, and records
to the end.  What each should hold, and which verdict that makes, is said here from numbers alone:
messages are numbered, a stay is a range of them, and what a log lacks is taken out.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from engine.delivery.contract import LOG_TABLES
from pipeline.lake import Lake
from pipeline.parquet_table import ParquetTable
from pipeline.session import session
from tests.pipeline.test_bad_input import run
from tests.pipeline.test_trust import WITHOUT_JAVA
from tests.pipeline.told_groups import (
    START_MS,
    STEP_MS,
    Log,
    Sent,
    Story,
    log_of,
    whole_rows,
    write_sqlite,
)

pytestmark = pytest.mark.long

PEOPLE: Final = 10_000
BEFORE, AFTER = 5, 5
"""So many messages are written in a stay before the member's own, and from that one on."""
ONE: Final = 7_001


@dataclass(frozen=True)
class Place:
    """Of one person: which messages were written while it belonged, and which of these it lacks."""

    number: int
    lacks: frozenset[int]

    @property
    def stay(self) -> range:
        return range(max(self.number - BEFORE, 0), min(self.number + AFTER, PEOPLE))

    @property
    def held(self) -> frozenset[int]:
        return frozenset(self.stay) - self.lacks

    @property
    def verdict(self) -> str:
        if not self.lacks:
            return "identical"
        return "prefix" if max(self.held) < min(self.lacks) else "missing"


def one_lacks_one(number: int) -> Place:
    return Place(number, frozenset({ONE - 2}) if number == ONE else frozenset())


def all_lack_some(number: int) -> Place:
    """In turn: one in the middle, the last, and everything but its own."""
    stay = Place(number, frozenset()).stay
    middle = number - 2 if number >= BEFORE else number + 2
    others = frozenset(stay) - {number}
    return Place(number, (frozenset({middle}), frozenset({max(stay)}), others)[number % 3])


def person(number: int) -> str:
    return f"p{number:04}"


def messages() -> list[Sent]:
    """One of each, naming the one before it."""
    ids = [Story("crowd").id_of(number) for number in range(PEOPLE)]
    return [
        Sent(
            number=number,
            id=ids[number],
            sender=person(number),
            at=number * STEP_MS,
            lamport=START_MS + number * STEP_MS,
            parents=tuple(ids[max(number - 1, 0) : number]),
        )
        for number in range(PEOPLE)
    ]


def logs(places: Iterable[Place]) -> Iterator[Log]:
    sent = messages()
    for place in places:
        who, stay = person(place.number), place.stay
        joined, left = (each * STEP_MS - STEP_MS // 2 for each in (stay.start, stay.stop))
        story = Story(
            "crowd",
            people=(who,),
            count=PEOPLE,
            stays={who: ((joined, left),)},
            lacks={who: place.lacks},
        )
        yield log_of(story, who, sent[stay.start : stay.stop])


def export(whole: Sequence[Log], place: Path) -> None:
    """A file for each table, with the rows of all: so few bytes that it takes no Java."""
    place.mkdir()
    for table in LOG_TABLES:
        rows = [row for log in whole for row in whole_rows(log, table)]
        file = ParquetTable(place / f"{table.name}.parquet", table)
        file.write([[row[name] for name in table.names] for row in rows])
        file.close()


def a_file_each(whole: Sequence[Log], place: Path) -> None:
    """As their recorders leave them; below several directories, as no list of so many is read."""
    for number, log in enumerate(whole):
        write_sqlite(log, place / f"{number // 1_000}" / f"{log.person}.delivery.db")


@pytest.mark.parametrize(
    ("lacking", "hand_in"),
    [(one_lacks_one, export), (all_lack_some, export), (all_lack_some, a_file_each)],
)
def test_everybody_is_judged_and_whoever_lacks_something_is_named(
    lacking: Callable[[int], Place], hand_in: Callable[[Sequence[Log], Path], None], tmp_path: Path
) -> None:
    places = [lacking(number) for number in range(PEOPLE)]
    hand_in(list(logs(places)), tmp_path / "logs")
    out = tmp_path / "out"
    done = run("audit", tmp_path / "logs", "--out", out, "--json")
    assert done.returncode == 1, done.stderr
    story = Story("crowd")
    pseudonyms = [story.pseudonym(person(place.number)) for place in places]
    with session(WITHOUT_JAVA) as here:
        names = ("participant", "verdict", "expected", "held", "missing")
        verdicts = Lake(out).table(here, "audit/verdicts").select(*names).collect()
        wanted = ("participant", "kind", "message_id")
        witnesses = Lake(out).table(here, "audit/witnesses").select(*wanted).collect()
    assert sorted(map(tuple, verdicts)) == sorted(
        (who, place.verdict, len(place.stay), len(place.held), len(place.lacks))
        for who, place in zip(pseudonyms, places, strict=True)
    )
    assert sorted(map(tuple, witnesses)) == sorted(
        (who, "missing", story.id_of(number))
        for who, place in zip(pseudonyms, places, strict=True)
        for number in place.lacks
    )
    told = json.loads(done.stdout)
    differing = sum(bool(place.lacks) for place in places)
    assert sum(told["verdicts"].values()) == PEOPLE
    assert told["verdicts"].get("identical", 0) == PEOPLE - differing
    assert len(told["logs"]) + told["logs_left_out"] == PEOPLE
    named = {one["participant"] for one in told["differing"]}
    assert len(named) + told["differing_left_out"] == differing
    assert named <= {who for who, place in zip(pseudonyms, places, strict=True) if place.lacks}
    assert {entry["participant"] for entry in told["coverage"]} <= set(pseudonyms)
