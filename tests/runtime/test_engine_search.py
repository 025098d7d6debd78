"""The search of running engines: what was said, edited, deleted, sent as a file, and by whom."""

import asyncio
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import TypedDict, Unpack

import pytest

from engine.core.ids import ChannelId, ContentTopic, ConversationId, ParticipantId
from engine.core.records import ChannelName
from engine.core.search import FoundMessage, Indexed, SearchQuery
from engine.events import (
    MessageAdded,
    MessageChanged,
    NoticeRaised,
    SearchIndexed,
    SearchMadeAgain,
    TimelineChanged,
)
from engine.network.memory import MemoryNetwork
from engine.persistence import search_index
from engine.persistence.database import open_database, open_readonly
from engine.persistence.errors import DatabaseUnreadableError, translated
from engine.persistence.search_store import SqliteSearch, SqliteSearchReader
from engine.runtime import search
from tests.patience import PATIENCE_S
from tests.persistence.store_examples import row as stored_row
from tests.runtime.conftest import KEY, MakePerson, Person
from tests.runtime.test_engine_annotations import own_id, row
from tests.runtime.test_engine_pairs_set_right import friends

PAGE_BYTES = 4096


class Filters(TypedDict, total=False):
    conversation_id: ConversationId
    sender_id: ParticipantId
    has_file: bool
    has_link: bool


async def texts(person: Person, words: str, **filters: Unpack[Filters]) -> list[str]:
    answer = await person.engine.search.find(words, **filters)
    return [one.excerpt.text for one in answer.found]


@pytest.fixture
async def talk(person: MakePerson) -> tuple[Person, Person, ConversationId]:
    alice, bob = await person("Alice"), await person("Bob")
    group = await alice.engine.groups.create("Friends")
    await bob.join(alice, group)
    return alice, bob, group


Talk = tuple[Person, Person, ConversationId]


async def test_all_conversations_are_searched(talk: Talk) -> None:
    alice, bob, group = talk
    pair = await friends(alice, bob)
    name = ChannelName(
        channel_id=ChannelId("general"),
        content_topic=ContentTopic("/toy-chat/2/huilong/proto"),
        cluster_id=alice.engine.open_channels.cluster_id(),
    )
    channel = await alice.engine.open_channels.join(name, label="Anybody", nick="Alice")
    await alice.engine.timeline.send_text(group, "a needle in the group")
    await alice.engine.timeline.send_text(pair, "a needle for Bob")
    await alice.engine.timeline.send_text(channel, "a needle for anybody")
    await row(bob, "a needle in the group")
    await row(bob, "a needle for Bob")
    answer = await alice.engine.search.find("NEEDL")
    assert {(one.conversation_id, one.excerpt.text) for one in answer.found} == {
        (group, "a needle in the group"), (pair, "a needle for Bob"),
        (channel, "a needle for anybody"),
    }  # fmt: skip
    places = [one.position for one in answer.found]
    assert places == sorted(places, reverse=True)
    assert await texts(bob, "needle", conversation_id=pair) == ["a needle for Bob"]
    (one,) = (await bob.engine.search.find("needle", conversation_id=group)).found
    assert (one.conversation_name, one.sender_name, one.is_own) == ("Friends", "Alice", False)
    assert [one.excerpt.text[begin:end] for begin, end in one.excerpt.marks] == ["needle"]


async def test_edits_and_deletions_are_followed(talk: Talk) -> None:
    alice, bob, group = talk
    said = await alice.engine.timeline.send_text(group, "before")
    await row(bob, "before")
    assert await texts(bob, "before") == ["before"]
    await alice.engine.timeline.edit(group, said, "afterwards")
    await row(bob, "afterwards")
    assert (await texts(bob, "before"), await texts(bob, "after")) == ([], ["afterwards"])
    await alice.engine.timeline.retract(group, said)
    await bob.until(
        lambda event: isinstance(event, MessageAdded | MessageChanged) and event.message.retracted
    )
    assert await texts(bob, "after") == await texts(alice, "after") == []
    kept = await alice.engine.timeline.send_text(group, "only here")
    await alice.engine.timeline.delete_locally(group, kept)
    assert await texts(alice, "only") == []


async def test_people_and_files(talk: Talk) -> None:
    alice, bob, group = talk
    await alice.engine.timeline.send_file(
        group, name="Grüße.txt", media_type="text/plain", data=b"hello"
    )
    await alice.engine.timeline.send_text(group, "see https://a.example/grusse")
    await row(bob, "see https://a.example/grusse")
    assert await texts(bob, "grusse", has_file=True) == ["Grüße.txt"]
    assert await texts(bob, "", has_link=True) == ["see https://a.example/grusse"]
    assert len(await texts(bob, "grusse", sender_id=own_id(alice))) == 2
    assert await texts(bob, "grusse", sender_id=own_id(bob)) == []


async def test_pages_of_the_answer_follow_each_other(talk: Talk) -> None:
    alice, _, group = talk
    for number in range(5):
        await alice.engine.timeline.send_text(group, f"word {number}")
    first = await alice.engine.search.find("word", limit=3)
    assert first.has_more
    second = await alice.engine.search.find("word", limit=3, before=first.found[-1].place)
    assert not second.has_more
    assert [one.excerpt.text for one in (*first.found, *second.found)] == [
        f"word {number}" for number in range(4, -1, -1)
    ]
    assert (await alice.engine.search.find("word " * 5_000)).is_shortened


async def test_a_search_that_is_cancelled_leaves_the_next_one_alone(talk: Talk) -> None:
    alice, _, group = talk
    await alice.engine.timeline.send_text(group, "word")
    for _ in range(20):
        asked = asyncio.ensure_future(alice.engine.search.find("w"))
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    assert await texts(alice, "word") == ["word"]


async def test_stopping_ends_a_search_that_is_under_way(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of very many long texts it takes its time, on a thread that the stop waits for."""
    alice, _, _ = talk
    begun, was_stopped = Event(), list[bool]()
    find = SqliteSearchReader.find

    def find_slowly(
        self: SqliteSearchReader, query: SearchQuery, *, limit: int, stop: Event
    ) -> tuple[FoundMessage, ...]:
        begun.set()
        was_stopped.append(stop.wait(PATIENCE_S / 4))
        return find(self, query, limit=limit, stop=stop)

    monkeypatch.setattr(SqliteSearchReader, "find", find_slowly)
    asked = asyncio.ensure_future(alice.engine.search.find("word"))
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    await alice.engine.stop()
    assert was_stopped == [True]
    assert not (await asked).found


async def test_a_damaged_index_is_said_and_made_again(talk: Talk) -> None:
    alice, _, group = talk
    await alice.engine.timeline.send_text(group, "word")
    assert await texts(alice, "word") == ["word"]
    beside = open_database(alice.database, KEY)
    beside.execute("UPDATE search_1_data SET block = x'00' WHERE id > 10")
    beside.close()
    await texts(alice, "word")
    told = await alice.until(
        lambda event: isinstance(event, NoticeRaised) and event.content == SearchMadeAgain()
    )
    assert isinstance(told, NoticeRaised)
    async with asyncio.timeout(PATIENCE_S):
        while await texts(alice, "word") != ["word"]:  # noqa: ASYNC110 - it is asked, not told
            await asyncio.sleep(0)


async def test_a_backfill_is_indexed_once_nothing_more_comes(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would take the storage thread from the messages that somebody waits for."""
    alice, _, group = talk
    loop, indexed, times = asyncio.get_running_loop(), asyncio.Event(), 0
    index_some = SqliteSearch.index_some

    def watched(searching: SqliteSearch, *, old: bool) -> Indexed:
        nonlocal times
        times += 1
        loop.call_soon_threadsafe(indexed.set)
        return index_some(searching, old=old)

    monkeypatch.setattr(search, "SETTLE_S", 0.0)
    monkeypatch.setattr(SqliteSearch, "index_some", watched)
    for _ in range(500):
        alice.engine.search.hear(TimelineChanged(conversation_id=group))
        await asyncio.sleep(0)
    assert times <= 1, "one may have begun before"
    indexed.clear()
    async with asyncio.timeout(PATIENCE_S):
        await indexed.wait()


async def test_a_search_says_what_it_did_not_index_of_a_long_backfill(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads before the backfill is over, and more came than it indexes itself."""
    alice, _, group = talk
    monkeypatch.setattr(search_index, "MOST_BEHIND", 9)
    monkeypatch.setattr(search, "SETTLE_S", 2 * PATIENCE_S)
    assert await texts(alice, "word") == []
    for number in range(20):
        await alice.engine.timeline.send_text(group, f"word {number}")
    assert await texts(alice, "word") == []
    assert alice.engine.search.indexed().left >= 20


async def test_messages_that_keep_coming_do_not_hold_up_an_old_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await Person("Alice", tmp_path, MemoryNetwork()).start()
    group = await before.engine.groups.create("Friends")
    await before.engine.stop()
    before.save([stored_row(n, f"m{n}", text="word", conversation_id=group) for n in range(2, 40)])
    monkeypatch.setattr(search_index, "MOST_BEHIND", 9)
    monkeypatch.setattr(search_index, "SLICE_ROWS", 2)
    monkeypatch.setattr(search, "SETTLE_S", 0.0)
    monkeypatch.setattr(search, "BREATHE_S", 0.0)
    monkeypatch.setattr(search, "LONGEST_SETTLE_S", 2 * PATIENCE_S)
    alice = await Person("Alice", tmp_path, MemoryNetwork()).start()
    indexed = asyncio.create_task(
        alice.until(lambda event: isinstance(event, SearchIndexed) and not event.left)
    )
    async with asyncio.timeout(PATIENCE_S):
        while not indexed.done():
            alice.engine.search.hear(TimelineChanged(conversation_id=group))
            await asyncio.sleep(0)
    assert len(await texts(alice, "word")) == 38
    await alice.engine.stop()


async def test_an_old_profile_is_indexed_after_a_start_and_can_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "SLICE_ROWS", 4)
    before = await Person("Alice", tmp_path, MemoryNetwork()).start()
    group = await before.engine.groups.create("Friends")
    for number in range(20):
        await before.engine.timeline.send_text(group, f"word {number}")
    await before.engine.stop()
    with closing(open_database(before.database, KEY)) as old:
        old.execute("UPDATE search_state SET form = 'of an earlier program'")
    alice = Person("Alice", tmp_path, MemoryNetwork())
    alice.endless = True
    await alice.start()
    alice.engine.search.set_indexing(active=False)
    assert alice.store is not None
    alice.store.endless = False
    paused = await alice.until(lambda event: isinstance(event, SearchIndexed) and event.is_paused)
    assert isinstance(paused, SearchIndexed)
    assert paused.left == paused.total >= 20
    assert await texts(alice, "word") == []
    await alice.engine.timeline.send_text(group, "a new word")
    assert await texts(alice, "word") == ["a new word"]
    alice.engine.search.set_indexing(active=True)
    await alice.until(lambda event: isinstance(event, SearchIndexed) and not event.left)
    assert len(await texts(alice, "word")) == 21
    await alice.engine.stop()


def damage_text_of(database: Path, first: int, last: int, message: str) -> None:
    """Of the pages that were added meanwhile, one that has nothing but a part of this text."""
    data = database.read_bytes()
    for number in range(first, last):
        changed = bytearray(data)
        changed[number * PAGE_BYTES + 100] ^= 1
        database.write_bytes(changed)
        with closing(open_readonly(database, KEY)) as disk:
            disk.execute("SELECT max(lamport_timestamp + sent_ms) FROM message").fetchone()
            try:
                with translated("read the text"):
                    disk.execute("SELECT text FROM message WHERE message_id = ?", (message,))
            except DatabaseUnreadableError:
                return
    raise AssertionError("no such page")


async def test_a_message_that_cannot_be_read_does_not_cost_the_index_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SETTLE_S", 0)
    monkeypatch.setattr(search, "BREATHE_S", 0)
    monkeypatch.setattr(search_index, "SLICE_ROWS", 1)
    before = await Person("Alice", tmp_path, MemoryNetwork()).start()
    group = await before.engine.groups.create("Friends")
    await before.engine.stop()
    pages = before.database.stat().st_size // PAGE_BYTES
    before.save([stored_row(1, "long", text="word " * 10_000, conversation_id=group)])
    more = before.database.stat().st_size // PAGE_BYTES
    texts_after = [
        stored_row(n, f"m{n}", text=f"word {n}", conversation_id=group) for n in range(2, 400)
    ]
    before.save(texts_after)
    damage_text_of(before.database, pages, more, "long")
    alice = await Person("Alice", tmp_path, MemoryNetwork()).start()
    await alice.until_counted("search.not_indexed", 1)
    assert alice.engine.counters()["search.index_made_again"] == 1
    assert (await texts(alice, "word"))[0] == "word 399"
    await alice.engine.stop()
