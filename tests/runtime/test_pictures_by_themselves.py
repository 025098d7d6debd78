"""Which pictures are fetched without being asked for, and how many bytes of them in an hour."""

import asyncio

import pytest
from msgspec import structs

from engine.core.blobs.manifest import CHUNK_BYTES
from engine.core.counters import Counters
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.events import MessageKind, MessageView
from engine.file_views import FileState, FileView
from engine.runtime.files.pictures import HOUR_MS, MAX_FETCHING, Pictures

GROUP = ConversationId("group")
PICTURE = FileView(
    name="sea.jpg", media_type="image/jpeg", size=900, width=40, height=30, state=FileState.OFFERED
)


def message(name: str, file: FileView | None = PICTURE) -> MessageView:
    return MessageView(
        conversation_id=GROUP,
        position=Position(lamport_timestamp=1, message_id=MessageId(name)),
        sender_id=ParticipantId("a"),
        sender_name="A",
        is_own=False,
        kind=MessageKind.FILE,
        text="",
        spans=(),
        sent_ms=UnixMs(1),
        delivery=None,
        file=file,
    )


async def test_small_ones_that_are_offered_are_taken_once() -> None:
    pictures = Pictures(lambda: 900, Counters())
    others = [
        None,
        structs.replace(PICTURE, size=901),
        structs.replace(PICTURE, width=0),
        structs.replace(PICTURE, state=FileState.INLINE),
        structs.replace(PICTURE, state=FileState.PAUSED),
    ]
    assert not pictures.look_at([message(str(n), file) for n, file in enumerate(others)])
    assert pictures.look_at([message("a"), message("b"), message("a")])
    assert list(pictures.take(fetching=0)) == [(GROUP, "a"), (GROUP, "b")]
    assert list(pictures.take(fetching=0)) == []


async def test_so_many_bytes_in_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = Counters()
    pictures = Pictures(lambda: 900, counters, bytes_per_hour=5 * CHUNK_BYTES)
    now_s = asyncio.get_running_loop().time()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now_s)
    pictures.look_at([message(name) for name in "abc"])
    assert [message_id for _, message_id in pictures.take(fetching=0)] == ["a", "b"]
    assert counters.snapshot() == {"files.pictures_left": 1}
    later_s = now_s + HOUR_MS / 1_000
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: later_s)
    pictures.look_at([message("c")])
    assert [message_id for _, message_id in pictures.take(fetching=0)] == ["c"]


async def test_no_more_are_begun_than_may_be_on_their_way() -> None:
    counters = Counters()
    pictures = Pictures(lambda: 900, counters)
    pictures.look_at([message(name) for name in "abc"])
    begun = list(pictures.take(fetching=MAX_FETCHING - 2))
    assert begun == [(GROUP, "a"), (GROUP, "b")]
    assert counters.snapshot() == {"files.pictures_left": 1}
