"""A js-libp2p node; see ``js_libp2p.mjs``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from scripts import interop
from tests.interop.json_lines import PeerNode, peer_node

SCRIPT = Path(__file__).with_name("js_libp2p.mjs")


@asynccontextmanager
async def js_node(*muxers: str) -> AsyncIterator[PeerNode]:
    interop.ensure()
    command = (str(interop.node()), str(SCRIPT), str(interop.modules()), ",".join(muxers))
    async with peer_node(*command) as node:
        yield node
