"""Notes which copies this device handed to the network while the program runs.

The disk keeps no such list: it would be written with every copy, and is of interest only to one
who looks.  So it is in memory and bounded, both in messages and in copies of one; what it no longer
has, it knows it has not (``Copies.since_ms``), so that a short list is never taken for the whole.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from engine.core.errors import ChatError
from engine.core.ids import ConversationId, MessageId, UnixMs
from engine.core.sds.vocabulary import SendPurpose
from engine.network.transport import Receipt, TransportRole
from engine.session.transitions import Publish

MOST_MESSAGES: Final = 4_096
"""Two to three megabytes, if each has had a copy or two."""
FIRST_KEPT: Final = 8
LAST_KEPT: Final = 8
_NEVER: Final = UnixMs(0)


@dataclass(slots=True)
class Copy:
    at_ms: UnixMs
    is_repair: bool
    is_retransmission: bool
    """The session said so; a one-to-one conversation never does."""
    was_asked_for: bool
    """The user wanted it sent again, and no copy had gone out since."""
    role: TransportRole | None
    peers: int
    size: int
    waku_hash: bytes
    together_with: int
    by_olm: bool | None = None
    """Of a one-to-one conversation."""
    taken_ms: UnixMs | None = None


@dataclass(slots=True)
class Copies:
    """Of one message, in the order in which they were handed over."""

    kept: list[Copy] = field(default_factory=list)
    omitted: int = 0
    """After the first FIRST_KEPT of ``kept``."""
    asked: bool = False
    noted_ms: UnixMs = _NEVER
    """When it was first heard of."""

    @property
    def total(self) -> int:
        return len(self.kept) + self.omitted

    def add(self, copy: Copy) -> None:
        copy.was_asked_for, self.asked = self.asked, False
        self.kept.append(copy)
        if len(self.kept) > FIRST_KEPT + LAST_KEPT:
            del self.kept[FIRST_KEPT]
            self.omitted += 1


class CopyNotes:
    def __init__(self, now_ms: Callable[[], UnixMs]) -> None:
        self._now_ms = now_ms
        self._noted: dict[tuple[ConversationId, MessageId], Copies] = {}
        self._since_ms = now_ms()

    def handed_over(
        self, conversation_id: ConversationId, publish: Publish, receipt: Receipt
    ) -> None:
        message_ids = publish.message_ids
        if publish.repairs is not None:
            message_ids = (publish.repairs,)
        for message_id in message_ids:
            copy = Copy(
                at_ms=self._now_ms(),
                is_repair=publish.repairs is not None,
                is_retransmission=publish.purpose is SendPurpose.RETRANSMISSION,
                was_asked_for=False,
                role=receipt.role,
                peers=receipt.peers,
                size=len(publish.message.payload),
                waku_hash=receipt.waku_hash,
                together_with=len(message_ids) - 1,
                by_olm=publish.by_olm,
            )
            self._of(conversation_id, message_id).add(copy)

    def taken(self, conversation_id: ConversationId, publish: Publish, receipt: Receipt) -> None:
        """A peer has shown that it read the copy."""
        for message_id in publish.message_ids:
            noted = self._noted.get((conversation_id, message_id))
            for copy in noted.kept if noted else ():
                if copy.waku_hash == receipt.waku_hash and copy.taken_ms is None:
                    copy.taken_ms = self._now_ms()

    @contextmanager
    def asking_again(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Generator[None]:
        """The user wants the message sent again, unless that fails."""
        noted = self._of(conversation_id, message_id)
        noted.asked = True
        try:
            yield
        except ChatError:
            noted.asked = False
            raise

    def of(self, conversation_id: ConversationId, message_id: MessageId) -> Copies:
        return self._noted.get((conversation_id, message_id)) or Copies()

    def since_ms(self, saved_ms: UnixMs | None) -> UnixMs | None:
        """From when on copies of a message saved then are noted; None: all of them are."""
        return None if saved_ms is not None and saved_ms > self._since_ms else self._since_ms

    def _of(self, conversation_id: ConversationId, message_id: MessageId) -> Copies:
        key = conversation_id, message_id
        noted = self._noted.get(key)
        if noted is None:
            noted = self._noted[key] = Copies(noted_ms=self._now_ms())
            if len(self._noted) > MOST_MESSAGES:
                # Only it was saved until then, or others before it: of later ones all is here.
                forgotten = self._noted.pop(next(iter(self._noted)))
                self._since_ms = forgotten.noted_ms
        return noted
