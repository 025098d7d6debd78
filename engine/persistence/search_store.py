"""The search of a profile's database: keeps its index up, and answers from it.

The index can always be made again from the messages.  What is damaged in it is therefore thrown
away, or left where it is if it cannot be removed; messages are received and shown all the while.
"""

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

from engine.core.search import FoundMessage, Indexed, SearchQuery, Stop
from engine.persistence import search_index, search_tables
from engine.persistence.connection import transaction
from engine.persistence.errors import DatabaseUnreadableError, translated
from engine.persistence.search_reads import find

Doing: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""What turns the driver's errors into ours, and goes on with a connection that works."""


class SqliteSearchReader:
    """Owns ``connection``, which only reads, and is used on the thread that opened it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, query: SearchQuery, /, *, limit: int, stop: Stop) -> tuple[FoundMessage, ...]:
        with translated("search"), transaction(self._connection):
            return find(self._connection, query, limit, stop)

    def close(self) -> None:
        with translated("close the database"):
            self._connection.close()


class SqliteSearch:
    """Uses the store's connection; ``read_beside`` opens another one, if there can be one."""

    def __init__(
        self,
        connection: Callable[[], sqlite3.Connection],
        doing: Doing,
        read_beside: Callable[[], sqlite3.Connection] | None,
    ) -> None:
        self._connection = connection
        self._doing = doing
        self._read_beside = read_beside

    def index_some(self, *, old: bool) -> Indexed:
        with self._doing("index messages"), transaction(self._connection()):
            return search_index.index_some(self._connection(), old=old)

    def rebuild(self) -> None:
        try:
            self._begin_anew(drop=True)
        except DatabaseUnreadableError:
            try:
                self._begin_anew(drop=False)
            except DatabaseUnreadableError:
                with self._doing("do without an index"), transaction(self._connection()):
                    search_tables.give_up(self._connection())
                raise

    def _begin_anew(self, *, drop: bool) -> None:
        with self._doing("index messages anew"), transaction(self._connection()):
            search_tables.begin_anew(self._connection(), drop=drop)

    def find(self, query: SearchQuery, /, *, limit: int, stop: Stop) -> tuple[FoundMessage, ...]:
        with self._doing("search"):
            return find(self._connection(), query, limit, stop)

    def reader(self) -> SqliteSearchReader | None:
        return None if self._read_beside is None else SqliteSearchReader(self._read_beside())
