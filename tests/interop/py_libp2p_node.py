"""A py-libp2p node; see ``py_libp2p/peer.py``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scripts import interop_python
from tests.interop.json_lines import PeerNode, peer_node

SCRIPT = interop_python.LOCKED / "peer.py"


@asynccontextmanager
async def py_node() -> AsyncIterator[PeerNode]:
    interop_python.ENVIRONMENT.ensure()
    async with peer_node(str(interop_python.ENVIRONMENT.python), str(SCRIPT)) as node:
        yield node
