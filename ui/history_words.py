"""What the window says of history: what is being fetched, how it ended, and of the Stores asked.

Pure functions over read models.  Problems come from the engine as sentences without capital and
full stop, and may hold words of strangers: they are put on one line here.
"""

from datetime import datetime
from typing import Final

from engine.core.duration import duration_words
from engine.history_views import (
    HistoryReason,
    HistoryState,
    HistoryView,
    StoreHealth,
    StoreTestView,
    StoreView,
)
from ui.words import count, list_time, moment, one_line

_LONGEST_PROBLEM: Final = 300
_SAME_CLOCK_MS: Final = 2_000
_SECONDS_SAID_MS: Final = 120_000
_HOST_PARTS: Final = 2
_WAITING_EARLIER: Final = "Waiting to fetch earlier messages…"

CHOICES: Final[tuple[tuple[str, int | None], ...]] = (
    ("Last 7 days", 7),
    ("Last 30 days", 30),
    ("Last 365 days", 365),
    ("All there is", None),
)


def big(number: int) -> str:
    """Digits in groups of three, by narrow spaces that never break."""
    return f"{number:,}".replace(",", "\u202f")


def many(number: int, singular: str, plural: str | None = None) -> str:
    return f"{big(number)} {singular if number == 1 else plural or singular + 's'}"


def sentence(text: str) -> str:
    """The engine's words as a sentence of ours; empty stays empty."""
    line = one_line(text, _LONGEST_PROBLEM).strip().rstrip(".")
    return f"{line[0].upper()}{line[1:]}." if line else ""


# --- fetching -------------------------------------------------------------------------------------


def is_wished(history: HistoryView) -> bool:
    """Somebody asked for it and wants to see how it goes."""
    return history.reason in {HistoryReason.USER, HistoryReason.EARLIER}


def back_to(since_ms: int | None) -> str:
    if since_ms is None:
        return "all there is"
    at = moment(since_ms)
    return f"back to {at.day} {at:%B} {at.year}"


def history_title(history: HistoryView) -> str:
    """What goes on, or how it ended."""
    new = many(history.arrived, "new message")
    match history.state:
        case HistoryState.WAITING:
            return "Waiting to fetch history"
        case HistoryState.RUNNING:
            return f"Fetching history, {back_to(history.since_ms)}"
        case HistoryState.DONE:
            return f"History fetched: {new}" if history.arrived else "History fetched: nothing new"
        case HistoryState.CANCELLED:
            return f"Stopped. {new} stay here" if history.arrived else "Stopped"
        case HistoryState.FAILED:
            return "History could not be fetched to the end"


def history_details(history: HistoryView) -> str:
    """Count, rate and whom one asks; once it is over, what came of it."""
    if history.state is HistoryState.FAILED:
        got = f" {many(history.arrived, 'new message')} came." if history.arrived else ""
        return f"{sentence(history.problem) or 'No Store answered.'}{got}"
    if history.state is HistoryState.WAITING:
        return sentence(history.problem) or "For its turn, or for a Store that can be reached."
    parts = [f"{big(history.fetched)} looked at"]
    if history.state is HistoryState.RUNNING:
        parts.append(f"{big(history.arrived)} new")
        if history.per_second >= 1:
            parts.append(f"{big(round(history.per_second))} a second")
    else:
        parts.append(back_to(history.since_ms))
    if history.stores:
        parts.append(count(history.stores, "Store"))
    return " · ".join(parts)


def percent_words(history: HistoryView) -> str:
    return "" if history.fraction is None else f"{int(history.fraction * 100)} %"


def quiet_line(history: HistoryView) -> str:
    """One quiet line for what goes on by itself; empty if there is nothing to say."""
    if is_wished(history) or history.state is not HistoryState.RUNNING:
        return ""
    asking = (
        "Catching up"
        if history.reason is HistoryReason.CONNECT
        else "Asking Stores for what is missing"
    )
    return f"{asking}, {big(history.arrived)} new" if history.arrived else f"{asking}…"


def earlier_words(history: HistoryView | None) -> str:
    """Above the beginning: what goes on there, or what came of it."""
    if history is None or not is_wished(history):
        return ""
    match history.state:
        case HistoryState.WAITING:
            why = sentence(history.problem)
            words = f"Waiting to fetch earlier messages. {why}" if why else _WAITING_EARLIER
        case HistoryState.RUNNING:
            words = "Fetching earlier messages…"
        case HistoryState.FAILED:
            words = f"Earlier messages could not be fetched. {sentence(history.problem)}".strip()
        case HistoryState.CANCELLED:
            words = "Stopped fetching."
        case _:
            found = "Fetched" if history.arrived else "Nothing more was found,"
            words = f"{found} {back_to(history.since_ms)}."
            if history.since_ms is None:
                words = "This is all that the Stores have."
    return words


# --- Stores ---------------------------------------------------------------------------------------


def short_address(multiaddr: str) -> str:
    """Host and port, for a glance; the rest stands in the tool tip."""
    parts = multiaddr.strip("/").split("/")
    host = parts[1] if len(parts) >= _HOST_PARTS else multiaddr
    if "tcp" in parts[:-1]:
        port = parts[parts.index("tcp") + 1]
        host = f"[{host}]:{port}" if parts[0] == "ip6" else f"{host}:{port}"
    return one_line(host, 80)


def store_state(store: StoreView) -> str:
    """How it stands with a Store, in words that do without the sign beside them."""
    if not store.enabled:
        return "Off"
    answers = "Answers" if store.round_trip_ms is None else f"Answers in {store.round_trip_ms} ms"
    reason = sentence(store.problem)
    match store.health:
        case StoreHealth.GOOD:
            return answers
        case StoreHealth.UNKNOWN:
            return "Not asked yet"
        case StoreHealth.DOUBTFUL:
            return f"{answers}, but something is wrong. {reason}".strip()
        case StoreHealth.FAILED:
            return f"Failed the last time; it is asked again. {reason}".strip()


def store_statistics(store: StoreView, now: datetime) -> str:
    """All that it brought so far; empty if it was never asked."""
    if not store.queries:
        return ""
    parts = [
        f"{big(store.complete)} of {many(store.queries, 'query', 'queries')} answered to the end",
        f"{many(store.messages, 'message')}, {big(store.new)} of them first from here",
    ]
    if store.omitted:
        parts.append(f"{big(store.omitted)} left out that others had")
    if store.version:
        parts.append(f"Store {one_line(store.version, 20)}")
    if store.asked_ms is not None:
        parts.append(f"last asked {list_time(store.asked_ms, now)}")
    return " · ".join(parts)


def test_words(test: StoreTestView) -> str:
    """What one test found."""
    if test.problem:
        found = _found(test) if test.reachable else []
        tail = f" {'; '.join(found)}." if found else ""
        return f"Test: cannot be used. {sentence(test.problem)}{tail}"
    return f"Test: works. {'; '.join([*_found(test), _oldest(test)])}."


def _found(test: StoreTestView) -> list[str]:
    found = []
    if test.round_trip_ms is not None:
        found.append(f"Answers in {test.round_trip_ms} ms")
    if test.versions:
        first, *others = (one_line(version, 20) for version in test.versions[:3])
        found.append(f"Store {first}" + (f", also {', '.join(others)}" if others else ""))
    found.append("cluster not said" if test.cluster is None else f"cluster {test.cluster}")
    if test.clock_ahead_ms is not None:
        found.append(_clock_words(test.clock_ahead_ms))
    elif not test.problem:
        found.append("its clock is not told")
    return found


def _clock_words(ahead_ms: int) -> str:
    if abs(ahead_ms) <= _SAME_CLOCK_MS:
        return "its clock agrees with the messages"
    where = "behind" if ahead_ms > 0 else "ahead of"
    off = abs(ahead_ms)
    words = f"{off // 1000} s" if off < _SECONDS_SAID_MS else duration_words(off)
    return f"its clock is {words} {where} the messages"


def _oldest(test: StoreTestView) -> str:
    if test.oldest_ms is None:
        return "it has nothing of your conversations"
    at = moment(test.oldest_ms)
    return f"its oldest message of yours is from {at.day} {at:%B} {at.year}"
