"""Stores in memory, honest and hostile.

An honest Store answers as 13/WAKU2-STORE has it, with pages as long as it likes.  Who asks them,
and when, is no matter of theirs: see ``history_world``.
"""

import hashlib
import random
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count

from engine.core.history.progress import StoreRef
from engine.core.history.queries import (
    Failed,
    FailureKind,
    HistoryMessage,
    Outcome,
    Page,
    Refusal,
    StoreVersion,
    Window,
)
from engine.core.ids import ContentTopic, PubsubTopic, UnixMs, WakuHash
from engine.core.waku import WakuMessage
from engine.core.waku_store import (
    HistoryError,
    HistoryIndex,
    HistoryQuery,
    StoreQueryRequest,
    StoreStatus,
)

PUBSUB = PubsubTopic("/waku/2/rs/42/1")
TOPIC = ContentTopic("/causerie/1/group/proto")
NOW_MS = UnixMs(1_800_000_000_000)
NOW_NS = NOW_MS * 10**6
SECOND_NS = 10**9
ONE = StoreRef("/dns4/one.example/tcp/443/wss")
TWO = StoreRef("/dns4/two.example/tcp/443/wss")
THREE = StoreRef("/dns4/three.example/tcp/443/wss")
FOUR = StoreRef("/dns4/four.example/tcp/443/wss")
BOTH = (StoreVersion.V3, StoreVersion.V2)

Request = StoreQueryRequest | HistoryQuery


def stored(
    number: int, timestamp_ns: int | None, *, topic: ContentTopic = TOPIC, size: int = 0
) -> HistoryMessage:
    payload = b"%d" % number + bytes(size)
    message = WakuMessage(payload=payload, content_topic=topic, timestamp_ns=timestamp_ns)
    named = f"{PUBSUB}{number}{topic}{timestamp_ns}".encode()
    return HistoryMessage(WakuHash(hashlib.sha256(named).digest()), message, PUBSUB)


def history(
    amount: int, *, step_ns: int = SECOND_NS, until_ns: int = NOW_NS
) -> list[HistoryMessage]:
    first_ns = until_ns - amount * step_ns
    return [stored(number, first_ns + number * step_ns) for number in range(amount)]


def hashes(messages: Iterable[HistoryMessage]) -> set[WakuHash]:
    return {item.message_hash for item in messages}


def window_of(messages: Sequence[HistoryMessage]) -> Window:
    times = [item.message.timestamp_ns or NOW_NS for item in messages] or [NOW_NS]
    return Window(
        pubsub_topic=PUBSUB,
        content_topics=(TOPIC,),
        start_ns=min(times),
        end_ns=max(times),
    )


# --- an honest Store ----------------------------------------------------------------------------

Key = tuple[int, bytes]


def _key(item: HistoryMessage) -> Key:
    return item.message.timestamp_ns or 0, item.message_hash


def _index(item: HistoryMessage) -> HistoryIndex:
    return HistoryIndex(
        digest=item.message_hash,
        receiver_time_ns=item.message.timestamp_ns or 0,
        sender_time_ns=item.message.timestamp_ns or 0,
        pubsub_topic=PUBSUB,
    )


class ModelStore:
    """``page_of``: how many messages this page has, of as many as were asked for."""

    def __init__(
        self,
        messages: Iterable[HistoryMessage] = (),
        *,
        versions: tuple[StoreVersion, ...] = BOTH,
        end_inclusive: bool = True,
        reads_times: bool = True,
        page_of: Callable[[int], int] = lambda limit: limit,
    ) -> None:
        self.messages = sorted(messages, key=_key)
        self.versions = versions
        self.end_inclusive = end_inclusive
        self.reads_times = reads_times
        self.page_of = page_of
        self.rtt_ms = 5
        self.requests: list[Request] = []
        self.given: set[object] = set()
        """The cursors that it gave."""

    def insert(self, item: HistoryMessage) -> None:
        insort(self.messages, item, key=_key)

    def delay_ms(self) -> int:
        return self.rtt_ms

    def answer(self, request: Request) -> Outcome:
        self.requests.append(request)
        is_v3 = isinstance(request, StoreQueryRequest)
        if (StoreVersion.V3 if is_v3 else StoreVersion.V2) not in self.versions:
            return Failed(FailureKind.UNSUPPORTED)
        cursor = cursor_of(request)
        assert cursor is None or cursor in self.given, "a cursor of another Store"
        return self.respond(request)

    def respond(self, request: Request) -> Outcome:
        """An honest answer."""
        if isinstance(request, StoreQueryRequest) and request.message_hashes:
            matches = [m for m in self.messages if m.message_hash in request.message_hashes]
        else:
            matches = list(self.matches(request))
        cursor = cursor_of(request)
        if cursor is not None:
            at = cursor if isinstance(cursor, bytes) else cursor.digest
            place = next((_key(m) for m in self.messages if m.message_hash == at), None)
            if place is None:
                return self.cursor_unknown(request)
            matches = [m for m in matches if _key(m) > place]
        size = max(1, min(self.page_of(limit_of(request)), limit_of(request)))
        page = matches[:size]
        more = len(page) < len(matches)
        return self.page(request, page, page[-1] if more else None)

    def matches(self, request: Request) -> Iterator[HistoryMessage]:
        start_ns, end_ns = times_of(request)
        for item in self.messages:
            timestamp_ns = item.message.timestamp_ns or 0
            after = end_ns is not None and (
                timestamp_ns > end_ns if self.end_inclusive else timestamp_ns >= end_ns
            )
            outside = timestamp_ns < (start_ns or 0) or after
            asked_for = item.message.content_topic in request.content_topics
            if asked_for and not (outside and self.reads_times):
                yield item

    def page(
        self, request: Request, items: Sequence[HistoryMessage], last: HistoryMessage | None
    ) -> Page:
        if last is None:
            return Page(messages=tuple(items))
        is_v3 = isinstance(request, StoreQueryRequest)
        cursor = last.message_hash if is_v3 else _index(last)
        self.given.add(cursor)
        return Page(messages=tuple(items), cursor=cursor)

    def cursor_unknown(self, request: Request) -> Refusal:
        is_v3 = isinstance(request, StoreQueryRequest)
        return Refusal(StoreStatus.BAD_RESPONSE if is_v3 else HistoryError.INVALID_CURSOR)


def cursor_of(request: Request) -> WakuHash | HistoryIndex | None:
    if isinstance(request, StoreQueryRequest):
        return request.pagination_cursor
    return request.cursor


def limit_of(request: Request) -> int:
    if isinstance(request, StoreQueryRequest):
        return request.pagination_limit or 20
    return request.page_size or 20


def times_of(request: Request) -> tuple[int | None, int | None]:
    if isinstance(request, StoreQueryRequest):
        return request.time_start_ns, request.time_end_ns
    return request.start_time_ns, request.end_time_ns


# --- hostile Stores -----------------------------------------------------------------------------


class Wrapped(ModelStore):
    """Has an honest Store's messages and answers as ``trick`` does, given the honest answer."""

    def __init__(
        self,
        messages: Iterable[HistoryMessage],
        trick: Callable[[int, Request, Outcome], Outcome],
    ) -> None:
        super().__init__(messages)
        self._trick = trick

    def respond(self, request: Request) -> Outcome:
        outcome = self._trick(len(self.requests), request, super().respond(request))
        if isinstance(outcome, Page) and outcome.cursor is not None:
            self.given.add(outcome.cursor)
        return outcome


class Shuffled(ModelStore):
    """All it has in any order, one in five twice, on pages as long as was asked for."""

    def __init__(self, messages: Iterable[HistoryMessage], *, seed: int = 1) -> None:
        super().__init__(messages)
        mixed = [*self.messages, *self.messages[::5]]
        random.Random(seed).shuffle(mixed)
        self._mixed = mixed
        self._places: dict[object, int] = {None: 0}

    def respond(self, request: Request) -> Outcome:
        at = self._places[cursor_of(request)]
        page = self._mixed[at : at + limit_of(request)]
        cursor = None
        if at + len(page) < len(self._mixed):
            cursor = WakuHash(hashlib.sha256(b"place %d" % at).digest())
            self._places[cursor] = at + len(page)
            self.given.add(cursor)
        return Page(messages=tuple(page), cursor=cursor)


class Endless(ModelStore):
    """After all that it has, it repeats the last page, or ``invents`` something, for ever."""

    def __init__(
        self, messages: Iterable[HistoryMessage], *, invents: Callable[[int], HistoryMessage] | None
    ) -> None:
        super().__init__(messages)
        self._invents = invents
        self._fresh = count(1)
        self._ended = False

    def respond(self, request: Request) -> Outcome:
        number = next(self._fresh)
        if self._ended:
            last = self.messages[-1] if self._invents is None else self._invents(number)
            page = Page(messages=(last,))
        else:
            honest = super().respond(request)
            assert isinstance(honest, Page)
            page = honest
        if page.cursor is None:
            self._ended = True
            cursor = WakuHash(hashlib.sha256(b"endless %d" % number).digest())
            self.given.add(cursor)
            page = Page(messages=page.messages, cursor=cursor)
        return page


class Forgets(ModelStore):
    """Each of its cursors, at once."""

    def respond(self, request: Request) -> Outcome:
        is_lost = cursor_of(request) is not None
        return self.cursor_unknown(request) if is_lost else super().respond(request)


def without_some(messages: Iterable[HistoryMessage], *, tenths: int = 3) -> list[HistoryMessage]:
    return [item for item in messages if item.message_hash[0] % 10 >= tenths]
