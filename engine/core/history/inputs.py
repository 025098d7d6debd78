"""Inputs of ``HistoryScheduler``: requests, dependencies, Stores and back pressure."""

from typing import TypeAlias

from engine.core.history.progress import Purpose
from engine.core.history.queries import Answered, Candidate, DeadlineReached, HoldChanged
from engine.core.ids import ContentTopic, PubsubTopic, UnixMs, WakuHash
from engine.core.value import value


@value(frozen=True, slots=True, kw_only=True)
class Topics:
    """The topics of a conversation, which its windows ask for."""

    pubsub_topic: PubsubTopic
    content_topics: tuple[ContentTopic, ...]


@value(frozen=True, slots=True)
class HashLookup:
    """Look up a message by hash; ``around_ms`` is the time of the message that depends on it."""

    message_hash: WakuHash
    around_ms: UnixMs | None = None


@value(frozen=True, slots=True)
class StoresChanged:
    """The enabled Stores that can be asked, in order; none = offline."""

    candidates: tuple[Candidate, ...]


@value(frozen=True, slots=True, kw_only=True)
class WindowWanted:
    """Fetch everything since ``since_ms``, up to now if ``until_ms`` is None."""

    purpose: Purpose
    since_ms: UnixMs
    until_ms: UnixMs | None = None


@value(frozen=True, slots=True)
class DependenciesMissing:
    """Hashes of missing messages that others depend on."""

    lookups: tuple[HashLookup, ...]


@value(frozen=True, slots=True)
class PressureChanged:
    """How many messages wait for dependencies in the incoming buffer."""

    waiting: int


@value(frozen=True, slots=True)
class WindowCancelled:
    """The user cancelled this window; fetched messages stay."""

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
    """Whether this input can cause requests to Stores."""
    match input_:
        case StoresChanged(candidates=candidates):
            return bool(candidates)
        case WindowWanted() | DependenciesMissing() | DeadlineReached():
            return True
        case _:
            return False
