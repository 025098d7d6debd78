"""Sentences about history: what is being fetched, how it ended, and the Stores that were asked.

Pure functions over read models, so that every sentence can be tested without a window.
"""

from datetime import datetime
from typing import Final, assert_never

from engine.history_views import (
    HistoryReason,
    HistoryState,
    HistoryView,
    StoreHealth,
    StoreTestView,
    StoreView,
)
from ui.foreign_text import one_line
from ui.problem_words import history_problem_words, sentence, store_problem_words
from ui.regional import grouped
from ui.times import date_words, duration_words, list_time, moment
from ui.translate import tr

_SAME_CLOCK_MS: Final = 2_000
_SECONDS_SAID_MS: Final = 120_000
_HOST_PARTS: Final = 2


def choices() -> tuple[tuple[str, int | None], ...]:
    """How many days can be fetched; None for all there is."""
    return (
        (tr("Last 7 days"), 7),
        (tr("Last 30 days"), 30),
        (tr("Last 365 days"), 365),
        (tr("All there is"), None),
    )


# --- fetching -------------------------------------------------------------------------------------


def is_requested(history: HistoryView) -> bool:
    """Somebody asked for it and wants to see how it goes."""
    return history.reason in {HistoryReason.USER, HistoryReason.EARLIER}


def back_to(since_ms: int | None) -> str:
    if since_ms is None:
        return tr("all there is")
    return tr("back to {date}").format(date=date_words(moment(since_ms)))


def history_title(history: HistoryView) -> str:
    """What goes on, or how it ended."""
    match history.state:
        case HistoryState.WAITING:
            words = tr("Waiting to fetch history")
        case HistoryState.RUNNING:
            words = tr("Fetching history, {back_to}")
        case HistoryState.DONE if history.arrived:
            words = tr(
                "History fetched: {number} new messages",
                "History fetched: {number} new message",
                history.arrived,
            )
        case HistoryState.DONE:
            words = tr("History fetched: nothing new")
        case HistoryState.CANCELLED if history.arrived:
            words = tr(
                "Stopped. {number} new messages stay here",
                "Stopped. {number} new message stays here",
                history.arrived,
            )
        case HistoryState.CANCELLED:
            words = tr("Stopped")
        case HistoryState.FAILED:
            words = tr("History could not be fetched to the end")
        case _:
            assert_never(history.state)
    return words.format(number=grouped(history.arrived), back_to=back_to(history.since_ms))


def history_details(history: HistoryView) -> str:
    """Count, rate and whom one asks; once it is over, what came of it."""
    if history.state is HistoryState.FAILED:
        why = sentence(history_problem_words(history.problem)) or tr("No Store answered.")
        if not history.arrived:
            return why
        came = tr("{number} new messages came.", "{number} new message came.", history.arrived)
        return f"{why} {came.format(number=grouped(history.arrived))}"
    if history.state is HistoryState.WAITING:
        for_what = tr("For its turn, or for a Store that can be reached.")
        return sentence(history_problem_words(history.problem)) or for_what
    parts = [tr("{number} looked at").format(number=grouped(history.fetched))]
    if history.state is HistoryState.RUNNING:
        parts.append(tr("{number} new").format(number=grouped(history.arrived)))
        if history.per_second >= 1:
            parts.append(tr("{number} a second").format(number=grouped(round(history.per_second))))
    else:
        parts.append(back_to(history.since_ms))
    if history.stores:
        parts.append(tr("%n Stores", "%n Store", history.stores))
    return " · ".join(parts)


def percent_words(history: HistoryView) -> str:
    if history.fraction is None:
        return ""
    return tr("{percent} %").format(percent=int(history.fraction * 100))


def quiet_line(history: HistoryView) -> str:
    """One quiet line for what goes on by itself; empty if there is nothing to say."""
    if is_requested(history) or history.state is not HistoryState.RUNNING:
        return ""
    new = grouped(history.arrived)
    if history.reason is HistoryReason.CONNECT:
        return (
            tr("Catching up, {number} new").format(number=new)
            if history.arrived
            else tr("Catching up…")
        )
    if history.arrived:
        return tr("Asking Stores for what is missing, {number} new").format(number=new)
    return tr("Asking Stores for what is missing…")


def earlier_words(history: HistoryView | None) -> str:
    """Above the beginning: what goes on there, or what came of it."""
    if history is None or not is_requested(history):
        return ""
    why = sentence(history_problem_words(history.problem))
    match history.state:
        case HistoryState.WAITING if why:
            words = tr("Waiting to fetch earlier messages. {why}")
        case HistoryState.WAITING:
            words = tr("Waiting to fetch earlier messages…")
        case HistoryState.RUNNING:
            words = tr("Fetching earlier messages…")
        case HistoryState.FAILED:
            words = tr("Earlier messages could not be fetched. {why}")
        case HistoryState.CANCELLED:
            words = tr("Stopped fetching.")
        case HistoryState.DONE if history.since_ms is None:
            words = tr("This is all that the Stores have.")
        case HistoryState.DONE if history.arrived:
            words = tr("Fetched {back_to}.")
        case HistoryState.DONE:
            words = tr("Nothing more was found, {back_to}.")
        case _:
            assert_never(history.state)
    return words.format(why=why, back_to=back_to(history.since_ms)).strip()


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
        return tr("Off")
    answers = tr("Answers")
    if store.round_trip_ms is not None:
        answers = tr("Answers in {number} ms").format(number=store.round_trip_ms)
    reason = sentence(store_problem_words(store.problem))
    match store.health:
        case StoreHealth.GOOD:
            return answers
        case StoreHealth.UNKNOWN:
            return tr("Not asked yet")
        case StoreHealth.DOUBTFUL:
            words = tr("{answers}, but something is wrong. {reason}")
            return words.format(answers=answers, reason=reason).strip()
        case StoreHealth.FAILED:
            words = tr("Failed the last time; it is asked again. {reason}")
            return words.format(reason=reason).strip()


def store_statistics(store: StoreView, now: datetime) -> str:
    """All that it brought so far; empty if it was never asked."""
    if not store.queries:
        return ""
    complete = tr(
        "{complete} of {number} queries answered to the end",
        "{complete} of {number} query answered to the end",
        store.queries,
    )
    messages = tr(
        "{number} messages, {new} of them first from here",
        "{number} message, {new} of them first from here",
        store.messages,
    )
    parts = [
        complete.format(complete=grouped(store.complete), number=grouped(store.queries)),
        messages.format(number=grouped(store.messages), new=grouped(store.new)),
    ]
    if store.omitted:
        parts.append(tr("{number} left out that others had").format(number=grouped(store.omitted)))
    if store.version:
        parts.append(tr("Store {version}").format(version=one_line(store.version, 20)))
    if store.asked_ms is not None:
        parts.append(tr("last asked {time}").format(time=list_time(store.asked_ms, now)))
    return " · ".join(parts)


def test_words(test: StoreTestView) -> str:
    """What one test found."""
    if not test.problem:
        found = "; ".join([*_found(test), _oldest(test)])
        return tr("Test: works. {found}.").format(found=found)
    words = tr("Test: cannot be used. {reason}").format(
        reason=sentence(store_problem_words(test.problem))
    )
    return f"{words} {'; '.join(_found(test))}." if test.reachable else words


def _found(test: StoreTestView) -> list[str]:
    found = []
    if test.round_trip_ms is not None:
        found.append(tr("Answers in {number} ms").format(number=test.round_trip_ms))
    if test.versions:
        first, *others = (one_line(version, 20) for version in test.versions[:3])
        words = tr("Store {version}, also {others}") if others else tr("Store {version}")
        found.append(words.format(version=first, others=", ".join(others)))
    if test.cluster is None:
        found.append(tr("cluster not said"))
    else:
        found.append(tr("cluster {number}").format(number=test.cluster))
    if test.clock_ahead_ms is not None:
        found.append(_clock_words(test.clock_ahead_ms))
    elif not test.problem:
        found.append(tr("its clock is not told"))
    return found


def _clock_words(ahead_ms: int) -> str:
    if abs(ahead_ms) <= _SAME_CLOCK_MS:
        return tr("its clock agrees with the messages")
    words = tr("its clock is {duration} ahead of the messages")
    if ahead_ms > 0:
        words = tr("its clock is {duration} behind the messages")
    off = abs(ahead_ms)
    if off < _SECONDS_SAID_MS:
        return words.format(duration=tr("{number} s").format(number=off // 1000))
    return words.format(duration=duration_words(off))


def _oldest(test: StoreTestView) -> str:
    if test.oldest_ms is None:
        return tr("it has nothing of your conversations")
    words = tr("its oldest message of yours is from {date}")
    return words.format(date=date_words(moment(test.oldest_ms)))
