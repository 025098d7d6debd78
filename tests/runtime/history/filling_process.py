"""Fetches the history of the only conversation until it is killed; tells how much came so far.

Arguments: place, address of a Store, invitation to a group, to be joined if there is none yet, and
how many messages a page of the Store has.  With "halt" at the end it stands still once the first
messages came, so that it is killed in the middle, however fast it is.
"""

import asyncio
import signal
import sys
from pathlib import Path

from msgspec.structs import replace

from tests.runtime.history.history_stage import QUICK, Person

TELL_EVERY = 20


async def fill(place: str, address: str, link: str, page: str, halt: str = "") -> None:
    config = replace(QUICK, page_messages=int(page))
    bob = await Person("Bob", Path(place), peers=(address,), config=config).start()
    views = await bob.engine.conversations()
    group = views[0].conversation_id if views else await bob.engine.groups.join(link)
    told = 0
    while True:
        sys.stdout.write(f"{told}\n")
        sys.stdout.flush()
        if told and halt:
            signal.pause()
        told += TELL_EVERY
        await bob.until_told(group, told)


if __name__ == "__main__":
    asyncio.run(fill(*sys.argv[1:]))
