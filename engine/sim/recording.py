"""Delivery logs of simulated participants: the same contract, on the virtual clock.

The same steps make the same rows as in the application.  They stay in memory until requested as a
log file or as rows of the contract's tables; one seed gives the same rows bit for bit.  The
monotonic clock is the virtual one, and the same for all.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from engine.core.ids import (
    ConversationId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
    WakuHash,
)
from engine.core.ports import StoreWrite
from engine.core.records import LoggedMessage
from engine.core.sds.vocabulary import SendPurpose
from engine.delivery.contract import (
    LOG_TABLES,
    SCHEMA_VERSION,
    Kind,
    Protocol,
    Table,
    Via,
)
from engine.delivery.log_writer import Limits, LogWriter, Owner
from engine.delivery.pseudonym import Pseudonyms
from engine.delivery.row_builder import Copy, RowBuilder, Which
from engine.delivery.rows import MessageRow, merged
from engine.delivery.steps import Arrived, Refused, Step

SIM_KEY: Final = hashlib.sha256(b"simulated participants").digest()
NS_PER_MS: Final = 1_000_000
ANY_SIZE: Final = 2**62


class SimRecording:
    """One participant's recording of one conversation."""

    def __init__(  # noqa: PLR0913 - keyword-only: whose it is, of what, under which key
        self,
        participant_id: ParticipantId,
        *,
        protocol: Protocol,
        run: str,
        app_version: str = "sim",
        conversation: str = "sim",
        key: bytes = SIM_KEY,
    ) -> None:
        """``run`` names the simulation: logs of different runs have different ids and channels.

        Raises ConfigError for an invalid ``key``.
        """
        self._pseudonyms = Pseudonyms(key)
        self._which = Which(ConversationId(f"{run}/{conversation}"), protocol)
        self._book = RowBuilder(self._pseudonyms, participant_id, from_nothing=True)
        self._arrived: Arrived | None = None
        name = f"{run}/{conversation}/{participant_id}"
        self.log_id = hashlib.sha256(name.encode()).hexdigest()[:16]
        self.owner = Owner(
            participant=self._pseudonyms.participant(participant_id),
            key_id=self._pseudonyms.key_id,
            app_version=app_version,
            network="sim",
        )

    # --- what happens -------------------------------------------------------------------------

    def begin(self, now_ms: UnixMs) -> None:
        """The process starts."""
        self._note(Kind.STARTED, now_ms)

    def end(self, now_ms: UnixMs) -> None:
        self._note(Kind.STOPPED, now_ms)

    def online(self, now_ms: UnixMs, *, online: bool) -> None:
        self._note(Kind.ONLINE if online else Kind.OFFLINE, now_ms)

    def arrived(self, now_ms: UnixMs, payload: bytes) -> None:
        """The next step or refusal results from this copy."""
        self._arrived = Arrived(now_ms, _hash_of(payload), len(payload))

    def stepped(self, step: Step) -> None:
        arrived, self._arrived = self._arrived, None
        self.took(step.at_ms, (step,) if arrived is None else (arrived, step))

    def took(
        self, now_ms: UnixMs, steps: Sequence[Step], writes: Sequence[StoreWrite] = ()
    ) -> None:
        """Steps of a session, which says itself what arrived, and what it wrote."""
        mono_ns = now_ms * NS_PER_MS
        self._book.took(self._which, steps, writes, mono_ns=mono_ns, via=Via.RELAY)

    def refused(self, now_ms: UnixMs, reason: str) -> None:
        self.stepped(Refused(now_ms, reason))

    def published(  # noqa: PLR0913 - keyword-only: all that is known of a copy
        self,
        now_ms: UnixMs,
        purpose: SendPurpose,
        payload: bytes,
        *,
        message_ids: tuple[MessageId, ...] = (),
        repairs: MessageId | None = None,
        to: ParticipantId | None = None,
    ) -> None:
        hash_ = _hash_of(payload)
        self.handed_over(now_ms, Copy(purpose, message_ids, repairs, hash_, len(payload), None, to))

    def handed_over(self, now_ms: UnixMs, copy: Copy) -> None:
        """Of a session, whose copies have a Waku message's own hash."""
        self._book.published(
            self._which, copy, at_ms=now_ms, mono_ns=now_ms * NS_PER_MS, via=Via.RELAY
        )

    def stands(
        self,
        now_ms: UnixMs,
        logged: Iterable[LoggedMessage],
        members: Iterable[tuple[ParticipantId, int, int | None]],
    ) -> None:
        """The conversation's order and its members."""
        mono_ns = now_ms * NS_PER_MS
        self._book.member_rows(self._which, members)
        self._book.snapshot(self._which, tuple(logged), at_ms=now_ms, mono_ns=mono_ns)

    def stands_as_delivered(
        self, now_ms: UnixMs, members: Iterable[tuple[ParticipantId, int, int | None]]
    ) -> None:
        """Like ``stands``, for a node that keeps no order: delivered messages by their position."""
        placed = sorted(
            Position(row.lamport, MessageId(row.message_id)) for row in self._messages()
        )
        mono_ns = now_ms * NS_PER_MS
        self._book.member_rows(self._which, members)
        self._book.snapshot_rows(self._which, placed, at_ms=now_ms, mono_ns=mono_ns)

    def _note(self, kind: Kind, now_ms: UnixMs) -> None:
        self._book.note(kind, at_ms=now_ms, mono_ns=now_ms * NS_PER_MS)

    # --- what became of it --------------------------------------------------------------------

    def tables(self) -> Mapping[Table, list[tuple[object, ...]]]:
        """All rows of a log, in the order of the contract's columns; lists are JSON text."""
        rows = self._book.rows
        numbered = [(number, *row) for number, row in enumerate(rows.events, start=1)]
        parts: tuple[list[tuple[object, ...]], ...] = (
            [*numbered],
            [*rows.snapshots],
            [*self._messages()],
            [*rows.memberships],
        )
        return {
            table: [self._whole(table, row) for row in part]
            for table, part in zip(LOG_TABLES, parts, strict=True)
        }

    def _messages(self) -> list[MessageRow]:
        """Each message once, with all that is known of it, as in the log file."""
        found: dict[str, MessageRow] = {}
        for row in self._book.rows.messages:
            known = found.get(row.message_id)
            found[row.message_id] = row if known is None else merged(known, row)
        return list(found.values())

    def _whole(self, table: Table, row: tuple[object, ...]) -> tuple[object, ...]:
        constants: dict[str, object] = {
            "schema_version": SCHEMA_VERSION,
            "log_id": self.log_id,
            "participant": self.owner.participant,
            "key_id": self.owner.key_id,
            "app_version": self.owner.app_version,
            "network": self.owner.network,
            "previous_log_id": None,
        }
        values = iter(row)
        return tuple(
            constants[column.name] if column.per_log else next(values) for column in table.columns
        )

    def write(self, directory: Path) -> Path:
        """Write the same as a log file of any size.  Raises StorageError."""
        writer = LogWriter(
            directory,
            self.owner,
            limits=Limits(file_bytes=ANY_SIZE, total_bytes=2 * ANY_SIZE),
            now_ms=lambda: 0,
            random_bytes=lambda _count: bytes.fromhex(self.log_id),
        )
        writer.append(self._book.rows)
        path = writer.path
        writer.close()
        return path


def _hash_of(payload: bytes) -> WakuHash:
    """Stands for the Waku message hash; every receiver of a copy has the same."""
    return WakuHash(hashlib.sha256(payload).digest())
