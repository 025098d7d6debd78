"""Following a quote to the message that it quotes, by mouse or by keys.

What is not here is asked for, and the quote says from then on that it was.
"""

from collections.abc import Callable

from engine.events import MessageView, QuoteView
from ui.conversation_words import from_before_words, not_shown_words
from ui.timeline.accessible import Announcer
from ui.timeline.canvas import TimelineCanvas
from ui.timeline.navigation import TimelineNavigation
from ui.timeline.requests import TimelineRequests
from ui.timeline.rows import message_key
from ui.timeline.scene import Scene
from ui.translate import tr


class Quotes:
    def __init__(  # noqa: PLR0913, PLR0917 - a quote leads anywhere
        self,
        scene: Scene,
        canvas: TimelineCanvas,
        navigation: TimelineNavigation,
        announcer: Announcer,
        requests: TimelineRequests,
        tell_focus: Callable[[], None],
    ) -> None:
        self._scene = scene
        self._canvas = canvas
        self._navigation = navigation
        self._announcer = announcer
        self._requests = requests
        self._tell_focus = tell_focus

    def go_to_quoted(self, message: MessageView) -> None:
        """Show what a message quotes; what is not here is asked for."""
        quote = message.quote
        if quote is None:
            return
        if quote.position is None:
            self._requests.fetch_quoted(message.message_id)
            if not quote.from_before:
                self._scene.ask_for_quoted(message.message_id)
                self._canvas.refresh()
        elif not quote.hidden:  # What is not shown here is nowhere to go to.
            self._navigation.go_to(quote.position)

    def follow(self, message: MessageView, quote: QuoteView) -> None:
        """By keys, which go on from what is quoted; of what is not here it is said instead."""
        self.go_to_quoted(message)
        if quote.from_before:
            self._announcer.arrived(from_before_words()[1])
        elif quote.position is None:
            self._announcer.arrived(tr("Asked for the message that is not here yet"))
        elif quote.hidden:
            self._announcer.arrived(not_shown_words())
        else:
            self._scene.focus_key = message_key(quote.message_id)
            self._canvas.repaint()
            self._tell_focus()
