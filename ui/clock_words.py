"""Sentences about clocks: by how much ours is off, who says so, and how to set it right.

Pure functions over the engine's read model; for the window and for ``causerie doctor``.
"""

import sys
from typing import Final

from engine.events import OwnClockView
from ui.foreign_text import one_line
from ui.times import off_words
from ui.translate import tr

BANNER_MS: Final = 5 * 60_000
"""From here on others hold back what we say, so a quiet line is not enough."""
_NAMES_SAID: Final = 2
_MAX_NAME: Final = 40


def off_sentence(clock: OwnClockView) -> str:
    """How our clock stands to the others', as far as anybody says."""
    if not clock.behind_ms:
        return "" if clock.offset_ms else tr("Nobody says that this device's clock is wrong.")
    if clock.offset_ms and clock.behind_ms > 0:
        words = tr("The time that you go by is {duration} behind the others'.")
    elif clock.offset_ms:
        words = tr("The time that you go by is {duration} ahead of the others'.")
    elif clock.behind_ms > 0:
        words = tr("This device's clock is {duration} behind the others'.")
    else:
        words = tr("This device's clock is {duration} ahead of the others'.")
    return words.format(duration=off_words(clock.behind_ms))


def who_sentence(clock: OwnClockView) -> str:
    """Who says so, and how far that can be trusted."""
    names = [one_line(name, _MAX_NAME) or "?" for name in clock.by]
    if not names:
        return ""
    if not clock.known_long:
        words = tr("Only {name} says so, whom you have known for less than a day.")
        return words.format(name=names[0])
    if len(names) == 1:
        return tr("Only {name} was heard, and says so.").format(name=names[0])
    more = len(names) - _NAMES_SAID
    if more > 0:
        said = tr("{name}, {other} and %n more say so", "{name}, {other} and %n more say so", more)
    else:
        said = tr("{name} and {other} say so")
    said = said.format(name=names[0], other=names[1])
    if len(names) == clock.heard:
        return f"{said}."
    words = tr("{said}, {number} of {heard} who were heard.")
    return words.format(said=said, number=len(names), heard=clock.heard)


def consequence(clock: OwnClockView) -> str:
    if not needs_banner(clock):
        return ""
    if clock.behind_ms > 0:
        return tr("Your messages may be refused, and theirs held back.")
    return tr("Your messages may be refused or held back.")


def needs_banner(clock: OwnClockView) -> bool:
    return abs(clock.behind_ms) >= BANNER_MS


def banner_words(clock: OwnClockView) -> str:
    sentences = (off_sentence(clock), who_sentence(clock), consequence(clock))
    return " ".join(filter(None, sentences))


def going_words(clock: OwnClockView) -> str:
    """A person chose the others' time."""
    words = tr("You go by the others' clock, {off} behind this device's, until that is set.")
    if clock.offset_ms > 0:
        words = tr("You go by the others' clock, {off} ahead of this device's, until that is set.")
    return words.format(off=off_words(clock.offset_ms))


def quiet_words(clock: OwnClockView | None) -> str:
    """For the strip at the foot; "" if there is nothing to say."""
    if clock is None:
        return ""
    if clock.behind_ms:
        words = tr("Clock {off} behind") if clock.behind_ms > 0 else tr("Clock {off} ahead")
        return words.format(off=off_words(clock.behind_ms))
    return tr("By the others' clock")


def how_to_set(platform: str = sys.platform) -> str:
    """One sentence for who does not know where a clock is set."""
    if platform == "win32":
        return tr(
            "Open Settings, Time & language, Date & time, and turn on “Set time automatically”."
        )
    if platform == "darwin":
        return tr(
            "Open System Settings, General, Date & Time, and turn on "
            "“Set time and date automatically”."
        )
    return tr(
        "Turn on automatic date and time in the settings of your desktop, or run "
        "“timedatectl set-ntp true” in a terminal."
    )
