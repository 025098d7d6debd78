"""Where the space of a profile goes, for the window that has it open."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from chat_app.backing_up import on_a_thread
from engine.core.errors import StorageError, StorageFault
from engine.delivery.sqlite_log import SUFFIX
from engine.persistence.backup import BackupSource
from engine.persistence.carry_over import Progress
from engine.persistence.connection import SIDE_FILES
from engine.persistence.reclaim import reclaim_unused, room_needed
from engine.persistence.space import ConversationSpace, HeldFiles, Kind, ProfileSpace, measure_space
from ui.backup_port import Follow, GoesOn
from ui.space_port import ConversationTakes, FilesHere, ProfileTakes


class WindowSpace:
    """A ``ui.space_port.SpacePort``."""

    def __init__(
        self,
        source: Callable[[], BackupSource],
        records: Path,
        alone: Callable[[Callable[[], int]], Awaitable[int]],
        *,
        began_s: float,
    ) -> None:
        """``records``: where deliveries are recorded; ``began_s``: when this run did, Unix time.

        ``alone`` calls where nobody else writes to the profile.
        """
        self._source = source
        self._alone = alone
        self._records = records
        self._began_s = began_s

    async def measure(self, follow: Follow, goes_on: GoesOn) -> ProfileTakes:
        def work(progress: Progress) -> ProfileSpace:
            source = self._source()
            return measure_space(source.directory, source.key, progress)

        found = await on_a_thread(work, follow, goes_on)
        return ProfileTakes(
            conversations=tuple(map(_conversation, found.conversations)),
            search=found.search,
            lists=found.lists,
            unused=found.unused,
            kept_for_others=found.kept_for_others,
            records=found.records,
            logs=found.logs,
            other=found.other,
            total=found.total,
            room_to_pack=room_needed(found.live),
        )

    async def reclaim(self, follow: Follow, goes_on: GoesOn) -> int:
        loop, is_wanted = asyncio.get_running_loop(), True

        def progress(share: float) -> bool:
            loop.call_soon_threadsafe(follow, share)
            return is_wanted and goes_on()

        def work() -> int:
            source = self._source()
            return reclaim_unused(source.directory.database, source.key, progress)

        try:
            return await self._alone(work)
        finally:
            is_wanted = False

    async def let_records_go(self) -> None:
        await asyncio.to_thread(self._let_records_go)

    def _let_records_go(self) -> None:
        """What was written to since this run began may be open; a log is more than one file."""
        try:
            for log in sorted(self._records.glob(f"*{SUFFIX}")):
                beside = (log.with_name(f"{log.name}{end}") for end in SIDE_FILES)
                files = [log, *(path for path in beside if path.exists())]
                if all(path.lstat().st_mtime < self._began_s for path in files):
                    for path in files:
                        path.unlink(missing_ok=True)
        except FileNotFoundError:
            return
        except OSError as error:
            reason = error.strerror or type(error).__name__
            text = f"Cannot remove records: {reason}."
            raise StorageError(text, StorageFault.FILE_NOT_WRITTEN, reason) from error


def _conversation(space: ConversationSpace) -> ConversationTakes:
    return ConversationTakes(
        conversation_id=space.conversation_id,
        texts=space.size[Kind.TEXTS],
        files=space.size[Kind.FILES],
        evidence=space.size[Kind.EVIDENCE],
        fetchable=_files(space.fetchable),
        message_ids=tuple(space.message_ids),
        unheld=_files(space.unheld),
        own=_files(space.own),
        own_only_here=_files(space.own_only_here),
    )


def _files(held: HeldFiles) -> FilesHere:
    return FilesHere(held.count, held.size)
