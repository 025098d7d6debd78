"""Rows as a log file takes them: the contract's columns in order, except those ``per_log``.

A test compares the fields with the contract.  Lists are already JSON text.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.core.ids import MessageId
from engine.delivery.contract import MAX_PARENTS
from engine.delivery.pseudonym import mid_of


class EventRow(NamedTuple):
    """``delivery_event`` without ``seq``, which the writer assigns."""

    channel: str | None = None
    protocol: str | None = None
    kind: str = ""
    message_id: str | None = None
    mid: int | None = None
    waku_hash: bytes | None = None
    lamport: int | None = None
    position: int | None = None
    at_ms: int = 0
    mono_ns: int = 0
    peer: str | None = None
    ack_source: str | None = None
    bloom_m: int | None = None
    bloom_k: int | None = None
    bloom_n: int | None = None
    attempt: int | None = None
    wire_bytes: int | None = None
    via: str | None = None
    amount: int | None = None
    detail: str | None = None


class SnapshotRow(NamedTuple):
    channel: str
    protocol: str
    snapshot_ms: int
    position: int
    message_id: str
    mid: int
    lamport: int


class MessageRow(NamedTuple):
    channel: str
    protocol: str
    message_id: str
    mid: int
    lamport: int
    sender: str
    sent_ms: int | None
    parents: str | None
    parent_mids: str | None
    content: str | None = None


def merged(known: MessageRow, row: MessageRow) -> MessageRow:
    """Merge as a log file does: known values stay, unknown ones are filled in."""
    return known._replace(
        sent_ms=row.sent_ms if known.sent_ms is None else known.sent_ms,
        parents=row.parents if known.parents is None else known.parents,
        parent_mids=row.parent_mids if known.parents is None else known.parent_mids,
        content=row.content if known.content is None else known.content,
    )


class MembershipRow(NamedTuple):
    channel: str
    protocol: str
    member: str
    joined_ms: int
    left_ms: int | None


@dataclass(slots=True)
class Rows:
    """Rows that go into the file in one transaction."""

    events: list[EventRow] = field(default_factory=list)
    messages: list[MessageRow] = field(default_factory=list)
    memberships: list[MembershipRow] = field(default_factory=list)
    snapshots: list[SnapshotRow] = field(default_factory=list)
    """Complete channels: they replace what the file holds of these channels."""

    def __bool__(self) -> bool:
        return bool(self.events or self.messages or self.memberships or self.snapshots)


def parents_of(message_ids: Sequence[MessageId]) -> tuple[str, str]:
    """``parents`` and ``parent_mids``."""
    ids = message_ids[:MAX_PARENTS]
    return json.dumps(ids, separators=(",", ":")), json.dumps(
        list(map(mid_of, ids)), separators=(",", ":")
    )
