"""History with a second process that opens messages: as without it, whatever becomes of it."""

import asyncio
import sys
import threading
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import pytest

from chat_app.compose import opening_command
from engine.codec.waku import decode_waku_message
from engine.core.content import Text
from engine.core.counters import Counters
from engine.core.history.progress import Purpose
from engine.core.history.queries import HistoryMessage
from engine.core.ids import PubsubTopic, UnixMs, WakuHash
from engine.core.records import GroupRecord
from engine.core.waku import WakuMessage
from engine.network.waku.store.intake import Archive
from engine.runtime.history.opening_process import (
    LENGTH_BYTES,
    MAX_BYTES,
    OpeningProcess,
    serve,
)
from engine.session.group.opening import OpenedPage, envelope_hash_of
from engine.session.inputs import MessageArrived
from tests.core.history.history_model import NOW_MS, ModelStore, history
from tests.patience import PATIENCE_S
from tests.runtime.history.backfill_stage import STORE, Noted, StoresOfATest, running_backfill
from tests.runtime.history.history_stage import (
    Person,
    RationedArchive,
    StoreNode,
    say_in_a_group,
    until,
)
from tests.session.test_group_session import NOW, pair, settle

MANY = 210
FAILED = "history.opening_process_failed"
UNLIMITED = 10**9


def helper(mark: Path, *what: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.runtime.history.opening_helper", str(mark), *what)


def a_page() -> tuple[GroupRecord, list[HistoryMessage]]:
    alice, bob = pair()
    at_ms = settle(alice, bob, NOW, 90)
    said = [alice.say(Text(text=f"{n}"), now_ms=UnixMs(at_ms + n))[0] for n in range(3)]
    messages = [decode_waku_message(out.payload) for out in said]
    topic = PubsubTopic("/waku/2/rs/1/0")
    return bob.store.groups()[0], [
        HistoryMessage(WakuHash(bytes(32)), message, topic) for message in messages
    ]


async def until_no_thread_waits() -> None:
    await until(lambda: not [one for one in threading.enumerate() if "opening" in one.name])


async def once_it_runs(
    process: OpeningProcess, group: GroupRecord, messages: Sequence[HistoryMessage]
) -> OpenedPage:
    async with asyncio.timeout(PATIENCE_S):
        while not (opened := await process.open(group, messages)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return opened


@pytest.mark.parametrize("said", [b"\0\0\0\3abc", b"abcd" + bytes(9), b"\0\0", b""])
def test_something_else_than_pages_ends_it_without_an_answer(said: bytes) -> None:
    pages, answers = BytesIO(said), BytesIO()
    serve(pages, answers)
    assert answers.getvalue() == b""


def test_no_more_is_read_than_a_page_can_have() -> None:
    pages = BytesIO((MAX_BYTES + 1).to_bytes(LENGTH_BYTES) + b"more")
    serve(pages, BytesIO())
    assert pages.read() == b"more"


async def test_the_program_itself_opens_pages_and_ends_when_it_is_stopped() -> None:
    counters = Counters()
    process = OpeningProcess(opening_command(), counters)
    group, messages = a_page()
    assert await process.open(group, messages) == (), "it is only being started"
    opened = await once_it_runs(process, group, messages)
    assert [one.message.content is not None for one in opened if one] == [True] * 3
    await process.stop()
    assert await process.open(group, messages) == ()
    assert counters[FAILED] == 0


async def test_each_page_gets_its_own_answer_also_after_one_that_nobody_waits_for_any_more() -> (
    None
):
    process = OpeningProcess(opening_command(), Counters())
    group, messages = a_page()
    await once_it_runs(process, group, messages)
    asked = [asyncio.create_task(process.open(group, [one])) for one in 4 * messages]
    await asyncio.sleep(0)  # The first are under way, the others wait for them.
    for number in (1, 4):
        asked[number].cancel()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for answer, one in zip(answers, 4 * messages, strict=True):
        if not isinstance(answer, BaseException):
            (opened,) = answer
            assert opened is not None
            assert opened.envelope_hash == envelope_hash_of(one.message.payload)
    assert sum(isinstance(answer, asyncio.CancelledError) for answer in answers) == 2
    await process.stop()


@pytest.mark.parametrize("what", ["dies", "hangs"])
async def test_one_that_fails_is_counted_once_and_not_asked_again(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.runtime.history.opening_process.ANSWER_S", 0.2)
    counters = Counters()
    process = OpeningProcess(helper(tmp_path / "mark", what), counters)
    group, messages = a_page()
    async with asyncio.timeout(PATIENCE_S):
        while not counters[FAILED]:
            assert await process.open(group, messages) == ()
            await asyncio.sleep(0.01)
    assert await process.open(group, messages) == ()
    assert counters[FAILED] == 1
    await process.stop()


async def test_one_that_hangs_longer_than_it_may_idle_is_killed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its thread would wait for it for ever, and the program could not end."""
    monkeypatch.setattr("engine.runtime.history.opening_process.ANSWER_S", 0.5)
    monkeypatch.setattr("engine.runtime.history.opening_process.IDLE_S", 0.1)
    counters, mark = Counters(), tmp_path / "mark"
    process = OpeningProcess(helper(mark, "hangs"), counters)
    group, messages = a_page()
    async with asyncio.timeout(PATIENCE_S):
        while not counters[FAILED]:
            await process.open(group, messages)
            await asyncio.sleep(0.01)
    await process.stop()
    await until_no_thread_waits()


async def test_one_that_never_begins_to_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.runtime.history.opening_process.ANSWER_S", 0.5)
    counters, mark = Counters(), tmp_path / "mark"
    process = OpeningProcess(helper(mark, "is_mute"), counters)
    group, messages = a_page()
    async with asyncio.timeout(PATIENCE_S):
        while not counters[FAILED]:
            assert await process.open(group, messages) == ()
            await asyncio.sleep(0.01)
    await process.stop()
    await until_no_thread_waits()


async def test_a_program_that_cannot_be_started_is_counted(tmp_path: Path) -> None:
    counters = Counters()
    process = OpeningProcess((str(tmp_path / "nothing"),), counters)
    group, messages = a_page()
    async with asyncio.timeout(PATIENCE_S):
        while not counters[FAILED]:
            assert await process.open(group, messages) == ()
            await asyncio.sleep(0.01)
    await process.stop()


async def test_while_the_session_is_loaded_pages_wait_until_it_runs(tmp_path: Path) -> None:
    process = OpeningProcess(helper(tmp_path / "mark"), Counters())
    group, messages = a_page()
    loaded = asyncio.Event()

    async def ready() -> None:
        await loaded.wait()

    opening = (process.open(group, messages, session_ready=ready) for _ in range(4))
    async with asyncio.timeout(PATIENCE_S):
        pages = await asyncio.gather(*opening)
    assert [len(opened) for opened in pages] == [len(messages)] * 4
    await process.stop()


async def test_a_page_that_waits_keeps_it_however_long_it_takes_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in use: its time goes by only once nobody waits."""
    monkeypatch.setattr("engine.runtime.history.opening_process.IDLE_S", 0.01)
    process = OpeningProcess(helper(tmp_path / "mark"), Counters())
    group, messages = a_page()

    async def never() -> None:
        await asyncio.Event().wait()

    async with asyncio.timeout(PATIENCE_S):
        opened = await process.open(group, messages, session_ready=never)
    assert len(opened) == len(messages)
    await process.stop()


async def test_once_the_session_is_loaded_pages_wait_no_longer_for_one_that_does_not_run(
    tmp_path: Path,
) -> None:
    mark = tmp_path / "mark"
    process = OpeningProcess(helper(mark, "is_mute"), Counters())
    group, messages = a_page()
    loaded = asyncio.Event()

    async def ready() -> None:
        await loaded.wait()

    opening = [
        asyncio.create_task(process.open(group, messages, session_ready=ready)) for _ in range(4)
    ]
    await until(mark.exists)
    assert not any(one.done() for one in opening)
    loaded.set()
    async with asyncio.timeout(PATIENCE_S):
        assert await asyncio.gather(*opening) == [()] * 4
    await process.stop()
    await until_no_thread_waits()


async def test_stopping_ends_the_wait_for_one_that_never_runs(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    process = OpeningProcess(helper(mark, "is_mute"), Counters())
    group, messages = a_page()

    async def never() -> None:
        await asyncio.Event().wait()

    opening = asyncio.create_task(process.open(group, messages, session_ready=never))
    await until(mark.exists)
    await process.stop()
    async with asyncio.timeout(PATIENCE_S):
        assert await opening == ()
    await until_no_thread_waits()


async def test_it_ends_when_it_was_not_used_for_a_while_and_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.runtime.history.opening_process.IDLE_S", 0.5)
    mark = tmp_path / "mark"
    process = OpeningProcess(helper(mark), Counters())
    group, messages = a_page()
    await once_it_runs(process, group, messages)
    mark.unlink()
    await until(mark.with_suffix(".over").exists)
    assert await process.open(group, messages) == ()
    await once_it_runs(process, group, messages)
    assert mark.exists()
    await process.stop()


@pytest.mark.parametrize("what", ["", "dies"])
async def test_a_backfill_tells_everything_once(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the process is killed in the middle of an answer."""
    monkeypatch.setattr("engine.runtime.history.backfill.LARGE_MESSAGES", 0)
    archives: list[RationedArchive] = []

    def rationed(archive: Archive) -> Archive:
        archives.append(RationedArchive(archive))
        return archives[-1]

    node, mark = StoreNode(tmp_path, "store"), tmp_path / "mark"
    address = await node.start(wrap=rationed)
    archives[-1].give_out(UNLIMITED)
    past = await say_in_a_group(tmp_path, MANY, node)
    archives[-1].give_out(100)
    bob = await Person(
        "Bob", tmp_path, peers=(address,), opening_command=helper(mark, what)
    ).start()
    await bob.engine.groups.join(past.link)
    await until(mark.exists)
    archives[-1].give_out(UNLIMITED)
    await bob.until_told(past.group, MANY)
    assert sorted(bob.texts(past.group)) == sorted(past.said), "each once"
    assert await bob.log_of(past.group, past.said) == past.logged
    assert await bob.engine.timeline.gap(past.group) is None
    await bob.stop()
    with bob.disk() as disk:
        assert disk.counters().get(FAILED, 0) == (what == "dies")
    await node.stop()


async def test_pages_are_handled_in_order_whichever_is_opened_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first is only opened once the second was."""
    monkeypatch.setattr("engine.runtime.history.backfill.LARGE_MESSAGES", 0)
    opened: list[Sequence[HistoryMessage]] = []
    overtaken = asyncio.Event()

    async def late_at_first(messages: Sequence[HistoryMessage]) -> OpenedPage:
        opened.append(messages)
        if len(opened) == 1:
            await overtaken.wait()
        overtaken.set()
        return ()

    said, sink = history(MANY), Noted()
    stores = StoresOfATest(ModelStore(said))
    async with running_backfill(stores, sink, open_page=late_at_first) as backfill:
        backfill.stores_changed((STORE,))
        backfill.request(Purpose.USER, UnixMs(NOW_MS - MANY * 1_000))
        await until(lambda: len(messages_in(sink)) >= MANY)
    assert len(opened) > 1
    assert messages_in(sink) == [one.message for one in said]


def messages_in(sink: Noted) -> list[WakuMessage]:
    return [one.message for one in sink.fed if isinstance(one, MessageArrived)]
