"""A desktop keeps for others what passes its first check, and nothing else of its topics."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from engine.crypto.links import parse_contact_link
from engine.crypto.pair import inbox_topic_of
from tests.security.stage import Stage, figure, now

ENVELOPES: Final = 300
ENVELOPE_BYTES: Final = 20_000


async def test_refused_envelopes_are_not_archived(stage: Stage, tmp_path: Path) -> None:
    """Of the group's topic, which every relay sees, and of the inbox, which anybody can name."""
    alice, bob = await stage.founded("Alice", "Bob")
    relay = await stage.relay()
    link = await alice.engine.people.make_contact_link()
    inbox = inbox_topic_of(parse_contact_link(link, now_ms=stage.now_ms()).public_key)
    for number in range(ENVELOPES):
        await relay.publish(os.urandom(ENVELOPE_BYTES), topic=inbox if number % 2 else None)
    await bob.say("still here")
    await stage.until(lambda: said_by_all(stage, "still here"))
    await stage.until(lambda: now(alice.counted("group.malformed") >= ENVELOPES // 2))
    await alice.stop()
    kept, size = archived(tmp_path / "Alice" / "archive.db")
    figure(
        f"{ENVELOPES} refused envelopes of {ENVELOPE_BYTES} bytes: {kept} messages of "
        f"{size / 2**20:.1f} MiB in the desktop's archive; before 305 of 5.7 MiB"
    )
    assert 0 < kept < 50
    assert size < 2**20


async def said_by_all(stage: Stage, text: str) -> bool:
    return all([text in await one.texts() for one in stage.victims])


def archived(path: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(path)) as connection:
        count, size = connection.execute(
            "SELECT count(*), sum(length(data)) FROM message"
        ).fetchone()
    return count, size
