"""Real ``@waku/sds`` channels as participants of the simulated network.

One Node process hosts any number of channels and is asked line by line; time is the network's.  The
schedule around them (sync timer, retries, sweeps, Store queries by hint) is that of js-waku's
``ReliableChannel`` with its defaults.  There are two additions, unless a member is ``as_shipped``:
answers to repair requests are swept for, as the library's documentation asks, and hints are hashes
of the bytes that were sent.  ``ReliableChannel`` itself never answers, and hashes its message with
another time than the copy's, so that no Store knows its hints.
"""

import base64
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from engine.codec.open_content import message_id_of_content
from engine.core.faults import SeededRandom
from engine.core.ids import MessageId, UnixMs
from engine.sim.network import Outgoing
from scripts import interop

CHANNEL = "general"
SYNC_MS = 30_000
RETRY_MS = 30_000
RETRIES = 10
SWEEP_MS = 5_000
STORE_QUERY_MS = 10_000
SCRIPT = Path(__file__).with_name("sds_channels.mjs")

DELIVERED = "sds:in:message-delivered"
RECEIVED = "sds:in:message-received"
SYNC_RECEIVED = "sds:in:sync-received"
ACKNOWLEDGED = "sds:out:message-acknowledged"
POSSIBLY = "sds:out:message-possibly-acknowledged"
ERROR = "sds:error-task"
REQUEST_SENT = "sds:repair:request-sent"
REQUEST_RECEIVED = "sds:repair:request-received"

Answer = dict[str, Any]


class JsHost:
    """The Node process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._in = cast("IO[str]", process.stdin)
        self._out = cast("IO[str]", process.stdout)

    def ask(self, do: str, *, now_ms: UnixMs, **fields: object) -> Answer:
        """One command and its answer, whose ``events`` are what the channels told meanwhile."""
        self._in.write(json.dumps({"do": do, "now": now_ms, **fields}) + "\n")
        self._in.flush()
        line = self._out.readline()
        assert line, "Node ended"
        answer = cast("Answer", json.loads(line))
        assert "failed" not in answer, answer
        return answer


@contextmanager
def js_host(seed: int = 1) -> Iterator[JsHost]:
    interop.ensure()
    command = [str(interop.node()), str(SCRIPT), str(interop.modules()), str(seed)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield JsHost(process)
        finally:
            process.kill()


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decoded(text: object) -> bytes:
    return base64.b64decode(str(text))


class JsMember:
    """One channel with its schedule: SimParticipant."""

    def __init__(  # noqa: PLR0913 - what js-waku can be told, too
        self,
        host: JsHost,
        name: str,
        *,
        now_ms: UnixMs,
        store: Mapping[str, bytes] | None = None,
        seed: int = 1,
        options: Mapping[str, object] | None = None,
        as_shipped: bool = False,
    ) -> None:
        """``store``: payloads by retrieval hint (base64), as a Store node would serve them."""
        self.name = name
        self._as_shipped = as_shipped
        self.told: list[tuple[str, str]] = []
        """All that the channel told, (event, detail)."""
        self.from_store = 0
        self._host = host
        self._store = store if store is not None else {}
        self._random = SeededRandom(seed, name)
        self._retries: dict[str, tuple[UnixMs, int, bytes]] = {}
        self._wanted: dict[str, str] = {}
        self._sweep_ms = UnixMs(now_ms + SWEEP_MS)
        self._query_ms = UnixMs(now_ms + STORE_QUERY_MS)
        self._sync_ms = now_ms
        host.ask("open", now_ms=now_ms, name=name, channel=CHANNEL, options=options or {})
        self._arm_sync(1.0, now_ms)

    # --- what a user does ---

    def send(self, text: str, *, now_ms: UnixMs) -> list[Outgoing]:
        content = text.encode()
        raw = self._push(content, now_ms)
        self._arm_sync(1.0, now_ms)
        key = message_id_of_content(content)
        self._retries[key] = (UnixMs(now_ms + RETRY_MS), 0, content)
        return [Outgoing(payload=raw)]

    def sync(self, *, now_ms: UnixMs) -> list[Outgoing]:
        raw = self._ask("sync", now_ms)["raw"]
        return [Outgoing(payload=decoded(raw))] if raw else []

    def send_ephemeral(self, text: str, *, now_ms: UnixMs) -> list[Outgoing]:
        raw = self._ask("ephemeral", now_ms, content=encoded(text.encode()))["raw"]
        return [Outgoing(payload=decoded(raw), ephemeral=True)]

    # --- SimParticipant ---

    def receive(self, payload: bytes, *, now_ms: UnixMs) -> Sequence[Outgoing]:
        answer = self._ask("receive", now_ms, raw=encoded(payload))
        assert answer["decoded"]
        return []

    def advance(self, *, now_ms: UnixMs) -> Sequence[Outgoing]:
        outgoing: list[Outgoing] = []
        if self._sweep_ms <= now_ms:
            self._sweep_ms = UnixMs(now_ms + SWEEP_MS)
            outgoing += self._sweep(now_ms)
        if self._query_ms <= now_ms:
            self._query_ms = UnixMs(now_ms + STORE_QUERY_MS)
            self._query_store(now_ms)
        for key, (at_ms, attempts, content) in list(self._retries.items()):
            if at_ms <= now_ms and key in self._retries:
                outgoing.append(Outgoing(payload=self._push(content, now_ms)))
                if attempts + 1 < RETRIES:
                    self._retries[key] = (UnixMs(now_ms + RETRY_MS), attempts + 1, content)
                else:
                    del self._retries[key]
        if self._sync_ms <= now_ms:
            outgoing += self.sync(now_ms=now_ms)
            self._arm_sync(2.0, now_ms)
        return outgoing

    def next_deadline(self) -> UnixMs | None:
        retries = [at_ms for at_ms, _, _ in self._retries.values()]
        return min(self._sweep_ms, self._query_ms, self._sync_ms, *retries)

    # --- what it came to ---

    def look(self, *, now_ms: UnixMs) -> Answer:
        return self._ask("look", now_ms)

    def log(self, *, now_ms: UnixMs) -> list[MessageId]:
        return [MessageId(str(item)) for item in self.look(now_ms=now_ms)["log"]]

    def details(self, event: str) -> list[str]:
        return [detail for name, detail in self.told if name == event]

    # --- the schedule ---

    def _ask(self, do: str, now_ms: UnixMs, **fields: object) -> Answer:
        answer = self._host.ask(do, now_ms=now_ms, name=self.name, **fields)
        for event, detail in answer["events"]:
            self.told.append((event, detail))
            if event == ACKNOWLEDGED:
                self._retries.pop(detail, None)
            elif event == RECEIVED:
                self._wanted.pop(detail, None)
                self._arm_sync(0.5, now_ms)
            elif event == SYNC_RECEIVED:
                self._arm_sync(1.0, now_ms)
        return answer

    def _push(self, content: bytes, now_ms: UnixMs) -> bytes:
        fields = {"content": encoded(content), "falseHint": self._as_shipped}
        return decoded(self._ask("send", now_ms, **fields)["raw"])

    def _arm_sync(self, multiplier: float, now_ms: UnixMs) -> None:
        self._sync_ms = UnixMs(now_ms + 1 + int(self._random() * SYNC_MS * multiplier))

    def _sweep(self, now_ms: UnixMs) -> list[Outgoing]:
        answer = self._ask("sweep", now_ms, answers=not self._as_shipped)
        for message_id, hint in answer["missing"]:
            if hint:
                self._wanted[message_id] = hint
        return [Outgoing(payload=decoded(raw)) for raw in answer["repairs"]]

    def _query_store(self, now_ms: UnixMs) -> None:
        for message_id, hint in list(self._wanted.items()):
            payload = self._store.get(hint)
            if payload is not None:
                self.from_store += 1
                self._wanted.pop(message_id, None)
                self.receive(payload, now_ms=now_ms)
