"""Fetches the history of the only conversation until it is killed; tells when the first came.

Arguments: place, address of a Store, invitation to a group, to be joined if there is none yet, and
how many messages a page of the Store has.
"""

import asyncio
import sys
from pathlib import Path

from msgspec.structs import replace

from tests.runtime.history.history_stage import QUICK, Person


async def fill(place: str, address: str, link: str, page: str) -> None:
    config = replace(QUICK, page_messages=int(page))
    bob = await Person("Bob", Path(place), peers=(address,), config=config).start()
    views = await bob.engine.conversations()
    group = views[0].conversation_id if views else await bob.engine.groups.join(link)
    await bob.until_told(group, 1)
    sys.stdout.write("some came\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(fill(*sys.argv[1:]))
