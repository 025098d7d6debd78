"""Tests against other implementations need these to be there: ``make test`` fetches them.

Where one could not be had, its tests are not collected, and ``make test`` says so.  With ``CI`` set
all is collected and fails, because there a check that did not run must be red.
"""

import os

from scripts import peers

collect_ignore_glob = [
    pattern
    for peer in peers.PEERS
    if peer.tests
    if not os.environ.get("CI") and not peer.is_ready()
    for pattern in peer.tests
]
