"""The loaded stretch behaves like a window on the whole log, whatever happens in whatever order."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.answers import TimelinePage
from engine.events import MessageView
from tests.ui.timeline.timeline_stage import chatter, message
from ui.timeline.loaded import MAX_LOADED, LoadedMessages, Placement
from ui.timeline.rows import order


def page(log: list[MessageView], begin: int, end: int) -> TimelinePage:
    begin, end = max(begin, 0), min(end, len(log))
    return TimelinePage(
        messages=tuple(log[begin:end]),
        has_older=begin > 0,
        has_newer=end < len(log),
        older_count=begin,
        total=len(log),
    )


class WindowOnALog(RuleBasedStateMachine):
    """The model is the whole log; the window must always be one stretch of it."""

    def __init__(self) -> None:
        super().__init__()
        self.log = chatter(900)
        self.loaded = LoadedMessages()
        self.loaded.reset(page(self.log, 800, 900))

    def _place(self) -> tuple[int, int]:
        begin = self.log.index(self.loaded.messages[0])
        return begin, begin + len(self.loaded)

    @precondition(lambda self: len(self.loaded) > 0)
    @rule()
    def scroll_up(self) -> None:
        begin, _end = self._place()
        self.loaded.extend_older(page(self.log, begin - 100, begin))

    @precondition(lambda self: len(self.loaded) > 0 and self.loaded.has_newer)
    @rule()
    def scroll_down(self) -> None:
        _begin, end = self._place()
        self.loaded.extend_newer(page(self.log, end, end + 100))

    @rule(start=st.integers(0, 800))
    def jump(self, start: int) -> None:
        self.loaded.reset(page(self.log, start, start + 100))

    @rule(lamport_timestamp=st.integers(0, 9500))
    def arrive(self, lamport_timestamp: int) -> None:
        new = message(lamport_timestamp)
        if any(m.message_id == new.message_id for m in self.log):
            return
        self.log = sorted([*self.log, new], key=order)
        was_full = len(self.loaded) == MAX_LOADED
        placement = self.loaded.add(new)
        if self.loaded.get(new.message_id) is not None:
            assert placement in {Placement.APPENDED, Placement.INSERTED}
            assert self.loaded.add(new) is Placement.REPLACED
        else:
            assert was_full or placement in {Placement.BEYOND_OLDER, Placement.BEYOND_NEWER}

    @precondition(lambda self: len(self.loaded) > 1)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.loaded.messages))
        self.log.remove(gone)
        assert self.loaded.remove(gone.message_id)
        assert not self.loaded.remove(gone.message_id)

    @invariant()
    def is_one_stretch_of_the_log(self) -> None:
        assert len(self.loaded) <= MAX_LOADED
        if len(self.loaded):
            begin, end = self._place()
            assert self.loaded.messages == self.log[begin:end]
            assert self.loaded.older_count == begin
            assert self.loaded.has_older == (begin > 0)
            assert self.loaded.has_newer == (end < len(self.log))


WindowOnALog.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestWindowOnALog = WindowOnALog.TestCase


def test_a_waiting_row_moves_to_its_place_when_it_gets_one() -> None:
    loaded = LoadedMessages()
    loaded.reset(page(chatter(5), 0, 5))
    loaded.add(message(25, waiting=True))
    assert loaded.messages[-1].waiting
    assert loaded.replace(message(25))
    assert [m.position.lamport_timestamp for m in loaded.messages] == [10, 20, 25, 30, 40, 50]


def test_what_arrives_while_one_reads_far_up_drops_the_other_end() -> None:
    log = chatter(MAX_LOADED)
    loaded = LoadedMessages()
    loaded.reset(page(log, 0, MAX_LOADED))
    loaded.add(message(10**6), keep=log[3].message_id)
    assert loaded.get(log[3].message_id) is not None
    assert loaded.has_newer
    assert loaded.total == MAX_LOADED + 1


def test_a_change_of_what_is_not_loaded_is_told() -> None:
    assert not LoadedMessages().replace(message(1))
