"""Where in the loaded stretch a marker stands: directly above what is known to come after it.

Pure Python, like ``rows``.  Missing and lost messages have no row, so their marker stands at the
place of the first message that refers to them.  A place outside of the stretch is none: the marker
is shown once one scrolls there, and never at an edge that is only the end of what is loaded.
"""

from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct

from engine.core.ids import Position, UnixMs
from engine.events import GapPlace, GapView, MessageView
from engine.history_views import LostView


class Stretch(Struct, frozen=True, kw_only=True):
    """Loaded messages in order, those that wait last."""

    messages: Sequence[MessageView]
    reaches_beginning: bool
    reaches_end: bool

    def _first_waiting(self) -> int:
        return bisect_left(self.messages, True, key=lambda message: message.waiting)

    def gap_indices(self, gap: GapView | None) -> dict[int, GapPlace]:
        """What is missing, by the message below its marker; one beyond the last: at the end.

        Gaps with no message between them are one to the eye.
        """
        found: dict[int, list[GapPlace]] = {}
        for place in () if gap is None else gap.places:
            index = self._unplaced() if place.before is None else self._index(place.before)
            if index is not None and (place.missing or place.waiting):
                found.setdefault(index, []).append(place)
        return {index: _together(places) for index, places in found.items()}

    def _unplaced(self) -> int | None:
        """Nobody says where it belongs: behind all that is in order."""
        waiting = self._first_waiting()
        return waiting if self.reaches_end or waiting < len(self.messages) else None

    def lost_indices(self, gap: GapView | None) -> dict[int, tuple[LostView, ...]]:
        """Those that are lost, by the message below their marker."""
        found: dict[int, list[LostView]] = {}
        for lost in () if gap is None else gap.lost:
            index = self._index(lost.before) if lost.before is not None else self._beginning()
            if index is not None:
                found.setdefault(index, []).append(lost)
        return {index: tuple(sorted(each, key=_known)) for index, each in found.items()}

    def _beginning(self) -> int | None:
        """Nobody says where it belongs: out of the way."""
        return 0 if self.reaches_beginning else None

    def _index(self, before: Position) -> int | None:
        waiting = self._first_waiting()
        for index in range(waiting, len(self.messages)):
            if self.messages[index].message_id == before.message_id:
                return index
        index = bisect_left(self.messages, before, hi=waiting, key=lambda each: each.position)
        if index == waiting:
            return index if self.reaches_end else None
        if index == 0 and not self.reaches_beginning and self.messages[0].position != before:
            return None
        return index


def _together(places: Sequence[GapPlace]) -> GapPlace:
    if len(places) == 1:
        return places[0]
    next_ms = [each.next_request_ms for each in places if each.next_request_ms is not None]
    return GapPlace(
        missing=sum(each.missing for each in places),
        waiting=sum(each.waiting for each in places),
        since_ms=min((each.since_ms for each in places if each.since_ms), default=UnixMs(0)),
        requests=max(each.requests for each in places),
        next_request_ms=min(next_ms, default=None),
        before=places[0].before,
    )


def _known(lost: LostView) -> tuple[int, str, int]:
    first, _last = lost.numbers or (0, 0)
    return lost.since_ms, lost.message_id or "", first
