"""The figures on top of the delivery page: held by everyone, time to a member, missing, late."""

from collections.abc import Sequence
from typing import Final

from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QVBoxLayout, QWidget

from engine.delivery_views import DeliveryMark, DeliveryMessage, DeliveryPage
from ui.controls import Card, ElidedText, Text
from ui.delivery.loaded import ABSENT
from ui.regional import decimal, grouped
from ui.times import off_words
from ui.translate import tr

_BESIDE: Final = QBoxLayout.Direction.LeftToRight
_BELOW: Final = QBoxLayout.Direction.TopToBottom
_AROUND: Final = 32
"""The page's edges."""
_NONE: Final = "\N{EN DASH}"
_SECOND_MS, _SECONDS_SAID = 1_000, 60


class Tile(QWidget):
    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self.value = Text("", face="title")
        self.more = ElidedText(face="small", colour="ink2")
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.value)
        row.addWidget(self.more, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 8, 12, 8)
        column.setSpacing(0)
        column.addWidget(ElidedText(title, face="small", colour="ink2"))
        column.addLayout(row)

    def say(self, value: str, more: str) -> None:
        self.value.setText(value)
        self.more.setText(more)
        self.setAccessibleName(f"{self._title}: {value} {more}".strip())


class Tiles(Card):
    def __init__(self) -> None:
        super().__init__()
        self.held = Tile(tr("Held by everyone"))
        self.time = Tile(tr("Typical time to a member"))
        self.missing = Tile(tr("Missing here"))
        self.late = Tile(tr("Late"))
        self._rows = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(0)
        self._all = (self.held, self.time, self.missing, self.late)
        self._halves = QBoxLayout(_BESIDE), QBoxLayout(_BESIDE)
        for half, tiles in zip(self._halves, (self._all[:2], self._all[2:]), strict=True):
            for tile in tiles:
                half.addWidget(tile, 1)
            self._rows.addLayout(half, 1)
        self._room = 0

    def set_room(self, width: int) -> None:
        """Four beside each other, or two, or one, so that nothing is cut."""
        self._room = width
        needed = max(tile.sizeHint().width() for tile in self._all)
        fit = (width - _AROUND) // max(needed, 1)
        self._rows.setDirection(_BESIDE if fit >= len(self._all) else _BELOW)
        for half in self._halves:
            half.setDirection(_BESIDE if fit > 1 else _BELOW)

    def show_messages(
        self, messages: Sequence[DeliveryMessage], page: DeliveryPage | None, *, looked_ms: int
    ) -> None:
        """``messages``: those of the chosen time."""
        counted = [each for each in messages if each.of and each.mark not in ABSENT]
        held = sum(each.is_held_by_all for each in counted)
        if page is not None and page.is_open:
            self.held.say(_NONE, tr("nobody is proved here"))
        else:
            value = tr("{held} of {all}").format(held=grouped(held), all=grouped(len(counted)))
            self.held.say(value, tr("known here"))
        half, most = percentiles(took_ms(messages))
        if half is None or most is None:
            self.time.say(_NONE, tr("nothing to measure yet"))
        else:
            more = tr("slowest 5 %: {time}").format(time=short_time(most))
            self.time.say(short_time(half), more)
        absent = [each for each in messages if each.mark in ABSENT]
        self.missing.say(grouped(len(absent)), _missing_words(absent, looked_ms))
        late = sum(each.mark is DeliveryMark.LATE for each in messages)
        self.late.say(grouped(late), tr("now in their place") if late else "")
        self.missing.value.recolour("warn" if absent else "ink")
        self.late.value.recolour("late" if late else "ink")
        self.set_room(self._room)


def took_ms(messages: Sequence[DeliveryMessage]) -> list[int]:
    """From written down here until known to be held, of each certain holder of each of ours."""
    return sorted(
        max(0, holder.since_ms - message.received_ms)
        for message in messages
        if message.is_own and message.received_ms is not None
        for holder in message.holders
        if holder.certain and holder.since_ms is not None
    )


def percentiles(ascending: Sequence[int]) -> tuple[int | None, int | None]:
    """Half, and 95 of 100, do not exceed them; None of none."""
    if not ascending:
        return None, None
    half, most = (max(-(-len(ascending) * part // 100) - 1, 0) for part in (50, 95))
    return ascending[half], ascending[most]


def short_time(length_ms: int) -> str:
    if length_ms < _SECONDS_SAID * _SECOND_MS:
        return tr("{number} s").format(number=decimal(length_ms / _SECOND_MS))
    return off_words(length_ms)


def _missing_words(absent: Sequence[DeliveryMessage], looked_ms: int) -> str:
    lost = sum(each.mark is DeliveryMark.LOST for each in absent)
    if lost:
        return tr("%n given up", "%n given up", lost)
    since = min((each.received_ms for each in absent if each.received_ms), default=None)
    if since is None:
        return ""
    return tr("the longest for {time}").format(time=off_words(max(1_000, looked_ms - since)))
