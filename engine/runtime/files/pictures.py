"""Which pictures are fetched without being asked for: small ones that came or are shown.

How many bytes that are in an hour is bounded, and how many are on their way at once, so nobody can
make a device fetch without end, or wait for pictures that never come.  What is beyond waits until
it is shown again, or asked for.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from engine.core.blobs.manifest import CHUNK_BYTES, chunks_of
from engine.core.counters import Counters
from engine.events import MessageView
from engine.file_views import FileState
from engine.runtime.files.book import FileKey
from engine.runtime.files.transfer import now_ms

MAX_WANTED: Final = 256
MAX_FETCHING: Final = 64
"""At once, with those that were asked for; one that nobody has stays on its way."""
HOUR_MS: Final = 3_600_000
BYTES_PER_HOUR: Final = 200 * 1024 * 1024


class Pictures:
    """``largest``: in bytes, asked each time."""

    def __init__(
        self,
        largest: Callable[[], int],
        counters: Counters,
        *,
        bytes_per_hour: int = BYTES_PER_HOUR,
    ) -> None:
        self._largest = largest
        self._counters = counters
        self._bytes_per_hour = bytes_per_hour
        self._wanted: dict[FileKey, int] = {}
        self._fetched: deque[tuple[int, int]] = deque()
        """When, and how many bytes."""

    def look_at(self, messages: Iterable[MessageView]) -> bool:
        """Whether there is something to fetch now."""
        largest = self._largest()
        for message in messages:
            file = message.file
            if file is None or file.state is not FileState.OFFERED or not file.width:
                continue
            if file.size <= largest and len(self._wanted) < MAX_WANTED:
                self._wanted[message.conversation_id, message.message_id] = file.size
        return bool(self._wanted)

    def take(self, *, fetching: int) -> Iterator[FileKey]:
        """Those to be fetched; each once.  ``fetching``: how many files are on their way now."""
        wanted, self._wanted = self._wanted, {}
        for key, size in wanted.items():
            if fetching < MAX_FETCHING and self._has_room_for(_fetched_bytes(size)):
                fetching += 1
                yield key
            else:
                self._counters.add("files.pictures_left")

    def _has_room_for(self, size: int) -> bool:
        at_ms = now_ms()
        while self._fetched and self._fetched[0][0] <= at_ms - HOUR_MS:
            self._fetched.popleft()
        if sum(each for _, each in self._fetched) + size > self._bytes_per_hour:
            return False
        self._fetched.append((at_ms, size))
        return True


def _fetched_bytes(size: int) -> int:
    """With the list, and as much as a sender who lies about the size can make of it."""
    return (1 + chunks_of(size)) * CHUNK_BYTES
