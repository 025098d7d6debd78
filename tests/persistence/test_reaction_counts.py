"""Counts of reactions are at every moment what counting the reactions gives, in both stores.

Whatever comes in which order, is taken back, forgotten, replaced, of a member who is muted, or of a
message that its author deleted for everybody.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.emoji import without_selectors
from engine.core.ids import MessageId, ParticipantId
from engine.core.ports import ProfileStore, PutGroup, SaveMemberMuted, StoreWrite
from engine.core.sds.vocabulary import RemoveFromLog
from engine.persistence import reaction_counts, rules
from engine.persistence.database import memory_database, open_database
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.memory_store import MemoryProfileStore
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    ME,
    annotation,
    channel,
    group,
    logged,
    retraction,
    row,
)

CAROL = ParticipantId("c" * 32)
PEOPLE = [ALICE, BOB, CAROL, ME]
TARGETS = ["m", "n"]

reactions = st.builds(
    annotation,
    st.integers(10, 15),
    st.integers(0, 99).map(lambda number: f"a{number:02}"),
    st.sampled_from([*TARGETS, "nowhere"]),
    sender_id=st.sampled_from(PEOPLE),
    emoji=st.sampled_from(["👍", "❤", "❤\ufe0f", "🎉", "😂"]),
    removed=st.booleans(),
)
mutes = st.builds(
    SaveMemberMuted,
    conversation_id=st.just(GROUP),
    participant_id=st.sampled_from(PEOPLE),
    muted=st.booleans(),
)
steps = st.lists(
    st.one_of(
        reactions,
        reactions,
        mutes,
        st.sampled_from([row(3, "m", sender_id=ALICE), row(4, "n", sender_id=BOB)]),
        st.just(retraction(16, "gone", "n", sender_id=BOB)),
        st.integers(0, 99).map(
            lambda number: channel(RemoveFromLog(message_id=MessageId(f"a{number:02}")))
        ),
    ),
    max_size=24,
)


def counts(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT * FROM reaction_count").fetchall()


def counted_anew(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    connection.execute("SAVEPOINT as_it_is")
    connection.execute("DELETE FROM reaction_count")
    reaction_counts.count_all(connection)
    found = counts(connection)
    connection.execute("ROLLBACK TO as_it_is")
    connection.execute("RELEASE as_it_is")
    return found


def agrees_with_who_reacted(store: ProfileStore, target: MessageId) -> None:
    """The list of everybody who reacted is read from the reactions themselves."""
    stored = store.message(GROUP, target)
    if stored is None:
        return
    chosen: dict[str, list[ParticipantId]] = {}
    for one in store.reactors(GROUP, target):
        chosen.setdefault(without_selectors(one.emoji), []).append(one.participant_id)
    assert stored.more_reactions == len(chosen) - len(stored.reactions)
    assert len(stored.reactions) == min(len(chosen), rules.MAX_REACTIONS_SHOWN)
    for reaction in stored.reactions:
        who = chosen.pop(without_selectors(reaction.emoji))
        assert reaction.count == len(who)
        assert reaction.participant_ids == tuple(one for one in who if one != ME)
        assert reaction.mine is (ME in who)
        assert all(reaction.count >= len(left) for left in chosen.values())


@settings(deadline=None)
@given(steps, st.integers(1, 4), st.integers(1, 4))
def test_counts_are_what_counting_gives(
    writes: list[StoreWrite], most_shown: int, most_each: int
) -> None:
    connection = memory_database()
    store, model = SqliteProfileStore(connection), MemoryProfileStore()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rules, "MAX_REACTIONS_SHOWN", most_shown)
        patched.setattr(rules, "MAX_EMOJI_EACH", most_each)
        for each in (store, model):
            each.apply([PutGroup(group=group())])
        for write in writes:
            for each in (store, model):
                each.apply([write])
            assert counts(connection) == counted_anew(connection)
            for target in map(MessageId, TARGETS):
                assert store.message(GROUP, target) == model.message(GROUP, target)
                agrees_with_who_reacted(store, target)
    store.close()


def test_what_its_author_replaced_is_not_counted(sqlite_store: SqliteProfileStore) -> None:
    store = sqlite_store
    store.apply([PutGroup(group=group()), row(3, "m"), annotation(10, "a", "m", sender_id=BOB)])
    store.apply([channel(logged(11, "b")), annotation(11, "b", "m", sender_id=ME)])
    store.apply([channel(RemoveFromLog(message_id=MessageId("b")))])
    stored = store.message(GROUP, MessageId("m"))
    assert stored is not None
    assert [(one.count, one.mine) for one in stored.reactions] == [(1, False)]


def test_names_are_filled_up_although_the_first_are_muted(store: ProfileStore) -> None:
    many = rules.MAX_REACTORS_NAMED + rules.MAX_MUTED_AMONG_NAMED
    people = [ParticipantId(f"{n + 1:032}") for n in range(many + 3)]
    store.apply([PutGroup(group=group()), row(3, "m")])
    store.apply(
        [annotation(10 + n, f"a{n:02}", "m", sender_id=who) for n, who in enumerate(people)]
    )
    for muted in people[: rules.MAX_MUTED_AMONG_NAMED]:
        store.apply([SaveMemberMuted(conversation_id=GROUP, participant_id=muted, muted=True)])
    stored = store.message(GROUP, MessageId("m"))
    assert stored is not None
    (reaction,) = stored.reactions
    assert reaction.count == rules.MAX_REACTORS_NAMED + 3
    assert reaction.participant_ids == tuple(people[rules.MAX_MUTED_AMONG_NAMED : many])


def a_page(store: SqliteProfileStore) -> None:
    store.latest_page(GROUP, limit=len(TARGETS))


def steps_of(connection: sqlite3.Connection, work: Callable[[], None]) -> int:
    """Hundreds of instructions of SQLite's machine: the same on every machine."""
    done = 0

    def count() -> int:
        nonlocal done
        done += 1
        return 0

    connection.set_progress_handler(count, 100)
    work()
    connection.set_progress_handler(None, 0)
    return done


def test_a_page_costs_the_same_whatever_the_number_of_reactions(
    sqlite_store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    store = sqlite_store
    store.apply([PutGroup(group=group()), *(row(n, name) for n, name in enumerate(TARGETS))])

    def react(first: int, last: int) -> None:
        store.apply(
            [
                annotation(
                    10 + n,
                    f"a{target}{n:04}",
                    target,
                    sender_id=ParticipantId(f"{n // 2:032}"),
                    emoji=chr(0x1F400 + n % 48),
                )
                for target in TARGETS
                for n in range(first, last)
            ]
        )

    react(0, 1_000)
    few = steps_of(connection, lambda: a_page(store))
    react(1_000, 4_000)
    assert steps_of(connection, lambda: a_page(store)) <= few + few // 10


def test_writing_a_reaction_costs_the_same_however_many_others_there_are(
    sqlite_store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    store = sqlite_store
    store.apply([PutGroup(group=group()), row(1, "m")])

    def reacting(first: int, last: int) -> None:
        store.apply([annotation(10 + n, f"a{n:04}", f"t{n:04}") for n in range(first, last)])

    reacting(0, 10)
    few = steps_of(connection, lambda: reacting(10, 12))
    reacting(12, 500)
    assert steps_of(connection, lambda: reacting(500, 502)) <= 2 * few


def test_an_earlier_profile_is_counted_when_it_is_opened(database_path: Path, key: bytes) -> None:
    store = SqliteProfileStore.open(database_path, key)
    store.apply([PutGroup(group=group()), row(3, "m")])
    store.apply([annotation(10 + n, f"a{n}", "m", sender_id=who) for n, who in enumerate(PEOPLE)])
    before = store.message(GROUP, MessageId("m"))
    store.close()
    connection = open_database(database_path, key)
    for statement in (
        "DROP INDEX reaction_by_emoji",
        "DROP TABLE reaction_count",
        "ALTER TABLE file_holder DROP COLUMN held",
        "ALTER TABLE file_holder DROP COLUMN as_of",
        "DELETE FROM _sqlite_migrations WHERE name IN ('count_reactions', 'let_files_go')",
        "PRAGMA user_version = 9",
    ):
        connection.execute(statement)
    connection.close()
    store = SqliteProfileStore.open(database_path, key)
    after = store.message(GROUP, MessageId("m"))
    assert after == before
    assert after is not None
    assert [one.count for one in after.reactions] == [len(PEOPLE)]
    store.close()
