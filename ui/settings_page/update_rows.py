"""The switch for news of releases, with what came of asking."""

from ui.settings_page.rows import Bound, SwitchRow
from ui.translate import tr
from ui.update_port import UpdatePort
from ui.update_words import release_problem_words, update_words


class UpdateRow(SwitchRow):
    def __init__(self, bound: Bound, updates: UpdatePort) -> None:
        self._updates = updates
        super().__init__(
            bound, ("privacy", "ask_for_updates"), tr("Ask whether there is a newer version"), " "
        )

    def refresh(self) -> None:
        super().refresh()
        view = self._updates.view()
        self.show_hint(update_words(view))
        self.say("" if view.problem is None else release_problem_words(view.problem))
