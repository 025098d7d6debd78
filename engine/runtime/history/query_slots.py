"""Few conversations query Stores at once, so that one device is a modest guest.

A conversation takes a slot while it has something to ask.  One that the user waits for goes
without a slot.
"""

import asyncio
from typing import Final

AT_ONCE: Final = 2


class QuerySlot:
    """One conversation's share of the ``slots`` that all conversations take turns in."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self._has_slot = self._is_active = False
        self.is_urgent = asyncio.Event()
        """Set while somebody waits at the window."""

    async def take(self) -> None:
        """Return once there is a slot, or at once if it is urgent; again only after ``rest``."""
        if self._is_active:
            return
        self._is_active = True
        if self.is_urgent.is_set():
            return
        slot = asyncio.ensure_future(self._slots.acquire())
        urgent = asyncio.ensure_future(self.is_urgent.wait())
        try:
            await asyncio.wait((slot, urgent), return_when=asyncio.FIRST_COMPLETED)
        finally:
            urgent.cancel()
            if slot.done() and not slot.cancelled():
                self._has_slot = True
            else:
                slot.cancel()
            await asyncio.gather(slot, urgent, return_exceptions=True)

    def rest(self) -> None:
        """There is nothing to ask now: the slot is somebody else's."""
        self._is_active = False
        self.is_urgent.clear()
        if self._has_slot:
            self._has_slot = False
            self._slots.release()
