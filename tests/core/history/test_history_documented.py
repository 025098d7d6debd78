"""The figures that docs/waku.md names of asking Stores are those of the configuration."""

import re
from pathlib import Path

from engine.core.history.config import HistoryConfig
from engine.core.history.progress import Progress, Purpose, StoreRecord, StoreRef
from engine.core.history.queries import End
from engine.core.history.requests import WindowRequest
from engine.core.ids import ConversationId, UnixMs

PAGE = Path(__file__).parents[3] / "docs" / "waku.md"
OURS = HistoryConfig()
WORDS = ("no", "one", "two", "three", "four", "five", "six")
SENTENCES = [
    f"Up to {OURS.window_stores} Stores are asked for a window at once",
    f"one that keeps the others waiting for {OURS.patience_ms // 1_000} s is left behind",
    f"after {WORDS[OURS.max_refusals]} refusals in a row",
    f"after {WORDS[OURS.max_failures]} lost connections in a row",
    f"restarts {OURS.restart_overlaps_ns[0] // 10**9} s before the last time",
    f"then {OURS.restart_overlaps_ns[1] // 10**9} s, then at that time",
    f"{WORDS[OURS.max_stale_pages]} pages with nothing new",
    f"{OURS.max_pages:,} pages of one query".replace(",", " "),
    f"that comes no further is tried again {WORDS[OURS.max_retries]} times",
    f"one that does is continued {OURS.max_continuations} times",
    f"{OURS.trailing_ms // 1_000} s after a window",
]


def test_what_the_page_says_is_what_is_configured() -> None:
    page = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))
    assert OURS.restart_overlaps_ns[2] == 0
    assert [one for one in SENTENCES if one not in page] == []


def test_the_codes_of_an_end_are_its_names() -> None:
    assert [end.value for end in End] == [end.name.lower() for end in End]


def test_a_store_that_was_never_asked_has_brought_nothing() -> None:
    record = StoreRecord(store=StoreRef("/dns4/one.example/tcp/443/wss"), place=1)
    counted = (record.queries, record.complete, record.messages, record.new, record.omitted)
    assert counted == (0,) * 5


def test_the_longest_wait_is_still_waited_for_and_a_longer_one_is_none() -> None:
    progress = Progress(
        conversation_id=ConversationId("conversation"),
        purpose=Purpose.CONNECT,
        start_ns=0,
        end_ns=10,
        through_ns=10,
        reached_ns=0,
    )
    request = WindowRequest(progress=progress, not_before_ms=UnixMs(1_000))
    assert not request.is_due(UnixMs(999), longest_ms=500)
    assert not request.is_due(UnixMs(500), longest_ms=500)
    assert request.is_due(UnixMs(499), longest_ms=500)
    assert request.is_due(UnixMs(1_000), longest_ms=500)
