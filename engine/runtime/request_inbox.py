"""Our inbox, on which anyone with our contact link can send a request to talk.

What is said about joining governed groups comes here, too (``engine.runtime.governing``).

Everyone who knows our key knows its topic, so its messages are untrusted: their number and the rate
of opening them are bounded, and each is opened separately so that the user interface stays
responsive.  Messages for an existing conversation are passed to it; from strangers only requests
are accepted.  Nothing here is acknowledged, so what is dropped is sent again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from engine.codec.content import decode_pair_content
from engine.codec.mvds import decode_payload
from engine.core.content import ContactRequest
from engine.core.counters import Counters
from engine.core.errors import ChatError, RemoteProtocolError
from engine.core.ids import UnixMs, WakuHash
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.crypto.pair import (
    JoiningPart,
    KeysPart,
    MvdsPart,
    OpenedPair,
    open_from_anybody,
    pair_group_id,
)
from engine.crypto.sealed import MAX_ENVELOPE_BYTES
from engine.runtime.governing.commands import Governing
from engine.runtime.job_queue import JobInput
from engine.runtime.people import People
from engine.session.inputs import MessageArrived

MAX_WAITING = 200
MAX_KEYS_KEPT = 50
MAX_OPENED_PER_SECOND = 50
"""About half a millisecond each."""

logger = logging.getLogger(__name__)


class RequestInbox:
    """Also the ``Sink`` of its own backfill: nothing in it waits for dependencies."""

    waiting = 0
    arrived = 0
    oldest_ms: UnixMs | None = None
    reads_since_ms: UnixMs | None = None

    def __init__(
        self, people: People, governing: Governing, identity: Identity, counters: Counters
    ) -> None:
        self._people = people
        self._governing = governing
        self._identity = identity
        self._counters = counters
        self._queued: deque[tuple[WakuMessage, WakuHash]] = deque()
        self._keys: dict[bytes, tuple[WakuMessage, WakuHash]] = {}
        """Strangers' keys for Olm, until their request comes."""
        self._wake = asyncio.Event()
        self._has_room = asyncio.Event()

    @property
    def is_full(self) -> bool:
        return len(self._queued) >= MAX_WAITING

    def on_message(self, message: WakuMessage, waku_hash: WakuHash) -> bool:
        """Queue a message.  Always False: only we ask for our inbox, so others need no copy."""
        self._queue(message, waku_hash)
        return False

    async def feed(self, inputs: Sequence[JobInput], /) -> None:
        """Queue messages from Stores as fast as they are handled; nothing else matters here."""
        for input_ in inputs:
            if isinstance(input_, MessageArrived):
                while self.is_full:
                    self._has_room.clear()
                    await self._has_room.wait()
                self._queue(input_.message, input_.waku_hash)

    def more_to_come(self) -> AbstractContextManager[None]:
        """Nothing here waits for more."""
        return nullcontext()

    def _queue(self, message: WakuMessage, waku_hash: WakuHash) -> None:
        if len(message.payload) > MAX_ENVELOPE_BYTES:
            self._counters.add("inbox.oversized")
            return
        if self.is_full:
            self._counters.add("inbox.full")
            return
        self._queued.append((message, waku_hash))
        self._wake.set()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queued:
                message, waku_hash = self._queued.popleft()
                self._has_room.set()
                try:
                    await self._take(message, waku_hash)
                except RemoteProtocolError as error:
                    self._counters.add(f"inbox.{error.reason}")
                except ChatError as error:
                    # It is not acknowledged, so it is sent again.
                    self._counters.add("inbox.failed")
                    logger.warning("a request failed", extra={"error": type(error).__name__})
                except Exception:
                    self._counters.add("inbox.crashed")
                    logger.exception("a request was not handled")
                await asyncio.sleep(1 / MAX_OPENED_PER_SECOND)

    async def _take(self, message: WakuMessage, waku_hash: WakuHash) -> None:
        """Handle one message.  Raises RemoteProtocolError if it is not a request."""
        opened = open_from_anybody(self._identity, message.payload)
        sender = opened.sender_public_key
        known = self._people.known(sender)
        if isinstance(opened.body, JoiningPart):
            if self._people.is_blocked(sender):
                raise RemoteProtocolError("join_blocked")
            await self._governing.take(opened, opened.body.joining)
            return
        if known is not None:
            known.on_message(message, waku_hash)
            return
        if isinstance(opened.body, KeysPart):
            self._keys[sender] = (message, waku_hash)
            if len(self._keys) > MAX_KEYS_KEPT:
                del self._keys[next(iter(self._keys))]
            return
        request = request_in(self._identity, opened)
        await self._people.asked_by(opened, request, message, waku_hash)
        known, keys = self._people.known(sender), self._keys.pop(sender, None)
        if known is not None and keys is not None:
            known.on_message(*keys)


def request_in(identity: Identity, opened: OpenedPair) -> ContactRequest:
    """The request in a stranger's message.  Raises RemoteProtocolError for anything else."""
    if not isinstance(opened.body, MvdsPart):
        raise RemoteProtocolError("stranger")
    group_id = pair_group_id(identity.public_key, opened.sender_public_key)
    payload, _ = decode_payload(opened.body.payload)
    for message in payload.messages:
        if message.group_id != group_id:
            raise RemoteProtocolError("mvds_foreign_group")
        body = decode_pair_content(message.body).body
        if isinstance(body, ContactRequest):
            return body
    raise RemoteProtocolError("stranger")
