"""What ``benchmarks/mvds.py`` measures, without its table: epochs, starts from disk, sessions.

Epochs are CPU time of the node alone, with the collector tuned as the application does.  A start is
what stands between opening the database and the first epoch's payload.  Sessions are virtual time:
every run of a seed is the same.
"""

import gc
import hashlib
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from engine.codec.mvds_id import mvds_id_of
from engine.core.contacts import ContactState
from engine.core.faults import SeededRandom
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.mvds.config import MvdsConfig
from engine.core.mvds.node import MvdsNode
from engine.core.mvds.vocabulary import (
    DeadlineReached,
    Epoch,
    GroupId,
    MvdsId,
    MvdsState,
    NoteHeld,
    PutRecord,
    Record,
    RecordType,
)
from engine.core.ports import ApplyMvds, PutContact
from engine.core.records import ContactRecord
from engine.persistence.sqlite_store import SqliteProfileStore

NOW: Final = UnixMs(1_760_000_000_000)
EPOCH: Final = Epoch(NOW // 1_000)
GROUP: Final = GroupId(b"G" * 32)
PAIR: Final = ConversationId("benchmark")
SPREAD_EPOCHS: Final = 100
"""So many epochs ahead records are due, evenly: in each the hundredth part of them."""
SENT_BEFORE: Final = 9
"""So often that what is sent is not due again while it is measured."""
BATCH: Final = 20_000


def epochs(live: int, peers: int, rounds: int) -> tuple[list[float], list[float]]:
    """CPU ms of an epoch with the hundredth part due, and of one with nothing due."""
    names = [ParticipantId(f"peer-{number}") for number in range(peers)]
    node = _node(names, MvdsState(records=tuple(_records(live, names))))
    gc.collect()
    gc.freeze()
    busy, idle = [], []
    for number in range(1, rounds + 1):
        at_ms = UnixMs(NOW + number * 1_000)
        busy.append(_cpu_ms(node, at_ms))
        idle.append(_cpu_ms(node, UnixMs(at_ms + 500)))
    gc.unfreeze()
    return busy, idle


def fill(path: Path, count: int) -> bytes:
    """Write a pair's records; the key of the database."""
    key, peer = secrets.token_bytes(32), ParticipantId("f" * 32)
    store = SqliteProfileStore.open(path, key)
    store.apply([PutContact(contact=_contact(peer))])
    pending: list[PutRecord] = []
    for record in _records(count, [peer]):
        pending.append(PutRecord(record))
        if len(pending) == BATCH:
            store.apply([ApplyMvds(conversation_id=PAIR, writes=tuple(pending))])
            pending.clear()
    store.apply([ApplyMvds(conversation_id=PAIR, writes=tuple(pending))])
    store.close()
    return key


def fill_held(path: Path, key: bytes, count: int) -> None:
    """Ids of messages received besides."""
    store = SqliteProfileStore.open(path, key)
    for start in range(0, count, BATCH):
        ids = (_id(-1 - number) for number in range(start, start + BATCH))
        held = tuple(NoteHeld(message_id) for message_id in ids)
        store.apply([ApplyMvds(conversation_id=PAIR, writes=held)])
    store.close()


def start_ms(path: Path, key: bytes) -> float:
    """Wall time from a closed database to the payload of the first epoch in which much is due."""
    began = time.perf_counter()
    store = SqliteProfileStore.open(path, key)
    config = MvdsConfig()
    state = store.mvds_state(PAIR, limit=config.load_records)
    node = _node([ParticipantId("f" * 32)], state)
    sent = node.handle(DeadlineReached(), now_ms=UnixMs(NOW + 1_000)).sends
    took_ms = (time.perf_counter() - began) * 1_000
    store.close()
    if not sent or not state.records:
        raise AssertionError("nothing was there to start from")
    return took_ms


def _node(names: list[ParticipantId], state: MvdsState) -> MvdsNode:
    return MvdsNode(
        ParticipantId("own"),
        config=MvdsConfig(),
        id_of=mvds_id_of,
        groups={GROUP: frozenset(names)},
        random_unit=SeededRandom(1),
        state=state,
        online=True,
        now_ms=NOW,
    )


def _records(count: int, names: list[ParticipantId]) -> Iterator[Record]:
    for number in range(count):
        yield Record(
            names[number % len(names)],
            _id(number),
            RecordType.OFFER,
            SENT_BEFORE,
            Epoch(EPOCH + 1 + number % SPREAD_EPOCHS),
            1_000,
            UnixMs(NOW - count + number),
        )


def _id(number: int) -> MvdsId:
    return MvdsId(hashlib.sha256(str(number).encode()).digest())


def _cpu_ms(node: MvdsNode, now_ms: UnixMs) -> float:
    began = time.process_time()
    node.handle(DeadlineReached(), now_ms=now_ms)
    node.next_deadline()
    return (time.process_time() - began) * 1_000


def _contact(peer: ParticipantId) -> ContactRecord:
    return ContactRecord(
        conversation_id=PAIR,
        participant_id=peer,
        public_key=bytes(32),
        encryption_key=bytes(32),
        name="Benchmark",
        state=ContactState.ACCEPTED,
        created_ms=NOW,
    )
