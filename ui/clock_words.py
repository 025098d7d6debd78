"""What is said of clocks: by how much ours is off, who says so, and how it is set right.

Pure functions over the engine's read model; for the window and for ``causerie doctor``.
"""

import sys
from typing import Final

from engine.events import OwnClockView
from ui.words import one_line

BANNER_MS: Final = 5 * 60_000
"""From here on others hold back what we say, so a quiet line is not enough."""
_SECONDS_SAID: Final = 120
_HOURS_SAID: Final = 48
_DAYS_SAID: Final = 2 * 365
_NAMES_SAID: Final = 2
_MAX_NAME: Final = 40


def off_words(off_ms: int) -> str:
    """`"20 s"`, `"12 min"`, `"1 h 2 min"`, `"3 days"`, `"5 years"`."""
    seconds = abs(off_ms) // 1_000
    if seconds < _SECONDS_SAID:
        return f"{seconds} s"
    minutes = seconds // 60
    hours, rest = divmod(minutes, 60)
    if hours < 1:
        return f"{minutes} min"
    if hours < _HOURS_SAID:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days = hours // 24
    return f"{days} days" if days < _DAYS_SAID else f"{days // 365} years"


def where_words(behind_ms: int) -> str:
    """`"1 h 2 min behind"` the others', or ahead of them."""
    return f"{off_words(behind_ms)} {'behind' if behind_ms > 0 else 'ahead of'}"


def off_sentence(clock: OwnClockView) -> str:
    """How our clock stands to the others', as far as anybody says."""
    if not clock.behind_ms:
        return "" if clock.offset_ms else "Nobody says that this device's clock is wrong."
    which = "The time that you go by" if clock.offset_ms else "This device's clock"
    return f"{which} is {where_words(clock.behind_ms)} the others'."


def who_sentence(clock: OwnClockView) -> str:
    """Who says so, and how far that can be trusted."""
    names = [one_line(name, _MAX_NAME) or "?" for name in clock.by]
    if not names:
        return ""
    if not clock.known_long:
        return f"Only {names[0]} says so, whom you have known for less than a day."
    more = len(names) - _NAMES_SAID
    if len(names) == 1:
        return f"Only {names[0]} was heard, and says so."
    if more > 0:
        said = f"{', '.join(names[:_NAMES_SAID])} and {more} more say so"
    else:
        said = f"{' and '.join(names)} say so"
    all_of_them = len(names) == clock.heard
    return f"{said}." if all_of_them else f"{said}, {len(names)} of {clock.heard} who were heard."


def consequence(clock: OwnClockView) -> str:
    if not needs_banner(clock):
        return ""
    if clock.behind_ms > 0:
        return "Your messages may be refused, and theirs held back."
    return "Your messages may be refused or held back."


def needs_banner(clock: OwnClockView) -> bool:
    return abs(clock.behind_ms) >= BANNER_MS


def banner_words(clock: OwnClockView) -> str:
    sentences = (off_sentence(clock), who_sentence(clock), consequence(clock))
    return " ".join(filter(None, sentences))


def going_words(clock: OwnClockView) -> str:
    """A person chose the others' time."""
    off = off_words(clock.offset_ms)
    where = "ahead of" if clock.offset_ms > 0 else "behind"
    return f"You go by the others' clock, {off} {where} this device's, until that is set."


def quiet_words(clock: OwnClockView | None) -> str:
    """For the strip at the foot; "" if there is nothing to say."""
    if clock is None:
        return ""
    if clock.behind_ms:
        return f"Clock {off_words(clock.behind_ms)} {'behind' if clock.behind_ms > 0 else 'ahead'}"
    return "By the others' clock"


def how_to_set(platform: str = sys.platform) -> str:
    """One sentence for who does not know where a clock is set."""
    if platform == "win32":
        return "Open Settings, Time & language, Date & time, and turn on “Set time automatically”."
    if platform == "darwin":
        return (
            "Open System Settings, General, Date & Time, and turn on "
            "“Set time and date automatically”."
        )
    return (
        "Turn on automatic date and time in the settings of your desktop, or run "
        "“timedatectl set-ntp true” in a terminal."
    )
