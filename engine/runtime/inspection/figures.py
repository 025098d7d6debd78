"""Makes the figures of a conversation out of its newest rows: how much, and how fast it is held.

Read when somebody asks and kept nowhere, so it costs nothing at any other time.
"""

from collections.abc import Sequence
from typing import Final

from engine.core.ids import HolderSource, ParticipantId, UnixMs
from engine.core.stored import StoredMessage
from engine.events import ConnectionView, ConversationView, GapView
from engine.history_views import StoreView
from engine.inspection_views import (
    RATE_MS,
    ConnectionFigures,
    ConversationFigures,
    StoreFigures,
)

LOOKED_AT: Final = 200
"""The newest rows of a conversation."""
MOST_CONVERSATIONS: Final = 50


def figures_of(
    view: ConversationView,
    rows: Sequence[StoredMessage],
    gap: GapView | None,
    *,
    now_ms: UnixMs,
) -> ConversationFigures:
    """``rows``: the newest, at most LOOKED_AT."""
    others = frozenset(
        member.participant_id
        for member in view.members
        if not member.is_self and not member.has_left
    )
    recent = [row for row in rows if row.record.received_ms > now_ms - RATE_MS]
    own = [row for row in rows if row.record.is_own and row.shown_id is None]
    took = sorted(ms for row in own if (ms := held_after_ms(row, others)) is not None)
    return ConversationFigures(
        conversation_id=view.conversation_id,
        name=view.name,
        looked_at=len(rows),
        received=len(recent),
        is_all=len(recent) < LOOKED_AT,
        own=len(own),
        held_by_all=len(took),
        held_p50_ms=percentile(took, 50),
        held_p95_ms=percentile(took, 95),
        waiting=gap.waiting if gap else 0,
        missing=view.missing,
        lost=gap.lost_total if gap else 0,
        waiting_to_send=view.waiting_to_send,
        failed=view.failed,
    )


def connection_figures(view: ConnectionView) -> ConnectionFigures:
    return ConnectionFigures(
        level=view.level,
        role=view.role,
        peers=view.peers,
        bytes_in=view.bytes_in,
        bytes_out=view.bytes_out,
    )


def store_figures(view: StoreView) -> StoreFigures:
    return StoreFigures(
        multiaddr=view.multiaddr,
        enabled=view.enabled,
        health=view.health,
        queries=view.queries,
        complete=view.complete,
        messages=view.messages,
        omitted=view.omitted,
    )


def held_after_ms(row: StoredMessage, others: frozenset[ParticipantId]) -> int | None:
    """How long it took until all others were known to hold it; None: they are not."""
    certain = {
        holder.participant_id: holder.since_ms
        for holder in row.holders
        if holder.source is not HolderSource.BLOOM
    }
    if not others or not others <= certain.keys():
        return None
    return max(max(certain[who] for who in others) - row.record.received_ms, 0)


def percentile(ascending: Sequence[int], percent: int) -> int | None:
    """The smallest that ``percent`` of them do not exceed; None of none."""
    if not ascending:
        return None
    return ascending[max(-(-len(ascending) * percent // 100) - 1, 0)]
