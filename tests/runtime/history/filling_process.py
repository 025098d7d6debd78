"""Joins a group and fetches its history, telling how much came, until it is killed.

Arguments: place, address of a Store, invitation.
"""

import asyncio
import sys
from pathlib import Path

from tests.runtime.history.history_stage import Person

TELL_EVERY = 20


async def fill(place: str, address: str, link: str) -> None:
    bob = await Person("Bob", Path(place), peers=(address,)).start()
    views = await bob.engine.conversations()
    group = views[0].conversation_id if views else await bob.engine.join_group(link)
    told = 0
    while True:
        told += TELL_EVERY
        await bob.until_told(group, told)
        sys.stdout.write(f"{told}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(fill(*sys.argv[1:]))
