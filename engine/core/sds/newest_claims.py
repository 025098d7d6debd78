"""When each member last claimed or requested something; only newer messages are answered.

Anyone can replay recorded bytes without any key; what their author was missing then arrived long
ago.  So the Lamport timestamp of each member's newest claim or request survives a restart, though
the claims themselves do not.  It is saved with the next other write, or after a minute: a claim
alone is no reason to wait for the disk.

A message dated ahead of our clock is answered once, and moves the mark only up to that clock.
Otherwise one claim by a wrong clock would outweigh all later ones of its owner.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from engine.core.ids import ParticipantId, UnixMs
from engine.core.sds.step import Step
from engine.core.sds.vocabulary import NewestClaim, PutNewestClaims

_SAVE_AFTER_MS: Final = 60_000
_CLOCKS_DIFFER_MS: Final = 2_000
"""A timestamp this little ahead of our clock is taken as it is."""
_AHEAD_KEPT: Final = 256
"""Per member: answered timestamps that are further ahead."""


class NewestClaims:
    """Lamport timestamps by member; one for each that ever made a claim."""

    def __init__(self, saved: Iterable[NewestClaim]) -> None:
        self._saved = {each.participant_id: each.lamport_timestamp for each in saved}
        self._lamports = dict(self._saved)
        self._ahead: dict[ParticipantId, dict[int, None]] = {}
        self.unsaved: set[ParticipantId] = set()
        """Members whose newest is not on disk; other parts may only test whether there are any."""
        self._unsaved_since_ms = UnixMs(0)

    def entries(self) -> Iterator[NewestClaim]:
        """What is on disk."""
        return (NewestClaim(who, lamport) for who, lamport in self._saved.items())

    def is_news(
        self,
        participant_id: ParticipantId,
        lamport_timestamp: int,
        *,
        clock_ms: UnixMs,
        now_ms: UnixMs,
    ) -> bool:
        """Note a message; whether it is later than all earlier ones of this member."""
        newest = self._lamports.get(participant_id, -1)
        if lamport_timestamp <= newest:
            return False
        mark = min(lamport_timestamp, clock_ms + _CLOCKS_DIFFER_MS)
        ahead = self._ahead.get(participant_id)
        if ahead is not None and lamport_timestamp in ahead:
            return False
        if mark < lamport_timestamp:
            self._note_ahead(participant_id, lamport_timestamp)
        if mark > newest:
            self._lamports[participant_id] = mark
            if not self.unsaved:
                self._unsaved_since_ms = now_ms
            self.unsaved.add(participant_id)
        return True

    def _note_ahead(self, participant_id: ParticipantId, lamport_timestamp: int) -> None:
        ahead = self._ahead.setdefault(participant_id, {})
        ahead[lamport_timestamp] = None
        if len(ahead) > _AHEAD_KEPT:
            del ahead[next(iter(ahead))]

    def put_clock_right(self, latest: int, clock_ms: UnixMs) -> None:
        """Our clock was ahead, and so were claims that we accepted: they were made before now."""
        for who, lamport in self._lamports.items():
            if lamport > latest:
                self._lamports[who] = clock_ms - 1
                self.unsaved.add(who)

    def save(self, step: Step) -> None:
        """Save at the end of a step, if anything is unsaved."""
        age_ms = step.now_ms - self._unsaved_since_ms
        if not step.writes and 0 <= age_ms < _SAVE_AFTER_MS:
            return
        claims = tuple(NewestClaim(who, self._lamports[who]) for who in sorted(self.unsaved))
        self._saved |= {each.participant_id: each.lamport_timestamp for each in claims}
        self.unsaved.clear()
        step.writes.append(PutNewestClaims(claims))
