"""Queues what one conversation still has to hand to the network, which may be slow to take it.

A service node may take one message a second, while SDS keeps rebroadcasting unacknowledged messages
and restating its holdings.  So new messages go first.  A copy of a message that is already queued
is left out, and a statement that includes everything an earlier one said replaces it.  That one
types is not said any more once the text goes ahead of it: those who hear it later believe it.

A member who is alone in a group gets no acknowledgements.  What the network took once is then not
sent again, or a founder waiting for others would fill the archives with copies.  SDS keeps
counting, and once there is another member everything is sent as usual.

The queue is bounded.  The runner does the sending.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from engine.core.counters import Counters
from engine.core.ids import MessageId
from engine.core.sds.vocabulary import SendPurpose
from engine.session.transitions import Load, Publish

OUTBOX_SIZE = 500
MAX_TAKEN = 10_000


class PublishQueue(asyncio.Queue[Publish | Load]):
    _written: deque[Publish]
    _others: deque[Publish | Load]
    _in_hand: Publish | Load | None
    """Taken from the queue and being sent."""

    def __init__(self, counters: Counters, *, alone: Callable[[], bool]) -> None:
        super().__init__(OUTBOX_SIZE)
        self._counters = counters
        self._alone = alone
        self._taken: dict[MessageId, None] = {}
        """Message ids that the network took while we are alone, oldest first."""

    def taken(self, message_ids: Iterable[MessageId]) -> None:
        """Note that a relay, a service node or a Store has these messages."""
        if not self._alone():
            self._taken.clear()
            return
        self._taken.update(dict.fromkeys(message_ids))
        while len(self._taken) > MAX_TAKEN:
            del self._taken[next(iter(self._taken))]

    def put_nowait(self, item: Publish | Load) -> None:
        """Queue an item unless it is redundant.  Raises QueueFull."""
        if isinstance(item, Publish) and (self._copies(item) or self._takes_a_place(item)):
            self._counters.add("runner.outbox_spared")
        elif isinstance(item, Publish) and self._is_for_nobody(item):
            self._counters.add("runner.sent_to_nobody_again")
        else:
            super().put_nowait(item)
            if isinstance(item, Publish) and item.purpose is SendPurpose.CONTENT:
                self._drop_overtaken()

    def _drop_overtaken(self) -> None:
        for waiting in tuple(self._others):
            if isinstance(waiting, Publish) and waiting.says_typing:
                self._others.remove(waiting)
                super().task_done()
                self._counters.add("runner.outbox_spared")

    def task_done(self) -> None:
        self._in_hand = None
        super().task_done()

    def _copies(self, send: Publish) -> bool:
        """Whether it repeats a message that is still queued."""
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

    # --- overrides of asyncio.Queue ---------------------------------------------------------------

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
    """Identifies the messages that it carries, ours or repairs."""
    return send.message_ids or send.repairs or send
