"""11/WAKU2-RELAY over a libp2p host: the driver of the gossipsub router.

It gives the router its clock, timer and streams.  To each peer, one outbound stream carries RPCs
with length prefixes (``session``); the peer's RPCs arrive on a stream that it opened.

A peer's new messages are read at a bounded rate: a flood from one leaves room for the others.

Back-pressure: a task that fills a queue beyond its soft limit waits, whether it reads or publishes,
so a burst slows its source down instead of being lost.  It waits only while the peer accepts bytes.
A reader gives up soon; otherwise, in a cycle of nodes, each would wait for the next to read.  A
publisher waits longer, because it may be waiting for such a reader.  Nothing waits for a peer that
was given up until it has caught up.  Messages beyond a peer's hard limit are dropped and counted.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from engine.codec.gossipsub import MAX_RPC_BYTES, PublishedMessage, Rpc, decode_rpc, encode_rpc
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError, TransportError
from engine.core.ids import PubsubTopic
from engine.network.libp2p.ports import Host, PeerId, RemotePeer, Stream
from engine.network.waku.framing import FrameDecoder, encode_frame
from engine.network.waku.gossip.router import GossipRouter
from engine.network.waku.gossip.vocabulary import (
    PEER,
    DeadlineReached,
    GossipsubSettings,
    Input,
    Join,
    Leave,
    MalformedReceived,
    MessageDelivered,
    PeerGone,
    PeerReady,
    Publish,
    RpcReceived,
    SendControl,
    SendMessage,
    Transition,
)
from engine.network.waku.peer_copies import goes_on
from engine.network.waku.protocols import RELAY_PROTOCOL
from engine.network.waku.relay.session import RelaySession, SessionSettings
from engine.network.waku.relay.taken import Progress
from engine.network.waku.rpc_slices import rpc_slices
from engine.network.waku.token_buckets import TokenBuckets
from engine.network.waku.validation import validate_relayed
from engine.network_views import RelayView

_READ_BYTES = 64 * 1024
_FRAMES_PER_SLICE = 32
MAX_INBOUND_STREAMS = 4
"""Per peer; the oldest is dropped."""


class RelaySettings(Struct, frozen=True, kw_only=True):
    gossipsub: GossipsubSettings = PEER
    session: SessionSettings = field(default_factory=SessionSettings)
    patience_s: float = 2.0
    """How long a publisher waits for a full peer that accepts nothing."""
    longest_wait_s: float = 2.0
    """How long a publisher waits for all peers together, however slowly they read."""
    reopen_s: float = 10.0
    """Wait before a new session with a peer that stays connected after its session gave up."""
    goodbye_s: float = 0.5
    """How long peers have to take queued messages when the node stops."""
    stuck_s: float = 0.02
    """How long a reader waits for a full peer that accepts nothing."""
    new_bytes_per_s: float = 2 * 1024 * 1024
    """How much that is new is read from all peers per second, in the long run ..."""
    new_bytes_burst: float = 4 * 1024 * 1024
    """... and at once.  Peers that have more to say wait; duplicates are free."""
    own_share: float = 1 / 32
    """What each peer may have of both, however much the others say."""
    longest_pace_s: float = 20.0
    """No peer waits longer.  Its share makes up for a whole RPC in this time."""


_ALL: Final = PeerId("")
"""Names the bucket that all peers share."""


class RelayObserver(Protocol):
    """Called on the loop; must neither block nor raise."""

    def message_delivered(self, delivered: MessageDelivered, /) -> None:
        """A valid message of a joined topic, once."""

    def membership_changed(self) -> None:
        """The peers changed: ask for them again."""


class WakuRelay:
    """One node's relay.  Create a new one for every start."""

    def __init__(  # noqa: PLR0913 - each is a different thing, and all are needed
        self,
        host: Host,
        *,
        settings: RelaySettings,
        random: Random,
        counters: Counters,
        observer: RelayObserver,
        room_beyond: Callable[[PeerId], Awaitable[None]] | None = None,
    ) -> None:
        """``room_beyond`` waits briefly for those to which the observer passes messages on.

        A reader calls it after each slice with the peer that it reads from, so that back-pressure
        from there reaches that peer.
        """
        self._room_beyond = room_beyond
        self._host = host
        self._settings = settings
        self._counters = counters
        self._observer = observer
        self._router = GossipRouter(
            settings=settings.gossipsub,
            validate=validate_relayed,
            random=random,
            counters=counters,
        )
        self._remotes: dict[PeerId, RemotePeer] = {}
        self._sessions: dict[PeerId, RelaySession] = {}
        self._tasks: dict[RelaySession, asyncio.Task[None]] = {}
        self._inbound: dict[PeerId, list[Stream]] = {}
        self._reopenings: dict[PeerId, asyncio.TimerHandle] = {}
        """Connected peers whose session has given up for now."""
        self._timer: asyncio.TimerHandle | None = None
        self._new_bytes = self._token_buckets(1.0)
        self._own_new_bytes = self._token_buckets(settings.own_share)
        self._running = False

    def _token_buckets(self, share: float) -> TokenBuckets:
        return TokenBuckets(
            per_second=share * self._settings.new_bytes_per_s,
            burst=share * self._settings.new_bytes_burst,
            clock_s=lambda: asyncio.get_running_loop().time(),
            longest_wait_s=self._settings.longest_pace_s,
        )

    def start(self) -> None:
        """Call before the host starts, so that no peer is missed."""
        self._running = True
        self._host.set_stream_handler(RELAY_PROTOCOL, self._serve)
        self._host.on_peer_connected(self._peer_connected)
        self._host.on_peer_disconnected(self._peer_disconnected)
        self._host.judge_peers_by(self.score)

    async def stop(self) -> None:
        """Call before the host stops.  Sends no PRUNE, which would keep us out after a restart."""
        self._running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for reopening in self._reopenings.values():
            reopening.cancel()
        self._reopenings.clear()
        await self._finish_writing()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in [stream for streams in self._inbound.values() for stream in streams]:
            await stream.reset()
        self._sessions.clear()
        self._remotes.clear()

    async def _finish_writing(self) -> None:
        """Send what was published last before the program ends."""
        finishing = [asyncio.create_task(each.finish()) for each in self._sessions.values()]
        if finishing:
            _, late = await asyncio.wait(finishing, timeout=self._settings.goodbye_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*finishing, return_exceptions=True)

    def join(self, topic: PubsubTopic) -> None:
        self._step(Join(topic=topic))

    def leave(self, topic: PubsubTopic) -> None:
        self._step(Leave(topic=topic))

    async def publish(
        self, topic: PubsubTopic, data: bytes, *, progress: Progress | None = None
    ) -> int:
        """Return how many peers with an open stream the message was queued for.

        ``progress`` is told when the message has been written to one of them, and read.
        """
        if not self._running:
            return 0
        transition, handed = self._step(Publish(topic=topic, data=data), progress)
        await self._wait_to_publish(_recipients(transition))
        return handed

    def topic_peers(self, topic: PubsubTopic) -> frozenset[PeerId]:
        """Subscribers to which a message published now would be sent."""
        return frozenset(
            peer_id
            for peer_id in self._router.topic_peers(topic)
            if (session := self._sessions.get(peer_id)) is not None and session.is_open
        )

    def mesh_peers(self, topic: PubsubTopic) -> frozenset[PeerId]:
        return self._router.mesh_peers(topic)

    def score(self, peer_id: PeerId) -> float:
        """The peer's score; 0 for an unknown peer."""
        return self._router.score(peer_id)

    def view(self, peer_id: PeerId, topics: Collection[PubsubTopic]) -> RelayView | None:
        """How the peer stands in ``topics``; None if it does not relay."""
        session = self._sessions.get(peer_id)
        if session is None:
            return None
        return RelayView(
            topics=sum(peer_id in self._router.topic_peers(topic) for topic in topics),
            meshed=sum(peer_id in self._router.mesh_peers(topic) for topic in topics),
            of_topics=len(topics),
            score=self._router.score_parts(peer_id),
            is_slow=session.slow,
        )

    # --- peers ----------------------------------------------------------------------------------

    def _peer_connected(self, peer: RemotePeer) -> None:
        self._remotes[peer.peer_id] = peer
        if RELAY_PROTOCOL in peer.protocols:
            self._open_session(peer.peer_id)

    def _peer_disconnected(self, peer_id: PeerId) -> None:
        self._remotes.pop(peer_id, None)
        if (reopening := self._reopenings.pop(peer_id, None)) is not None:
            reopening.cancel()
        if (session := self._sessions.get(peer_id)) is not None:
            self._end(session)  # End it now: the peer may be back before the task has ended.

    def _open_session(self, peer_id: PeerId) -> None:
        if not self._running or peer_id in self._sessions:
            return
        if (reopening := self._reopenings.pop(peer_id, None)) is not None:
            reopening.cancel()
        session = RelaySession(
            self._host,
            peer_id,
            settings=self._settings.session,
            counters=self._counters,
            owner=self,
        )
        self._sessions[peer_id] = session
        self.greet(peer_id)
        task = asyncio.create_task(session.run(), name=f"relay to {peer_id}")
        self._tasks[session] = task
        task.add_done_callback(lambda _task: self._session_ended(session))

    def greet(self, peer_id: PeerId, /) -> None:
        """For ``RelaySession``: tell the peer our topics."""
        remote = self._remotes.get(peer_id)
        outbound, host = (False, "") if remote is None else (remote.outbound, remote.host)
        self._step(PeerReady(peer_id=peer_id, outbound=outbound, host=host))

    def reachability_changed(self) -> None:
        """For ``RelaySession``: a session opened or lost its stream."""
        if self._running:
            self._observer.membership_changed()

    def _session_ended(self, session: RelaySession) -> None:
        del self._tasks[session]
        if self._running and self._sessions.get(session.peer_id) is session:
            self._end(session)
            self._reopenings[session.peer_id] = asyncio.get_running_loop().call_later(
                self._settings.reopen_s, self._open_session, session.peer_id
            )

    def _end(self, session: RelaySession) -> None:
        del self._sessions[session.peer_id]
        if (task := self._tasks.get(session)) is not None:
            task.cancel()
        if dropped := session.queue.clear():
            self._counters.add("relay.dropped_peer_gone", dropped)
        self._step(PeerGone(peer_id=session.peer_id))

    # --- what peers say -------------------------------------------------------------------------

    async def _serve(self, stream: Stream) -> None:
        """Read one inbound stream to its end.

        A peer has one, or two while it replaces one.  Several lasting ones mean that two nodes
        share an identity.  Both are heard: dropping one's stream for the other's would keep both
        busy opening new ones.
        """
        peer_id = stream.peer_id
        if not self._running:
            await stream.reset()
            return
        streams = self._inbound.setdefault(peer_id, [])
        streams.append(stream)
        if len(streams) > 1:
            self._counters.add("relay.peer_has_several_streams")
        if len(streams) > MAX_INBOUND_STREAMS:
            await streams.pop(0).reset()
        self._open_session(peer_id)
        try:
            await self._read(stream)
        except TransportError:
            pass  # The session notices on its own stream whether the peer is gone.
        except RemoteProtocolError as error:
            self._step(MalformedReceived(peer_id=peer_id, reason=error.reason))
        finally:
            if stream in streams:
                streams.remove(stream)
            if not streams and self._inbound.get(peer_id) is streams:
                del self._inbound[peer_id]
            await stream.reset()

    async def _read(self, stream: Stream) -> None:
        frames = FrameDecoder(MAX_RPC_BYTES)
        while chunk := await stream.read_some(_READ_BYTES):
            if not self._running:
                return
            for count, frame in enumerate(frames.feed(chunk), start=1):
                await self._receive(stream.peer_id, frame)
                if count % _FRAMES_PER_SLICE == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(0)  # A fast peer must not starve the loop.

    async def _receive(self, peer_id: PeerId, frame: bytes) -> None:
        if peer_id not in self._sessions:  # It reads nothing from us: no gossip, no answers.
            self._counters.add("relay.unknown_peer")
            return
        if self._router.is_graylisted(peer_id):
            self._counters.add("relay.graylisted")
            return
        try:
            decoded = decode_rpc(frame)
        except RemoteProtocolError as error:
            self._step(MalformedReceived(peer_id=peer_id, reason=error.reason))
            return
        if self._host.judge_copy is not None and decoded.rpc.publish:
            decoded = replace(decoded, rpc=self._without_spoiled(peer_id, decoded.rpc))
        for number, part in enumerate(rpc_slices(decoded)):
            if number:
                await asyncio.sleep(0)
            transition, _ = self._step(
                RpcReceived(peer_id=peer_id, rpc=part.rpc, refused=part.refused)
            )
            await self._wait_to_forward(_recipients(transition))
            if transition.delivered:
                await self._pace(peer_id, sum(len(each.data) for each in transition.delivered))
                if self._room_beyond is not None:
                    await self._room_beyond(peer_id)

    def _without_spoiled(self, peer_id: PeerId, rpc: Rpc) -> Rpc:
        """What is lost or delayed on purpose is not in it."""
        publish = tuple(
            each
            for each in rpc.publish
            if goes_on(
                self._host,
                peer_id,
                is_out=False,
                topic=each.topic,
                data=each.data,
                go_on=partial(self._receive_late, peer_id, each),
            )
        )
        return replace(rpc, publish=publish)

    def _receive_late(self, peer_id: PeerId, published: PublishedMessage) -> None:
        if peer_id in self._sessions:
            self._step(RpcReceived(peer_id=peer_id, rpc=Rpc(publish=(published,))))

    async def _pace(self, peer_id: PeerId, new_bytes: int) -> None:
        """Let a peer that says very much wait, so that others are heard meanwhile.

        All share one bucket, because who has this node as its only peer reads as slowly: what is
        taken in beyond that would only grow the queues to those peers.
        """
        self._new_bytes.spend(_ALL, new_bytes)
        self._own_new_bytes.spend(peer_id, new_bytes)
        if wait_s := min(self._new_bytes.wait_s(_ALL), self._own_new_bytes.wait_s(peer_id)):
            self._counters.add("relay.paced")
            await asyncio.sleep(wait_s)

    # --- the router -----------------------------------------------------------------------------

    def _step(self, input_: Input, progress: Progress | None = None) -> tuple[Transition, int]:
        """Feed the router and carry out its outputs.  Return how many copies were queued."""
        transition = self._router.handle(input_, now_ms=self._now_ms())
        self._set_timer()
        handed = 0
        for send in transition.sends:
            match send:
                case SendMessage():
                    handed += self._send_message(send, progress)
                case SendControl(peer_id=peer_id, rpc=rpc):
                    self._send_control(peer_id, rpc)
        for delivered in transition.delivered:
            self._observer.message_delivered(delivered)
        if transition.membership_changed:
            self._observer.membership_changed()
        return transition, handed

    def _send_message(self, send: SendMessage, progress: Progress | None) -> int:
        sessions = [s for peer_id in send.peer_ids if (s := self._sessions.get(peer_id))]
        if send.requested and not all(session.queue.has_room for session in sessions):
            self._counters.add("relay.iwant_unanswered")
            return 0
        published = PublishedMessage(topic=send.topic, data=send.data)
        frame = encode_frame(encode_rpc(Rpc(publish=(published,))))
        return sum(
            self._hand(session, frame, progress)
            for session in sessions
            if goes_on(
                self._host,
                session.peer_id,
                is_out=True,
                topic=send.topic,
                data=send.data,
                go_on=partial(self._hand_late, session, frame, progress),
            )
        )

    def _hand(self, session: RelaySession, frame: bytes, progress: Progress | None) -> bool:
        """Whether there is an open stream for it."""
        if session.add_message(frame, progress):
            return session.is_open
        self._counters.add("relay.dropped_queue_full")
        return False

    def _hand_late(self, session: RelaySession, frame: bytes, progress: Progress | None) -> None:
        if self._sessions.get(session.peer_id) is session:
            self._hand(session, frame, progress)

    def _send_control(self, peer_id: PeerId, rpc: Rpc) -> None:
        session = self._sessions.get(peer_id)
        if session is not None and not session.queue.add_control(encode_frame(encode_rpc(rpc))):
            self._counters.add("relay.dropped_control_full")

    async def _wait_to_publish(self, recipients: Iterable[PeerId]) -> None:
        settings = self._settings
        with suppress(TimeoutError):
            async with asyncio.timeout(settings.longest_wait_s):
                for session in self._full(recipients):
                    if not session.slow and not await session.queue.wait_while_taken(
                        settings.patience_s
                    ):
                        session.slow = True
                        self._counters.add("relay.peer_slow")

    async def _wait_to_forward(self, recipients: Iterable[PeerId]) -> None:
        for session in self._full(recipients):
            if not session.stuck and not await session.queue.wait_while_taken(
                self._settings.stuck_s
            ):
                session.stuck = True
                self._counters.add("relay.peer_stuck")

    def _full(self, peer_ids: Iterable[PeerId]) -> list[RelaySession]:
        found = (self._sessions.get(peer_id) for peer_id in peer_ids)
        return [session for session in found if session and not session.queue.has_room]

    def _now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1_000)

    def _set_timer(self) -> None:
        """One timer for the router's deadline; an extra millisecond makes up for rounding."""
        if self._timer is None and (deadline_ms := self._router.next_deadline()) is not None:
            when_s = (deadline_ms + 1) / 1_000
            self._timer = asyncio.get_running_loop().call_at(when_s, self._deadline_reached)

    def _deadline_reached(self) -> None:
        self._timer = None
        self._step(DeadlineReached())


def _recipients(transition: Transition) -> set[PeerId]:
    return {
        peer_id
        for send in transition.sends
        if isinstance(send, SendMessage)
        for peer_id in send.peer_ids
    }
