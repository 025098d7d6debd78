"""While unused room is given back the engine lives: what arrives waits, and is shown afterwards."""

import asyncio
import threading

from engine.events import MessageAdded
from engine.persistence.reclaim import reclaim_unused
from tests.runtime.conftest import KEY, MakePerson


async def test_what_arrives_while_the_database_is_packed_is_saved_afterwards(
    person: MakePerson,
) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group = await alice.engine.groups.create("Tide Gauge")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    await alice.engine.timeline.send_text(group, "before")
    await bob.until(lambda e: isinstance(e, MessageAdded) and e.message.text == "before")
    loop, begun, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def progress(share: float) -> bool:
        if not share:
            loop.call_soon_threadsafe(begun.set)
            goes_on.wait()
        return True

    packing = asyncio.create_task(
        bob.engine.alone_with_storage(lambda: reclaim_unused(bob.database, KEY, progress))
    )
    await begun.wait()
    await alice.engine.timeline.send_text(group, "during")
    own = asyncio.create_task(bob.engine.timeline.send_text(group, "own"))
    await alice.engine.timeline.send_text(group, "last")
    shown = [e.message.text for e in bob.told if isinstance(e, MessageAdded)]
    assert not {"during", "own", "last"} & set(shown)
    assert not own.done()
    goes_on.set()
    await packing
    await own
    await bob.until(lambda e: isinstance(e, MessageAdded) and e.message.text == "last")
    await alice.until(lambda e: isinstance(e, MessageAdded) and e.message.text == "own")
    page = await bob.engine.timeline.latest_page(group)
    assert {"before", "during", "own", "last"} <= {m.text for m in page.messages}
