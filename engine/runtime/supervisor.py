"""Restarts runners that fail, with a session freshly loaded from the store.

After a StorageError memory may be ahead of the disk, so the old session is discarded.  The user
sees a "not saved" notice while the error lasts.  Any other exception is a bug: it is logged with
its traceback (types and places, never contents), and the runner is restarted too, since a chat that
stops silently is worse.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from engine.core.counters import Counters
from engine.core.errors import StorageError
from engine.events import EngineEvent, NoticeCleared, NoticeLevel, NoticeRaised, NotSaved

FIRST_DELAY_MS = 250
LONGEST_DELAY_MS = 30_000
STORAGE_NOTICE = "storage"

logger = logging.getLogger(__name__)


async def keep_running(
    name: str,
    load: Callable[[], Awaitable[None]],
    run: Callable[[], Awaitable[None]],
    *,
    publish: Callable[[EngineEvent], None],
    counters: Counters,
) -> None:
    """Run ``load`` and ``run`` repeatedly until cancelled, with growing pauses after failures."""
    delay_ms = FIRST_DELAY_MS
    failed = False
    loop = asyncio.get_running_loop()
    while True:
        started_s = loop.time()
        try:
            await load()
            if failed:
                publish(NoticeCleared(key=STORAGE_NOTICE))
                failed, delay_ms = False, FIRST_DELAY_MS
            await run()
        except StorageError as error:
            failed = True
            counters.add("runner.storage_failed")
            logger.error(  # noqa: TRY400 - an expected failure: its type is enough
                "storage failed", extra={"error": type(error).__name__, "area": name}
            )
            publish(
                NoticeRaised(
                    key=STORAGE_NOTICE,
                    level=NoticeLevel.ERROR,
                    content=NotSaved(error=error),
                )
            )
        except Exception:
            counters.add("runner.crashed")
            logger.exception("a runner ended unexpectedly", extra={"area": name})
        if loop.time() - started_s > LONGEST_DELAY_MS / 1000:
            delay_ms = FIRST_DELAY_MS  # It ran well for a while: this is a new problem.
        await asyncio.sleep(delay_ms / 1000)
        delay_ms = min(2 * delay_ms, LONGEST_DELAY_MS)
