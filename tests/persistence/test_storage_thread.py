"""One thread for the disk: in order, off the loop, closed without losing what was asked."""

import asyncio
import threading
from pathlib import Path

import pytest

from engine.core.errors import StorageError
from engine.core.ports import SaveValue
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.persistence.storage_thread import StorageThread


async def test_a_store_lives_on_its_thread_from_opening_to_closing(
    database_path: Path, key: bytes
) -> None:
    thread = StorageThread()
    store = await thread.run(SqliteProfileStore.open, database_path, key)
    await thread.run(store.apply, [SaveValue(key="port", value="1")])
    assert await thread.run(store.value, "port") == "1"
    with pytest.raises(StorageError):
        store.value("port")  # another thread: SQLite refuses, we translate
    await thread.close(store.close)
    reopened = SqliteProfileStore.open(database_path, key)
    assert reopened.value("port") == "1"
    reopened.close()


def test_calls_run_one_by_one_in_the_order_in_which_they_were_asked() -> None:
    async def scenario() -> list[tuple[int, int]]:
        thread = StorageThread()
        calls: list[tuple[int, int]] = []

        def note(number: int) -> None:
            calls.append((number, threading.get_ident()))

        await asyncio.gather(*(thread.run(note, number) for number in range(100)))
        await thread.close()
        return calls

    calls = asyncio.run(scenario())
    assert [number for number, _ in calls] == list(range(100))
    assert len({ident for _, ident in calls}) == 1
    assert calls[0][1] != threading.get_ident()


async def test_what_a_call_raises_reaches_the_caller_and_the_thread_goes_on() -> None:
    def fail() -> None:
        raise StorageError("no")

    thread = StorageThread()
    with pytest.raises(StorageError, match="no"):
        await thread.run(fail)
    assert await thread.run(lambda: 42) == 42
    await thread.close()


def test_closing_waits_for_what_was_asked_and_refuses_the_rest() -> None:
    async def scenario() -> list[str]:
        thread = StorageThread()
        begun, may_end = threading.Event(), threading.Event()
        done: list[str] = []

        def slow() -> None:
            begun.set()
            may_end.wait()
            done.append("slow")

        tasks = [asyncio.create_task(thread.run(slow))]
        tasks.append(asyncio.create_task(thread.run(done.append, "queued")))
        await asyncio.to_thread(begun.wait)
        closing = asyncio.create_task(thread.close(lambda: done.append("closed")))
        await asyncio.sleep(0)
        with pytest.raises(StorageError, match="closed"):
            await thread.run(done.append, "too late")
        assert not closing.done()
        may_end.set()
        await asyncio.gather(closing, *tasks)
        await thread.close()
        return done

    assert asyncio.run(scenario()) == ["slow", "queued", "closed"]


async def test_a_disk_that_is_far_too_slow_is_told_rather_than_queued_for() -> None:
    thread = StorageThread(max_pending=3)
    may_end = threading.Event()
    tasks = [asyncio.create_task(thread.run(may_end.wait)) for _ in range(3)]
    await asyncio.sleep(0)
    assert thread.pending == 3
    with pytest.raises(StorageError, match="too slow: 3"):
        await thread.run(int)
    may_end.set()
    await asyncio.gather(*tasks)
    assert await thread.run(int) == 0
    await thread.close()


def test_a_call_that_has_begun_is_completed_though_its_caller_was_cancelled() -> None:
    async def scenario() -> list[str]:
        thread = StorageThread()
        begun, may_end = threading.Event(), threading.Event()
        done: list[str] = []

        def slow() -> None:
            begun.set()
            may_end.wait()
            done.append("saved")

        task = asyncio.create_task(thread.run(slow))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may_end.set()
        await thread.close()
        return done

    assert asyncio.run(scenario()) == ["saved"]
