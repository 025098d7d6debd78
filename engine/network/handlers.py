"""Lists of handlers that all transport adapters share.

Each registration is independent: the same function may be registered twice, and undoing a
registration twice does no harm.  A handler may register or undo others while it is called.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from engine.core.ids import ContentTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.network.transport import MessageHandler

T = TypeVar("T")


class Listeners(Generic[T]):
    """Handlers of one kind of event, called in the order of registration."""

    def __init__(self) -> None:
        self._handlers: dict[object, Callable[[T], None]] = {}

    def add(self, handler: Callable[[T], None]) -> Callable[[], None]:
        """Return a function that undoes it."""
        token = object()
        self._handlers[token] = handler

        def remove() -> None:
            self._handlers.pop(token, None)

        return remove

    def call(self, news: T) -> None:
        for handler in list(self._handlers.values()):
            handler(news)


class TopicHandlers:
    """Message handlers by content topic."""

    def __init__(self) -> None:
        self._handlers: dict[ContentTopic, dict[object, MessageHandler]] = {}

    def __contains__(self, content_topic: ContentTopic) -> bool:
        return content_topic in self._handlers

    def add(self, content_topic: ContentTopic, handler: MessageHandler) -> Callable[[], None]:
        """Return a function that undoes it."""
        token = object()
        self._handlers.setdefault(content_topic, {})[token] = handler

        def remove() -> None:
            handlers = self._handlers.get(content_topic, {})
            handlers.pop(token, None)
            if not handlers:
                self._handlers.pop(content_topic, None)

        return remove

    def deliver(self, message: WakuMessage, waku_hash: WakuHash) -> bool:
        """Return whether it passed a subscriber's precheck."""
        passed = False
        for handler in list(self._handlers.get(message.content_topic, {}).values()):
            passed = handler(message, waku_hash) is not False or passed
        return passed
