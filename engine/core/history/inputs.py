"""What the history of a conversation is told: wishes, dependencies, Stores, and how it copes."""

from typing import TypeAlias

from engine.core.history.progress import Purpose
from engine.core.history.queries import Answered, Candidate, DeadlineReached, HoldChanged
from engine.core.ids import ContentTopic, PubsubTopic, UnixMs, WakuHash
from engine.core.value import value


@value(frozen=True, slots=True, kw_only=True)
class Topics:
    """Where a conversation is talked about: what its windows ask for."""

    pubsub_topic: PubsubTopic
    content_topics: tuple[ContentTopic, ...]


@value(frozen=True, slots=True)
class HashLookup:
    """A message by its hash; ``around_ms`` is the time of whoever waits for it."""

    message_hash: WakuHash
    around_ms: UnixMs | None = None


@value(frozen=True, slots=True)
class StoresChanged:
    """The Stores that are enabled and can be asked, in order; none = offline."""

    candidates: tuple[Candidate, ...]


@value(frozen=True, slots=True, kw_only=True)
class WindowWanted:
    """Everything since ``since_ms``, up to now if ``until_ms`` is None."""

    purpose: Purpose
    since_ms: UnixMs
    until_ms: UnixMs | None = None


@value(frozen=True, slots=True)
class DependenciesMissing:
    """Messages that others depend on, by their hashes."""

    lookups: tuple[HashLookup, ...]


@value(frozen=True, slots=True)
class PressureChanged:
    """How many messages wait for others in the incoming buffer."""

    waiting: int


@value(frozen=True, slots=True)
class WindowCancelled:
    """Somebody cancelled it; what was fetched stays."""

    purpose: Purpose


HistoryInput: TypeAlias = (
    StoresChanged
    | WindowWanted
    | DependenciesMissing
    | PressureChanged
    | WindowCancelled
    | HoldChanged
    | Answered
    | DeadlineReached
)


def starts(input_: HistoryInput) -> bool:
    """Whether Stores may be asked because of it."""
    match input_:
        case StoresChanged(candidates=candidates):
            return bool(candidates)
        case WindowWanted() | DependenciesMissing() | DeadlineReached():
            return True
        case _:
            return False
