"""Gossipsub routers under arbitrary input, and whole networks of them on virtual time."""

from collections import Counter as Tally
from collections import deque
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec.gossipsub import (
    IHave,
    Prune,
    PublishedMessage,
    Rpc,
    Subscription,
    decode_rpc,
    encode_rpc,
)
from engine.codec.waku import encode_waku_message
from engine.core.ids import PubsubTopic
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.vocabulary import (
    DeadlineReached,
    GossipsubSettings,
    Input,
    Join,
    Leave,
    MalformedReceived,
    PeerGone,
    PeerReady,
    Publish,
    RpcReceived,
    SendControl,
    Transition,
)
from tests.network.waku.gossip_bench import (
    OTHER,
    TOPIC,
    Bench,
    controls,
    id_of,
    peers,
    recipients,
    waku_data,
)

# --- anything at all ------------------------------------------------------------------------------

some_topics = st.sampled_from([TOPIC, OTHER, PubsubTopic("unknown")])
some_data = st.sampled_from([waku_data("a"), waku_data("b"), b"\xff", b""]) | st.binary(max_size=9)
some_ids = st.lists(
    st.sampled_from([id_of(waku_data("a")), id_of(waku_data("b")), b"z" * 32]), max_size=3
).map(tuple)
some_rpcs = st.builds(
    Rpc,
    subscriptions=st.lists(
        st.builds(Subscription, topic=some_topics, subscribe=st.booleans()), max_size=3
    ).map(tuple),
    publish=st.lists(
        st.builds(PublishedMessage, topic=some_topics, data=some_data), max_size=3
    ).map(tuple),
    graft=st.lists(some_topics, max_size=3).map(tuple),
    prune=st.lists(
        st.builds(Prune, topic=some_topics, backoff_s=st.none() | st.integers(0, 2**64 - 1)),
        max_size=2,
    ).map(tuple),
    ihave=st.lists(st.builds(IHave, topic=some_topics, message_ids=some_ids), max_size=2).map(
        tuple
    ),
    iwant=some_ids,
    idontwant=some_ids,
)
some_peers = st.sampled_from(peers(6))
some_inputs: st.SearchStrategy[Input] = st.one_of(
    st.builds(RpcReceived, peer_id=some_peers, rpc=some_rpcs),
    st.builds(
        PeerReady,
        peer_id=some_peers,
        outbound=st.booleans(),
        host=st.sampled_from(["", "203.0.113.9", "8.8.8.8"]),
    ),
    st.builds(PeerGone, peer_id=some_peers),
    st.builds(Join, topic=some_topics),
    st.builds(Leave, topic=some_topics),
    st.builds(Publish, topic=some_topics, data=some_data),
    st.just(DeadlineReached()),
    st.builds(MalformedReceived, peer_id=some_peers, reason=st.just("rpc_malformed")),
)


@settings(max_examples=150)
@given(
    steps=st.lists(st.tuples(some_inputs, st.integers(0, 2_000)), max_size=60),
    flood_publish=st.booleans(),
)
def test_whatever_happens_the_rules_hold(
    steps: list[tuple[Input, int]], *, flood_publish: bool
) -> None:
    gossip = GossipsubSettings(
        d_low=2, d=2, d_high=3, d_score=1, d_out=1, d_keep=2, flood_publish=flood_publish
    )
    bench, twin = Bench(gossip), Bench(gossip)
    connected: set[PeerId] = set()
    dialled: set[PeerId] = set()
    delivered: Tally[bytes] = Tally()
    pruned_until_ms: dict[tuple[PubsubTopic, PeerId], int] = {}
    for input_, pause_ms in steps:
        bench.now_ms += pause_ms
        twin.now_ms += pause_ms
        if isinstance(input_, PeerReady):
            connected.add(input_.peer_id)
            if input_.outbound:
                dialled.add(input_.peer_id)
        elif isinstance(input_, PeerGone):
            connected.discard(input_.peer_id)
        step = bench(input_)
        assert twin(input_) == step
        for topic in (TOPIC, OTHER):
            members = bench.router.mesh_peers(topic)
            assert members <= connected
            assert len(members - dialled) <= gossip.d_high
            for peer_id in members if isinstance(input_, DeadlineReached) else ():
                assert bench.router.score(peer_id) >= 0 or step == Transition()
        for peer_id, rpc in controls(step).items():
            assert peer_id in connected
            for topic in rpc.graft:
                assert pruned_until_ms.get((topic, peer_id), 0) <= bench.now_ms
            for prune in rpc.prune:
                pruned_until_ms[prune.topic, peer_id] = bench.now_ms + 10_000
        assert set(recipients(step)) <= connected
        delivered.update(id_of(encode_waku_message(item.message)) for item in step.delivered)
    assert all(count == 1 for count in delivered.values())  # less than two minutes in all


# --- networks -------------------------------------------------------------------------------------


class Network:
    """Routers joined by links that deliver in order; everything takes the real codec."""

    def __init__(self, gossip: GossipsubSettings, count: int) -> None:
        self.ids = peers(count)
        self.benches = {p: Bench(gossip, seed=n) for n, p in enumerate(self.ids)}
        self.wire: deque[tuple[PeerId, PeerId, bytes]] = deque()
        self.received: dict[PeerId, Tally[bytes]] = {p: Tally() for p in self.ids}
        self.copies: Tally[tuple[PeerId, PeerId, bytes]] = Tally()
        for peer_id in self.ids:
            self.step(peer_id, Join(topic=TOPIC))

    def link(self, one: int, other: int) -> None:
        a, b = self.ids[one], self.ids[other]
        self.step(a, PeerReady(peer_id=b))
        self.step(b, PeerReady(peer_id=a))

    def step(self, at: PeerId, input_: Input) -> None:
        transition = self.benches[at](input_)
        self.received[at].update(item.message.payload for item in transition.delivered)
        for send in transition.sends:
            if isinstance(send, SendControl):
                self.wire.append((at, send.peer_id, encode_rpc(send.rpc)))
                continue
            message = PublishedMessage(topic=send.topic, data=send.data)
            for peer_id in send.peer_ids:
                self.copies[at, peer_id, id_of(send.data)] += 1
                self.wire.append((at, peer_id, encode_rpc(Rpc(publish=(message,)))))

    def settle(self) -> None:
        while self.wire:
            sender, receiver, data = self.wire.popleft()
            decoded = decode_rpc(data)
            assert decoded.refused == ()
            self.step(receiver, RpcReceived(peer_id=sender, rpc=decoded.rpc))

    def heartbeats(self, count: int) -> None:
        for _ in range(count):
            for peer_id, bench in self.benches.items():
                bench.now_ms += 1_000
                self.step(peer_id, DeadlineReached())
            self.settle()


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), count=st.integers(2, 25), flood_publish=st.booleans())
def test_in_any_connected_network_everybody_gets_everything_once(
    seed: int, count: int, *, flood_publish: bool
) -> None:
    random = Random(seed)
    network = Network(GossipsubSettings(flood_publish=flood_publish), count)
    links = {(random.randrange(node), node) for node in range(1, count)}
    links |= {
        (min(pair), max(pair)) for pair in (random.sample(range(count), 2) for _ in range(count))
    }
    for one, other in sorted(links):
        network.link(one, other)
        network.settle()
    network.heartbeats(3)
    for number in range(10):
        author = random.choice(network.ids)
        network.step(author, Publish(topic=TOPIC, data=waku_data(f"{number}")))
        network.received[author][b"%d" % number] += 1
        network.settle()
    network.heartbeats(4)  # where the mesh has a hole, gossip fills it
    expected = {b"%d" % number: 1 for number in range(10)}
    assert all(received == expected for received in network.received.values())
    assert max(network.copies.values()) == 1
    assert all(
        len(bench.router.mesh_peers(TOPIC)) <= bench.settings.d_high
        for bench in network.benches.values()
    )
    assert all(
        name in ("relay.received", "relay.duplicate", "relay.graft_refused")
        for bench in network.benches.values()
        for name in bench.counters.snapshot()
    )


def test_in_a_full_mesh_of_thirty_nobody_sends_to_all() -> None:
    network = Network(GossipsubSettings(), 30)
    for other in range(30):
        for one in range(other):
            network.link(one, other)
    network.settle()
    network.heartbeats(5)
    network.copies.clear()
    network.step(network.ids[0], Publish(topic=TOPIC, data=waku_data("x")))
    network.settle()
    forwarded = Tally(sender for sender, _, _ in network.copies.elements())
    assert sum(map(len, network.received.values())) == 29
    assert all(forwarded[peer_id] <= 8 for peer_id in network.ids[1:])
