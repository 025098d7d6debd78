"""What a Store takes in: what it must not keep, a disk that refuses, bursts, age, and the end.

The intake stands between the relay and the archive; here it is offered messages by hand.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.waku import encode_waku_message
from engine.core.errors import StorageError
from engine.core.waku_archive import (
    Appended,
    ArchivedMessage,
    ArchivePage,
    ArchiveQuery,
    ArchiveStatistics,
    Ineligible,
    ineligibility,
)
from engine.core.waku_store import HistoryError, HistoryQuery, StoreQueryRequest
from engine.network.waku.store.client import StoreClient
from engine.network.waku.store.intake import ArchiveIntake, IntakeSettings
from engine.network.waku.store.server import StoreSettings, serve_store
from engine.persistence.archive import Retention
from engine.persistence.archive_thread import ThreadedArchive
from tests.network.waku.service_net import PATIENT, ServiceNet, until, waku_message
from tests.network.waku.store_net import NOW_NS, SECOND_NS, intake_into, message, offer, store_net
from tests.patience import PATIENCE_S


async def test_what_must_not_be_archived_is_refused(tmp_path: Path) -> None:
    async with store_net(tmp_path) as net:
        late = NOW_NS - 21 * SECOND_NS
        assert not net.add(waku_message(1, timestamp_ns=NOW_NS, ephemeral=True))
        assert not net.add(waku_message(3, timestamp_ns=late))
        assert not net.add(waku_message(4, timestamp_ns=NOW_NS + 21 * SECOND_NS))
        assert (await net.client.query(net.server.peer_id, net.request())).messages == ()
        counters = net.net.counters
        assert counters["store.refused_ephemeral"] == 1
        assert counters["store.refused_clock"] == 2


async def test_what_has_no_time_is_kept_by_that_of_its_receipt(tmp_path: Path) -> None:
    """Each has its place between those that have one, in both versions, and comes as it was."""
    async with store_net(tmp_path) as net:
        sent = [
            waku_message(1, timestamp_ns=NOW_NS - SECOND_NS),
            waku_message(2),
            waku_message(3, timestamp_ns=NOW_NS + SECOND_NS),
        ]
        assert all(net.add(each) for each in sent)
        assert net.add(sent[1])
        found = await net.client.query(net.server.peer_id, net.request())
        assert [entry.message for entry in found.messages] == sent
        legacy = await net.client.query_history(net.server.peer_id, HistoryQuery(request_id="2"))
        assert list(legacy.messages) == sent
        now = replace(net.request(), time_start_ns=NOW_NS, time_end_ns=NOW_NS)
        (only,) = (await net.client.query(net.server.peer_id, now)).messages
        assert only.message == sent[1]


@given(st.integers(-(2**63), 2**63 - 1) | st.integers(-30 * SECOND_NS, 30 * SECOND_NS))
@example(20 * SECOND_NS)
@example(-20 * SECOND_NS)
@example(20 * SECOND_NS + 1)
@example(-20 * SECOND_NS - 1)
def test_twenty_seconds_off_is_kept_and_no_more(offset_ns: int) -> None:
    verdict = ineligibility(waku_message(1, timestamp_ns=NOW_NS + offset_ns), now_ns=NOW_NS)
    is_near = abs(offset_ns) <= 20 * SECOND_NS or NOW_NS + offset_ns == 0  # 0: it has no time
    assert (verdict is None) == is_near
    ephemeral = waku_message(1, timestamp_ns=NOW_NS + offset_ns, ephemeral=True)
    assert ineligibility(ephemeral, now_ns=NOW_NS) is Ineligible.EPHEMERAL


async def test_a_clock_that_refuses_everything_is_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with store_net(tmp_path) as net:
        suspected: list[bool] = []
        for number in range(25):
            net.add(waku_message(number, timestamp_ns=NOW_NS + 60 * SECOND_NS))
            net.add(waku_message(number, timestamp_ns=NOW_NS, ephemeral=True))
            suspected.append(net.intake.clock_suspect)
        assert suspected == [False] * 19 + [True] * 6
        assert net.add(message(1))
        assert not net.intake.clock_suspect
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "clock: check it" in warning


class BrokenArchive:
    """A disk that refuses as long as ``broken``."""

    def __init__(self) -> None:
        self.broken = True
        self.held: list[ArchivedMessage] = []

    def _check(self) -> None:
        if self.broken:
            raise StorageError("Cannot archive messages: the disk is full.")

    async def append(self, messages: Sequence[ArchivedMessage], /) -> Appended:
        self._check()
        self.held.extend(messages)
        return Appended(added=len(messages))

    async def query(self, _query: ArchiveQuery, /) -> ArchivePage:
        self._check()
        return ArchivePage()

    async def retain(self) -> int:
        self._check()
        return 0

    async def statistics(self) -> ArchiveStatistics:
        return ArchiveStatistics(messages=len(self.held), used_bytes=0)

    async def close(self) -> None: ...


async def test_a_disk_that_refuses_loses_nothing_and_is_visible() -> None:
    async with ServiceNet() as net:
        server, host = await net.host("server"), await net.host("client")
        archive = BrokenArchive()
        intake = intake_into(archive, net.counters, IntakeSettings(retry_s=0.01, batch=2))
        serve_store(server, lambda query, _peer: intake.query(query), StoreSettings(), net.counters)
        await host.connect("/memory/server")
        intake.start()
        sent = [message(number) for number in range(5)]
        for each in sent:
            assert offer(intake, each)
        await until(lambda: intake.failing)
        client = StoreClient(host, limits=PATIENT)
        request = StoreQueryRequest(request_id="1")
        assert (await client.query(server.peer_id, request)).status_code == 503
        history = await client.query_history(server.peer_id, HistoryQuery(request_id="1"))
        assert history.error == HistoryError.SERVICE_UNAVAILABLE
        archive.broken = False
        await until(lambda: len(archive.held) == 5)
        assert [held.data for held in archive.held] == [encode_waku_message(m) for m in sent]
        assert not intake.failing
        await intake.stop()


async def test_the_queue_for_the_disk_is_bounded() -> None:
    async with ServiceNet() as net:
        for limits in (
            IntakeSettings(max_queued=3),
            IntakeSettings(max_queued_bytes=3 * 600),
        ):
            intake = intake_into(BrokenArchive(), net.counters, limits)
            taken = [offer(intake, message(n)) for n in range(5)]
            assert taken == [True] * 3 + [False] * 2
        assert net.counters["store.dropped_queue_full"] == 4


async def test_a_burst_waits_for_the_disk_and_loses_nothing(tmp_path: Path) -> None:
    small = IntakeSettings(max_queued=100, batch=20, patience_s=30)
    async with store_net(tmp_path, intake_settings=small) as net:
        for number in range(1_000):
            assert net.add(message(number))
            await net.intake.wait_for_room()
        assert net.net.counters["store.dropped_queue_full"] == 0


async def test_nobody_waits_for_a_disk_that_refuses() -> None:
    async with ServiceNet() as net:
        settings_ = IntakeSettings(max_queued=4, patience_s=30, retry_s=30)
        intake = intake_into(BrokenArchive(), net.counters, settings_)
        intake.start()
        for number in range(8):
            offer(intake, message(number))
        await until(lambda: intake.failing)
        async with asyncio.timeout(PATIENCE_S):
            await intake.wait_for_room()
        await intake.stop()


async def test_what_is_too_old_goes_while_the_node_runs(tmp_path: Path) -> None:
    clock = [NOW_NS]
    archive = await ThreadedArchive.open(
        tmp_path / "archive.db",
        Retention(max_age_ns=60 * SECOND_NS),
        clock_ns=lambda: clock[0],
    )
    async with ServiceNet() as net:
        settings_ = IntakeSettings(retain_every_s=0.01)
        intake = ArchiveIntake(archive, settings_, now_ns=lambda: clock[0], counters=net.counters)
        intake.start()
        for number in range(5):
            offer(intake, message(number))
        await until(lambda: net.counters["store.archived"] == 5)
        clock[0] += 61 * SECOND_NS
        await until(lambda: net.counters["store.removed"] == 5)
        await intake.stop()
    assert (await archive.statistics()).messages == 0
    await archive.close()


async def test_stopping_writes_what_was_taken_in(tmp_path: Path) -> None:
    archive = await ThreadedArchive.open(tmp_path / "archive.db", clock_ns=lambda: NOW_NS)
    async with ServiceNet() as net:
        intake = intake_into(archive, net.counters)
        intake.start()
        for number in range(1_200):
            offer(intake, message(number))
        await intake.stop()
        assert (await archive.statistics()).messages == 1_200
        assert net.counters["store.archived"] == 1_200
    await archive.close()
