"""Opens the real delivery view, inspector and network view on what is made here.

Prints what they take of the main thread.

A process of its own, as it needs an application of Qt's.  A frame is all that one turn of the event
loop does, painting among it, in CPU time of the thread.  The answer is JSON.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QHBoxLayout, QWidget

from benchmarks.delivery_view_beside import Network, inspected
from benchmarks.timeline_work import conversation, cpu_ms
from chat_app.main_thread_gc import MainThreadCollector
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.delivery_views import (
    MOST_IN_PAGE,
    DeliveryMark,
    DeliveryMessage,
    DeliveryPage,
    HolderMark,
)
from engine.events import ConversationView, MemberView
from engine.live_views import (
    BufferView,
    LiveSample,
    OwnMessage,
    SkewView,
    Traffic,
    TrafficKind,
)
from ui.delivery.contents import Contents
from ui.delivery.figures import charts_of
from ui.delivery.loaded import MOST_LOADED
from ui.delivery.page import DeliveryPane
from ui.delivery.series import LiveHistory
from ui.inspector.panel import InspectorPanel
from ui.network.sheet import NetworkSheet
from ui.own_frame import ms_to_own_frame
from ui.theme import ThemeMode, set_theme
from ui.window.live_flows import COLUMNS, SPAN_MS

GROUP = ConversationId("benchmark")
MEMBERS = 12
A_SECOND = 200
"""Messages."""
SECONDS = 12
TURN_SECONDS = 0.02
REFRESH_SECONDS = 0.5
"""From one reading to the next."""
SHOWN_MS = 0.3
"""Turns that take less paint nothing."""
SIZE = (968, 2_400)
"""As high as the page, so that all of it is painted."""
INSPECTOR_SIZE = (340, 900)
"""As in a window of usual height."""
PANS = 200
LOOKS = 100
_START_MS = 1_795_000_000_000
_PEOPLE = tuple(ParticipantId(f"{number:032x}") for number in range(MEMBERS))
_MARKS = {7: DeliveryMark.LATE, 13: DeliveryMark.MISSING, 29: DeliveryMark.WAITING}


def _message(number: int, newest: int) -> DeliveryMessage:
    """What is older is held by more."""
    message_id = MessageId(f"m{number:06}")
    sender = number % MEMBERS
    others = [each for each in range(MEMBERS) if each != sender]
    known = min(len(others), (newest - number) // 40)
    holders = tuple(
        HolderMark(
            participant_id=_PEOPLE[each],
            certain=place < known - 1,
            since_ms=UnixMs(_START_MS + number * 5 + 1_000 * place) if sender == 0 else None,
        )
        for place, each in enumerate(others[:known])
    )
    mark = _MARKS.get(number % 31, DeliveryMark.HERE)
    position = Position(number, message_id)
    is_here = mark is not DeliveryMark.MISSING
    return DeliveryMessage(
        message_id=message_id,
        mark=mark,
        sender_id=_PEOPLE[sender],
        sender_name=f"Member {sender}",
        is_own=sender == 0,
        lamport_timestamp=number if is_here else None,
        position=position if is_here else None,
        before=None if is_here else position,
        received_ms=UnixMs(_START_MS + number * 5),
        sent_ms=UnixMs(_START_MS + number * 5 - 80),
        is_shown=True,
        names=tuple(MessageId(f"m{max(number - back, 0):06}") for back in (3, 2, 1)),
        holders=holders,
        of=MEMBERS - 1,
        held_by=max(known - 1, 0),
    )


def _page(messages: Sequence[DeliveryMessage], *, has_older: bool) -> DeliveryPage:
    first = next(each.position for each in messages if each.position is not None)
    return DeliveryPage(
        conversation_id=GROUP,
        looked_ms=UnixMs(_START_MS + 3_600_000),
        messages=tuple(messages),
        first=first,
        has_older=has_older,
        has_newer=False,
        is_open=False,
        is_pair=False,
        clock=1,
    )


def _newest(count: int) -> DeliveryPage:
    messages = [_message(number, count) for number in range(max(count - MOST_IN_PAGE, 0), count)]
    return _page(messages, has_older=count > MOST_IN_PAGE)


def _sample(second: int) -> LiveSample:
    copies = second * A_SECOND

    def traffic(part: int) -> Traffic:
        return Traffic(copies=copies // part, size=300 * copies // part)

    kinds = {kind: traffic(part) for part, kind in enumerate(TrafficKind, 1)}
    mine = tuple(
        OwnMessage(
            message_id=MessageId(f"o{number}"),
            saved_ms=UnixMs(_START_MS + number * 100),
            held_after_ms=400 + number * 37 % 3_000,
            copies=1 + number % 3,
        )
        for number in range(min(second * 10, 200))
    )
    return LiveSample(
        conversation_id=GROUP,
        at_ms=UnixMs(_START_MS + second * 1_000),
        since_ms=UnixMs(_START_MS),
        placed=copies,
        sent=kinds,
        received=kinds,
        repairs_asked=second,
        skew=SkewView(lowest_ms=-second, highest_ms=second % 7),
        buffers=BufferView(
            outgoing=second % 9, incoming=second % 5, missing=1, filter_fill=second / 100
        ),
        own=mine,
    )


def _conversation() -> ConversationView:
    members = tuple(
        MemberView(
            participant_id=who,
            name=f"Member {number}",
            is_self=number == 0,
            is_admin=False,
            has_left=False,
            fingerprint="",
        )
        for number, who in enumerate(_PEOPLE)
    )
    return conversation(GROUP, members)


def _opened() -> tuple[DeliveryPane, Contents]:
    pane = DeliveryPane(_now)
    contents = Contents(pane)
    pane.show_conversation(_conversation())
    pane.resize(*SIZE)
    pane.show()
    return pane, contents


def _beside(pane: DeliveryPane) -> tuple[QWidget, InspectorPanel]:
    """Both in one window, as the inspector is open in most of what a tester does."""
    window, panel = QWidget(), InspectorPanel(_now)
    row = QHBoxLayout(window)
    row.addWidget(pane, 1)
    panel.setFixedSize(*INSPECTOR_SIZE)
    row.addWidget(panel, 0, Qt.AlignmentFlag.AlignTop)
    window.resize(SIZE[0] + INSPECTOR_SIZE[0], SIZE[1])
    window.show()
    return window, panel


def _now() -> datetime:
    return datetime.fromtimestamp(_START_MS / 1_000, tz=UTC)


def _turn() -> None:
    QApplication.processEvents()


def _settle() -> None:
    """What waits for a later turn is part of the opening, too."""
    for _ in range(3):
        time.sleep(TURN_SECONDS)
        _turn()


class Watched:
    """A conversation in a window, with the inspector beside it, as the window's flows show it."""

    def __init__(self) -> None:
        self._pane, self._contents = _opened()
        self._window, self._panel = _beside(self._pane)
        self._history = LiveHistory()
        self.frames: list[float] = []
        """What each turn took, in milliseconds of CPU time."""
        holders = self._contents.holders
        self._pane.loaded_changed.connect(
            lambda loaded: holders.show_loaded(loaded, _conversation())
        )

    def open(self, page: DeliveryPage, sample: LiveSample) -> None:
        self.read(page)
        self.count(sample)
        self.look(0)
        _settle()

    def read(self, page: DeliveryPage) -> None:
        self._pane.show_loaded(self._pane.loaded, self._pane.loaded.take_newest(page))
        _turn()

    def count(self, sample: LiveSample) -> None:
        self._history.add(sample)
        charts = charts_of(self._history.window(SPAN_MS, COLUMNS), is_pair=False, is_open=False)
        self._contents.live.show_charts(charts)
        self._contents.refusals.show_counters({}, {})
        _turn()

    def look(self, reading: int) -> None:
        """More holds it, more name it, and it was sent again."""
        found = inspected(
            GROUP, MessageId("m000000"), members=MEMBERS, reading=reading, at_ms=_START_MS
        )
        self._panel.show_message(found, {})
        _turn()

    def turns(self, seconds: float) -> None:
        """Timers run meanwhile; what they do is a frame, too."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(TURN_SECONDS)
            self.frames.append(cpu_ms(_turn))

    def in_own_frame(self, show: Callable[[], None]) -> None:
        self.turns(ms_to_own_frame() / 1_000)
        self.frames.append(cpu_ms(show))

    def close(self) -> None:
        self._window.close()


def busy() -> dict[str, list[float]]:
    """A conversation in which 200 messages come a second."""
    pages = [_newest(half * A_SECOND // 2) for half in range(2, 2 * SECONDS)]
    samples = [_sample(second) for second in range(SECONDS)]
    view = Watched()
    opening = cpu_ms(partial(view.open, pages[0], samples[0]))
    for half, page in enumerate(pages[1:]):
        begun = time.monotonic()
        view.in_own_frame(partial(view.read, page))
        view.in_own_frame(partial(view.look, half + 1))
        if half % 2:
            view.in_own_frame(partial(view.count, samples[half // 2 + 1]))
        view.turns(begun + REFRESH_SECONDS - time.monotonic())
    view.close()
    painted = [each for each in view.frames if each >= SHOWN_MS]
    return {"opening": [opening], "frames": painted, "all frames": view.frames}


def graph() -> dict[str, list[float]]:
    """As many messages as a view keeps, all of them or a part of them in sight."""
    pane, _contents = _opened()
    messages = [_message(number, MOST_LOADED) for number in range(MOST_LOADED)]
    page = _page(messages, has_older=False)
    shown = pane.graph_card.graph
    pane.graph_card.ranges.choose(2)

    def first() -> None:
        pane.show_loaded(pane.loaded, pane.loaded.take_newest(page))
        _turn()
        shown.repaint()

    found = {"first": [cpu_ms(first)], "pan": [], "pan over all": []}

    def move(columns: float) -> None:
        shown.pan(columns)
        shown.repaint()

    found["pan"] = [cpu_ms(partial(move, -2.5)) for _ in range(PANS)]
    shown.zoom(0.001)
    found["pan over all"] = [cpu_ms(partial(move, 25)) for _ in range(PANS)]
    pane.close()
    return found


def network() -> dict[str, list[float]]:
    """The network view of 64 peers, of whom every row has changed at each look."""
    sheet = NetworkSheet(Network(_START_MS).as_engine(), lambda: None, _now)
    sheet.show()
    _turn()
    found: dict[str, list[float]] = {"frames": []}

    def look() -> None:
        sheet.refresh()
        _turn()

    for _ in range(LOOKS):
        found["frames"].append(cpu_ms(look))
    sheet.close()
    return found


def main() -> None:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = QApplication(sys.argv[:1])
    set_theme(app, ThemeMode.LIGHT)
    collector = MainThreadCollector()  # As in the program; else a frame pays for all that is there.
    print(json.dumps({"busy": busy(), "graph": graph(), "network": network()}))
    collector.stop()


if __name__ == "__main__":
    main()
