"""Passes events to listeners, in order; a listener that fails does not affect the others."""

import logging
from collections.abc import Callable

from engine.core.counters import Counters
from engine.events import EngineEvent, Listener

logger = logging.getLogger(__name__)


class EventBus:
    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def publish(self, event: EngineEvent) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                # A bug in the listener must not affect the others or the publisher.
                self._counters.add("engine.listener_failed")
                logger.exception("a listener failed", extra={"event": type(event).__name__})
