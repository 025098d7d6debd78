"""A Store node that has what was said meanwhile: ``… scale_store MESSAGES DIR``.

The first line of output is its address; a line of input ends it.
"""

import asyncio
import os
import sys
from pathlib import Path

from benchmarks.history_store import archived
from benchmarks.scale_twin import read_messages
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.services import all_services
from engine.network.node.settings import NodeSettings
from engine.persistence.archive_thread import ThreadedArchive


async def serve(messages: Path, place: Path) -> None:
    archive = await ThreadedArchive.open(place / "archive.db")
    await archive.append([archived(message) for message in read_messages(messages)])
    node = EmbeddedNode(
        NodeSettings(network_key=os.urandom(32), services=all_services()), archive=archive
    )
    await node.start()
    print(node.addresses()[0], flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await node.stop()
    await archive.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2])))
