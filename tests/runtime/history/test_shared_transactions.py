"""What Stores bring shares transactions with what is on its way, unless somebody waits."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.core.history.queries import HistoryMessage
from engine.core.ids import UnixMs
from engine.core.ports import PutMessage, StoreWrite
from engine.core.records import GroupRecord
from engine.core.waku_store import MAX_PAGE_MESSAGES
from engine.runtime.history.opening_process import OpeningProcess, SessionReady
from engine.session.group.opening import OpenedPage
from engine.session.group.session import GroupSession
from engine.session.inputs import MessageArrived, SessionInput
from engine.session.transitions import SessionTransition
from tests.patience import PATIENCE_S
from tests.runtime.history.history_stage import Person, StoreNode, say_in_a_group

PAGES = 210
NEVER_MS = 1_000 * PATIENCE_S
TOGETHER_MS = "engine.runtime.conversation_runner.FED_TOGETHER_MS"


class HeldPages:
    """The first page comes once ``may_begin`` is set, the others once ``may_come`` is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("engine.runtime.history.backfill.LARGE_MESSAGES", 0)
        self.may_begin, self.may_come = asyncio.Event(), asyncio.Event()
        self.first_is_handled = asyncio.Event()
        self._pages = self._handled = 0
        handle = GroupSession.handle

        async def opened(
            _process: OpeningProcess,
            _group: GroupRecord,
            _messages: Sequence[HistoryMessage],
            *,
            session_ready: SessionReady,  # noqa: ARG001 - nobody has to be waited for
        ) -> OpenedPage:
            self._pages += 1
            may = self.may_begin if self._pages == 1 else self.may_come
            await may.wait()
            return ()

        def handled(
            session: GroupSession, input_: SessionInput, *, now_ms: UnixMs
        ) -> SessionTransition:
            transition = handle(session, input_, now_ms=now_ms)
            self._handled += isinstance(input_, MessageArrived)
            if self._handled >= MAX_PAGE_MESSAGES:
                self.first_is_handled.set()
            return transition

        monkeypatch.setattr(OpeningProcess, "open", opened)
        monkeypatch.setattr(GroupSession, "handle", handled)


@pytest.mark.parametrize("end", ["the rest comes", "somebody speaks", "time is over"])
async def test_what_came_is_durable_with_what_is_being_opened_or_once_somebody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(TOGETHER_MS, 1 if end == "time is over" else NEVER_MS)
    node = StoreNode(tmp_path, "store")
    address = await node.start()
    past = await say_in_a_group(tmp_path, PAGES, node)
    pages = HeldPages(monkeypatch)
    bob = await Person("Bob", tmp_path, peers=(address,)).start()
    written: list[int] = []

    def count_texts(writes: Sequence[StoreWrite]) -> None:
        texts = sum(isinstance(w, PutMessage) and w.message.text in past.said for w in writes)
        written.extend([texts] * (texts > 0))

    assert bob.store is not None
    bob.store.before_write = count_texts
    await bob.engine.groups.join(past.link)
    await bob.until_out(past.group)  # Whoever hears of that is one who waits, too.
    pages.may_begin.set()
    async with asyncio.timeout(PATIENCE_S):
        await pages.first_is_handled.wait()
        if end == "somebody speaks":
            await bob.say(past.group, 1)
        if end != "the rest comes":
            await bob.until_told(past.group, MAX_PAGE_MESSAGES // 2)
        await bob.engine.timeline.latest_page(past.group)  # The disk has a turn.
    pages.may_come.set()
    await bob.until_told(past.group, PAGES)
    assert (len(written) == 1) == (end == "the rest comes"), written
    await bob.stop()
    await node.stop()
