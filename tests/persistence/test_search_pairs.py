"""The search in scripts without spaces finds what a plain reading finds, and compares little."""

import random
from collections.abc import Iterable, Sequence
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.ids import ParticipantId, UnixMs
from engine.core.ports import ProfileStore, PutGroup, PutMessage
from engine.core.search import SearchQuery
from engine.core.search_text import wanted
from engine.persistence import search_index, search_pairs, search_reads
from engine.persistence.database import memory_database
from engine.persistence.search_pairs import epoch_of
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.memory_store import MemoryProfileStore
from tests.persistence.store_examples import ALICE, BOB, edit, group, row

PIECES = [
    "的",
    "的",
    "是",
    "人",
    "東京",
    "都",
    "\uf900",
    "か\u3099ガ",
    "ไท",
    "ab ",
    "é",
    "。",
    "\0",
]
SAID = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
TEXTS = st.lists(SAID, min_size=12, max_size=40)
ASKED = st.lists(st.sampled_from(PIECES[1:-1]), min_size=1, max_size=2).map("".join)
SENDERS = (None, None, ALICE, BOB, ParticipantId("\ud800"))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few messages make several epochs, in which something is common."""
    monkeypatch.setattr(search_index, "BUCKET_ROWS", 4)
    monkeypatch.setattr(search_index, "SLICE_ROWS", 5)
    monkeypatch.setattr(search_pairs, "EPOCH_BUCKETS", 2)
    monkeypatch.setattr(search_pairs, "LEARN_FROM", 6)
    monkeypatch.setattr(search_pairs, "LIST_ROWS", 1)
    monkeypatch.setattr(search_pairs, "FEWEST_KINDS", 2)
    monkeypatch.setattr(search_reads, "FEW", 2)


def author(number: int) -> ParticipantId:
    return BOB if number % 3 else ALICE


def said(texts: Sequence[str], lamports: Sequence[int], numbers: Iterable[int]) -> list[PutMessage]:
    return [
        row(lamports[number], f"m{number:03}", text=texts[number], sender_id=author(number))
        for number in numbers
    ]


def all_indexed(store: ProfileStore) -> None:
    while (indexed := store.searching.index_some(old=True)).is_more or indexed.old_left:
        pass


def answers(store: ProfileStore, queries: Sequence[SearchQuery]) -> list[list[str]]:
    all_indexed(store)
    found = [store.searching.find(query, limit=50, stop=Event()) for query in queries]
    return [[one.position.message_id for one in answer] for answer in found]


@given(
    texts=TEXTS,
    asked=st.lists(ASKED, min_size=1, max_size=3),
    order=st.randoms(use_true_random=False),
    few_and_by=st.tuples(st.sampled_from((1, 5, 256)), st.sampled_from(SENDERS)),
    changed=st.dictionaries(st.integers(0, 39), SAID),
)
@settings(max_examples=15)
def test_it_finds_what_a_plain_reading_finds(
    texts: list[str],
    asked: list[str],
    order: random.Random,
    few_and_by: tuple[int, ParticipantId | None],
    changed: dict[int, str],
) -> None:
    (few, by), lamports = few_and_by, list(range(len(texts)))
    order.shuffle(lamports)
    queries = [SearchQuery(wanted=wanted(one), sender_id=by) for one in [*asked, texts[0][:3]]]
    queries.append(SearchQuery(wanted=wanted(" ".join(asked)), since_ms=UnixMs(0)))
    stores = (MemoryProfileStore(), SqliteProfileStore(memory_database()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_reads, "FEW_IN_EPOCH", few)
        for store in stores:
            store.apply([PutGroup(group=group())])
            half = len(texts) // 2
            for numbers in (range(half), range(half, len(texts))):
                store.apply(said(texts, lamports, numbers))
                all_indexed(store)
        assert answers(stores[0], queries) == answers(stores[1], queries)
        for store in stores:
            store.apply(
                [
                    edit(
                        900 + number, f"e{number}", f"m{number:03}", text, sender_id=author(number)
                    )
                    for number, text in changed.items()
                    if number < len(texts)
                ]
            )
        assert answers(stores[0], queries) == answers(stores[1], queries)
    for store in stores:
        store.close()


def test_a_common_character_by_somebody_who_used_it_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search_pairs, "EPOCH_BUCKETS", 4)
    texts = ["的" if number // 4 % 3 else "是" for number in range(96)]
    store = SqliteProfileStore(memory_database())
    rows = [row(n, f"m{n:03}", text=text, sender_id=ALICE) for n, text in enumerate(texts)]
    store.apply([PutGroup(group=group()), *rows])
    expected = [f"m{n:03}" for n in range(95, -1, -1) if texts[n] == "的"]
    for few in (3, 256):
        monkeypatch.setattr(search_reads, "FEW_IN_EPOCH", few)
        by = [SearchQuery(wanted=wanted("的"), sender_id=one) for one in (ALICE, BOB)]
        assert answers(store, by) == [expected[:50], []]
    store.close()


class Looks:
    """Asked before each message that is compared."""

    def __init__(self) -> None:
        self.number = 0

    def is_set(self) -> bool:
        self.number += 1
        return False


def test_of_two_frequent_characters_that_never_stand_together_few_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search_index, "BUCKET_ROWS", 64)
    monkeypatch.setattr(search_index, "SLICE_ROWS", 64)
    monkeypatch.setattr(search_pairs, "LEARN_FROM", 64)
    monkeypatch.setattr(search_pairs, "FEWEST_KINDS", 8)
    chance = random.Random(20261127)
    # An accent: the database leaves it to us to compare such a text.
    texts = [f"{''.join(chance.choices('的是人一不我', k=5))}é" for _ in range(640)]
    texts = [text.replace("的人", "的是") for text in texts]
    store = SqliteProfileStore(memory_database())
    store.apply([PutGroup(group=group()), *said(texts, range(640), range(640))])
    all_indexed(store)
    looks = Looks()
    assert sum("的" in text and "人" in text for text in texts) > 150
    assert store.searching.find(SearchQuery(wanted=wanted("的人")), limit=50, stop=looks) == ()
    assert looks.number < 100
    store.close()


def test_epochs_grow_until_they_have_the_same_number_of_buckets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search_pairs, "EPOCH_BUCKETS", 8)
    epochs = [epoch_of(bucket) for bucket in range(1, 40)]
    assert epochs == [0, 1, 1, *[2] * 4, *[3] * 8, *[4] * 8, *[5] * 8, *[6] * 8]
