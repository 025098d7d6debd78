"""News of releases as a test wants them."""

from collections.abc import Callable

from msgspec.structs import replace

from ui.update_port import Updates, UpdateState


class ScriptedUpdates:
    """An ``UpdatePort`` whose state the test sets."""

    page = "https://releases.example/"

    def __init__(self) -> None:
        self.now = Updates(state=UpdateState.OFF)
        self.listeners: list[Callable[[], None]] = []

    def view(self) -> Updates:
        return self.now

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def become(self, view: Updates) -> None:
        self.now = view
        for listener in self.listeners:
            listener()

    async def dismiss(self) -> None:
        self.become(replace(self.now, is_dismissed=True))
