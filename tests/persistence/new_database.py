"""The database of a new profile, made once in a process for each key and copied for the next tests.

To make it takes all migrations, ten times as long as to open it.  That they make it, and how, is
tested where tests open a place in which there is nothing: ``test_schema``, ``test_database_file``,
the stages of ``tests/security``, and every process that is started.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from engine.persistence.connection import create_private
from engine.persistence.database import open_database

_MADE: dict[bytes, bytes] = {}


def new_database(path: Path, key: bytes) -> Path:
    """The same path, with the tables of a new profile if there was nothing."""
    if not path.exists():
        if key not in _MADE:
            _MADE[key] = _made(key)
        create_private(path)
        path.write_bytes(_MADE[key])
    return path


def _made(key: bytes) -> bytes:
    with TemporaryDirectory() as somewhere:
        path = Path(somewhere) / "made.db"
        open_database(path, key).close()
        return path.read_bytes()
