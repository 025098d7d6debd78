"""Real hosts on loopback, for every test of libp2p."""

import pytest

from tests.network.libp2p import loopback_hosts
from tests.network.libp2p.loopback_hosts import RunningHosts


@pytest.fixture
def running_hosts() -> RunningHosts:
    return loopback_hosts.running_hosts
