"""The page of the first start, of which most starts have no need: it is made once it is asked for.

It leads to the same commands as the list and the empty page.  What it asks of the engine and what
follows from its signals is connected here.
"""

from functools import cached_property
from typing import TYPE_CHECKING

from engine.api import ChatEngine
from ui.dialogs.first_start import FirstStart
from ui.window.window_context import WindowContext

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow


class FirstPage:
    def __init__(self, engine: ChatEngine, window: "MainWindow", context: WindowContext) -> None:
        self._engine = engine
        self._window = window
        self._context = context

    @cached_property
    def page(self) -> FirstStart:
        window = self._window
        made = FirstStart(
            self._engine.create_identity,
            window.tasks,
            add_store=self._add_store,
            store_problem=self._context.store_problem,
        )
        window.pages.addWidget(made)
        window.commands.follow(made)
        window.backups.offer_restore(made)
        made.identity_created.connect(window.show_connection)
        made.steps.changed.connect(window.outside_links.show_next)
        made.later_requested.connect(window.show_body)
        return made

    @property
    def is_shown(self) -> bool:
        return isinstance(self._window.pages.currentWidget(), FirstStart)

    @property
    def is_asking(self) -> bool:
        """Whether a step before the last is being answered."""
        return self.is_shown and self.page.is_asking

    async def _add_store(self, address: str) -> None:
        """There is no history before there is an identity."""
        await self._engine.history.add_store(address)
