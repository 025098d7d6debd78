"""``causerie watch``: how delivery goes in a profile that is open in a window, in a terminal.

It asks the window at the profile's local socket, every two seconds, and ends with it or by Ctrl+C.
With ``--json`` each answer is one object on a line.  Names come from other people: nothing of them
may move the cursor or colour the screen.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TextIO

import msgspec

from chat_app.one_instance import ask_figures
from chat_app.paths import ProfilePaths
from engine.core.errors import ConfigError
from engine.events import ConnectionLevel
from engine.inspection_views import (
    RATE_MS,
    ConnectionFigures,
    ConversationFigures,
    Figures,
    StoreFigures,
)
from ui.foreign_text import one_line
from ui.refusals import refusal_sentences
from ui.times import moment

EVERY_S: Final = 2.0
_TRIES: Final = 3
"""A window that is busy for a moment has not ended."""
_NAME: Final = 24
_CLEAR: Final = "\x1b[H\x1b[J"
_MINUTES: Final = RATE_MS // 60_000

Ask = Callable[[Path], Mapping[str, object] | None]


def watch(
    paths: ProfilePaths,
    *,
    as_json: bool,
    out: TextIO | None = None,
    ask: Ask = ask_figures,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Until the window closes or Ctrl+C.  Raises ConfigError if no window has the profile open."""
    out = sys.stdout if out is None else out
    try:
        answer = _asked(paths.directory, ask, sleep)
        if answer is None:
            raise ConfigError(
                f"watch: no window has the profile {paths.name!r} open; start causerie first"
            )
        while answer is not None:
            _write(answer, out, as_json=as_json)
            sleep(EVERY_S)
            answer = _asked(paths.directory, ask, sleep)
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:  # What it was piped into has ended.
        return 0
    if not as_json:
        out.write("The window was closed.\n")
    return 0


def _asked(
    directory: Path, ask: Ask, sleep: Callable[[float], None]
) -> Mapping[str, object] | None:
    for again in range(_TRIES):
        answer = ask(directory)
        if answer is not None:
            return answer
        if again + 1 < _TRIES:
            sleep(EVERY_S / 4)
    return None


def _write(answer: Mapping[str, object], out: TextIO, *, as_json: bool) -> None:
    if as_json:
        out.write(json.dumps(answer) + "\n")  # ASCII: no name reaches the terminal as it is.
    else:
        page = "\n".join(page_of(answer))
        out.write(f"{_CLEAR}{page}\n" if out.isatty() else f"{page}\n\n")
    out.flush()


def page_of(answer: Mapping[str, object]) -> Iterator[str]:
    """In words.  An answer of another version says only that it cannot be read."""
    if answer.get("locked") is True:
        yield "Causerie is locked: its window asks for the passphrase."
        return
    if not answer:
        yield "Nobody has made an identity in this profile yet."
        return
    try:
        figures = msgspec.convert(answer, Figures, strict=False)
    except msgspec.ValidationError:
        yield "The window is of another version of Causerie: close it and start it again."
        return
    yield from _page(figures)


def plain(text: str, limit: int = _NAME) -> str:
    """Somebody else's text in a terminal: one line, no escapes, nothing that turns the line."""
    return "".join(mark if mark.isprintable() else "\ufffd" for mark in one_line(text, limit))


def _page(figures: Figures) -> Iterator[str]:
    yield f"{moment(figures.at_ms):%H:%M:%S}  {_connection(figures.connection)}"
    yield ""
    yield from _table(figures.conversations) if figures.conversations else ["No conversations yet."]
    if figures.more_conversations:
        yield f"and {figures.more_conversations} more conversations"
    yield ""
    yield "Stores"
    yield from map(_store, figures.stores)
    if not figures.stores:
        yield "  none"
    refused = refusal_sentences(figures.counters)
    if refused:
        yield ""
        yield "Refused or set aside since the start"
        yield from (f"  {sentence}" for sentence in refused)


def _connection(connection: ConnectionFigures) -> str:
    if connection.level is ConnectionLevel.OFFLINE:
        return "offline"
    peers = "1 peer" if connection.peers == 1 else f"{connection.peers} peers"
    sent, received = connection.bytes_out // 1000, connection.bytes_in // 1000
    return f"{connection.role.value}, {peers}, {sent} kB sent, {received} kB received"


_HEAD: Final = (
    "conversation", f"msg/{_MINUTES} min", "held by all", "p50", "p95", "waiting", "missing here",
    "lost", "unsent", "failed",
)  # fmt: skip


def _table(conversations: Sequence[ConversationFigures]) -> Iterator[str]:
    rows = [_HEAD, *map(_cells, conversations)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row in rows:
        first, *others = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join([first, *others]).rstrip()


def _cells(one: ConversationFigures) -> tuple[str, ...]:
    return (
        plain(one.name) or "?",
        f"{one.received}" if one.is_all else f"{one.received}+",
        f"{one.held_by_all}/{one.own}",
        _duration(one.held_p50_ms),
        _duration(one.held_p95_ms),
        *map(str, (one.waiting, one.missing, one.lost, one.waiting_to_send, one.failed)),
    )


def _duration(length_ms: int | None) -> str:
    if length_ms is None:
        return "-"
    seconds = length_ms / 1000
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.0f} min"  # noqa: PLR2004


def _store(store: StoreFigures) -> str:
    where, health = plain(store.multiaddr, 100), store.health.value
    state = health if store.enabled else "switched off"
    said = f"{store.complete} of {store.queries} queries complete, {store.omitted} omitted"
    return f"  {where}: {state}, {said}"
