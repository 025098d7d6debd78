"""What one conversation has yet to hand to the network, where the network may be slow to take it.

A service node may take one message a second, and SDS goes on all the while: it rebroadcasts what
nobody has acknowledged yet, and states anew what it holds.  What was written goes first.  A copy of
a message that waits here anyway is left out, and a statement that says all that an earlier one said
takes its place.  Bounded; refuses to know how any of it is sent.
"""

import asyncio
from collections import deque

from engine.core.counters import Counters
from engine.core.sds.types import SendPurpose
from engine.session.types import Load, Publish

OUTBOX_SIZE = 500


class Outbox(asyncio.Queue[Publish | Load]):
    _written: deque[Publish]
    _others: deque[Publish | Load]
    _in_hand: Publish | Load | None
    """Taken, and not done yet."""

    def __init__(self, counters: Counters) -> None:
        super().__init__(OUTBOX_SIZE)
        self._counters = counters

    def put_nowait(self, item: Publish | Load) -> None:
        """Raises QueueFull."""
        if isinstance(item, Publish) and (self._copies(item) or self._takes_a_place(item)):
            self._counters.add("runner.outbox_spared")
        else:
            super().put_nowait(item)

    def task_done(self) -> None:
        self._in_hand = None
        super().task_done()

    def _copies(self, send: Publish) -> bool:
        """Whether what it sends again has not even been sent."""
        if send.purpose is not SendPurpose.RETRANSMISSION:
            return False
        what = _what(send)
        return any(
            isinstance(waiting, Publish) and _what(waiting) == what
            for waiting in (self._in_hand, *self._written, *self._others)
        )

    def _takes_a_place(self, send: Publish) -> bool:
        if not send.says_all:
            return False
        for place, waiting in enumerate(self._others):
            if isinstance(waiting, Publish) and waiting.says_all:
                self._others[place] = send
                return True
        return False

    # --- what asyncio.Queue leaves to those who derive from it ------------------------------------

    def _init(self, maxsize: int) -> None:
        del maxsize
        self._written = deque()
        self._others = deque()
        self._in_hand = None

    def qsize(self) -> int:
        return len(self._written) + len(self._others)

    def empty(self) -> bool:
        return not self.qsize()

    def full(self) -> bool:
        return self.qsize() >= OUTBOX_SIZE

    def _put(self, item: Publish | Load) -> None:
        if isinstance(item, Publish) and item.purpose is SendPurpose.CONTENT:
            self._written.append(item)
        else:
            self._others.append(item)

    def _get(self) -> Publish | Load:
        send = self._written.popleft() if self._written else self._others.popleft()
        self._in_hand = send
        return send


def _what(send: Publish) -> object:
    """The messages that it carries for themselves, ours or somebody else's."""
    return send.message_ids or send.repairs or send
