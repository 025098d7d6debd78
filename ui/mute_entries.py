"""What a conversation's menu offers about notifications: mute it for a while, or hear of it again.

``mute_words`` says until when it is muted, for menus, lines and screen readers.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from msgspec import Struct

from engine.events import ConversationView
from ui.icons import icon
from ui.menu import Menu
from ui.theme import current_theme
from ui.times import clock_time, moment, short_date
from ui.translate import tr

HOUR_MS: Final = 3_600_000


class MuteChoice(Struct, frozen=True, kw_only=True):
    muted: bool
    for_ms: int | None = None
    """None: until the user ends it."""


def durations() -> tuple[tuple[str, int | None], ...]:
    """In words and in milliseconds; None: without an end."""
    return (
        (tr("For 1 hour"), HOUR_MS),
        (tr("For 8 hours"), 8 * HOUR_MS),
        (tr("Until switched on"), None),
    )


def until_words(until_ms: int, now: datetime) -> str:
    """`"until 14:08"`, or with the date if that is another day."""
    at = moment(until_ms).astimezone(now.tzinfo)
    if at.date() == now.date():
        return tr("until {time}").format(time=clock_time(at))
    date = short_date(at.date(), now.date())
    return tr("until {date}, {time}").format(date=date, time=clock_time(at))


def mute_words(conversation: ConversationView, now: datetime) -> str:
    """`"muted until 14:08"`; empty if it is not muted."""
    if not conversation.muted:
        return ""
    if conversation.muted_until_ms is None:
        return tr("muted")
    return tr("muted {until}").format(until=until_words(conversation.muted_until_ms, now))


class MuteEntries:
    """A submenu while the conversation is not muted, a line to unmute it while it is."""

    def __init__(self, menu: Menu, chosen: Callable[[MuteChoice], None]) -> None:
        self.durations = menu.submenu(tr("Mute"))
        for words, for_ms in durations():
            action = self.durations.addAction(words)
            choice = MuteChoice(muted=True, for_ms=for_ms)
            action.triggered.connect(partial(_say, chosen, choice))
        self.unmute = menu.addAction(tr("Unmute"))
        self.unmute.triggered.connect(partial(_say, chosen, MuteChoice(muted=False)))
        self.dress()

    def show_muted(self, conversation: ConversationView, now: datetime) -> None:
        self.durations.menuAction().setVisible(not conversation.muted)
        self.unmute.setVisible(conversation.muted)
        text = tr("Unmute")
        if conversation.muted_until_ms is not None:
            until = until_words(conversation.muted_until_ms, now)
            text = tr("Unmute (muted {until})").format(until=until)
        self.unmute.setText(text)

    def dress(self) -> None:
        theme = current_theme()
        size = theme.metrics.scaled(16)
        self.durations.menuAction().setIcon(icon("bell-off", theme.ink2, size))
        self.unmute.setIcon(icon("bell", theme.ink2, size))


def _say(chosen: Callable[[MuteChoice], None], choice: MuteChoice, _checked: bool = False) -> None:
    chosen(choice)
