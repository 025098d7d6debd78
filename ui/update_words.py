"""Sentences about releases: what is announced, and why an announcement does not count."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

from engine.core.releases import Release, ReleaseError, ReleaseFlaw
from ui.foreign_text import one_line
from ui.problem_words import sentence
from ui.times import date_words, moment, moment_words
from ui.translate import tr
from ui.update_port import Updates, UpdateState

_NEWS_SAID: Final = 3

_FLAWS: Final[Mapping[ReleaseFlaw, Callable[[], str]]] = {
    ReleaseFlaw.UNREACHABLE: lambda: tr("The server cannot be reached ({detail})."),
    ReleaseFlaw.STATUS: lambda: tr("The server has no announcement ({detail})."),
    ReleaseFlaw.ELSEWHERE: lambda: tr(
        "The server leads to another address, which is not followed."
    ),
    ReleaseFlaw.TOO_LARGE: lambda: tr("What the server sent is too large for an announcement."),
    ReleaseFlaw.BROKEN: lambda: tr("What the server sent is no announcement ({detail})."),
    ReleaseFlaw.TOO_NEW: lambda: tr(
        "The announcement is in a form of a later version ({detail}). Look at the page of releases."
    ),
    ReleaseFlaw.NOT_SIGNED: lambda: tr(
        "The announcement is not signed by the makers of Causerie, so it does not count."
    ),
    ReleaseFlaw.OLD: lambda: tr(
        "The announcement is older than one that was here before, so it does not count."
    ),
}


def release_problem_words(error: ReleaseError) -> str:
    return sentence(_FLAWS[error.flaw]().format(detail=one_line(error.detail, 120)))


def update_words(view: Updates) -> str:
    """Below the switch in the settings."""
    what = tr(
        "Once a day. The page of releases learns your network address. Nothing is downloaded."
    )
    if view.state is UpdateState.OFF:
        return what
    if view.state is UpdateState.NOT_YET or view.asked_ms is None:
        return " ".join((what, tr("Not asked yet.")))
    asked = tr("Last asked: {when}.").format(when=moment_words(moment(view.asked_ms)))
    return " ".join(filter(None, (what, asked, _outcome(view))))


def _outcome(view: Updates) -> str:
    if view.problem is not None:
        return ""
    if view.state is UpdateState.NEWER and view.release is not None:
        return _announced(view.release)
    return tr("This is the newest version.")


def release_words(release: Release, ours: str) -> str:
    """In the bar of notices."""
    have = tr("You have {version}.").format(version=ours)
    return " ".join((_announced(release), have, *release.news[:_NEWS_SAID]))


def _announced(release: Release) -> str:
    return tr("Causerie {version} was released on {day}.").format(
        version=release.version, day=date_words(date.fromisoformat(release.day))
    )
