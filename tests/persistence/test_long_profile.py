"""The profiles of the benchmarks of scale are those of people who talked, table by table."""

from pathlib import Path

import pytest

from benchmarks.scale_profile import (
    Clock,
    Member,
    QuickTalk,
    Talk,
    WriterHere,
    make_profile,
    talk_for_long,
)
from chat_app.compose import open_store
from engine.core.entropy import Entropy
from engine.core.ports import SaveProfile
from engine.events import MessageKind
from engine.persistence.database import memory_database
from engine.persistence.profile_directory import open_profile_directory
from engine.persistence.sqlite_store import SqliteProfileStore

NOW_MS = 1_700_000_000_000
WHEN_MADE = "_sqlite_migrations"


def tables_after(texts: int, kind: type[Talk]) -> dict[str, list[tuple[object, ...]]]:
    """Of Ines.  Nobody draws anything, as the two kinds would not draw the same."""
    clock, even = Clock(NOW_MS), Entropy(random_bytes=bytes, random_unit=lambda: 0.5)
    connection = memory_database()
    store = SqliteProfileStore(connection)
    hers, his = SqliteProfileStore.in_memory(), SqliteProfileStore.in_memory()
    ines = Member("Ines", clock, hers, writer=WriterHere(store), entropy=even)
    max_ = Member("Max", clock, his, entropy=even)
    ines.keep([SaveProfile(profile=ines.profile)])
    talk_for_long((ines, max_), clock, 1, texts, kind)
    named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = {
        name: connection.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608 - its own names
        for (name,) in named
        if name != WHEN_MADE
    }
    for each in (store, hers, his):
        each.close()
    return tables


@pytest.mark.parametrize("texts", [300, pytest.param(2_000, marks=pytest.mark.long)])
def test_a_profile_of_one_session_is_that_of_two(texts: int) -> None:
    made, wanted = tables_after(texts, QuickTalk), tables_after(texts, Talk)
    assert len(made["message"]) == len(made["log_entry"]) == texts + 2
    assert made.keys() == wanted.keys()
    for name, rows in wanted.items():
        assert made[name] == rows, name


def test_what_another_process_writes_is_all_there(tmp_path: Path) -> None:
    texts = 100
    groups = make_profile(tmp_path, 2, 2 * texts)
    store = open_store(open_profile_directory(tmp_path), force_key_file=True).store
    for group in groups:
        rows = store.latest_page(group, limit=2 * texts).messages
        said = [row.record.text for row in rows if row.record.kind == MessageKind.TEXT]
        assert [int(text.split()[0]) for text in said] == list(range(texts))
    store.close()
