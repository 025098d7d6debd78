"""Subscribes our content topics at several service nodes at once (12/WAKU2-FILTER).

Each chosen node has a task that subscribes missing topics, sends pings, and renews subscriptions
that the node has forgotten (404) or does not serve although another node does.  When many topics
come or go one after another, they share requests, because nodes limit those.  If a node refuses or
does not answer, it rests, and another immediately takes its place.  Each message is delivered once,
by the first push.  ``service_nodes`` chooses the nodes, and ``publishing`` publishes.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError, TransportError
from engine.core.ids import ContentTopic, PubsubTopic, WakuHash
from engine.core.problems import NodeFailed, NodeFault
from engine.network.edge.push_record import PushRecord
from engine.network.edge.service_nodes import Service, ServiceNode, ServiceNodes
from engine.network.edge.settings import EdgePace
from engine.network.waku.filter.client import FilterAnswer, FilterClient, Pushed
from engine.network.waku.token_buckets import TokenBuckets

if TYPE_CHECKING:
    from engine.network.libp2p.ports import PeerId

TOPICS_PER_REQUEST: Final = 30
"""Some nodes accept no more."""
_NO_SUBSCRIPTION: Final = 404
_TOO_MANY_REQUESTS: Final = 429
_OVERDUE_SLICE_S: Final = 0.5
"""Overdue messages are checked together this often, because a burst has thousands."""

Wanted = tuple[PubsubTopic, ContentTopic]


class _RefusedError(Exception):
    """The node refused."""


@dataclass(slots=True, eq=False)
class _Holder:
    """A node that holds our subscriptions, or soon will."""

    node: ServiceNode
    refresh_gap_s: float
    held: set[Wanted] = field(default_factory=set)
    complete_since_s: float | None = None
    """Since when it has held all subscriptions."""
    refreshed_s: float = 0.0
    pings: int = 0
    served: bool = False
    """Whether it has accepted a request."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Subscriptions:
    """Create a new one for every start."""

    def __init__(  # noqa: PLR0913 - each is a different thing, and all are needed
        self,
        nodes: ServiceNodes,
        client: FilterClient,
        *,
        pace: EdgePace,
        heard: PushRecord,
        deliver: Callable[[Pushed], None],
        changed: Callable[[], None],
        counters: Counters,
    ) -> None:
        """``changed`` is called when other nodes than before hold the subscriptions."""
        self._nodes = nodes
        self._client = client
        self._pace = pace
        self._heard = heard
        self._deliver = deliver
        self._changed = changed
        self._counters = counters
        self._requests = TokenBuckets(
            per_second=1 / pace.filter_interval_s, burst=pace.filter_burst, clock_s=_now_s
        )
        self._wanted: set[Wanted] = set()
        self._holders: dict[PeerId, _Holder] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._watching = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="edge subscriptions")

    async def stop(self) -> None:
        """Call before the host stops."""
        tasks = [holder.task for holder in self._holders.values()] + [self._task]
        self._holders.clear()
        self._task = None
        running = [task for task in tasks if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def want(self, wanted: set[Wanted]) -> None:
        self._wanted = set(wanted)
        for holder in self._holders.values():
            self._judge(holder)
            holder.wake.set()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is subscribed."""
        return not self._wanted

    def complete(self) -> list[ServiceNode]:
        """The nodes that hold all subscriptions."""
        return [h.node for h in self._holders.values() if h.complete_since_s is not None]

    def reconsider(self) -> None:
        """The nodes or their state changed."""
        self._wake.set()

    def take(self, pushed: Pushed) -> None:
        """Called by the filter client."""
        now_s = _now_s()
        if self._heard.note(pushed.message_hash, pushed.peer_id, now_s=now_s):
            self._deliver(pushed)
        else:
            self._counters.add("edge.push_duplicate")
        self._wake_for_overdue()

    def note_own(self, waku_hash: WakuHash, *, comes_back: bool) -> None:
        """Call before publishing.  ``comes_back``: the message is of a subscribed topic."""
        self._heard.note_own(waku_hash, now_s=_now_s())
        if comes_back:
            self._wake_for_overdue()
        else:
            self._heard.expect_no_more(waku_hash)

    def note_kept(self, waku_hash: WakuHash) -> None:
        """No node accepted the message, so none will push it."""
        self._heard.expect_no_more(waku_hash)

    # --- who holds ------------------------------------------------------------------------------

    def _wake_for_overdue(self) -> None:
        """Wake the task, which sleeps without limit while it has nothing to watch."""
        if not self._watching:
            self._watching = True
            self._wake.set()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            self._ask_again_where_missed()
            self._choose()
            due_s = self._next_due_s()
            self._watching = self._heard.next_due_s() is not None
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due_s):
                    await self._wake.wait()

    def _next_due_s(self) -> float | None:
        overdue_s = self._heard.next_due_s()
        times = [None if overdue_s is None else overdue_s + _OVERDUE_SLICE_S]
        if len(self._holders) < self._pace.redundancy:
            times.append(self._nodes.next_usable_s(Service.FILTER))
        return min((time_s for time_s in times if time_s is not None), default=None)

    def _choose(self) -> None:
        connected = self._nodes.connected()
        for peer_id in [each for each in self._holders if each not in connected]:
            self._drop(self._holders[peer_id])
        for node in self._nodes.usable(Service.FILTER):
            if len(self._holders) >= self._pace.redundancy:
                break
            if node.peer_id not in self._holders:
                holder = _Holder(node, self._pace.refresh_first_s)
                self._holders[node.peer_id] = holder
                holder.task = asyncio.create_task(
                    self._hold(holder), name=f"edge filter at {node.name}"
                )

    def _drop(self, holder: _Holder) -> None:
        if self._holders.get(holder.node.peer_id) is holder:
            del self._holders[holder.node.peer_id]
        if holder.task is not None and holder.task is not asyncio.current_task():
            holder.task.cancel()
        self._changed()

    def _ask_again_where_missed(self) -> None:
        now_s = _now_s()
        for since_s, by in self._heard.overdue(now_s=now_s):
            for holder in self._holders.values():
                complete_since_s = holder.complete_since_s
                if complete_since_s is None or complete_since_s > since_s:
                    continue
                if holder.node.peer_id in by:
                    holder.refresh_gap_s = self._pace.refresh_first_s
                elif now_s >= holder.refreshed_s + holder.refresh_gap_s or not holder.refreshed_s:
                    self._counters.add("edge.push_missed")
                    holder.refreshed_s = now_s
                    holder.refresh_gap_s = min(2 * holder.refresh_gap_s, self._pace.refresh_cap_s)
                    holder.held.clear()
                    holder.wake.set()

    # --- at one node ----------------------------------------------------------------------------

    async def _hold(self, holder: _Holder) -> None:
        node = holder.node
        try:
            while True:
                holder.wake.clear()
                await self._subscribe_missing(holder)
                self._judge(holder)
                await self._unsubscribe_surplus(holder)
                self._judge(holder)
                try:
                    async with asyncio.timeout(self._nodes.jittered(self._pace.ping_interval_s)):
                        await holder.wake.wait()
                except TimeoutError:
                    await self._ping(holder)
        except _RefusedError as error:
            self._failed(holder, NodeFault.SUBSCRIPTIONS_REFUSED, said=str(error))
        except RemoteProtocolError as error:
            self._failed(holder, NodeFault.WRONG_ANSWER, cause=error.reason)
        except TransportError:
            if node.peer_id in self._nodes.connected():
                self._failed(holder, NodeFault.SILENT)
            else:
                self._drop(holder)
                self._wake.set()

    def _failed(
        self, holder: _Holder, fault: NodeFault, *, cause: str = "", said: str = ""
    ) -> None:
        problem = NodeFailed(fault, Service.FILTER, cause, said)
        self._nodes.failed(holder.node, Service.FILTER, problem)
        self._drop(holder)
        self._wake.set()

    async def _subscribe_missing(self, holder: _Holder) -> None:
        while self._wanted - holder.held:
            await self._wait_to_share(holder, self._wanted - holder.held)
            for topic, content_topics in islice(_batches(self._wanted - holder.held), 1):
                await self._subscribe(holder, topic, content_topics)
                holder.held |= {(topic, content_topic) for content_topic in content_topics}
        self._nodes.succeeded(holder.node, Service.FILTER)

    async def _wait_to_share(self, holder: _Holder, waiting: set[Wanted]) -> None:
        """Let more topics come, if there were many requests and the next one is not full."""
        may_go = self._requests.take(holder.node.peer_id)
        _, content_topics = next(_batches(waiting))
        if not may_go and len(content_topics) < TOPICS_PER_REQUEST:
            self._counters.add("edge.filter_request_shared")
            await asyncio.sleep(self._pace.filter_interval_s)
            self._requests.take(holder.node.peer_id)

    async def _subscribe(
        self, holder: _Holder, topic: PubsubTopic, content_topics: Sequence[ContentTopic]
    ) -> None:
        """A node that accepted a request but is busy now is asked once more, later."""
        answer = await self._client.subscribe(holder.node.peer_id, topic, content_topics)
        if answer.status_code == _TOO_MANY_REQUESTS and holder.served:
            self._counters.add("edge.subscribe_paced")
            await asyncio.sleep(self._pace.busy_rest_s)
            answer = await self._client.subscribe(holder.node.peer_id, topic, content_topics)
        if not answer.accepted:
            raise _RefusedError(_words(answer))
        holder.served = True

    async def _unsubscribe_surplus(self, holder: _Holder) -> None:
        while holder.held - self._wanted:
            await self._wait_to_share(holder, holder.held - self._wanted)
            for topic, content_topics in islice(_batches(holder.held - self._wanted), 1):
                holder.held -= {(topic, content_topic) for content_topic in content_topics}
                answer = await self._client.unsubscribe(holder.node.peer_id, topic, content_topics)
                if not answer.accepted:  # it pushes what nobody wants, or has forgotten us
                    self._counters.add("edge.unsubscribe_refused")

    async def _ping(self, holder: _Holder) -> None:
        if not holder.held:
            return
        holder.pings += 1
        if holder.pings % self._pace.pings_per_renewal == 0:
            holder.held.clear()
            return
        answer = await self._client.ping(holder.node.peer_id)
        if answer.status_code == _NO_SUBSCRIPTION:
            self._counters.add("edge.subscription_lost")
            holder.held.clear()
            self._judge(holder)
        elif not answer.accepted:
            raise _RefusedError(_words(answer))

    def _judge(self, holder: _Holder) -> None:
        is_complete = self._wanted <= holder.held
        if is_complete != (holder.complete_since_s is not None):
            holder.complete_since_s = _now_s() if is_complete else None
            self._changed()


def _words(answer: FilterAnswer) -> str:
    return f"{answer.status_code} {answer.status_desc}".strip()


def _batches(wanted: set[Wanted]) -> Iterator[tuple[PubsubTopic, Sequence[ContentTopic]]]:
    by_topic: dict[PubsubTopic, list[ContentTopic]] = {}
    for topic, content_topic in sorted(wanted):
        by_topic.setdefault(topic, []).append(content_topic)
    for topic, content_topics in by_topic.items():
        left = iter(content_topics)
        while batch := tuple(islice(left, TOPICS_PER_REQUEST)):
            yield topic, batch


def _now_s() -> float:
    return asyncio.get_running_loop().time()
