"""Tests against other implementations need these to be there: ``make test`` fetches them.

Where one could not be had, its tests are not collected, and ``make test`` says so.  With ``CI`` set
all is collected and fails, because there a check that did not run must be red.
"""

import os

import pytest

from scripts import peers

collect_ignore_glob = [
    pattern
    for peer in peers.PEERS
    if peer.tests
    if not os.environ.get("CI") and not peer.is_ready()
    for pattern in peer.tests
]


@pytest.fixture(scope="module", autouse=True)
def peer_is_there(request: pytest.FixtureRequest) -> None:
    """With ``CI`` set ``make test`` is perhaps still at it: whoever comes to it so early waits."""
    for peer in peers.PEERS:
        if any(request.path.match(pattern) for pattern in peer.tests):
            peer.ensure()
