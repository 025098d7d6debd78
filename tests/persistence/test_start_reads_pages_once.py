"""What a start reads of a long log's holders: no page of the database again and again."""

from pathlib import Path

from engine.core.ids import HolderSource
from engine.core.ports import PutGroup
from engine.core.sds.log_table import LogTable
from engine.persistence.database import open_database
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.store_examples import ALICE, GROUP, channel, group, held, logged
from tests.persistence.version_1 import sealed_id

KEY = bytes(32)
MESSAGES = 3_000


def bytes_read() -> int:
    (line,) = (each for each in Path("/proc/self/io").read_text().splitlines() if "rchar" in each)
    return int(line.split()[1])


def test_holders_of_the_last_days_are_read_page_by_page(tmp_path: Path) -> None:
    """Ids come in no order, so in the log's order nearly each holder would be on another page."""
    path = tmp_path / "causerie.db"
    connection = open_database(path, KEY)
    store = SqliteProfileStore(connection)
    store.apply([PutGroup(group=group())])
    for first in range(0, MESSAGES, 500):
        ids = {number: sealed_id(number) for number in range(first, first + 500)}
        store.apply(
            [
                channel(logged(number, name), held(name, ALICE, HolderSource.CAUSAL))
                for number, name in ids.items()
            ]
        )
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA cache_size = 20")
    before = bytes_read()
    state = store.channel_state(GROUP, log=LogTable(), held_since=0)
    assert len(state.holders) == MESSAGES
    assert bytes_read() - before < 1.5 * path.stat().st_size
    store.close()
