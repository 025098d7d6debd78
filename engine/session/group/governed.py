"""The part of a group's session that only a governed group has, as one: log, people, void messages.

``GroupSession`` tells it what was said and asks it what may be said and shown.  In a group that
anyone with the link is in there is none of this.
"""

from collections.abc import Callable, Iterable
from typing import assert_never

from engine.codec.content import decode_content
from engine.core.admin_log.acts import Act, EntryId, Role
from engine.core.content import (
    AdminEntry,
    Governing,
    KeysWanted,
    KeyWraps,
    PrekeyTold,
)
from engine.core.counters import Counters
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.governed import Admission
from engine.core.ids import ParticipantId, Position, UnixMs
from engine.core.invite import group_id_of
from engine.core.sds.vocabulary import Event, MessageDelivered, MessageShownWaiting
from engine.session.group.governance import SOON_MS, Governance
from engine.session.group.people import GroupPeople
from engine.session.group.saved import SavedGroup
from engine.session.group.void_messages import VoidMessages
from engine.session.transitions import LoadToShow, TransitionBuilder, WrittenLoaded


def governance_of(seed: SavedGroup) -> Governance | None:
    """None for a group that anyone with the link is in."""
    first, state = seed.group.first_entry, seed.governed
    if first is None or state is None:
        return None
    return Governance(seed.group.conversation_id, EntryId(first), state.entries, seed.identity)


class GovernedPart:
    """``said_by``: the places of somebody's messages in the log."""

    def __init__(
        self,
        governance: Governance,
        people: GroupPeople,
        said_by: Callable[[ParticipantId], Iterable[Position]],
        *,
        seed: SavedGroup,
        counters: Counters,
    ) -> None:
        self._governance = governance
        self._people = people
        self._counters = counters
        self._group = seed.group
        self._own_id = seed.identity.participant_id
        self._void = VoidMessages(seed.group.conversation_id, said_by, governance.state)
        self._settle_at_ms: UnixMs | None = None
        self._is_reading = False

    @property
    def governance(self) -> Governance:
        return self._governance

    def next_deadline(self) -> UnixMs | None:
        return self._settle_at_ms

    # --- what was said --------------------------------------------------------------------------

    def passes(self, event: Event, builder: TransitionBuilder, now_ms: UnixMs) -> bool:
        """Take what keeps the group going; False if the message counts for nothing else."""
        if not isinstance(event, MessageDelivered | MessageShownWaiting):
            return True
        content = decode_content(event.message.content or b"")
        if isinstance(event, MessageDelivered) and isinstance(content.body, Governing):
            self._said(event.message.sender_id, content.body, builder, now_ms=now_ms)
        if not self._void.is_void(event.message, content):
            return True
        self._counters.add("group.void")
        return False

    def _said(
        self, who: ParticipantId, body: Governing, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        """What it changes is done by ``settle``."""
        try:
            self._take(who, body, builder)
        except RemoteProtocolError as error:
            self._counters.add(f"group.{error.reason}")
        if self._governance.is_behind:
            wait_ms = SOON_MS if self._governance.is_large and who != self._own_id else 0
            due_ms = UnixMs(now_ms + wait_ms)
            self._settle_at_ms = min(due_ms, self._settle_at_ms or due_ms)

    def _take(self, who: ParticipantId, body: Governing, builder: TransitionBuilder) -> None:
        match body:
            case AdminEntry():
                self._governance.take(body, who, builder)
            case PrekeyTold() | KeyWraps() | KeysWanted():
                return
            case _:
                assert_never(body)

    def settle(
        self, builder: TransitionBuilder, *, now_ms: UnixMs, clock_ms: UnixMs
    ) -> tuple[bytes, ...] | None:
        """Do what follows from entries that came, if that is due.

        Returns join statements to admit now, or None if nothing is different.
        """
        is_due = self._settle_at_ms is not None and self._settle_at_ms <= now_ms
        changed = is_due and self._governance.settle()
        if is_due:
            self._settle_at_ms = None
        if changed:
            self._people.follow(builder, clock_ms=clock_ms)
            authors = {*self._people.everyone(), *self._governance.state.last_messages}
            self._void.follow(self._governance.state, authors)
        self._go_on(builder)
        return self._people.known_now() if changed else None

    # --- void messages --------------------------------------------------------------------------

    def voids(self, who: ParticipantId) -> int:
        """How many messages of theirs count for nothing, as far as that was looked at."""
        return self._void.count(who)

    def take_written(self, loaded: WrittenLoaded, builder: TransitionBuilder) -> None:
        self._void.take(loaded.load, loaded.written)
        self._is_reading = False
        self._go_on(builder)

    def _go_on(self, builder: TransitionBuilder) -> None:
        if self._void.is_due:
            again = self._void.settle(builder)
            builder.sends += [LoadToShow(position=position) for position in again]
        load = None if self._is_reading else self._void.next_load()
        if load is not None:
            self._is_reading = True
            builder.sends.append(load)

    # --- newcomers ------------------------------------------------------------------------------

    def admission(self) -> Admission:
        """What somebody whom the log admits has to be given."""
        group = self._group
        return Admission(
            group_id=group_id_of(group.conversation_id),
            group_name=self._governance.state.name,
            first_entry=self._governance.first,
            entries=self._governance.entries(),
            epoch_keys=group.epoch_keys,
            admin_public_key=group.admin_public_key,
            service_nodes=group.service_nodes,
        )

    # --- what we may say ------------------------------------------------------------------------

    def require_member(self) -> None:
        """Raises LocalProtocolError for somebody who was removed."""
        if self._governance.role(self._own_id) is Role.NOBODY:
            raise LocalProtocolError("not a member of the group")

    def entry(self, act: Act, *, clock_ms: UnixMs) -> AdminEntry:
        return self._governance.entry(act, clock_ms=clock_ms)
