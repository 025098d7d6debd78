"""How long a service node is left alone that says it is asked too often."""

from collections.abc import Sequence

import pytest

from engine.core.counters import Counters
from engine.core.problems import NodeFailed, NodeFault
from engine.network.edge.service_nodes import Service, ServiceNode, ServiceNodes
from engine.network.edge.settings import EdgePace
from engine.network.libp2p.host import TcpHost

PACE = EdgePace(rest_first_s=1.0, busy_rest_s=1.02)
ADDRESS = f"/ip4/127.0.0.1/tcp/1/p2p/{TcpHost(bytes(31) + b'1', []).peer_id}"


class Clocked:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.nodes = ServiceNodes(
            PACE,
            random=lambda: 0.5,
            now_s=lambda: self.now_s,
            counters=Counters(),
            changed=lambda: None,
        )
        self.nodes.add([ADDRESS])

    @property
    def node(self) -> ServiceNode:
        (node,) = self.nodes.all()
        return node

    def rests_s(self, *, busy_at_s: Sequence[float], served_at_s: float | None) -> list[float]:
        """Until when it rests after each of these."""
        if served_at_s is not None:
            self.now_s = served_at_s
            self.nodes.succeeded(self.node, Service.LIGHTPUSH)
        rests: list[float] = []
        for self.now_s in busy_at_s:
            problem = NodeFailed(NodeFault.BUSY, Service.LIGHTPUSH)
            self.nodes.failed(self.node, Service.LIGHTPUSH, problem, busy=True)
            rests.append(self.node.rests[Service.LIGHTPUSH].until_s)
        return rests


@pytest.mark.parametrize(
    ("served_at_s", "busy_at_s", "until_s"),
    [
        (100.0, [100.1], [101.02]),  # one a second: the next second is near
        (100.0, [100.1, 100.2, 100.3], [101.02, 101.02, 101.02]),  # several at once
        (100.0, [100.1, 101.02, 103.02], [101.02, 103.02, 107.02]),  # fewer than one: doubling
        (100.0, [105.0], [106.0]),  # it served long ago
        (None, [100.0, 101.0], [101.0, 103.0]),  # it never did
    ],
)
def test_a_busy_node_is_asked_again_as_soon_as_it_may_serve(
    served_at_s: float | None, busy_at_s: list[float], until_s: list[float]
) -> None:
    rests = Clocked().rests_s(busy_at_s=busy_at_s, served_at_s=served_at_s)
    assert rests == pytest.approx(until_s)
