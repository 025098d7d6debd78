"""What a member does about a group's keys: which epoch to write in, and when to make a fresh one.

Pure functions of what the log says of the epochs (``engine.core.admin_log.epochs``) and of which
keys are here.  There is always an answer, whatever is missing, late or told by liars: somebody who
finds no epoch to write in makes one and waits for nobody.  Times are our own, never those in
entries, whose authors could otherwise put a fresh key off for years.  docs/epochs.md has the table.
"""

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

from msgspec import Struct

from engine.core.admin_log.epochs import Epoch
from engine.core.ids import ParticipantId, UnixMs

_HOUR_MS: Final = 3_600_000
FRESH_AFTER_MS: Final = 7 * 24 * _HOUR_MS
"""An epoch is followed by another one, whatever happens."""
FRESH_SPREAD_MS: Final = 12 * _HOUR_MS
"""Each member waits for a random part of this, so that one is first and the others hear of it."""
LATE_MS: Final = 60_000
RETURN_SPREAD_MS: Final = 2 * 60_000
"""Who was away when it was due waits for a random part of this: another one may be on its way."""
YIELD_MS: Final = 5_000
"""How long to wait for whoever removed somebody to make an epoch, at most."""
SMALL_GROUP: Final = 16


class SendIn(Struct, frozen=True, kw_only=True):
    """All members were given the key, and nobody else."""

    epoch: Epoch


class GiveThenSend(Struct, frozen=True, kw_only=True):
    """First give ``to`` the key, by an entry with the same commitment and a wrap for each."""

    epoch: Epoch
    to: frozenset[ParticipantId]


class MakeThenSend(Struct, frozen=True, kw_only=True):
    """First make a fresh key for ``recipients``: all members."""

    recipients: frozenset[ParticipantId]


class MayNot(Struct, frozen=True, kw_only=True):
    """We are no member."""


Step: TypeAlias = SendIn | GiveThenSend | MakeThenSend | MayNot


def step_to_send(
    epochs: Iterable[Epoch],
    *,
    members: Collection[ParticipantId],
    own_id: ParticipantId,
    held: Collection[bytes],
) -> Step:
    """``epochs`` and ``members`` are those of the log, ``held`` the commitments whose key we have.

    The newest that all members can read comes before a newer one that some cannot: both are safe,
    and in the former nobody misses anything.
    """
    if own_id not in members:
        return MayNot()
    ours = [epoch for epoch in epochs if epoch.is_good and epoch.commitment in held]
    for epoch in ours:
        if epoch.is_complete:
            return SendIn(epoch=epoch)
    for epoch in ours:
        if not epoch.is_withheld:
            return GiveThenSend(epoch=epoch, to=frozenset(members) - epoch.readers)
    return MakeThenSend(recipients=frozenset(members))


def keys_to_ask_for(
    epochs: Iterable[Epoch], *, own_id: ParticipantId, held: Collection[bytes]
) -> tuple[bytes, ...]:
    """Commitments of epochs that we were given and have no key of: a wrap was lost.  Newest first.

    Any member who has one may wrap it again for us.
    """
    return tuple(
        epoch.commitment
        for epoch in epochs
        if own_id in epoch.readers and epoch.commitment not in held
    )


def may_wrap_for(epoch: Epoch, who: ParticipantId, *, members: Collection[ParticipantId]) -> bool:
    """Whether to wrap the key (again) for somebody who asks: a member who was given it."""
    return who in epoch.readers and who in members


def fresh_due_ms(first_seen_ms: UnixMs, random_unit: float) -> UnixMs:
    """When to make a fresh epoch if none came since we first saw the one we write in."""
    return UnixMs(first_seen_ms + FRESH_AFTER_MS + int(random_unit * FRESH_SPREAD_MS))


def due_after_return_ms(returned_ms: UnixMs, random_unit: float) -> UnixMs:
    """When, for who was away when one was due, by more than LATE_MS."""
    return UnixMs(returned_ms + int(random_unit * RETURN_SPREAD_MS))


def wait_before_making_ms(*, is_ours: bool, member_count: int, random_unit: float) -> int:
    """How long somebody who wants to write waits for another's epoch, after a removal.

    Whoever removed (``is_ours``) makes it at once.  In a large group everybody else would make one,
    too, each of them 100 KB.
    """
    if is_ours or member_count <= SMALL_GROUP:
        return 0
    return int((1 + random_unit) * YIELD_MS / 2)
