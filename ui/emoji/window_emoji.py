"""Emoji in one window: a picker that all its parts share, and completion of ``:name:``.

Nothing of it is loaded before it is first used: the table and its fonts cost some hundredths of a
second, which no start has to spend.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from ui.completion import Candidate, Completion
from ui.settings import UiSettings
from ui.translate import tr

if TYPE_CHECKING:
    from ui.emoji.picker import EmojiPicker

_MOST_OFFERED = 24
_QUERY = re.compile(r"(?:[a-z0-9+][\w+-]|-1)[\w+-]{0,37}:?", re.IGNORECASE)
"""Two characters at least, so that :) and :D are left alone."""


class WindowEmoji(QObject):
    def __init__(self, settings: UiSettings, window: QWidget) -> None:
        super().__init__(window)
        self._settings = settings
        self._window = window
        self._picker: EmojiPicker | None = None
        self._picked: Callable[[str], None] | None = None
        self._before: QWidget | None = None

    def ask(self, anchor: QWidget | QRect, picked: Callable[[str], None]) -> None:
        """Open the picker beside a widget or a place in the window, or close it if it is open.

        ``picked`` is called at most once, with an emoji.  The focus goes back to where it was.
        """
        if self._picker is None:
            from ui.emoji.picker import EmojiPicker  # noqa: PLC0415 - see above

            self._picker = EmojiPicker(self._settings, self._window)
            self._picker.picked.connect(self._tell)
            self._picker.closed.connect(self._go_back)
        if self._picker.isVisible():
            self._picker.close_picker()
            return
        self._picked = picked
        self._before = QApplication.focusWidget()
        if isinstance(anchor, QWidget):
            at = QRect(anchor.mapTo(self._window, QPoint(0, 0)), anchor.size())
            self._picker.open_at(at, is_button=True)
        else:
            self._picker.open_at(anchor)

    def _tell(self, emoji: str) -> None:
        if self._picked is not None:
            self._picked(emoji)

    def _go_back(self) -> None:
        focused = QApplication.focusWidget()
        within = self._picker is not None and self._picker.isAncestorOf(focused or self._window)
        if self._before is not None and isValid(self._before) and within:
            self._before.setFocus()

    def completion(self) -> Completion:
        """``:name`` offers emoji; ``:name:`` becomes one."""
        return Completion(
            trigger=":", name=tr("Emoji"), query=_QUERY, find=self._offered, closing=":"
        )

    def _offered(self, query: str) -> Sequence[Candidate]:
        from ui.emoji.fonts import draw_emoji, emoji_table  # noqa: PLC0415 - see above
        from ui.emoji.used import UsedEmoji  # noqa: PLC0415

        tone = UsedEmoji(self._settings).tone
        return [
            Candidate(
                text=emoji.toned(tone),
                words=f":{code}:",
                detail=emoji.name,
                key=emoji.toned(tone),
                draw=partial(draw_emoji, text=emoji.toned(tone)),
            )
            for code, emoji in emoji_table().coded(query)[:_MOST_OFFERED]
        ]
