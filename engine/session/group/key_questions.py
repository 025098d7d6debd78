"""Who asks for which key, and when: what this device lacks, and what others ask it for.

A wrap is lost like any other message.  Whoever lacks the key of an epoch that the log gives them
asks for it, ever more rarely; whoever has it waits for a random part of five seconds, and wraps it
again unless another member did.  Whom a key may be given is ``engine.core.epochs``' to say.
"""

from collections import Counter
from collections.abc import Collection
from typing import Final, TypeAlias

from engine.codec.admin_entry import id_bytes_of
from engine.codec.epochs import decode_wraps
from engine.core.content import MAX_KEYS_WANTED
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.ids import ParticipantId, UnixMs

ASK_FIRST_MS: Final = 20_000
"""A wrap may be on its way."""
ASK_MOST_MS: Final = 3_600_000
ANSWER_WITHIN_MS: Final = 5_000
"""Of several who could answer, the first one does."""
MAX_ANSWERS: Final = 64
"""Keys to be wrapped again that are remembered at one time."""

Answer: TypeAlias = tuple[ParticipantId, bytes]
"""Who asked, and the commitment to the key."""


class KeyQuestions:
    def __init__(self, entropy: Entropy, counters: Counters) -> None:
        self._entropy = entropy
        self._counters = counters
        self._answers: dict[Answer, UnixMs] = {}
        self._ask_at_ms: UnixMs | None = None
        self._ask_every_ms = ASK_FIRST_MS

    def deadlines(self) -> list[UnixMs]:
        asking = () if self._ask_at_ms is None else (self._ask_at_ms,)
        return [*self._answers.values(), *asking]

    # --- what is lacking here -------------------------------------------------------------------

    def follow(self, lacking: Collection[bytes], *, now_ms: UnixMs) -> None:
        """``lacking``: commitments, as the log says now."""
        if not lacking:
            self._ask_at_ms, self._ask_every_ms = None, ASK_FIRST_MS
        elif self._ask_at_ms is None:
            self._ask_at_ms = UnixMs(now_ms + ASK_FIRST_MS)

    def to_ask(self, lacking: tuple[bytes, ...], *, now_ms: UnixMs) -> tuple[bytes, ...]:
        """Those of the lacking ones to ask for now."""
        if self._ask_at_ms is None or self._ask_at_ms > now_ms:
            return ()
        if not lacking:
            self._ask_at_ms = None
            return ()
        self._ask_every_ms = min(2 * self._ask_every_ms, ASK_MOST_MS)
        self._ask_at_ms = UnixMs(now_ms + self._ask_every_ms)
        return lacking[:MAX_KEYS_WANTED]

    # --- what others lack -----------------------------------------------------------------------

    def hear(self, who: ParticipantId, commitment: bytes, *, now_ms: UnixMs) -> None:
        """Somebody asks for a key that is here, and may have it."""
        if (who, commitment) in self._answers:
            return
        if not self._has_room_for(who):
            self._counters.add("group.too_many_questions")
            return
        wait_ms = int(self._entropy.random_unit() * ANSWER_WITHIN_MS)
        self._answers[who, commitment] = UnixMs(now_ms + wait_ms)

    def _has_room_for(self, asker: ParticipantId) -> bool:
        """Whoever asked most gives way, so that nobody can keep others from being answered."""
        if len(self._answers) < MAX_ANSWERS:
            return True
        asked = Counter(who for who, _ in self._answers)
        ((most, count),) = asked.most_common(1)
        if count <= asked[asker] + 1:
            return False
        del self._answers[next(one for one in reversed(self._answers) if one[0] == most)]
        return True

    def answered_by_others(self, chunk: bytes) -> None:
        """``chunk``: of wraps.  Raises RemoteProtocolError."""
        wraps = decode_wraps(chunk)
        for who, commitment in [*self._answers]:
            if commitment == wraps.commitment and wraps.find(id_bytes_of(who)) is not None:
                del self._answers[who, commitment]

    def due_answers(self, *, now_ms: UnixMs) -> list[Answer]:
        due = [answer for answer, due_ms in self._answers.items() if due_ms <= now_ms]
        for answer in due:
            del self._answers[answer]
        return due

    def forget_answers(self) -> None:
        self._answers.clear()
