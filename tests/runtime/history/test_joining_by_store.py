"""Who invites and who comes need not be online at the same time, if a Store keeps inboxes."""

import asyncio
from pathlib import Path

from engine.core.ids import ConversationId
from engine.core.waku_archive import ArchiveQuery
from engine.crypto.identity import Identity
from engine.crypto.pair import inbox_topic_of
from engine.governance_views import EarlierMessages
from tests.patience import PATIENCE_S
from tests.runtime.history.history_stage import Person, StoreNode


async def until_kept(store: StoreNode, inbox_of: Person) -> None:
    with inbox_of.disk() as disk:
        profile = disk.profile()
    assert profile is not None
    assert store.archive is not None
    keys = Identity(signing_key=profile.signing_key, encryption_key=profile.encryption_key)
    topics = (inbox_topic_of(keys.public_key),)
    query = ArchiveQuery(content_topics=topics, limit=1, max_bytes=1_000)
    async with asyncio.timeout(PATIENCE_S):
        while not (await store.archive.query(query)).rows:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.02)


def members(person: Person, group: ConversationId) -> int:
    view = person.engine.governing.view(group)
    return 0 if view is None else len(view.roles)


async def test_an_ask_and_its_answer_wait_at_a_store(tmp_path: Path) -> None:
    store = StoreNode(tmp_path, "store")
    address = await store.start()
    olga = await Person("Olga", tmp_path, peers=(address,)).start()
    anna = await Person("Anna", tmp_path, peers=(address,)).start()
    try:
        group = await olga.engine.governing.create("Walks")
        for one in (olga, anna):
            await one.until_online()
        link = await olga.engine.governing.invite(
            group, uses=1, days=7, needs_approval=False, earlier=EarlierMessages.ALL
        )
        await olga.stop()
        await anna.engine.groups.join(link)
        await until_kept(store, inbox_of=olga)
        await anna.stop()
        await olga.start_again()
        await olga.until(lambda: members(olga, group) == 2)
        await until_kept(store, inbox_of=anna)
        await olga.stop()
        await anna.start_again()
        await anna.until(lambda: members(anna, group) == 2)
    finally:
        for one in (olga, anna):
            await one.stop()
        await store.stop()
