"""What one conversation has yet to hand to the network, where the network may be slow to take it.

A service node may take one message a second, and SDS goes on all the while: it rebroadcasts what
nobody has acknowledged yet, and states anew what it holds.  What was written goes first.  A copy of
a message that waits here anyway is left out, and a statement that says all that an earlier one said
takes its place.

Who is alone in a conversation has nobody to acknowledge anything: what the network took once is not
sent again then, or a founder who waits for the others would fill the archives with copies.  SDS
goes on counting, and from the first member on everything is sent as it says.

Bounded; refuses to know how any of it is sent.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from engine.core.counters import Counters
from engine.core.ids import MessageId
from engine.core.sds.types import SendPurpose
from engine.session.transitions import Load, Publish

OUTBOX_SIZE = 500
MAX_TAKEN = 10_000


class PublishQueue(asyncio.Queue[Publish | Load]):
    _written: deque[Publish]
    _others: deque[Publish | Load]
    _in_hand: Publish | Load | None
    """Taken, and not done yet."""

    def __init__(self, counters: Counters, *, alone: Callable[[], bool]) -> None:
        super().__init__(OUTBOX_SIZE)
        self._counters = counters
        self._alone = alone
        self._taken: dict[MessageId, None] = {}
        """While we are alone: what the network has taken.  Oldest first."""

    def taken(self, message_ids: Iterable[MessageId]) -> None:
        """A relay, a service node or a Store has these."""
        if not self._alone():
            self._taken.clear()
            return
        self._taken.update(dict.fromkeys(message_ids))
        while len(self._taken) > MAX_TAKEN:
            del self._taken[next(iter(self._taken))]

    def put_nowait(self, item: Publish | Load) -> None:
        """Raises QueueFull."""
        if isinstance(item, Publish) and (self._copies(item) or self._takes_a_place(item)):
            self._counters.add("runner.outbox_spared")
        elif isinstance(item, Publish) and self._is_for_nobody(item):
            self._counters.add("runner.sent_to_nobody_again")
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

    def _is_for_nobody(self, send: Publish) -> bool:
        return (
            send.purpose is SendPurpose.RETRANSMISSION
            and bool(send.message_ids)
            and self._alone()
            and all(message_id in self._taken for message_id in send.message_ids)
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
