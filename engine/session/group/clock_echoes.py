"""Clock evidence from members who name a recent message of ours.

A member who names our message (in a causal history, in holdings, or as held aside) signed that
after we first sent it.  If the two clocks agree, the signed time lies between our sending and our
receiving, however long the messages took.  No one can have recorded such a message in advance.
"""

from collections import OrderedDict
from collections.abc import Iterable
from itertools import chain
from typing import Final

from engine.core.clock_evidence import Echo
from engine.core.ids import AuthorSequence, MessageId, ParticipantId, UnixMs
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.log import head_of
from engine.core.sds.vocabulary import Holdings
from engine.session.transitions import EchoHeard

FRESH_MS: Final = 10 * 60_000
MAX_RECENT: Final = 64


class ClockEchoes:
    """Our own messages of the last ``FRESH_MS``, at most ``MAX_RECENT``."""

    def __init__(self) -> None:
        self._recent: OrderedDict[MessageId, tuple[AuthorSequence, UnixMs]] = OrderedDict()

    def said(self, message_id: MessageId, author: AuthorSequence, now_ms: UnixMs) -> None:
        """Note a message that we send for the first time."""
        self._recent[message_id] = author, now_ms
        if len(self._recent) > MAX_RECENT:
            self._recent.popitem(last=False)

    def awaits(self, now_ms: UnixMs) -> bool:
        """Whether we sent anything lately that a member could name."""
        while self._recent and next(iter(self._recent.values()))[1] <= now_ms - FRESH_MS:
            self._recent.popitem(last=False)
        return bool(self._recent)

    def heard(  # noqa: PLR0913 - one argument per fact
        self,
        speaker: ParticipantId,
        signed_ms: UnixMs,
        *,
        named: Iterable[MessageId],
        holdings: Holdings,
        clock_offset_ms: int,
        now_ms: UnixMs,
    ) -> Echo | None:
        """The evidence in one message; None if it names nothing that we sent lately."""
        if not self.awaits(now_ms):
            return None
        named_ids = {*named}
        if not holdings and self._recent.keys().isdisjoint(named_ids):
            return None  # As in nearly all that a Store brings.
        for message_id, (author, said_ms) in reversed(self._recent.items()):
            if message_id in named_ids or self._covers(holdings, message_id, author):
                ours = signed_ms - clock_offset_ms
                behind_ms, ahead_ms = ours - now_ms, ours - said_ms
                offset_ms = behind_ms if behind_ms > 0 else min(ahead_ms, 0)
                return Echo(participant_id=speaker, offset_ms=offset_ms)
        return None

    def hear(
        self,
        received: MessageReceived,
        signed_ms: UnixMs,
        known_ms: int,
        clock_offset_ms: int,
        now_ms: UnixMs,
    ) -> tuple[EchoHeard, ...]:
        """``known_ms``: since when, by our clock, we know its sender."""
        message = received.message
        echo = self.heard(
            message.sender_id,
            signed_ms,
            named=chain((e.message_id for e in message.causal_history), received.held_aside),
            holdings=received.holdings or {},
            clock_offset_ms=clock_offset_ms,
            now_ms=now_ms,
        )
        return () if echo is None else (EchoHeard(echo=echo, known_ms=known_ms),)

    @staticmethod
    def _covers(holdings: Holdings, message_id: MessageId, author: AuthorSequence) -> bool:
        """Whether the claim names this very message; anyone can guess a number alone."""
        return any(
            item.last == author.sequence and item.head == head_of(message_id)
            for item in holdings.get(author.instance_id, ())
        )
