"""The Qt loop: order as in asyncio, Qt is not starved, threads and errors find their way."""

import asyncio
import threading
from collections.abc import Callable, Coroutine

import pytest
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from chat_app.prompt_loop import PromptLoop
from tests.patience import PATIENCE_S


@pytest.fixture
def run(qapp: QApplication) -> Callable[[Callable[[], Coroutine[object, object, None]]], None]:
    def run_it(scenario: Callable[[], Coroutine[object, object, None]]) -> None:
        with asyncio.Runner(loop_factory=lambda: PromptLoop(qapp)) as runner:
            runner.run(scenario())

    return run_it


Run = Callable[[Callable[[], Coroutine[object, object, None]]], None]


def test_callbacks_run_in_order_also_those_that_callbacks_add(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        seen: list[int] = []
        done = loop.create_future()

        def first() -> None:
            seen.append(1)
            loop.call_soon(seen.append, 3)
            loop.call_soon(done.set_result, None)

        loop.call_soon(first)
        loop.call_soon(seen.append, 2)
        await done
        assert seen == [1, 2, 3]

    run(scenario)


def test_a_cancelled_callback_does_not_run(run: Run) -> None:
    async def scenario() -> None:
        seen: list[str] = []
        handle = asyncio.get_running_loop().call_soon(seen.append, "never")
        handle.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert seen == []

    run(scenario)


def test_callbacks_that_never_end_do_not_starve_qt(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        fired = loop.create_future()

        def again() -> None:
            if not fired.done():
                loop.call_soon(again)

        again()
        QTimer.singleShot(0, lambda: fired.set_result("painted"))
        assert await asyncio.wait_for(fired, PATIENCE_S) == "painted"

    run(scenario)


def test_other_threads_and_timers_wake_it(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        from_thread = loop.create_future()
        threading.Thread(
            target=loop.call_soon_threadsafe, args=(from_thread.set_result, "thread")
        ).start()
        assert await asyncio.wait_for(from_thread, PATIENCE_S) == "thread"
        assert await asyncio.to_thread(threading.get_ident) != threading.get_ident()
        later = loop.create_future()
        loop.call_later(0.001, later.set_result, "timer")
        assert await asyncio.wait_for(later, PATIENCE_S) == "timer"

    run(scenario)


def test_an_error_in_a_callback_goes_to_the_handler_and_the_rest_goes_on(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        errors: list[object] = []
        loop.set_exception_handler(lambda _loop, context: errors.append(context["exception"]))
        loop.call_soon(lambda: 1 // 0)
        after = loop.create_future()
        loop.call_soon(after.set_result, "still here")
        assert await asyncio.wait_for(after, PATIENCE_S) == "still here"
        assert [type(error) for error in errors] == [ZeroDivisionError]

    run(scenario)


def test_a_step_that_turns_qts_loop_meets_no_other_step(run: Run) -> None:
    """Asyncio would refuse the inner one, and its task would stand still for ever."""

    async def other(seen: list[str]) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            seen.append("a step")

    async def scenario() -> None:
        seen: list[str] = []
        task = asyncio.create_task(other(seen))
        nested = QEventLoop()
        QTimer.singleShot(20, nested.quit)
        nested.exec()
        assert seen == []
        await asyncio.wait_for(task, PATIENCE_S)
        assert seen == ["a step"] * 3

    run(scenario)
