"""A database of schema version 1 with rows in every table, and the writes that made it.

``version_1.sql`` is what the program of that version left behind after ``STORY``, with its slices
and blocks made small, so that a muting and a removal are unfinished.
"""

from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from engine.core.history.progress import SaveCovered, SaveProgress, SaveReach, StoreRecord
from engine.core.ids import ConversationId, DeliveryState, HolderSource, MessageId, UnixMs
from engine.core.mvds.vocabulary import KeepMessage, NoteHeld, PutPendingAck
from engine.core.ports import (
    AddCounters,
    HideMessage,
    PutContact,
    PutGroup,
    PutMessage,
    PutNodeAddress,
    PutStore,
    RemoveGroup,
    SaveDraft,
    SaveMemberMuted,
    SaveOwnSequence,
    SavePairAuthor,
    SavePicture,
    SaveProfile,
    SaveReadMark,
    SaveValue,
    StoreWrite,
)
from engine.core.records import SpanRecord
from engine.core.sds.vocabulary import (
    NewestClaim,
    PutIncoming,
    PutMissing,
    PutNewestClaims,
    SaveClock,
    SaveStoreQueried,
)
from engine.persistence.connection import connect, transaction
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    ME,
    NOW,
    OTHER_GROUP,
    PAIR,
    PROFILE,
    at,
    body,
    channel,
    clock,
    contact,
    delivery,
    fork,
    given_up,
    group,
    held,
    logged,
    member,
    mvds,
    mvds_id,
    outgoing,
    own_sequence,
    record,
    replacement,
    row,
    set_aside,
    spent,
    waiting,
)
from tests.persistence.test_channel_contract import BARE, LOST, WAITING, WANTED
from tests.persistence.test_history_contract import FIRST_STORE, PROGRESS, history

LOGGED: Final = 70
"""One block of signed bytes, and some that are plain."""
REMOVED: Final = ConversationId("T" * 43)
SQL: Final = Path(__file__).with_name("version_1.sql")


def sealed_id(number: int) -> MessageId:
    """Of the shape that a group's ids have, in no order."""
    digest = sha256(str(number).encode()).digest()[:16]
    return MessageId(urlsafe_b64encode(digest).decode().rstrip("="))


IDS: Final = [sealed_id(number) for number in range(LOGGED)]


def _of_group() -> list[StoreWrite]:
    writes: list[StoreWrite] = [member(each) for each in (ME, ALICE, BOB)]
    for number, id_ in enumerate(IDS):
        own = number % 5 == 0
        sender = (ALICE, BOB)[number % 2]
        writes += [
            channel(logged(1 + number // 2, id_, raw=f"raw {number}".encode() * (number % 4))),
            row(1 + number // 2, id_, is_own=own, text=f"text {number}", sender_id=sender),
        ]
        if own:
            writes += [
                delivery(id_, DeliveryState.HELD if number % 2 else DeliveryState.FAILED, "why"),
                channel(held(id_, BOB, HolderSource.BLOOM, number, 0.5)),
            ]
    certain = [held(id_, ALICE, HolderSource.CAUSAL, 9) for id_ in reversed(IDS[:20:5])]
    again = held(IDS[0], BOB, HolderSource.CAUSAL, 10)
    spans = (SpanRecord(kind="link", start=0, length=3, target="https://a.example"),)
    bare = logged(40, "bare", b"unsigned", previous=IDS[3])
    no_author = replace(bare, entry=replace(bare.entry, author=None, retrieval_hint=None))
    return [
        *writes,
        channel(
            *certain,
            again,
            SaveClock(lamport_timestamp=99),
            SaveStoreQueried(store_queried_ms=UnixMs(7)),
        ),
        channel(no_author, outgoing(IDS[5]), PutIncoming(entry=WAITING), PutIncoming(entry=BARE)),
        channel(PutMissing(entry=WANTED), PutMissing(entry=LOST), replacement("r"), fork()),
        channel(set_aside("s", b"raw"), spent(2), PutNewestClaims((NewestClaim(BOB, 7),))),
        PutMessage(message=replace(row(50, sealed_id(900), waiting=True).message, spans=spans)),
        HideMessage(conversation_id=GROUP, message_id=IDS[7]),
        SaveReadMark(conversation_id=GROUP, up_to=at(12, IDS[22])),
        SaveDraft(conversation_id=GROUP, text="draft"),
        SaveOwnSequence(conversation_id=GROUP, own_sequence=own_sequence(3, IDS[65])),
        history(SaveProgress(PROGRESS), SaveReach(since_ms=UnixMs(7))),
        history(SaveCovered(store=FIRST_STORE, through_ms=UnixMs(2))),
        SaveMemberMuted(conversation_id=GROUP, participant_id=BOB, muted=True),
    ]


def _of_pair() -> list[StoreWrite]:
    author = PROFILE.instance_id
    return [
        *(row(n, f"long id of a pair {n:040}", conversation_id=PAIR) for n in range(9)),
        clock(9),
        SavePairAuthor(conversation_id=PAIR, instance_id=author, sequence=4),
        waiting("later"),
        given_up(1, 2),
        mvds(record("sent"), KeepMessage(mvds_id("sent"), body()), NoteHeld(mvds_id("held"))),
        mvds(PutPendingAck(BOB, mvds_id("held"))),
    ]


STORY: Final[tuple[StoreWrite, ...]] = (
    SaveProfile(profile=PROFILE),
    SavePicture(picture=b"picture"),
    SaveValue(key="key", value="value"),
    AddCounters(amounts={"name": 3}),
    PutNodeAddress(multiaddr="/p2p/A", seen_ms=NOW),
    PutStore(record=StoreRecord(store=FIRST_STORE, place=1)),
    PutGroup(group=group()),
    PutGroup(group=group(OTHER_GROUP)),
    PutContact(contact=contact()),
    *_of_group(),
    channel(logged(1, "short", b""), conversation_id=OTHER_GROUP),
    row(1, "short", conversation_id=OTHER_GROUP),
    *_of_pair(),
    PutGroup(group=group(REMOVED)),
    *(channel(logged(n, f"gone {n}"), conversation_id=REMOVED) for n in range(5)),
    RemoveGroup(conversation_id=REMOVED),
)


def make_version_1(path: Path, key: bytes) -> None:
    connection = connect(str(path), key)
    connection.executescript(SQL.read_text(encoding="utf-8"))
    connection.close()


def make_long_version_1(path: Path, key: bytes, texts: int) -> None:
    """One with ``texts`` more in one conversation; every second is ours, and held."""
    make_version_1(path, key)
    connection = connect(str(path), key)
    connection.execute("PRAGMA synchronous = OFF")
    (group,) = connection.execute(
        "SELECT conversation_key FROM conversation WHERE conversation_id = ?", (GROUP,)
    ).fetchone()
    history = "".join(sealed_id(number) for number in range(40)).encode()
    with transaction(connection):
        for number in range(texts):
            id_, key_ = sealed_id(1_000_000 + number), 1_000_000 + number
            sender, own = (ME, 1) if number % 2 else (ALICE, 0)
            raw = sha256(id_.encode()).digest() * 2 + history[number % 64 :]
            place = (group, 1_000 + number, id_)
            author = (PROFILE.instance_id, number, None)
            connection.execute(_LOG_ENTRY, (key_, *place, sender, raw[:32], *author, len(raw)))
            connection.execute("INSERT INTO log_raw VALUES (?, ?)", (key_, raw))
            text = f"{number} a short text as people write it all day, and nothing much"
            connection.execute(_MESSAGE, (key_, group, id_, 1_000 + number, own, sender, text))
            if own:
                connection.execute(_HOLDER, (key_, group, id_, ALICE))
                connection.execute(_DELIVERY, (group, id_))
    connection.close()


_LOG_ENTRY: Final = """
INSERT INTO log_entry (log_key, conversation_key, lamport_timestamp, message_id, sender_id,
                       retrieval_hint, instance_id, sequence, previous_id, size)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_MESSAGE: Final = """
INSERT INTO message (message_key, conversation_key, message_id, lamport_timestamp, waiting, hidden,
                     is_own, late, kind, sender_id, sent_ms, received_ms, text, spans)
VALUES (?, ?, ?, ?, 0, 0, ?, 0, 'text', ?, 7, 7, ?, '')
"""
_HOLDER: Final = """
INSERT INTO holder (holder_key, conversation_key, message_id, participant_id, source, since_ms)
VALUES (?, ?, ?, ?, 'causal', 7)
"""
_DELIVERY: Final = "INSERT INTO delivery VALUES (?, ?, 'held', 1, NULL)"
