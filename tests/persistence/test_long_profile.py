"""The profiles of the benchmarks of scale are those of people who talked, table by table."""

import pytest

from benchmarks.scale_profile import Clock, Member, QuickTalk, Talk, talk_for_long
from engine.core.entropy import Entropy
from engine.core.ports import SaveProfile
from engine.persistence.database import memory_database
from engine.persistence.sqlite_store import SqliteProfileStore

NOW_MS = 1_700_000_000_000
WHEN_MADE = "_sqlite_migrations"


def tables_after(texts: int, kind: type[Talk]) -> dict[str, list[tuple[object, ...]]]:
    """Of Ines.  Nobody draws anything, as the two kinds would not draw the same."""
    clock, even = Clock(NOW_MS), Entropy(random_bytes=bytes, random_unit=lambda: 0.5)
    connection = memory_database()
    store, other = SqliteProfileStore(connection), SqliteProfileStore.in_memory()
    ines = Member("Ines", clock, store, keeps=True, entropy=even)
    max_ = Member("Max", clock, other, keeps=False, entropy=even)
    store.apply([SaveProfile(profile=ines.profile)])
    talk_for_long((ines, max_), clock, 1, texts, kind)
    named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = {
        name: connection.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608 - its own names
        for (name,) in named
        if name != WHEN_MADE
    }
    store.close()
    other.close()
    return tables


@pytest.mark.parametrize("texts", [300, pytest.param(2_000, marks=pytest.mark.long)])
def test_a_profile_of_one_session_is_that_of_two(texts: int) -> None:
    made, wanted = tables_after(texts, QuickTalk), tables_after(texts, Talk)
    assert len(made["message"]) == len(made["log_entry"]) == texts + 2
    assert made.keys() == wanted.keys()
    for name, rows in wanted.items():
        assert made[name] == rows, name
