"""Ctrl+C and kill: the wish arrives while Qt waits, once, and nothing of it is left afterwards."""

import asyncio
import signal
import threading

import pytest
import qasync
from PySide6.QtWidgets import QApplication

from chat_app.interrupts import Interrupts, closed_or_interrupted
from tests.patience import PATIENCE_S


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_the_wait_for_the_window(
    qapp: QApplication, number: signal.Signals, status: int
) -> None:
    del qapp
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}

    async def scenario() -> int:
        with Interrupts() as interrupts:
            # From another thread, so that nothing but the signal itself wakes this one.
            sender = threading.Thread(target=signal.raise_signal, args=(number,))
            sender.start()
            await asyncio.wait_for(closed_or_interrupted(asyncio.Event(), interrupts), PATIENCE_S)
            sender.join()
            assert interrupts.asked.is_set()
            assert signal.getsignal(number) is signal.SIG_DFL
            return interrupts.status

    with asyncio.Runner(loop_factory=qasync.QEventLoop) as runner:
        inside = runner.run(scenario())
    assert inside == status
    assert {s: signal.getsignal(s) for s in before} == before


def test_a_closed_window_needs_no_signal(qapp: QApplication) -> None:
    del qapp

    async def scenario() -> int:
        with Interrupts() as interrupts:
            closed = asyncio.Event()
            closed.set()
            await asyncio.wait_for(closed_or_interrupted(closed, interrupts), PATIENCE_S)
            return interrupts.status

    with asyncio.Runner(loop_factory=qasync.QEventLoop) as runner:
        assert runner.run(scenario()) == 0
