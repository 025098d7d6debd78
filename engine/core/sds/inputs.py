"""The inputs of an SDS channel: commands, messages, Store results, time.

User, network, Stores and clock reach the core only through these types.
``vocabulary`` has the outputs.  Inputs carry no time of their own: the caller passes it along.
"""

from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from engine.core.ids import AuthorSequence, MessageId, ParticipantId, Position, UnixMs
from engine.core.sds.vocabulary import Holdings, Message, StoreWindow


class SendContent(Struct, frozen=True):
    """The user sends a message.  ``author``, with the next number, is already inside ``content``.

    ``replaces``, inside it too: the message from the future that this one replaces.
    """

    content: bytes
    author: AuthorSequence | None = None
    replaces: MessageId | None = None


class SendEphemeral(Struct, frozen=True, kw_only=True):
    content: bytes


class MessageReceived(Struct, frozen=True):
    """A decoded and, in a sealed channel, verified message.

    - ``raw`` is what a repair response resends (sealed: the signed part as received; open: the SDS
      bytes).
    - ``author`` comes from the content; None for sync, ephemeral and foreign content.
    - ``repaired_by`` is set when another member sent it again under its own outer signature.
    - ``verified``: the sender is proved by signature, so holders may be certain.
    - ``stored``: it came from a Store, so its claims are of some time ago.
    - ``previous_id`` and ``replaces`` come from the content: the author's message before this one,
      and the one from the future that this one replaces.
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
    """The decoder of the content has already recomputed the message's id from it."""
    wanted: bool = False
    """It was set aside, and the user wants to see it."""

    def without_itself(self) -> "MessageReceived":
        """The same without itself among its dependencies: js-waku delivers what lists itself."""
        history, message_id = self.message.causal_history, self.message.message_id
        kept = tuple(entry for entry in history if entry.message_id != message_id)
        if len(kept) == len(history):
            return self
        return replace(self, message=replace(self.message, causal_history=kept))


class CopyAccepted(Struct, frozen=True):
    """The network took a copy of our message: ``peers`` relays or service nodes.

    ``retrieval_hint`` is the Waku hash of that copy.
    """

    message_id: MessageId
    peers: int
    retrieval_hint: bytes | None = None


class NotForUs(Struct, frozen=True):
    """Nobody gives us these, since we were not there: nothing waits for them."""

    message_ids: tuple[MessageId, ...]


class SignedAnew(Struct, frozen=True):
    """A message of ours that nobody took is sent in these signed bytes from now on."""

    message_id: MessageId
    raw: bytes


class ConnectivityChanged(Struct, frozen=True, kw_only=True):
    """Whether any peer can be reached.  Offline attempts and offline time do not count."""

    online: bool


class ClaimChanged(Struct, frozen=True):
    """What is stated beside our messages changed, for a reason outside of the channel."""


class ClockSet(Struct, frozen=True, kw_only=True):
    """Our clock was set and is ``offset_ms`` ahead of the time of inputs.

    Timers go by the time of inputs, which no one can set; what others see goes by our clock.
    """

    offset_ms: int


class MembersChanged(Struct, frozen=True, kw_only=True):
    """All members of the channel, including us."""

    members: frozenset[ParticipantId]


class ResendRequested(Struct, frozen=True, kw_only=True):
    """The user wants one of our messages sent again now, even if it was given up."""

    message_id: MessageId


class RetrieveRequested(Struct, frozen=True, kw_only=True):
    """The user wants missing messages requested again now."""


class RetrieveLostRequested(Struct, frozen=True, kw_only=True):
    """The user wants these lost messages requested once more.

    They stay lost until they come: nothing waits for them again.
    """

    message_ids: tuple[MessageId, ...]
    of_members: bool = True
    """Ask the members, too, not only Stores."""


class RetrieveQuoted(Struct, frozen=True, kw_only=True):
    """The user wants a message that another one quotes, at ``before``.

    It need not exist.  It is looked for like a missing dependency of a message that is old, and
    lost like one: nothing waits for it.
    """

    message_id: MessageId
    before: Position

    @property
    def message_ids(self) -> tuple[MessageId, ...]:
        return (self.message_id,)


class ShowSetAside(Struct, frozen=True, kw_only=True):
    """The user wants to see what this author sends today, however much it is.

    Messages set aside are passed in again with ``MessageReceived.wanted``.
    """

    sender_id: ParticipantId


class StoreChanged(Struct, frozen=True, kw_only=True):
    """Whether any Store can be asked (``AskStore``)."""

    reachable: bool


class HastenStoreQuery(Struct, frozen=True, kw_only=True):
    """Much waits for missing dependencies: ask Stores now for those that are due."""


class StoreAnswered(Struct, frozen=True, kw_only=True):
    """All that Stores have up to ``through_ms`` of an ``AskStore.since_ms`` was passed in."""

    through_ms: UnixMs


class StoresMissing(Struct, frozen=True, kw_only=True):
    """All known Stores were asked for these by their hints, and none delivered them.

    - ``lacked``: how many said that they do not have them.
    - ``silent``: addresses of those that gave no answer.
    - ``decided``: no other Store is worth waiting for, so what is old may count as lost.
    - ``kept_back``: a Store has them, but they are older than what the user wants to see.
    """

    message_ids: tuple[MessageId, ...]
    lacked: int = 1
    silent: tuple[str, ...] = ()
    decided: bool = True
    kept_back: bool = False


class WindowAnswered(Struct, frozen=True, kw_only=True):
    """All that Stores have of these times was passed in (``AskStore.windows``).

    ``lacked`` and ``silent``: as in ``StoresMissing``.
    """

    window: StoreWindow
    lacked: int = 1
    silent: tuple[str, ...] = ()


class DeadlineReached(Struct, frozen=True, kw_only=True):
    """The time that ``next_deadline`` named has come (early and late calls are harmless)."""


Input: TypeAlias = (
    SendContent
    | SendEphemeral
    | MessageReceived
    | CopyAccepted
    | SignedAnew
    | NotForUs
    | ConnectivityChanged
    | ClaimChanged
    | ClockSet
    | MembersChanged
    | ResendRequested
    | RetrieveRequested
    | RetrieveLostRequested
    | RetrieveQuoted
    | ShowSetAside
    | StoreChanged
    | HastenStoreQuery
    | StoreAnswered
    | StoresMissing
    | WindowAnswered
    | DeadlineReached
)
