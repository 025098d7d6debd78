"""The scripted engine's search: it finds messages by a part of their text, the newest first."""

from collections.abc import Mapping
from itertools import chain

from engine.answers import FOUND_SIZE, FoundView, SearchAnswer
from engine.api import Search
from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs
from engine.core.search import FoundPlace
from engine.core.search_text import excerpt, is_shortened, wanted
from engine.events import ConversationView, MessageKind, MessageView, SearchIndexed

EVERYTHING = SearchIndexed(left=0, total=0, is_paused=False)


class ScriptedSearch(Search):
    """Of ``ScriptedEngine``, whose rows it reads."""

    def __init__(
        self,
        views: Mapping[ConversationId, ConversationView],
        rows: Mapping[ConversationId, Mapping[MessageId, MessageView]],
    ) -> None:
        self._views, self._rows = views, rows
        self.indexed_now = EVERYTHING
        self.asked: list[tuple[str, object]] = []

    async def find(  # noqa: PLR0913 - as the protocol has it
        self,
        text: str,
        *,
        conversation_id: ConversationId | None = None,
        sender_id: ParticipantId | None = None,
        since_ms: UnixMs | None = None,
        until_ms: UnixMs | None = None,
        has_file: bool = False,
        has_link: bool = False,
        before: FoundPlace | None = None,
        limit: int = FOUND_SIZE,
    ) -> SearchAnswer:
        filters = (conversation_id, sender_id, since_ms, until_ms, has_file, has_link, before)
        self.asked.append((text, filters))
        words = wanted(text)
        rows = [
            row
            for row in chain.from_iterable(each.values() for each in self._rows.values())
            if row.kind in {MessageKind.TEXT, MessageKind.FILE}
            and words.finds(f"{row.text}\n{row.file.name if row.file else ''}")
            and conversation_id in (None, row.conversation_id)
            and sender_id in (None, row.sender_id)
            and (since_ms is None or row.sent_ms >= since_ms)
            and (until_ms is None or row.sent_ms < until_ms)
            and (not has_file or row.file is not None)
            and (not has_link or any(span.kind == "link" for span in row.spans))
            and (
                before is None
                or (row.position, row.conversation_id) < (before.position, before.conversation_id)
            )
            and (words or sender_id or has_file or has_link or since_ms or until_ms)
        ]
        rows.sort(key=lambda row: (row.position, row.conversation_id), reverse=True)
        found = tuple(self._found(row, text) for row in rows[:limit])
        return SearchAnswer(
            found=found, has_more=len(rows) > limit, is_shortened=is_shortened(text)
        )

    def _found(self, row: MessageView, text: str) -> FoundView:
        name = row.file.name if row.file else ""
        return FoundView(
            conversation_id=row.conversation_id,
            conversation_name=self._views[row.conversation_id].name,
            position=row.position,
            sender_id=row.sender_id,
            sender_name=row.sender_name,
            is_own=row.is_own,
            sent_ms=row.sent_ms,
            excerpt=excerpt(row.text or name, wanted(text)),
            file_name=name,
        )

    def indexed(self) -> SearchIndexed:
        return self.indexed_now

    def set_indexing(self, *, active: bool) -> None:
        self.indexed_now = SearchIndexed(
            left=self.indexed_now.left, total=self.indexed_now.total, is_paused=not active
        )


class ScriptedSearching:
    """A part of ``ScriptedEngine``."""

    views: dict[ConversationId, ConversationView]
    rows: dict[ConversationId, dict[MessageId, MessageView]]
    _search: ScriptedSearch | None = None

    @property
    def search(self) -> ScriptedSearch:
        if self._search is None:
            self._search = ScriptedSearch(self.views, self.rows)
        return self._search
