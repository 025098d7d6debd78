"""One Qt application on one qasync loop: starting it, the errors nobody caught, and its end.

qasync's ways, each learnt the hard way: Qt must not quit by itself when the last window closes
(pending tasks would be torn out of their loop); errors are caught in two places, Python's hook for
slots and the loop's handler for tasks; and no dialog may spin a loop of its own.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from types import TracebackType

from PySide6.QtWidgets import QApplication

from chat_app.allocator import return_large_blocks
from chat_app.display import require_display
from chat_app.main_thread_gc import MainThreadCollector
from chat_app.prompt_loop import PromptLoop
from engine.core.errors import TransportError

SWITCH_INTERVAL_S = 0.0005

logger = logging.getLogger(__name__)


def run_on_qt(main: Callable[[], Coroutine[object, object, int]]) -> int:
    """Make the application and its loop, run ``main`` to its end, take both down.

    Raises TransportError where there is no display, or none any more.
    """
    require_display()
    return_large_blocks()
    if sys.platform.startswith(("linux", "freebsd", "openbsd", "netbsd")):
        from chat_app.silent_bus import leave_silent_bus  # noqa: PLC0415 - where there is D-Bus

        leave_silent_bus()
    # The storage thread must not wait Python's usual 5 ms for a paint in Python to let it go on.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    application = QApplication.instance() or _new_application()
    if not isinstance(application, QApplication):
        raise TransportError("another Qt application without windows is running")
    application.setApplicationName("causerie")
    application.setApplicationDisplayName("Causerie")
    application.setDesktopFileName("causerie")
    application.setQuitOnLastWindowClosed(False)
    sys.excepthook = _log_uncaught
    collector = MainThreadCollector()
    try:
        with asyncio.Runner(loop_factory=lambda: _loop(application)) as runner:
            return runner.run(main())
    except RuntimeError as error:
        if "Event loop stopped" not in str(error):
            raise
        raise TransportError("the display went away; what was saved is safe") from error
    finally:
        collector.stop()


def _new_application() -> QApplication:
    if sys.platform == "darwin":
        from chat_app.opened_links import LinkedApplication  # noqa: PLC0415 - macOS only

        return LinkedApplication(sys.argv[:1])
    return QApplication(sys.argv[:1])


def _loop(application: QApplication) -> PromptLoop:
    loop = PromptLoop(application)
    loop.set_exception_handler(_log_task_error)
    return loop


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    logger.error("an error escaped", exc_info=(kind, error, trace))


def _log_task_error(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    del loop
    error = context.get("exception")
    if isinstance(error, BaseException):
        logger.error("a task failed", exc_info=(type(error), error, error.__traceback__))
    else:
        logger.error("the loop complained")
