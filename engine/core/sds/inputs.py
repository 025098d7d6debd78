"""What can happen to an SDS channel: everything that its state machine takes.

The user, the network, the Stores and the clock speak to the core in these words only; what it
answers is in ``types``.  The times of inputs are not in them: whoever hands one in says now.
"""

from typing import TypeAlias

from engine.core.ids import AuthorSequence, MessageId, ParticipantId, UnixMs
from engine.core.sds.types import Holdings, Message
from engine.core.value import value


@value(frozen=True, slots=True)
class SendContent:
    """The user said something.  ``author`` is already inside ``content``, the next number.

    ``replaces``, inside it too: the message from the future of which this is a copy.
    """

    content: bytes
    author: AuthorSequence | None = None
    replaces: MessageId | None = None


@value(frozen=True, slots=True, kw_only=True)
class SendEphemeral:
    content: bytes


@value(frozen=True, slots=True)
class MessageReceived:
    """A decoded and, in a sealed channel, verified message.

    ``raw`` is what a repair response resends (sealed: the signed part as received; open: the SDS
    bytes).  ``author`` is what the content says, None for sync, ephemeral and foreign content.
    ``repaired_by`` is set when somebody else sent it again under an outer signature of their own.
    ``verified``: the sender is proved by signature, so holders may be certain.  ``stored``: it
    came from a Store, so that what its sender lacks by it is of some time ago.  ``previous_id``
    and ``replaces`` are what the content says: the author's message before this one, and the one
    from the future of which this is a copy.
    """

    message: Message
    raw: bytes
    author: AuthorSequence | None = None
    holdings: Holdings | None = None
    verified: bool = True
    repaired_by: ParticipantId | None = None
    retrieval_hint: bytes | None = None
    stored: bool = False
    held_aside: tuple[MessageId, ...] = ()
    previous_id: MessageId | None = None
    replaces: MessageId | None = None
    id_checked: bool = False
    """Whoever decoded the content has recomputed the message's id from it."""
    wanted: bool = False
    """It was set aside, and somebody wants to see it all the same."""


@value(frozen=True, slots=True)
class CopyAccepted:
    """The network took a copy of our message: ``peers`` relays or service nodes.

    ``retrieval_hint`` is the Waku hash of that copy.
    """

    message_id: MessageId
    peers: int
    retrieval_hint: bytes | None = None


@value(frozen=True, slots=True, kw_only=True)
class ConnectivityChanged:
    """Whether any peer can be reached.  Offline attempts and offline time do not count."""

    online: bool


@value(frozen=True, slots=True, kw_only=True)
class ClockSet:
    """Our clock is ``offset_ms`` ahead of the time that inputs are given: it was set.

    Timers go by the time of inputs, which nobody can set; what others see goes by our clock.
    """

    offset_ms: int


@value(frozen=True, slots=True, kw_only=True)
class MembersChanged:
    """Everybody in the channel, ourselves included."""

    members: frozenset[ParticipantId]


@value(frozen=True, slots=True, kw_only=True)
class ResendRequested:
    """The user wants one of our messages sent again now, given up or not."""

    message_id: MessageId


@value(frozen=True, slots=True, kw_only=True)
class RetrieveRequested:
    """The user wants missing messages asked for again now."""


@value(frozen=True, slots=True, kw_only=True)
class RetrieveLostRequested:
    """The user wants these, which were given up, asked for once more.

    They stay lost until they come: nothing waits for them again.
    """

    message_ids: tuple[MessageId, ...]
    of_members: bool = True
    """Ask the members, too, and not Stores alone."""


@value(frozen=True, slots=True, kw_only=True)
class ShowSetAside:
    """Somebody wants to see what this author sends today, however much it is.

    What is set aside of it is handed in again as ``MessageReceived.wanted``.
    """

    sender_id: ParticipantId


@value(frozen=True, slots=True, kw_only=True)
class StoreChanged:
    """Whether any Store can be asked (``AskStore``)."""

    reachable: bool


@value(frozen=True, slots=True, kw_only=True)
class HastenStoreQuery:
    """Much waits for what lacks: ask Stores now for those dependencies that it is time for."""


@value(frozen=True, slots=True, kw_only=True)
class StoreAnswered:
    """All that Stores have up to ``through_ms`` of an ``AskStore.since_ms`` was handed in."""

    through_ms: UnixMs


@value(frozen=True, slots=True, kw_only=True)
class StoresMissing:
    """All Stores that there are were asked for these by their hints, and none brought them.

    ``lacked``: how many said that they do not have them; ``silent``: addresses of those that gave
    no answer.  ``decided``: nobody else is worth waiting for, so that what is old may count as
    lost.  ``kept_back``: a Store has them, but they are from before all that one wants to see.
    """

    message_ids: tuple[MessageId, ...]
    lacked: int = 1
    silent: tuple[str, ...] = ()
    decided: bool = True
    kept_back: bool = False


@value(frozen=True, slots=True, kw_only=True)
class DeadlineReached:
    """The time that ``next_deadline`` named has come (early and late calls are harmless)."""


Input: TypeAlias = (
    SendContent
    | SendEphemeral
    | MessageReceived
    | CopyAccepted
    | ConnectivityChanged
    | ClockSet
    | MembersChanged
    | ResendRequested
    | RetrieveRequested
    | RetrieveLostRequested
    | ShowSetAside
    | StoreChanged
    | HastenStoreQuery
    | StoreAnswered
    | StoresMissing
    | DeadlineReached
)
