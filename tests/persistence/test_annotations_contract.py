"""What ``ProfileStore`` promises about reactions, edits and retractions, of both stores alike.

What is shown is a pure function of what was put, whatever the order; it is bounded, and nobody but
the author changes a text.
"""

import sqlite3
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.ids import DeliveryState, HolderSource, MessageId, ParticipantId, UnixMs
from engine.core.ports import (
    HideMessage,
    ProfileStore,
    PutAnnotation,
    PutContact,
    PutGroup,
    PutMessage,
    RemoveGroup,
    SaveMemberMuted,
    SaveReadMark,
    StoreWrite,
)
from engine.core.records import SpanRecord
from engine.core.sds.missing import kept_back
from engine.core.sds.vocabulary import MissingState, PutMissing, RemoveFromLog
from engine.core.stored import StoredMessage
from engine.persistence import annotation_reads, list_reads, reaction_counts, rules
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    ME,
    OTHER_GROUP,
    PAIR,
    annotation,
    at,
    channel,
    contact,
    delivery,
    edit,
    group,
    held,
    logged,
    retraction,
    row,
)

CAROL = ParticipantId("c" * 32)


def shown(store: ProfileStore, name: str = "m") -> StoredMessage:
    stored = store.message(GROUP, MessageId(name))
    assert stored is not None
    return stored


def emoji(stored: StoredMessage) -> list[tuple[str, int]]:
    return [(reaction.emoji, reaction.count) for reaction in stored.reactions]


# --- order --------------------------------------------------------------------------------------

kinds = st.sampled_from(["reaction", "reaction", "edit", "edit", "retraction"])
said = st.lists(
    st.builds(
        annotation,
        st.integers(0, 5),
        st.integers(0, 999).map(lambda number: f"a{number}"),
        st.sampled_from(["m", "n", "nowhere"]),
        kind=kinds,
        sender_id=st.sampled_from([ALICE, BOB, ME]),
        emoji=st.sampled_from(["👍", "❤", "❤\ufe0f", "🎉", "😂"]),
        removed=st.booleans(),
    ),
    max_size=14,
    unique_by=lambda put: put.annotation.position.message_id,
)
ROWS = [row(3, "m", text="by Alice"), row(4, "n", text="mine", is_own=True)]


def told(writes: Sequence[StoreWrite]) -> object:
    """All that is shown after these writes, each in a transaction of its own."""
    store = SqliteProfileStore.in_memory()
    store.apply([PutGroup(group=group())])
    for write in writes:
        store.apply([write])
    everything = (
        store.latest_page(GROUP, limit=9),
        store.summary(GROUP),
        [store.versions(GROUP, MessageId(name)) for name in ("m", "n", "nowhere")],
        [store.reactors(GROUP, MessageId(name)) for name in ("m", "n", "nowhere")],
    )
    store.close()
    return everything


@settings(deadline=None)
@given(said, st.data())
def test_what_is_shown_does_not_depend_on_the_order(
    annotations: list[PutAnnotation], data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rules, "MAX_EMOJI_EACH", 2)
        patched.setattr(rules, "MAX_VERSIONS", 2)
        writes: list[StoreWrite] = [*ROWS, *annotations]
        again = data.draw(st.lists(st.sampled_from(writes), max_size=4))
        shuffled = data.draw(st.permutations([*writes, *again]))
        assert told(writes) == told(shuffled)


def test_a_reaction_counts_until_a_newer_one_of_its_author_replaces_it(
    with_conversation: ProfileStore,
) -> None:
    store = with_conversation
    store.apply(
        [
            row(1, "m"),
            annotation(5, "new", "m", kind="reaction", sender_id=BOB, emoji="👍"),
            annotation(4, "old", "m", kind="reaction", sender_id=BOB, emoji="👍"),
            annotation(4, "alice", "m", kind="reaction", sender_id=ALICE, emoji="👍"),
            annotation(6, "back", "m", kind="reaction", sender_id=ALICE, emoji="🎉", removed=True),
        ]
    )
    places = [at(5, "new"), at(4, "old"), at(4, "alice"), at(6, "back"), at(9, "nowhere")]
    assert store.counting(GROUP, places) == {"new", "alice"}
    assert store.counting(OTHER_GROUP, places) == frozenset()


# --- edits and retractions ------------------------------------------------------------------------


def test_the_newest_edit_of_the_author_counts(with_conversation: ProfileStore) -> None:
    store = with_conversation
    spans = (SpanRecord(kind="link", start=0, length=3, target="https://a.example"),)
    first = edit(7, "e7", "m", "seven")
    store.apply([row(1, "m", text="one"), edit(6, "e6", "m", "six")])
    store.apply([PutAnnotation(annotation=replace(first.annotation, spans=spans))])
    store.apply([edit(5, "e5", "m", "five")])
    stored = shown(store)
    assert (stored.record.text, stored.record.spans) == ("seven", spans)
    assert (stored.shown_id, stored.edited_ms) == ("e7", first.annotation.sent_ms)
    versions = store.versions(GROUP, MessageId("m"))
    assert [(v.message_id, v.text, v.is_shown) for v in versions] == [
        ("m", "one", False),
        ("e5", "five", False),
        ("e6", "six", False),
        ("e7", "seven", True),
    ]


def test_one_that_was_never_edited_has_one_version(with_conversation: ProfileStore) -> None:
    with_conversation.apply([row(1, "m", text="one"), row(2, "joined", kind="joined")])
    (version,) = with_conversation.versions(GROUP, MessageId("m"))
    assert (version.text, version.is_shown, version.message_id) == ("one", True, "m")
    assert with_conversation.versions(GROUP, MessageId("joined")) == []
    assert with_conversation.versions(GROUP, MessageId("nowhere")) == []


def test_nobody_else_changes_a_text(with_conversation: ProfileStore) -> None:
    store = with_conversation
    store.apply([edit(5, "e", "m", sender_id=BOB), retraction(6, "r", "m", sender_id=BOB)])
    store.apply([row(1, "m", text="one")])
    store.apply([edit(7, "f", "m", sender_id=ME), retraction(8, "s", "m", sender_id=BOB)])
    stored = shown(store)
    assert (stored.record.text, stored.shown_id, stored.retracted) == ("one", None, False)
    assert len(store.versions(GROUP, MessageId("m"))) == 1


def test_only_a_text_is_changed(with_conversation: ProfileStore) -> None:
    with_conversation.apply([row(1, "m", kind="joined", text="Alice"), edit(2, "e", "m")])
    assert shown(with_conversation).record.text == "Alice"


def test_a_retraction_counts_whatever_edits_come(with_conversation: ProfileStore) -> None:
    store = with_conversation
    store.apply([row(1, "m", text="one"), edit(2, "e", "m"), annotation(2, "a", "m")])
    store.apply([retraction(3, "r", "m")])
    store.apply([edit(9, "later", "m", "still?")])
    stored = shown(store)
    assert (stored.retracted, stored.record.text, stored.shown_id) == (True, "", "r")
    assert (stored.edited_ms, stored.reactions, stored.more_reactions) == (None, (), 0)
    assert {version.text for version in store.versions(GROUP, MessageId("m"))} == {""}
    assert store.reactors(GROUP, MessageId("m")) == []


def test_a_retracted_text_is_nowhere_in_the_tables(
    sqlite_store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    store = sqlite_store
    store.apply([PutGroup(group=group()), row(1, "m", text="secret"), edit(2, "e", "m", "secret")])
    store.apply([retraction(3, "r", "m"), edit(4, "f", "m", "secret")])
    for table, column in (("message", "text"), ("version", "text")):
        found = connection.execute(f"SELECT {column} FROM {table}").fetchall()  # noqa: S608
        assert set(found) == {("",)}


def test_an_edit_waits_for_its_message_and_for_its_place(with_conversation: ProfileStore) -> None:
    store = with_conversation
    store.apply([edit(5, "e", "m", "edited"), annotation(5, "a", "m")])
    assert store.message(GROUP, MessageId("m")) is None
    store.apply([row(1, "m", text="one", waiting=True)])
    assert (shown(store).record.text, emoji(shown(store))) == ("edited", [("👍", 1)])
    store.apply([row(2, "m", text="one")])
    stored = shown(store)
    assert (stored.record.text, stored.record.waiting) == ("edited", False)
    assert [v.text for v in store.versions(GROUP, MessageId("m"))] == ["one", "edited"]


def test_what_its_author_replaced_counts_no_more(with_group: ProfileStore) -> None:
    """As after a clock that was ahead: the same is said again under another id."""
    store = with_group
    store.apply(
        [
            row(1, "m", text="one", is_own=True),
            channel(logged(90, "future"), logged(91, "heart")),
            edit(90, "future", "m", "future", sender_id=ME),
            annotation(91, "heart", "m", sender_id=ME),
        ]
    )
    assert (shown(store).record.text, emoji(shown(store))) == ("future", [("👍", 1)])
    gone = [RemoveFromLog(message_id=MessageId(name)) for name in ("future", "heart")]
    store.apply([channel(*gone)])
    assert (shown(store).record.text, shown(store).shown_id) == ("one", None)
    assert emoji(shown(store)) == []


def test_the_delivery_shown_is_of_the_edit(with_group: ProfileStore) -> None:
    store = with_group
    store.apply(
        [
            row(1, "m", is_own=True),
            delivery("m", DeliveryState.HELD),
            channel(held("m", BOB, HolderSource.CAUSAL)),
        ]
    )
    store.apply(
        [
            edit(2, "e", "m", sender_id=ME),
            delivery("e", DeliveryState.SENT),
            channel(held("e", ALICE, HolderSource.CAUSAL)),
        ]
    )
    stored = shown(store)
    assert stored.delivery == delivery("e", DeliveryState.SENT).delivery
    assert [one.participant_id for one in stored.holders] == [ALICE]
    first, second = store.versions(GROUP, MessageId("m"))
    assert first.delivery == delivery("m", DeliveryState.HELD).delivery
    assert second.holders == stored.holders


# --- reactions ------------------------------------------------------------------------------------


def test_of_each_member_and_emoji_the_newest_counts(with_conversation: ProfileStore) -> None:
    store = with_conversation
    store.apply([row(1, "m")])
    store.apply([annotation(3, "gone", "m", removed=True), annotation(2, "a", "m")])
    assert emoji(shown(store)) == []
    store.apply([annotation(4, "back", "m"), annotation(2, "b", "m", sender_id=BOB)])
    store.apply([annotation(5, "mine", "m", sender_id=ME), delivery("mine", DeliveryState.SAVED)])
    (reaction,) = shown(store).reactions
    assert (reaction.count, reaction.mine, reaction.pending) == (3, True, True)
    assert reaction.participant_ids == (BOB, ALICE)
    assert [one.participant_id for one in store.reactors(GROUP, MessageId("m"))] == [BOB, ALICE, ME]
    for state in (DeliveryState.SENT, DeliveryState.FAILED):
        store.apply([delivery("mine", state)])
        assert shown(store).reactions[0].pending is (state is DeliveryState.FAILED)


def test_both_spellings_of_an_emoji_are_one_reaction(with_conversation: ProfileStore) -> None:
    store = with_conversation
    store.apply([row(1, "m"), annotation(2, "a", "m", emoji="❤")])
    store.apply([annotation(3, "b", "m", emoji="❤\ufe0f", sender_id=BOB)])
    assert emoji(shown(store)) == [("❤\ufe0f", 2)]
    store.apply([annotation(4, "c", "m", emoji="❤", sender_id=BOB, removed=True)])
    assert emoji(shown(store)) == [("❤", 1)]


def test_a_member_has_a_bounded_number_of_emoji_for_a_message(
    with_conversation: ProfileStore,
) -> None:
    store, many = with_conversation, rules.MAX_EMOJI_EACH + 9
    store.apply([row(1, "m")])
    store.apply([annotation(n, f"a{n:02}", "m", emoji=chr(0x1F400 + n)) for n in range(many)])
    reactors = store.reactors(GROUP, MessageId("m"))
    assert [one.message_id for one in reactors] == [f"a{n:02}" for n in range(9, many)]
    assert emoji(shown(store)) == [(chr(0x1F400 + n), 1) for n in range(9, many)]


def test_the_most_frequent_are_shown_and_the_rest_is_counted(
    with_conversation: ProfileStore,
) -> None:
    store, many = with_conversation, rules.MAX_REACTIONS_SHOWN + 5
    people = [ParticipantId(f"{n + 1:032}") for n in range(many)]
    store.apply([row(1, "m")])
    store.apply(
        [
            annotation(n, f"a{n:02}", "m", emoji=chr(0x1F400 + n), sender_id=people[n])
            for n in range(many)
        ]
    )
    store.apply([annotation(99, "b", "m", emoji=chr(0x1F400 + many - 1), sender_id=BOB)])
    stored = shown(store)
    assert len(stored.reactions) == rules.MAX_REACTIONS_SHOWN
    assert stored.more_reactions == 5
    assert (stored.reactions[0].emoji, stored.reactions[0].count) == (chr(0x1F400 + many - 1), 2)
    assert stored.reactions[1].participant_ids == (people[0],)


def test_reactions_of_a_muted_member_are_not_shown(with_group: ProfileStore) -> None:
    store = with_group
    store.apply([row(1, "m", sender_id=BOB), annotation(2, "a", "m"), annotation(3, "b", "m")])
    for muted, found in ((True, []), (False, [("👍", 1)])):
        mute = SaveMemberMuted(conversation_id=GROUP, participant_id=ALICE, muted=muted)
        store.apply([mute])
        assert emoji(shown(store)) == found
        assert len(store.reactors(GROUP, MessageId("m"))) == len(found)
        assert (store.summary(GROUP).last_annotation is None) is muted


# --- quotes and mentions --------------------------------------------------------------------------


def test_a_quote_is_what_the_message_shows_now(with_conversation: ProfileStore) -> None:
    store = with_conversation
    store.apply([row(2, "answer", reply_to="m", sender_id=BOB)])
    assert (shown(store, "answer").record.reply_to, shown(store, "answer").quote) == ("m", None)
    store.apply([row(1, "m", text="x" * 999)])
    assert store.quoting(GROUP, [MessageId("m"), MessageId("n")]) == ["answer"]
    assert store.targets(GROUP, [MessageId("m")]) == []
    quote = shown(store, "answer").quote
    assert quote is not None
    assert (quote.position, quote.sender_id, quote.is_own) == (at(1, "m"), ALICE, False)
    assert rules.QUOTED_CHARACTERS <= len(quote.text) < 999
    store.apply([edit(3, "e", "m", "shorter")])
    assert (quote := shown(store, "answer").quote) is not None
    assert quote.text == "shorter"
    store.apply([retraction(4, "r", "m")])
    assert (quote := shown(store, "answer").quote) is not None
    assert (quote.text, quote.retracted, quote.hidden) == ("", True, False)


def test_a_quote_does_not_show_what_is_hidden_here(with_conversation: ProfileStore) -> None:
    store = with_conversation
    store.apply([row(1, "m", text="hide me"), row(2, "answer", reply_to="m", sender_id=BOB)])
    store.apply([HideMessage(conversation_id=GROUP, message_id=MessageId("m"))])
    quote = shown(store, "answer").quote
    assert quote is not None
    assert (quote.text, quote.hidden) == ("", True)


def test_a_quote_of_what_was_kept_from_us_says_so_until_it_is_here(
    with_group: ProfileStore,
) -> None:
    store, before = with_group, kept_back(MessageId("m"), UnixMs(1))
    missing = (
        before,
        replace(kept_back(MessageId("too old for us"), UnixMs(1)), online_ms=9),
        replace(kept_back(MessageId("wanted"), UnixMs(1)), state=MissingState.WANTED),
        replace(kept_back(MessageId("lost"), UnixMs(1)), stores=None),
    )
    writes = tuple(PutMissing(entry=each) for each in missing)
    answers = [row(n, f"to {each.entry.message_id}", reply_to=each.entry.message_id)
               for n, each in enumerate(missing, 2)]  # fmt: skip
    store.apply([channel(*writes), *answers, row(9, "to nothing known", reply_to="nothing")])
    assert [
        each.record.position.message_id
        for each in store.latest_page(GROUP, limit=9).messages
        if each.quotes_before
    ] == ["to m"]
    store.apply([row(1, "m", text="given later")])
    assert not shown(store, "to m").quotes_before


def test_unread_mentions_are_counted_apart(with_conversation: ProfileStore) -> None:
    store = with_conversation
    store.apply(
        [
            row(1, "read", mentions_me=True),
            row(2, "a"),
            row(3, "b", mentions_me=True),
            row(4, "own", is_own=True, mentions_me=True),
            row(5, "c", mentions_me=True, waiting=True),
        ]
    )
    store.apply([SaveReadMark(conversation_id=GROUP, up_to=at(1, "read"))])
    summary = store.summary(GROUP)
    assert (summary.unread, summary.mentions, summary.first_mention) == (3, 2, at(3, "b"))
    store.apply([edit(6, "e", "b", "no mention any more")])
    store.apply([annotation(7, "f", "a", kind="edit", mentions_me=True)])
    assert store.summary(GROUP).first_mention == at(2, "a")


def test_the_newest_annotation_that_counts_is_told(with_conversation: ProfileStore) -> None:
    store = with_conversation
    store.apply([row(1, "m", text="one"), annotation(2, "a", "m", sender_id=BOB)])
    last = store.summary(GROUP).last_annotation
    assert last is not None
    assert (last.kind, last.sender_id, last.emoji, last.target.text) == (
        "reaction", BOB, "👍", "one",
    )  # fmt: skip
    store.apply([edit(9, "no", "m", sender_id=BOB), annotation(9, "nowhere", "nowhere")])
    assert store.summary(GROUP).last_annotation == last
    store.apply([edit(5, "e", "m", "two")])
    last = store.summary(GROUP).last_annotation
    assert last is not None
    assert (last.kind, last.sender_id, last.target.text) == ("edit", ALICE, "two")
    store.apply([row(6, "n")])
    assert store.summary(GROUP).last_annotation is None


# --- bounds and cost ------------------------------------------------------------------------------


def test_ten_thousand_edits_leave_a_bounded_number_of_versions(
    with_conversation: ProfileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MAX_VERSIONS", 16)
    store = with_conversation
    store.apply([row(0, "m", text="one")])
    for first in range(0, 200, 50):
        store.apply([edit(n, f"e{n:03}", "m", f"edit {n}") for n in range(first, first + 50)])
    versions = store.versions(GROUP, MessageId("m"))
    assert [version.text for version in versions] == ["one"] + [
        f"edit {n}" for n in range(200 - 16, 200)
    ]
    assert shown(store).record.text == "edit 199"


def test_pages_look_up_reactions_and_quotes_once(
    sqlite_store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    """And for rows that have neither not at all."""
    store = sqlite_store
    store.apply([PutGroup(group=group()), *(row(n, f"m{n:02}") for n in range(32))])
    statements: list[str] = []

    def read_page() -> int:
        connection.set_trace_callback(statements.append)
        store.latest_page(GROUP, limit=32)
        connection.set_trace_callback(None)
        count = len(statements)
        statements.clear()
        return count

    plain = read_page()
    store.apply([annotation(40 + n, f"a{n:02}", f"m{n:02}") for n in range(32)])
    assert read_page() == plain + 3, "the counts, who is muted, and the names"
    store.apply([row(50 + n, f"q{n:02}", reply_to=f"m{n:02}") for n in range(32)])
    assert read_page() == plain + 1, "these rows quote, and have no reactions"


def plan(connection: sqlite3.Connection, sql: str) -> str:
    rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (1,) * sql.count("?")).fetchall()
    return "\n".join(str(found[3]) for found in rows)


@pytest.mark.parametrize(
    "sql",
    [
        *reaction_counts.MOST_FREQUENT.values(),
        *reaction_counts.OF_MUTED.values(),
        *reaction_counts.PARTICIPANTS.values(),
        *annotation_reads.QUOTES.values(),
        *annotation_reads.KEPT_FROM_US.values(),
        *annotation_reads.TARGETS.values(),
        *annotation_reads.QUOTING.values(),
        annotation_reads.VERSIONS,
        annotation_reads.REACTORS,
        annotation_reads.LATE_REACTIONS,
        annotation_reads.LATE_CHANGES,
        list_reads.MENTIONS,
        list_reads.FIRST_MENTION,
        *list_reads.COUNTS.values(),
        *list_reads.NEWEST.values(),
        *list_reads.UNSETTLED.values(),
    ],
)
def test_nothing_is_looked_for_in_a_whole_table(connection: sqlite3.Connection, sql: str) -> None:
    found = plan(connection, sql)
    scanned = [line for line in found.splitlines() if line.startswith("SCAN")]
    of_subqueries = {"SCAN r", "SCAN v"}
    assert all(line in of_subqueries or "subquery" in line for line in scanned), found
    assert "SEARCH" in found


def test_annotations_go_with_their_conversation(store: ProfileStore) -> None:
    store.apply([PutGroup(group=group()), row(1, "m"), annotation(2, "a", "m"), edit(3, "e", "m")])
    store.apply([RemoveGroup(conversation_id=GROUP), PutGroup(group=group()), row(1, "m")])
    stored = shown(store)
    assert (stored.reactions, stored.shown_id) == ((), None)
    while store.clear_removed():
        pass
    store.apply([PutContact(contact=contact(PAIR))])
    assert store.message(PAIR, MessageId("m")) is None


def test_a_row_keeps_how_it_came(with_conversation: ProfileStore) -> None:
    for arrival in ("written_here", "live", "store", "repair", "unknown"):
        record = replace(row(1, arrival).message, arrival=arrival, repaired_by=BOB, forwarded=True)
        with_conversation.apply([PutMessage(message=record)])
        assert shown(with_conversation, arrival).record == record
