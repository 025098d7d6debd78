"""The order of a one-to-one conversation; MVDS itself has none.

A message's place is (Lamport timestamp, message id).  The author's timestamp is max(now, last + 1)
and travels in the content.  A timestamp more than ``AHEAD_MS`` ahead of our clock counts as now.
So does every timestamp while our own clock, set back after running ahead, has not caught up.

A message waits if its author's previous sequence number was not delivered:

- After ``SHOW_AFTER_MS`` it is shown below a gap.
- It is delivered when the earlier one arrives.  It is also delivered when the earlier one is still
  missing after ``LOST_AFTER_MS``, provided we were online long enough to receive it.
  ``engine.session.pair.lost`` keeps what was given up this way.
- For an instance not heard before, the lowest number that waited ``SHOW_AFTER_MS`` is the start.
- Waiting messages are already acknowledged, so they are on disk.  Beyond the limits they are
  delivered with a gap rather than dropped.

Requests to talk and answers take effect at once; they wait only to hold their number's place.
Until both agree nothing else is said, so an earlier message might never come.  This module handles
no bytes on the wire and no meaning of messages.
"""

from bisect import insort
from collections.abc import Callable
from dataclasses import replace

from msgspec import Struct, structs

from engine.core.content import Content
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ConversationId, InstanceId, MessageId, Position, UnixMs
from engine.core.ports import PutWaiting, RemoveWaiting, SavePairAuthor, SavePairClock, StoreWrite
from engine.core.records import LostRange, PairState, WaitingContent
from engine.events import GapPlace, GapView
from engine.session.clock import SessionClock
from engine.session.pair.gaps import MAX_MISSING_TOLD, Waits, is_statement, places_of
from engine.session.pair.lost import PairLost

AHEAD_MS = 5 * 60_000
SHOW_AFTER_MS = 60_000
LOST_AFTER_MS = 24 * 3_600_000
ONLINE_AT_LEAST_MS = 2 * 3_600_000
"""Longer than the longest back-off: a peer that has the message has tried to send it by then."""
MAX_WAITING = 2_000
MAX_WAITING_BYTES = 8 * 1024 * 1024
MAX_INSTANCES = 256
MAX_PLACES_TOLD = 64


class Placed(Struct, frozen=True, kw_only=True):
    """A message that has its place now."""

    message_id: MessageId
    content: Content
    lamport_timestamp: int
    was_shown: bool = False
    late: bool = False
    """Later messages of the same author were delivered before."""
    came_ms: UnixMs | None = None
    """When it came, if it had to wait since then."""

    @property
    def position(self) -> Position:
        return Position(self.lamport_timestamp, self.message_id)


class Shown(Struct, frozen=True, kw_only=True):
    """A message that still waits but is shown from now on."""

    message_id: MessageId
    content: Content
    lamport_timestamp: int
    came_ms: UnixMs


class PairOrder:
    """Each call appends its changes to ``writes``."""

    def __init__(  # noqa: PLR0913 - keyword-only: everything that is injected
        self,
        conversation_id: ConversationId,
        state: PairState,
        *,
        decode: Callable[[bytes], Content],
        online: bool,
        now_ms: UnixMs,
        clock: SessionClock,
        counters: Counters,
    ) -> None:
        self._conversation_id = conversation_id
        self._clock = clock
        self._lamport = state.lamport_timestamp
        self._delivered = dict(state.authors)
        self._counters = counters
        self.lost = PairLost(conversation_id, state.lost, counters=counters)
        self._waiting: dict[InstanceId, list[Waits]] = {}
        self._ids: set[MessageId] = set()
        self._bytes = 0
        self._online_since_ms = now_ms if online else None
        self._online_before_ms = 0
        self._deadline_ms: UnixMs | None = None
        self._deadline_known = False
        for kept in state.waiting:
            try:
                self._keep(decode(kept.content), kept)
            except RemoteProtocolError:  # An older version could read it.
                counters.add("pair.waiting_unreadable")

    # --- clock --------------------------------------------------------------------------------

    @property
    def lamport_timestamp(self) -> int:
        """The highest timestamp that either side has used."""
        return self._lamport

    def stamp(self, writes: list[StoreWrite], *, now_ms: UnixMs) -> int:
        """The Lamport timestamp for a message that we send now."""
        return self._advance_clock(max(self._clock.at(now_ms), self._lamport + 1), writes)

    def _place(self, content: Content, writes: list[StoreWrite], now_ms: UnixMs) -> int:
        claimed, clock_ms = content.lamport_timestamp, self._clock.at(now_ms)
        if claimed > clock_ms + AHEAD_MS:
            self._counters.add("pair.clock_ahead")
            claimed = max(clock_ms, self._lamport + 1)
        elif self._lamport > clock_ms + AHEAD_MS:
            # Our clock was ahead and is set back: new messages still go after what we sent.
            self._counters.add("pair.clock_was_ahead")
            claimed = self._lamport + 1
        self._advance_clock(claimed, writes)
        return claimed

    def _advance_clock(self, lamport: int, writes: list[StoreWrite]) -> int:
        if lamport > self._lamport:
            self._lamport = lamport
            writes.append(
                SavePairClock(conversation_id=self._conversation_id, lamport_timestamp=lamport)
            )
        return lamport

    # --- arrivals -----------------------------------------------------------------------------

    def arrive(
        self, content: Content, kept: WaitingContent, writes: list[StoreWrite], *, now_ms: UnixMs
    ) -> list[Placed]:
        """Take a new message; returns what has its place now, in order."""
        author = content.author
        if author.instance_id not in self._delivered and not self._may_begin(content):
            return self._wait(content, kept, writes, now_ms)
        delivered = self._delivered.get(author.instance_id, author.sequence - 1)
        is_early = author.sequence > delivered + 1
        if is_early and not is_statement(content):
            return self._wait(content, kept, writes, now_ms)
        one = Placed(
            message_id=kept.message_id,
            content=content,
            lamport_timestamp=self._place(content, writes, now_ms),
            late=author.sequence <= delivered,
        )
        if is_early:
            return [one, *self._wait(content, kept, writes, now_ms)]
        if one.late:
            self.lost.arrived(author, one.position, writes)
        else:
            self._note_delivered(author.instance_id, author.sequence, writes)
        return [one, *self._cascade(author.instance_id, writes, now_ms)]

    def _may_begin(self, content: Content) -> bool:
        """Whether no earlier message of this instance is to be expected."""
        if len(self._delivered) >= MAX_INSTANCES:
            self._counters.add("pair.too_many_instances")
            return True
        return content.author.sequence == 1 or is_statement(content)

    def _wait(
        self, content: Content, kept: WaitingContent, writes: list[StoreWrite], now_ms: UnixMs
    ) -> list[Placed]:
        self._keep(content, kept)
        writes.append(PutWaiting(conversation_id=self._conversation_id, waiting=kept))
        placed: list[Placed] = []
        while len(self._ids) > MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            self._counters.add("pair.waiting_full")
            fullest = max(self._waiting, key=lambda instance: len(self._waiting[instance]))
            placed += self._skip_gap(fullest, writes, now_ms)
        return placed

    def _keep(self, content: Content, kept: WaitingContent) -> None:
        waits = Waits(content.author.sequence, kept.message_id, content, kept)
        insort(self._waiting.setdefault(content.author.instance_id, []), waits)
        self._ids.add(kept.message_id)
        self._bytes += len(kept.content)
        self._deadline_known = False

    # --- deadlines ----------------------------------------------------------------------------

    def advance(
        self, writes: list[StoreWrite], *, now_ms: UnixMs
    ) -> tuple[list[Placed], list[Shown]]:
        placed: list[Placed] = []
        shown: list[Shown] = []
        self._set_back(writes, now_ms)
        for instance_id in list(self._waiting):
            if instance_id not in self._delivered:
                placed += self._begin(instance_id, writes, now_ms)
            while self._is_lost(instance_id, now_ms):
                self._counters.add("pair.lost")
                placed += self._skip_gap(instance_id, writes, now_ms)
            shown += self._show(instance_id, writes, now_ms)
        return placed, shown

    def _begin(
        self, instance_id: InstanceId, writes: list[StoreWrite], now_ms: UnixMs
    ) -> list[Placed]:
        waited = [
            one
            for one in self._waiting[instance_id]
            if one.kept.received_ms + SHOW_AFTER_MS <= now_ms
        ]
        if not waited:
            return []
        self._delivered[instance_id] = waited[0].sequence - 1
        return self._cascade(instance_id, writes, now_ms)

    def _set_back(self, writes: list[StoreWrite], now_ms: UnixMs) -> None:
        """A clock was set back: messages received in the future now count as received now."""
        for waiting in self._waiting.values():
            for index, one in enumerate(waiting):
                if one.kept.received_ms <= now_ms:
                    continue
                kept = structs.replace(one.kept, received_ms=now_ms)
                waiting[index] = replace(one, kept=kept)
                writes.append(PutWaiting(conversation_id=self._conversation_id, waiting=kept))
                self._deadline_known = False

    def _is_lost(self, instance_id: InstanceId, now_ms: UnixMs) -> bool:
        """Whether to stop expecting the message missing before the first that waits."""
        waiting = self._waiting.get(instance_id)
        if not waiting or self._online_ms(now_ms) < ONLINE_AT_LEAST_MS:
            return False
        return waiting[0].kept.received_ms + LOST_AFTER_MS <= now_ms

    def _show(
        self, instance_id: InstanceId, writes: list[StoreWrite], now_ms: UnixMs
    ) -> list[Shown]:
        shown = []
        waiting = self._waiting.get(instance_id, [])
        for index, one in enumerate(waiting):
            early = one.kept.received_ms + SHOW_AFTER_MS > now_ms
            if one.kept.shown or early or is_statement(one.content):
                continue
            kept = structs.replace(one.kept, shown=True)
            self._deadline_known = False
            waiting[index] = Waits(one.sequence, one.message_id, one.content, kept)
            writes.append(PutWaiting(conversation_id=self._conversation_id, waiting=kept))
            lamport = min(one.content.lamport_timestamp, self._clock.at(now_ms) + AHEAD_MS)
            shown.append(
                Shown(
                    message_id=one.message_id,
                    content=one.content,
                    lamport_timestamp=lamport,
                    came_ms=kept.received_ms,
                )
            )
        return shown

    # --- delivering ---------------------------------------------------------------------------

    def _skip_gap(
        self, instance_id: InstanceId, writes: list[StoreWrite], now_ms: UnixMs
    ) -> list[Placed]:
        first, delivered = self._waiting[instance_id][0], self._delivered.get(instance_id)
        self._delivered[instance_id] = first.sequence - 1
        placed = self._cascade(instance_id, writes, now_ms)
        if delivered is not None:  # Else this is the start, and nothing before it was expected.
            lamport = min(first.content.lamport_timestamp, self._clock.at(now_ms) + AHEAD_MS)
            before = Position(lamport, first.message_id)
            if placed and placed[0].message_id == first.message_id:
                before = placed[0].position
            lost = LostRange(
                instance_id=instance_id,
                first=delivered + 1,
                last=first.sequence - 1,
                before=before,
                since_ms=first.kept.received_ms,
                given_up_ms=now_ms,
            )
            self.lost.give_up(lost, writes)
        return placed

    def _cascade(
        self, instance_id: InstanceId, writes: list[StoreWrite], now_ms: UnixMs
    ) -> list[Placed]:
        if instance_id not in self._delivered:
            return []
        self._deadline_known = False
        waiting = self._waiting.get(instance_id, [])
        count = 0
        placed = []
        for one in waiting:
            delivered = self._delivered[instance_id]
            if one.sequence > delivered + 1:
                break
            count += 1
            self._ids.discard(one.message_id)
            self._bytes -= len(one.kept.content)
            writes.append(
                RemoveWaiting(conversation_id=self._conversation_id, message_id=one.message_id)
            )
            self._delivered[instance_id] = max(delivered, one.sequence)
            if is_statement(one.content):
                continue  # It was placed when it arrived.
            placed.append(
                Placed(
                    message_id=one.message_id,
                    content=one.content,
                    lamport_timestamp=self._place(one.content, writes, now_ms),
                    was_shown=one.kept.shown,
                    late=one.sequence <= delivered,
                    came_ms=one.kept.received_ms,
                )
            )
        del waiting[:count]
        if not waiting:
            self._waiting.pop(instance_id, None)
        if count:
            self._note_delivered(instance_id, self._delivered[instance_id], writes)
        return placed

    def _note_delivered(
        self, instance_id: InstanceId, sequence: int, writes: list[StoreWrite]
    ) -> None:
        if instance_id not in self._delivered and len(self._delivered) >= MAX_INSTANCES:
            return
        self._delivered[instance_id] = sequence
        writes.append(
            SavePairAuthor(
                conversation_id=self._conversation_id, instance_id=instance_id, sequence=sequence
            )
        )

    # --- time ---------------------------------------------------------------------------------

    def connectivity(self, *, online: bool, now_ms: UnixMs) -> None:
        self._online_before_ms = self._online_ms(now_ms)
        self._online_since_ms = now_ms if online else None
        self._deadline_known = False

    def _online_ms(self, now_ms: UnixMs) -> int:
        since_ms = self._online_since_ms
        current_ms = 0 if since_ms is None else max(now_ms - since_ms, 0)
        return self._online_before_ms + current_ms

    def next_deadline(self) -> UnixMs | None:
        if not self._deadline_known:
            self._deadline_ms, self._deadline_known = self._find_deadline(), True
        return self._deadline_ms

    def _find_deadline(self) -> UnixMs | None:
        deadlines: list[int] = []
        for instance_id, waiting in self._waiting.items():
            first = waiting[0].kept
            begins = instance_id not in self._delivered
            deadlines += (
                one.kept.received_ms + SHOW_AFTER_MS
                for one in waiting
                if begins or not (one.kept.shown or is_statement(one.content))
            )
            if not begins and self._online_since_ms is not None:
                enough_ms = self._online_since_ms + ONLINE_AT_LEAST_MS - self._online_before_ms
                deadlines.append(max(first.received_ms + LOST_AFTER_MS, enough_ms))
        return UnixMs(min(deadlines)) if deadlines else None

    # --- views --------------------------------------------------------------------------------

    def gap(self) -> GapView | None:
        """What is missing before waiting messages that are shown, and what was given up."""
        places: list[GapPlace] = []
        for instance_id, waiting in self._waiting.items():
            if instance_id in self._delivered:
                places += places_of(waiting, delivered=self._delivered[instance_id])
        lost = self.lost.views()
        if not places and not lost:
            return None
        places.sort(key=lambda place: place.before or Position(0, MessageId("")))
        return GapView(
            conversation_id=self._conversation_id,
            missing=min(sum(place.missing for place in places), MAX_MISSING_TOLD),
            waiting=sum(place.waiting for place in places),
            places=tuple(places[:MAX_PLACES_TOLD]),
            lost=lost,
            lost_total=self.lost.total,
        )

    def snapshot(self) -> PairState:
        """The state as the store would load it."""
        return PairState(
            lamport_timestamp=self._lamport,
            authors=dict(self._delivered),
            waiting=tuple(
                sorted(
                    (one.kept for waiting in self._waiting.values() for one in waiting),
                    key=lambda kept: kept.message_id,
                )
            ),
            lost=self.lost.snapshot(),
        )
