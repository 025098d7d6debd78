"""Metrics: numbers only, on loopback only, and a server that nobody can hold up."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.core.counters import Counters
from engine.core.errors import TransportError
from engine.network.node.metrics import Measured, MetricsServer, exposition
from engine.network.node.services import all_services
from engine.network.node.standalone import run_node
from engine.persistence.archive_thread import ThreadedArchive
from engine.persistence.kept_chunks import DAY_S, KeptChunks
from tests.network.node.loopback import settings_of
from tests.patience import PATIENCE_S

OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.md"
SAMPLE = re.compile(r"causerie_[a-zA-Z0-9_]+ [0-9.e+-]+")


async def measured() -> Measured:
    return Measured(counters={"store.served": 3, "libp2p.odd-name": 1}, gauges={"peers": 2})


@asynccontextmanager
async def metrics_server() -> AsyncIterator[MetricsServer]:
    server = MetricsServer(0, measured, counters=Counters())
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def said(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        async with asyncio.timeout(PATIENCE_S):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_the_page_is_prometheus_text() -> None:
    async with metrics_server() as server:
        answer = await said(server.port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"text/plain; version=0.0.4" in head
    assert f"Content-Length: {len(body)}".encode() in head
    assert body.decode() == (
        "# TYPE causerie_libp2p_odd_name_total counter\n"
        "causerie_libp2p_odd_name_total 1\n"
        "# TYPE causerie_store_served_total counter\n"
        "causerie_store_served_total 3\n"
        "# TYPE causerie_peers gauge\n"
        "causerie_peers 2\n"
    )


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\n\r\n",
        b"GET /metricsx HTTP/1.1\r\n\r\n",
        b"\xff\xfe\r\n\r\n",
    ],
)
async def test_anything_else_is_not_found(request_: bytes) -> None:
    async with metrics_server() as server:
        assert (await said(server.port, request_)).startswith(b"HTTP/1.1 404 ")


async def test_a_head_without_end_is_cut_off() -> None:
    async with metrics_server() as server:
        assert await said(server.port, b"GET /metrics HTTP/1.1\r\n" + b"x" * 20_000) == b""
        assert await said(server.port, b"GET /metrics HTTP/1.1\r\n\r\n") != b""


async def test_clients_that_say_nothing_are_bounded_and_gone_with_the_server() -> None:
    async with metrics_server() as server:
        silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(12)]
        cut = [asyncio.create_task(reader.read()) for reader, _ in silent]
        async with asyncio.timeout(PATIENCE_S):
            while sum(task.done() for task in cut) < 4:
                await asyncio.wait(cut, return_when=asyncio.FIRST_COMPLETED, timeout=0.1)
    await asyncio.gather(*cut, return_exceptions=True)
    for _, writer in silent:
        writer.close()


@pytest.mark.logs_a_traceback
async def test_a_measure_that_fails_is_counted_and_its_client_is_closed() -> None:
    async def failing() -> Measured:
        raise RuntimeError("a bug")

    counters = Counters()
    server = MetricsServer(0, failing, counters=counters)
    await server.start()
    try:
        assert await said(server.port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") == b""
    finally:
        await server.stop()
    assert counters.snapshot() == {"metrics.task_failed": 1}


async def test_the_server_listens_on_one_loopback_address_and_no_other() -> None:
    """127.0.0.2 and ::1 are this machine too: whoever listens on all addresses answers there."""
    async with metrics_server() as server:
        assert b"200 OK" in await said(server.port, b"GET /metrics HTTP/1.1\r\n\r\n")
        for other in ("127.0.0.2", "::1"):
            with pytest.raises(OSError, match=r"(?i)connect|address|reach"):
                await asyncio.open_connection(other, server.port)


async def test_a_taken_port_is_named() -> None:
    async with metrics_server() as server:
        with pytest.raises(TransportError, match=f"metrics port {server.port}"):
            await MetricsServer(server.port, measured, counters=Counters()).start()


def test_numbers_are_written_plainly() -> None:
    page = exposition(Measured(counters={"a.b": 10**15}, gauges={"on": True, "half": 0.5}))
    assert "causerie_a_b_total 1000000000000000\n" in page
    assert "causerie_on 1\n" in page
    assert "causerie_half 0.5\n" in page


async def test_a_running_node_is_measured(tmp_path: Path) -> None:
    archive = await ThreadedArchive.open(tmp_path / "archive.db")
    keeper = KeptChunks(tmp_path / "kept", max_bytes=10**6, max_days=1)
    keeper.open()
    stop = asyncio.Event()
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    node = asyncio.create_task(
        run_node(
            replace(settings_of(9), services=all_services()),
            ready=lambda _addresses: None,
            stop=stop,
            archive=archive,
            keeper=keeper,
            metrics_port=0,
            metrics_ready=ready.set_result,
        )
    )
    answer = await said(await ready, b"GET /metrics HTTP/1.1\r\n\r\n")
    stop.set()
    await node
    await archive.close()
    page = answer.partition(b"\r\n\r\n")[2].decode()
    samples = [line for line in page.splitlines() if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in samples)
    for name in ("relay_peers", "filter_subscribers", "archive_messages", "archive_failing"):
        assert f"causerie_{name} 0" in samples
    assert "causerie_network_bytes_in_total 0" in samples
    shown = {line.split()[0] for line in samples}
    examples = set(re.findall(r"\bcauserie_[a-z0-9_]+", OPERATIONS.read_text("utf-8")))
    assert len(examples) > 5
    assert examples <= shown, "an alert on what a new node does not show never fires"


async def test_a_running_node_removes_what_expired(tmp_path: Path) -> None:
    now_s = 1_000_000.0
    keeper = KeptChunks(tmp_path / "kept", max_bytes=10**6, max_days=1, now_s=lambda: now_s)
    keeper.open()
    await keeper.take(b"sealed", source="s", keep_days=1)
    now_s += DAY_S
    stop = asyncio.Event()
    node = asyncio.create_task(
        run_node(settings_of(9), ready=lambda _addresses: None, stop=stop, keeper=keeper)
    )
    async with asyncio.timeout(PATIENCE_S):
        while keeper.chunks:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)
    stop.set()
    await node
