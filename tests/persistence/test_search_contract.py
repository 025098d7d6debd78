"""What both stores find, in which order, and what they do not find any more."""

from threading import Event

import pytest
from msgspec import structs

from engine.core.ids import ConversationId, MessageId, UnixMs
from engine.core.ports import (
    HideMessage,
    ProfileStore,
    PutContact,
    PutGroup,
    PutMessage,
    PutOpenChannel,
    RemoveGroup,
    SaveMemberMuted,
)
from engine.core.records import SpanRecord
from engine.core.sds.vocabulary import RemoveFromLog
from engine.core.search import FoundPlace, SearchQuery
from engine.core.search_text import Wanted, wanted
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    ME,
    NOW,
    OPEN,
    PAIR,
    at,
    channel,
    contact,
    edit,
    group,
    logged,
    open_channel,
    retraction,
    row,
)

NOTHING = Wanted((), ())


def found(store: ProfileStore, words: str = "", **more: object) -> list[str]:
    query = structs.replace(SearchQuery(wanted=wanted(words)), **more)
    return found_by(store, query)


def found_by(store: ProfileStore, query: SearchQuery, *, limit: int = 50) -> list[str]:
    while store.searching.index_some(old=True).is_more:
        pass
    answer = store.searching.find(query, limit=limit, stop=Event())
    return [one.position.message_id for one in answer]


@pytest.fixture
def talk(store: ProfileStore) -> ProfileStore:
    store.apply([PutGroup(group=group()), PutContact(contact=contact())])
    store.apply([PutOpenChannel(channel=open_channel())])
    return store


def test_words_are_found_by_their_beginnings_without_accents_and_case(talk: ProfileStore) -> None:
    talk.apply([row(1, "a", text="Déjà vu, Straße!"), row(2, "b", text="a vulture")])
    for words, expected in (
        ("deja", ["a"]), ("DÉJÀ", ["a"]), ("vu", ["b", "a"]), ("v deja", ["a"]), ("strasse", ["a"]),
        ("ulture", []), ("eja", []), ("vu nothing", []),
    ):  # fmt: skip
        assert found(talk, words) == expected, words


def test_runs_are_found_anywhere_in_scripts_without_spaces(talk: ProfileStore) -> None:
    talk.apply(
        [
            row(1, "a", text="東京タワーに行く"),
            row(2, "b", text="ฉันรักแมว"),
            row(3, "c", text="京東"),
        ]
    )
    for words, expected in (
        ("タワー", ["a"]), ("京", ["c", "a"]), ("東京タワー", ["a"]), ("รัก", ["b"]), ("京都", []),
        ("行く タワ", ["a"]),
    ):  # fmt: skip
        assert found(talk, words) == expected, words


def test_the_newest_comes_first_over_all_conversations(talk: ProfileStore) -> None:
    talk.apply([row(5, "g5", text="word"), row(1, "g1", text="word"), row(9, "g9", text="word")])
    talk.apply([row(7, "p7", text="word", conversation_id=PAIR)])
    talk.apply([row(3, "o3", text="word", conversation_id=OPEN), row(9, "g8", text="word")])
    assert found(talk, "word") == ["g9", "g8", "p7", "g5", "o3", "g1"]
    assert found(talk, "word", conversation_id=GROUP) == ["g9", "g8", "g5", "g1"]
    assert found(talk, "word", conversation_id=OPEN) == ["o3"]
    assert found(talk, "word", conversation_id=ConversationId("none")) == []
    assert found(talk, "word", before=FoundPlace(at(9, "g8"), GROUP)) == ["p7", "g5", "o3", "g1"]
    assert found_by(talk, SearchQuery(wanted=wanted("word")), limit=2) == ["g9", "g8"]


def with_link(message: PutMessage) -> PutMessage:
    span = SpanRecord(kind="link", start=0, length=4, target="https://a.example")
    return structs.replace(message, message=structs.replace(message.message, spans=(span,)))


def sent_at(message: PutMessage, sent_ms: int) -> PutMessage:
    changed = structs.replace(message.message, sent_ms=UnixMs(sent_ms))
    return structs.replace(message, message=changed)


def test_filters_alone_and_with_words(talk: ProfileStore) -> None:
    talk.apply(
        [
            row(1, "a", text="one two"),
            row(2, "b", text="one", sender_id=BOB),
            row(3, "f", text="", kind="file"),
            with_link(row(4, "l", text="one here")),
            row(5, "m", text="one", is_own=True),
        ]
    )
    assert found(talk, "one", sender_id=BOB) == ["b"]
    assert found(talk, sender_id=ALICE) == ["l", "f", "a"]
    assert found(talk, sender_id=ME) == ["m"]
    assert found(talk, has_file=True) == ["f"]
    assert found(talk, has_link=True) == found(talk, "one", has_link=True) == ["l"]
    assert found(talk, "f png", has_file=True) == ["f"], "by its name"
    assert found(talk, "two", has_link=True) == []
    assert found(talk) == found(talk, "?!") == []


def test_dates_are_those_of_the_authors(talk: ProfileStore) -> None:
    talk.apply([sent_at(row(n, f"m{n}", text="word"), NOW - 1_000 * n) for n in (1, 2, 3)])
    assert found(talk, "word", since_ms=UnixMs(NOW - 2_000)) == ["m2", "m1"]
    assert found(talk, "word", until_ms=UnixMs(NOW - 2_000)) == ["m3"]
    assert found(talk, since_ms=UnixMs(NOW - 2_000), until_ms=UnixMs(NOW - 1_000)) == ["m2"]


def test_an_edit_replaces_what_is_found(talk: ProfileStore) -> None:
    talk.apply([row(1, "a", text="before"), row(2, "b", text="before")])
    assert found(talk, "before") == ["b", "a"]
    talk.apply([edit(3, "e", "a", "afterwards")])
    assert (found(talk, "before"), found(talk, "afterwards")) == (["b"], ["a"])


@pytest.mark.parametrize("kind", ["text", "file"])
def test_what_is_deleted_is_not_found(talk: ProfileStore, kind: str) -> None:
    talk.apply([row(n, f"m{n}", text="word", kind=kind) for n in (1, 2, 3)])
    talk.apply([channel(logged(3, "m3"))])
    assert found(talk, "word") == ["m3", "m2", "m1"]
    talk.apply([retraction(4, "r", "m1")])
    talk.apply([HideMessage(conversation_id=GROUP, message_id=MessageId("m2"))])
    talk.apply([channel(RemoveFromLog(message_id=MessageId("m3")))])
    assert found(talk, "word") == found(talk, "png") == found(talk, sender_id=ALICE) == []
    talk.apply([row(3, "n3", text="another")])
    assert (found(talk, "another"), found(talk, "word")) == (["n3"], [])


def test_what_muted_members_wrote_is_not_found(talk: ProfileStore) -> None:
    talk.apply([row(1, "a", text="word"), row(2, "b", text="word", sender_id=BOB)])
    mute = SaveMemberMuted(conversation_id=GROUP, participant_id=BOB, muted=True)
    talk.apply([mute])
    assert found(talk, "word") == ["a"]
    talk.apply([structs.replace(mute, muted=False)])
    assert found(talk, "word") == ["b", "a"]


def test_a_removed_conversation_is_not_found(talk: ProfileStore) -> None:
    talk.apply([row(1, "a", text="word"), row(2, "p", text="word", conversation_id=PAIR)])
    assert found(talk, "word") == ["p", "a"]
    talk.apply([RemoveGroup(conversation_id=GROUP)])
    assert found(talk, "word") == ["p"]
    talk.apply([PutGroup(group=group())])
    assert found(talk, "word") == ["p"]


def test_messages_that_wait_are_found(talk: ProfileStore) -> None:
    talk.apply([row(4, "a", text="word", waiting=True), row(2, "b", text="word")])
    assert found(talk, "word", conversation_id=GROUP) == ["a", "b"]
    talk.apply([row(4, "a", text="word")])
    assert found(talk, "word", conversation_id=GROUP) == ["a", "b"]


TEXTS = ("one two", "a and b", "not near one two", "x" * 10_000)
HOSTILE: tuple[tuple[str, list[str]], ...] = (
    ('"', []), ('""', []), ("a AND b", ["m1"]), ("NOT", ["m2"]), ("NEAR(one two)", ["m2"]),
    ("one*", ["m2", "m0"]), ("* ^ : -", []), ("terms:one", []), ("one\0two", ["m2", "m0"]),
    ("'; --", []), ("(" * 500, []), ('"one" OR "two', []), ("\ud800", []), ("\ue000c1", []),
    ("😀" * 300, []), ("one " * 2_500, ["m2", "m0"]), ("x" * 10_000, ["m3"]),
    (" ".join(f"w{n}" for n in range(2_000)), []),
)  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_that_is_typed_is_syntax(
    talk: ProfileStore, words: str, expected: list[str]
) -> None:
    talk.apply([row(n, f"m{n}", text=text) for n, text in enumerate(TEXTS)])
    assert found(talk, words) == expected
    assert found(talk, "one") == ["m2", "m0"]
