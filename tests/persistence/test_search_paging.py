"""Page by page a search finds each message once, though conversations have the same positions.

A Lamport timestamp and an id that everybody can choose say nothing about the conversation, so two
hits may have the same position, also at the border of a page.
"""

from collections import Counter
from threading import Event

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.core.ids import ConversationId
from engine.core.ports import ProfileStore, PutContact, PutGroup, PutOpenChannel
from engine.core.search import FoundPlace, SearchQuery
from engine.core.search_text import wanted
from engine.persistence import search_index
from engine.persistence.database import memory_database
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.persistence.stored_ids import stored_order
from tests.persistence.memory_store import MemoryProfileStore
from tests.persistence.store_examples import (
    GROUP,
    OPEN,
    PAIR,
    at,
    contact,
    group,
    open_channel,
    row,
)

Said = dict[tuple[str, ConversationId], int]
"""Lamport timestamps by message id and conversation; an id is unique in its conversation."""
SAID = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from((GROUP, PAIR, OPEN))), st.integers(1, 3)
)
ALL_AT_ONCE: Said = {("a", GROUP): 1, ("a", PAIR): 1, ("a", OPEN): 1, ("b", PAIR): 2}


def filled(store: ProfileStore, said: Said) -> ProfileStore:
    store.apply([PutGroup(group=group()), PutContact(contact=contact())])
    store.apply([PutOpenChannel(channel=open_channel())])
    store.apply(
        [
            row(lamport, name, text="word", conversation_id=where)
            for (name, where), lamport in said.items()
        ]
    )
    while store.searching.index_some(old=True).is_more:
        pass
    return store


def pages(store: ProfileStore, size: int) -> list[FoundPlace]:
    found: list[FoundPlace] = []
    before = None
    while True:
        query = SearchQuery(wanted=wanted("word"), before=before)
        page = store.searching.find(query, limit=size, stop=Event())
        found += (one.place for one in page)
        if len(page) < size:
            return found
        before = page[-1].place


@given(said=SAID, size=st.integers(1, 4), bucket_rows=st.sampled_from((2, 8_192)))
@example(said=ALL_AT_ONCE, size=1, bucket_rows=2)
@example(said=ALL_AT_ONCE, size=2, bucket_rows=8_192)
def test_pages_together_are_all_there_is_and_nothing_twice(
    said: Said, size: int, bucket_rows: int
) -> None:
    expected = Counter(
        FoundPlace(at(lamport, name), where) for (name, where), lamport in said.items()
    )
    with pytest.MonkeyPatch.context() as small:
        small.setattr(search_index, "BUCKET_ROWS", bucket_rows)
        for store in (MemoryProfileStore(), SqliteProfileStore(memory_database())):
            found = pages(filled(store, said), size)
            assert Counter(found) == expected
            orders = [stored_order(place.position) for place in found]
            assert orders == sorted(orders, reverse=True)
            store.close()


def test_a_page_goes_on_although_the_conversation_of_the_last_hit_was_left() -> None:
    store = filled(SqliteProfileStore(memory_database()), ALL_AT_ONCE)
    after = FoundPlace(at(1, "a"), ConversationId("left"))
    query = SearchQuery(wanted=wanted("word"), before=after)
    rest = store.searching.find(query, limit=9, stop=Event())
    assert {one.conversation_id for one in rest} == {GROUP, PAIR, OPEN}
    store.close()
