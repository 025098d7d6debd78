"""Parts of the window that show much at once take turns, so that no frame has to paint two of them.

Several may learn of the same event: the delivery view's graph, its matrix and charts, the
inspector.  Each asks for a frame of its own before it shows what is new, and gets the next one that
nobody has asked for.  What is shown comes a moment later for that, and scrolling beside it stays
smooth.
"""

import asyncio
import time
from typing import Final

_APART_S: Final = 0.04
"""From one part's frame to the next one's: enough for what else happens in between."""


class _Taken:
    until_s = 0.0


def ms_to_own_frame() -> int:
    """How long to wait before showing something; 0 if nobody else is about to."""
    now_s = time.monotonic()
    begin_s = min(max(now_s, _Taken.until_s), now_s + 1.0)
    _Taken.until_s = begin_s + _APART_S
    return round((begin_s - now_s) * 1_000)


async def own_frame() -> None:
    """Waits until then."""
    wait_ms = ms_to_own_frame()
    if wait_ms:
        await asyncio.sleep(wait_ms / 1_000)
