"""Turns at querying Stores: a few conversations query at a time, to spare the Stores.

A conversation holds its turn while it has queries to make.  The one that the user waits for does
not wait for others.
"""

import asyncio


class QuerySlot:
    """One conversation's hold on the ``slots`` that all share."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self._has_slot = self._is_active = False
        self.is_urgent = asyncio.Event()
        """Set while the user waits for this conversation."""

    async def take(self) -> None:
        """Wait for a slot, unless urgent.  Further calls return immediately until ``rest``."""
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
        """Release the slot: there is nothing to ask now."""
        self._is_active = False
        self.is_urgent.clear()
        if self._has_slot:
            self._has_slot = False
            self._slots.release()
