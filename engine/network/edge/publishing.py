"""Publishes through service nodes (19/WAKU2-LIGHTPUSH), to several at once.

The number of nodes is the redundancy.  If a node refuses or does not answer in time, the next one
is asked.  The caller waits until that many nodes have accepted the message, or until one has and a
moment has passed; the remaining requests end by themselves.  If all nodes refuse for now (too many
requests), publishing is retried until a time-out.

A node that pushes a message back to us as its subscriber has accepted it, whatever it answers.
nwaku without a relay peer answers that there are no peers, after it has archived and pushed the
message.  Subscriptions are handled in ``subscriptions``.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from engine.codec.waku_lightpush import PushResponse, PushStatus
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError, TransportError
from engine.core.ids import PubsubTopic, WakuHash
from engine.core.problems import NodeFailed, NodeFault
from engine.core.waku import WakuMessage
from engine.network.edge.service_nodes import Service, ServiceNode, ServiceNodes
from engine.network.edge.settings import EdgePace
from engine.network.libp2p.ports import PeerId
from engine.network.owned_tasks import OwnedTasks
from engine.network.waku.lightpush.client import LightpushClient

MAX_IN_FLIGHT: Final = 6
"""Open requests to one node.  Service nodes refuse more than a few at once."""
_ABOUT_THE_MESSAGE: Final = frozenset(
    {
        PushStatus.BAD_REQUEST,
        PushStatus.PAYLOAD_TOO_LARGE,
        PushStatus.INVALID_MESSAGE,
        PushStatus.UNSUPPORTED_TOPIC,
    }
)
_BUSY: Final = frozenset({PushStatus.TOO_MANY_REQUESTS, PushStatus.UNAVAILABLE})


@dataclass(slots=True, eq=False)
class _Attempt:
    """One message being published.  Each node is asked once, unless it was busy."""

    topic: PubsubTopic
    message: WakuMessage
    waku_hash: WakuHash
    comes_back: bool
    deadline_s: float
    accepted_by: set[PeerId] = field(default_factory=set)
    """Nodes that said so, or pushed it back."""
    pushed_back: asyncio.Event = field(default_factory=asyncio.Event)
    asked: set[PeerId] = field(default_factory=set)
    pending: dict[asyncio.Task[None], ServiceNode] = field(default_factory=dict)
    slow: set[asyncio.Task[None]] = field(default_factory=set)
    users: int = 0
    """The caller and the requests, which may end after it."""

    @property
    def accepted(self) -> int:
        return len(self.accepted_by)

    @property
    def hopeful(self) -> int:
        """Nodes that accepted it, or were asked and are not slow yet."""
        waiting = {node.peer_id for task, node in self.pending.items() if task not in self.slow}
        return len(self.accepted_by | waiting)


class Publishing:
    """Create a new one for every start."""

    def __init__(
        self,
        nodes: ServiceNodes,
        client: LightpushClient,
        *,
        pace: EdgePace,
        counters: Counters,
    ) -> None:
        self._nodes = nodes
        self._client = client
        self._pace = pace
        self._counters = counters
        self._tasks = OwnedTasks(counters, failed="edge.task_failed")
        self._attempts: dict[WakuHash, _Attempt] = {}
        """As many as there are callers and requests."""
        self._freed = asyncio.Event()

    async def stop(self) -> None:
        """Call before the host stops."""
        await self._tasks.cancel_all()

    def reconsider(self) -> None:
        """The nodes or their state changed: wake the callers that wait for one."""
        self._freed.set()

    def pushed_back(self, waku_hash: WakuHash, peer_id: PeerId) -> None:
        """A service node has pushed a message to us; perhaps it is one of ours."""
        attempt = self._attempts.get(waku_hash)
        if attempt is not None:
            attempt.accepted_by.add(peer_id)
            attempt.pushed_back.set()
            self._freed.set()

    async def publish(
        self, topic: PubsubTopic, message: WakuMessage, *, waku_hash: WakuHash, comes_back: bool
    ) -> int:
        """Return how many nodes accepted the message.

        ``comes_back``: we are subscribed to its topic.
        """
        deadline_s = _now_s() + self._pace.publish_timeout_s
        attempt = _Attempt(topic, message, waku_hash, comes_back, deadline_s)
        with self._using(attempt):
            await self._until_accepted(attempt)
        return attempt.accepted

    @contextmanager
    def _using(self, attempt: _Attempt) -> Iterator[None]:
        """Listen for the message until nobody needs to know any more."""
        self._attempts[attempt.waku_hash] = attempt
        attempt.users += 1
        try:
            yield
        finally:
            attempt.users -= 1
            if not attempt.users and self._attempts.get(attempt.waku_hash) is attempt:
                del self._attempts[attempt.waku_hash]

    async def _until_accepted(self, attempt: _Attempt) -> None:
        while attempt.accepted < self._pace.redundancy:
            self._ask_more(attempt)
            if attempt.accepted and attempt.hopeful == attempt.accepted:
                break  # the others are slow, and there are no more
            if attempt.pending:
                await self._wait(attempt)
            elif not await self._wait_for_a_node(attempt):
                break

    def _ask_more(self, attempt: _Attempt) -> None:
        for node in self._nodes.usable(Service.LIGHTPUSH):
            if attempt.hopeful >= self._pace.redundancy:
                return
            if node.peer_id in attempt.asked or node.in_flight >= MAX_IN_FLIGHT or node.in_doubt:
                continue
            attempt.asked.add(node.peer_id)
            node.in_flight += 1
            task = self._tasks.spawn(self._push(node, attempt), name=f"push to {node.name}")
            attempt.pending[task] = node

    async def _wait(self, attempt: _Attempt) -> None:
        """Wait for news from the nodes asked.  Without any, they are slow."""
        done, _ = await asyncio.wait(
            attempt.pending, timeout=self._pace.hedge_s, return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            del attempt.pending[task]
            attempt.slow.discard(task)
            if not task.cancelled():
                task.result()
        if done:
            return
        for task, node in attempt.pending.items():
            if task not in attempt.slow:
                attempt.slow.add(task)
                self._counters.add("edge.push_slow")
                slow = NodeFailed(NodeFault.SLOW, Service.LIGHTPUSH)
                self._nodes.failed(node, Service.LIGHTPUSH, slow)

    async def _wait_for_a_node(self, attempt: _Attempt) -> bool:
        """Wait for a node to recover or become less busy; False if there is none to wait for."""
        left = [
            node
            for node in self._nodes.offering(Service.LIGHTPUSH)
            if node.peer_id not in attempt.asked
        ]
        if not left:
            return False
        rested = (node.rests[Service.LIGHTPUSH].until_s for node in left)
        until_s = min((s for s in rested if s > _now_s()), default=attempt.deadline_s)
        until_s = min(until_s, attempt.deadline_s)
        self._freed.clear()
        try:
            async with asyncio.timeout_at(until_s):
                await self._freed.wait()
        except TimeoutError:
            return _now_s() < attempt.deadline_s
        return True

    # --- at one node ----------------------------------------------------------------------------

    async def _push(self, node: ServiceNode, attempt: _Attempt) -> None:
        with self._using(attempt):
            try:
                response = await self._client.push(node.peer_id, attempt.topic, attempt.message)
            except RemoteProtocolError as error:
                self._failed(node, NodeFault.WRONG_ANSWER, error.reason)
                return
            except TransportError:
                self._failed(node, NodeFault.SILENT)
                return
            finally:
                node.in_flight -= 1
                self._freed.set()
            if response.status_code == PushStatus.NO_PEERS and attempt.comes_back:
                await self._wait_for_echo(node, attempt)
            self._judge(node, attempt, response)

    async def _wait_for_echo(self, node: ServiceNode, attempt: _Attempt) -> None:
        """The node gets no more messages until it is known whether it takes them.

        Meanwhile this message may go to another.
        """
        if node.peer_id in attempt.accepted_by:
            return
        self._counters.add("edge.echo_awaited")
        attempt.slow |= {task for task, asked in attempt.pending.items() if asked is node}
        node.in_doubt += 1
        try:
            async with asyncio.timeout(self._pace.echo_s):
                while node.peer_id not in attempt.accepted_by:
                    attempt.pushed_back.clear()
                    await attempt.pushed_back.wait()
        except TimeoutError:
            pass  # it has not accepted the message
        finally:
            node.in_doubt -= 1
            self._freed.set()

    def _failed(self, node: ServiceNode, fault: NodeFault, cause: str = "") -> None:
        if node.peer_id in self._nodes.connected():
            problem = NodeFailed(fault, Service.LIGHTPUSH, cause)
            self._nodes.failed(node, Service.LIGHTPUSH, problem)

    def _judge(self, node: ServiceNode, attempt: _Attempt, response: PushResponse) -> None:
        status = response.status_code
        if status == PushStatus.SUCCESS or node.peer_id in attempt.accepted_by:
            attempt.accepted_by.add(node.peer_id)
            self._nodes.succeeded(node, Service.LIGHTPUSH)
            return
        if status in _ABOUT_THE_MESSAGE:
            self._counters.add("edge.message_refused")
            self._nodes.troubled(node, self._problem(NodeFault.MESSAGE_REFUSED, response))
            return
        busy = status in _BUSY
        if busy:
            attempt.asked.discard(node.peer_id)
        problem = self._problem(NodeFault.BUSY, response)
        self._nodes.failed(node, Service.LIGHTPUSH, problem, busy=busy)

    @staticmethod
    def _problem(fault: NodeFault, response: PushResponse) -> NodeFailed:
        cause, said = str(response.status_code), (response.status_desc or "").strip()
        return NodeFailed(fault, Service.LIGHTPUSH, cause, said)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
