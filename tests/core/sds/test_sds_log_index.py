"""The log's index answers like a dict and a sorted list, wherever a message is kept.

Pages, buckets and chunks are tiny here, so that every message soon becomes an old one.  Beside it
the same is done to an index of the usual sizes, where all stay young.
"""

import gc
import tracemalloc
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, Position
from engine.core.packed_ids import pack_id
from engine.core.sds.log import LogIndex, instance_of_twin
from engine.core.sds.log_ids import RowsById
from engine.core.sds.log_order import LogOrder
from engine.core.sds.log_table import PAGE_ROWS, LogTable, Row
from engine.core.sds.vocabulary import LogEntry
from tests.core.sds.log_tables import table_of

PEOPLE = [ParticipantId("alice"), ParticipantId("bob")]
INSTANCES = [InstanceId(b"1" * 16), InstanceId(b"2" * 16)]
PAGE, BUCKET, CHUNK = 3, 2, 2
FAR = 2**52
OLD = 100_000
OLD_BYTES = 40


def _id(number: int) -> MessageId:
    """Every fourth is an id that cannot be packed; the first bytes of the others are equal."""
    if number % 4 == 0:
        return MessageId(f"m{number}" if number % 8 else sha256(bytes([number])).hexdigest())
    digest = b"common" + sha256(bytes([number])).digest()[:10]
    return MessageId(urlsafe_b64encode(digest).decode().rstrip("="))


IDS = [_id(number) for number in range(60)]
LAMPORTS = st.integers(0, 12) | st.sampled_from([FAR, FAR + 2**33])
SEQUENCES = st.integers(1, 20) | st.just(FAR)
ENTRIES = st.builds(
    LogEntry,
    position=st.builds(Position, lamport_timestamp=LAMPORTS, message_id=st.sampled_from(IDS)),
    sender_id=st.sampled_from(PEOPLE),
    retrieval_hint=st.none() | st.binary(max_size=3),
    author=st.none()
    | st.builds(AuthorSequence, instance_id=st.sampled_from(INSTANCES), sequence=SEQUENCES),
    previous_id=st.none() | st.sampled_from(IDS),
    size=st.integers(0, 150_000),
)


def row_of(entry: LogEntry, *, packed: bool) -> Row:
    author, message_id = entry.author, entry.position.message_id
    return (
        entry.position.lamport_timestamp,
        (pack_id(message_id) if packed else None) or message_id,
        entry.sender_id,
        entry.retrieval_hint,
        author.instance_id if author else None,
        author.sequence if author else None,
        entry.previous_id,
        entry.size,
    )


def tiny(entries: Iterable[LogEntry] = (), *, packed: bool = True) -> LogIndex:
    rows = (row_of(entry, packed=packed) for entry in entries)
    table = table_of(rows, page_rows=PAGE, bucket_rows=BUCKET)
    return LogIndex(table, chunk_rows=CHUNK)


def without_hint(entry: LogEntry | None) -> LogEntry | None:
    return None if entry is None else replace(entry, retrieval_hint=None)


@dataclass
class Beside:
    """One log three times: of tiny parts, of usual ones, and as a dict."""

    log: LogIndex = field(default_factory=tiny)
    usual: LogIndex = field(default_factory=LogIndex)
    model: dict[MessageId, LogEntry] = field(default_factory=dict)

    def entries(self) -> list[LogEntry]:
        return sorted(self.model.values(), key=lambda entry: entry.position)

    def insert(self, entry: LogEntry) -> None:
        if entry.position.message_id in self.model:
            return
        late = bool(self.model) and entry.position < self.entries()[-1].position
        assert self.log.insert(entry) == self.usual.insert(entry) == late
        self.model[entry.position.message_id] = entry

    def remove(self, message_id: MessageId) -> None:
        if self.model.pop(message_id, None) is not None:
            self.log.remove(message_id)
            self.usual.remove(message_id)

    def reload(self, *, packed: bool) -> None:
        """As a restart does; the order of the authors is then that of the log."""
        entries = self.entries()
        self.log, self.usual = tiny(entries, packed=packed), LogIndex(entries)

    def check(self, count: int, latest: int) -> None:
        log, entries = self.log, self.entries()
        ids = [entry.position.message_id for entry in entries]
        assert len(log) == len(entries)
        assert [*map(without_hint, log.entries())] == [*map(without_hint, entries)]
        assert [item for item in IDS if item in log] == [item for item in IDS if item in self.model]
        assert log.absent(IDS) == [item for item in IDS if item not in self.model]
        for message_id in IDS:
            known = self.model.get(message_id)
            assert without_hint(log.get(message_id)) == without_hint(known)
            assert log.sender_of(message_id) == (known.sender_id if known else None)
            assert known is None or log.size_of(message_id) == known.size
        assert log.newest_ids(count) == ids[::-1][:count]
        assert [item.message_id for item in log.causal_history(count)] == ids[-count:]
        self._check_times(count, latest)
        self._check_authors()

    def _check_times(self, count: int, latest: int) -> None:
        log, entries = self.log, self.entries()
        lamports = [entry.position.lamport_timestamp for entry in entries]
        until = [entry for entry in entries if entry.position.lamport_timestamp <= latest]
        history = log.causal_history(count, latest)
        assert [item.message_id for item in history] == [
            entry.position.message_id for entry in until[-count:]
        ]
        assert [item.sender_id for item in history] == [e.sender_id for e in until[-count:]]
        assert log.ids_after(latest) == [e.position.message_id for e in entries[len(until) :]]
        assert log.newest_lamport() == max(lamports, default=0)
        assert log.newest_lamport(latest) == max(lamports[: len(until)], default=0)
        assert log.oldest_lamport() == min(lamports, default=None)

    def _check_authors(self) -> None:
        log, usual = self.log, self.usual
        assert [*log.instances()] == [*usual.instances()]
        assert log.expected == usual.expected
        twins = [instance_of_twin(item) for item in IDS if len(item) == len(IDS[1])]
        for instance_id in (*INSTANCES, *twins):
            assert log.held(instance_id) == usual.held(instance_id)
            for sequence in (*range(1, 21), FAR):
                author = AuthorSequence(instance_id, sequence)
                assert log.id_of(instance_id, sequence) == usual.id_of(instance_id, sequence)
                assert log.neighbours(author) == usual.neighbours(author)
        for limit in (1, 9):
            mine = log.holdings(max_instances=limit, max_ranges=9)
            assert mine == usual.holdings(max_instances=limit, max_ranges=9)


def _may_be_forked(entry: LogEntry) -> LogEntry:
    """Only ids of ours are decoded, as those of twins are; others are of no instance."""
    return entry if pack_id(entry.position.message_id) else replace(entry, author=None)


@given(st.data())
def test_an_index_is_a_dict_and_a_sorted_list(data: st.DataObject) -> None:
    beside = Beside()
    for _ in range(data.draw(st.integers(1, 40))):
        match data.draw(st.sampled_from(["insert"] * 6 + ["remove", "hint", "reload"])):
            case "remove":
                beside.remove(data.draw(st.sampled_from(IDS)))
            case "hint" if beside.model:
                message_id = data.draw(st.sampled_from([*beside.model]))
                beside.log.set_hint(message_id, b"hint")
                beside.usual.set_hint(message_id, b"hint")
            case "reload":
                beside.reload(packed=data.draw(st.booleans()))
            case _:
                beside.insert(_may_be_forked(data.draw(ENTRIES)))
        beside.check(data.draw(st.integers(1, 8)), data.draw(LAMPORTS))


@given(st.lists(ENTRIES, max_size=30, unique_by=lambda e: e.position.message_id), st.booleans())
def test_what_is_loaded_out_of_order_is_put_in_order(entries: list[LogEntry], packed: bool) -> None:
    entries = [*map(_may_be_forked, entries)]
    beside = Beside(
        tiny(entries, packed=packed),
        LogIndex(entries),
        {entry.position.message_id: entry for entry in entries},
    )
    beside.check(3, 5)


@given(st.lists(ENTRIES, max_size=40, unique_by=lambda e: e.position.message_id), st.integers(1, 5))
def test_the_newest_keep_their_hints_while_older_ones_come_late(
    entries: list[LogEntry], count: int
) -> None:
    entries.sort(key=lambda entry: entry.position)
    newest, late = entries[-count:], entries[:-count]
    log = tiny()
    for entry in newest:
        log.insert(_may_be_forked(entry))
    before = log.causal_history(count)
    for entry in late:
        log.insert(_may_be_forked(entry))
    if len(newest) == count:
        assert log.causal_history(count) == before
        assert [item.retrieval_hint for item in before] == [e.retrieval_hint for e in newest]


def test_a_hint_is_of_use_only_while_a_message_is_young() -> None:
    log = tiny()
    for number in range(2 * PAGE):
        position = Position(number, IDS[4 * number + 1])
        log.insert(LogEntry(position, PEOPLE[0]))
    old, young = IDS[1], IDS[4 * PAGE + 1]
    assert not log.wants_hint(old)
    assert log.wants_hint(young)
    assert not log.wants_hint(MessageId("unknown"))
    assert log.set_hint(young, b"hint")
    assert not log.set_hint(young, b"hint")
    assert not log.wants_hint(young)
    assert log.set_hint(old, b"hint")  # The store still takes it.
    assert log.causal_history(2 * PAGE)[0].retrieval_hint is None


PACKABLE = [item for item in IDS if pack_id(item)]


@given(st.permutations(PACKABLE), st.integers(0, 100), st.sets(st.sampled_from(PACKABLE)))
def test_rows_are_found_by_id(ids: list[MessageId], room: int, removed: set[MessageId]) -> None:
    packed = [pack_id(item) or b"" for item in ids]
    rows = RowsById(packed.__getitem__, room=room, bucket_rows=BUCKET)
    for start in range(0, len(ids), 7):
        part = packed[start : start + 7]
        rows.add(part, range(start, start + len(part)))
        assert [*map(rows.find, ids)] == [*range(start + len(part)), *([None] * len(ids))][
            : len(ids)
        ]
    for message_id in removed:
        rows.remove(message_id)
    for row, message_id in enumerate(ids):
        assert rows.find(message_id) == (None if message_id in removed else row)
    assert len(rows) == len(ids) - len(removed)


@pytest.mark.parametrize("found", [0, 3 * PAGE, 5 * PAGE])
def test_pages_that_were_kept_are_found_by_id(found: int) -> None:
    """With a look-up that was kept for none of them, for some and for all; in slices, and once."""
    ids = [item for item in map(_id, range(100)) if pack_id(item)]
    entries = [LogEntry(Position(at, item), PEOPLE[0], None, None) for at, item in enumerate(ids)]
    kept = table_of(
        (row_of(entry, packed=True) for entry in entries), page_rows=PAGE, bucket_rows=BUCKET
    )
    count = len(kept.pages) * PAGE
    assert count > 5 * PAGE
    known = RowsById(kept.packed_id_of, bucket_rows=BUCKET, key=7)
    known.add([kept.packed_id_of(row) for row in range(found)], range(found))
    table = LogTable(page_rows=PAGE, bucket_rows=BUCKET)
    table.restore_authors(kept.authors)
    table.add_pages(kept.pages[:2], kept.previous)
    table.add_pages(kept.pages[2:], {})
    table.restore_old(known.saved(2), found, key=7)
    for _ in range(2):
        table.find_pages()
        assert len(table.old) == len(table) == count
    assert [*map(table.old.find, ids[:count])] == [*range(count)]
    assert table.rows_saved == count
    table.find_page(len(table.pages) - 1, ())
    table.find_pages()
    assert len(table.old) == count, "nothing was added twice"


@given(
    st.sampled_from([CHUNK, 12]),
    st.integers(0, 9),
    st.lists(st.integers(0, 99), max_size=40),
    st.data(),
)
def test_rows_are_in_order(
    chunk: int, loaded: int, lamports: list[int], data: st.DataObject
) -> None:
    places = [*((number * 10, IDS[0]) for number in range(loaded))]
    places += ((lamport, IDS[1 + at]) for at, lamport in enumerate(lamports))
    order, model = LogOrder(loaded, places.__getitem__, chunk_rows=chunk), [*range(loaded)]
    for row in range(loaded, len(places)):
        order.insert(row)
        model.append(row)
        if data.draw(st.booleans()):
            order.remove(model.pop(data.draw(st.integers(0, len(model) - 1))))
        model.sort(key=places.__getitem__)
        assert ([*order], len(order)) == (model, len(model))
        lamport, count = data.draw(st.integers(0, 99)), data.draw(st.integers(0, 9))
        before = [row for row in model if places[row] < (lamport, MessageId(""))]
        assert order.before((lamport, MessageId("")), count) == before[-count:] * bool(count)
        assert [*order.since((lamport, MessageId("")))] == model[len(before) :]
        assert order.newest(count) == model[-count:] * bool(count)
        assert not model or (order.first, order.last) == (model[0], model[-1])


def old_rows(count: int) -> Iterator[Row]:
    """As a store yields them: twenty authors, a message a minute."""
    for number in range(count):
        digest, author = sha256(f"old {number}".encode()).digest(), number % 20
        yield (
            1_760_000_000_000 + 60_000 * number,
            digest[:16],
            ParticipantId(f"author {author}"),
            digest,
            InstanceId(author.to_bytes(16)),
            number // 20 + 1,
            None,
            100 + number % 5_000,
        )


def test_an_old_message_takes_at_most_forty_bytes() -> None:
    # What the young rows take is the same in every log.
    young, whole = (_allocated(count) for count in (2 * PAGE_ROWS, 2 * PAGE_ROWS + OLD))
    assert (whole - young) / OLD <= OLD_BYTES


def _allocated(count: int) -> int:
    """Bytes of a log that was loaded."""
    tracemalloc.start()
    try:
        log = LogIndex(table_of(old_rows(count)))
        size, _ = tracemalloc.get_traced_memory()
        assert len(log) == count
        return size
    finally:
        tracemalloc.stop()


def test_a_message_heard_long_ago_takes_no_more() -> None:
    """Whatever else allocates meanwhile counts as well, so one of three is enough."""
    assert any(_bytes_of_an_old_message() <= OLD_BYTES for _ in range(3))


def _bytes_of_an_old_message() -> float:
    few, many = 4 * PAGE_ROWS, 28 * PAGE_ROWS
    sizes = {}
    tracemalloc.start()
    try:
        log = LogIndex()
        for row in old_rows(many):
            log.insert(_entry(row))
            if len(log) in {few, many}:
                gc.collect()
                sizes[len(log)], _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (sizes[many] - sizes[few]) / (many - few)


def _entry(row: Row) -> LogEntry:
    return next(iter(table_of([row])))
