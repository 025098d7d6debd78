"""The words the window says: times, members, connection, delivery; and making text harmless.

Pure functions over read models, so that every sentence can be tested without a window.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import assert_never

from engine.events import (
    ConnectionLevel,
    ConnectionRole,
    ConnectionView,
    ConversationView,
    FloodView,
    MemberView,
    MessageKind,
    MessageView,
)

_KIB = 1024
_ONE_LINE_LIMIT = 300
_WEEK_DAYS = 6
_LEAST_PERCENT = 0.0001
_LONG_RUN = re.compile(r"[^\s\u200b]{31,}")
LATEST_MS = 253_370_764_800_000
"""The year 9999: a foreign clock beyond it is shown as that, because no calendar goes further."""
# Marks that turn the reading direction of what follows; a name must not turn our own words.
_BIDI_CONTROLS = {
    ord(mark): None for mark in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
}


def one_line(text: str, limit: int = _ONE_LINE_LIMIT) -> str:
    """Strangers' text for one line: no breaks, no direction overrides, no unbounded length."""
    kept = text[: limit * 2].translate(_BIDI_CONTROLS)
    line = " ".join(kept.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def breaking(text: str) -> str:
    """To be shown only: an address or a key in it breaks where the line ends."""
    return _LONG_RUN.sub(lambda run: "\u200b".join(run[0]), text)


def count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def chance_words(probability: float) -> str:
    """A chance to two digits: "0.098 % chance"; what is smaller than a millionth is just that."""
    percent = 100 * min(max(probability, 0.0), 1.0)
    if percent < _LEAST_PERCENT:
        return f"under {_LEAST_PERCENT:.4f} % chance"
    return f"{float(f'{percent:.2g}'):.6f}".rstrip("0").rstrip(".") + " % chance"


def moment(at_ms: int) -> datetime:
    """A time that somebody's clock said, in local time, as near as a calendar can show it."""
    return datetime.fromtimestamp(min(max(at_ms, 0), LATEST_MS) / 1000).astimezone()


def list_time(sent_ms: int, now: datetime) -> str:
    """Today "14:08", this week "Wed", this year "3 Nov", else "3 Nov 2024"."""
    sent = moment(sent_ms).astimezone(now.tzinfo)
    if sent.date() == now.date():
        return f"{sent:%H:%M}"
    days = (now.date() - sent.date()).days
    if 0 < days <= _WEEK_DAYS:
        return f"{sent:%a}"
    if sent.year == now.year:
        return f"{sent.day} {sent:%b}"
    return f"{sent.day} {sent:%b} {sent.year}"


def spoken_time(sent_ms: int, now: datetime) -> str:
    sent = moment(sent_ms).astimezone(now.tzinfo)
    if sent.date() == now.date():
        return f"{sent:%H:%M}"
    if sent.date() == now.date() - timedelta(days=1):
        return f"yesterday {sent:%H:%M}"
    return f"{sent.day} {sent:%B} {sent.year}, {sent:%H:%M}"


def present_members(conversation: ConversationView) -> tuple[MemberView, ...]:
    return tuple(member for member in conversation.members if not member.has_left)


def is_group(conversation: ConversationView) -> bool:
    return conversation.contact is None


def members_line(conversation: ConversationView, *, short: bool = False) -> str:
    members = present_members(conversation)
    total = count(len(members), "member")
    if short or not members:
        return total
    others = [one_line(member.name, 40) for member in members if not member.is_self]
    if not others:
        return f"{total}: only you" + ("" if len(conversation.members) > 1 else " so far")
    names = [*others, "you"] if len(others) < len(members) else others
    return f"{total}: {', '.join(names)}"


_OF_TWO = {
    MessageKind.ASKED: "asked to talk",
    MessageKind.ACCEPTED: "accepted",
    MessageKind.DECLINED: "declined",
    MessageKind.WITHDRAWN: "withdrew the request",
}


def kind_words(message: MessageView) -> str:
    """What happened, for rows that carry no text of their own."""
    who = "You" if message.is_own else one_line(message.sender_name, 40)
    match message.kind:
        case MessageKind.TEXT:
            words = one_line(message.text)
        case MessageKind.CREATED:
            words = f"{who} started this group"
        case MessageKind.JOINED:
            words = f"{who} joined"
        case MessageKind.LEFT:
            words = f"{who} left"
        case MessageKind.RENAMED:
            words = _renamed_words(message)
        case (
            MessageKind.ASKED | MessageKind.ACCEPTED | MessageKind.DECLINED | MessageKind.WITHDRAWN
        ):
            words = f"{who} {_OF_TWO[message.kind]}"
        case MessageKind.UNSUPPORTED:
            words = "A message that needs a newer version"
        case _:
            assert_never(message.kind)
    return words


def _renamed_words(message: MessageView) -> str:
    old, _, new = (one_line(name, 40) for name in message.text.partition("\n"))
    if message.is_own:
        return f"You are now called {new}"
    return f"{old or 'A member'} is now called {new}"


def shown_level(connection: ConnectionView) -> ConnectionLevel:
    """One peer is all there is in a group of two: nothing is wrong with that."""
    alone = connection.level is ConnectionLevel.MINIMAL and connection.peers == 1
    if alone and connection.role is ConnectionRole.RELAY:
        return ConnectionLevel.GOOD
    return connection.level


def connection_word(connection: ConnectionView) -> str:
    match shown_level(connection):
        case ConnectionLevel.GOOD:
            return "Online"
        case ConnectionLevel.MINIMAL:
            return "Limited" if connection.role is ConnectionRole.EDGE else "Connecting"
        case ConnectionLevel.OFFLINE:
            return "Waiting for network"
        case _:
            assert_never(connection.level)


def connection_line(connection: ConnectionView) -> str:
    word = connection_word(connection)
    if connection.level is ConnectionLevel.OFFLINE:
        return word
    kind = "service node" if connection.role is ConnectionRole.EDGE else "peer"
    return f"{word}, {count(connection.peers, kind)}"


def connection_reason(connection: ConnectionView) -> str:
    """Why it is not as it should be, as a sentence; empty if it is."""
    reason = connection.reason.strip()
    if shown_level(connection) is ConnectionLevel.GOOD or not reason:
        return ""
    return f"{reason[0].upper()}{reason[1:].rstrip('.')}."


def traffic(number: float) -> str:
    """Bytes in the largest unit that keeps the number readable."""
    if not number:
        return "0 kB"
    value = number / _KIB
    for unit in ("kB", "MB", "GB"):
        if value < _KIB:
            return f"{value:.1f} {unit}"
        value /= _KIB
    return f"{value:.1f} TB"


def key_words(key_storage: str) -> str:
    """Where the database's key lies, and what that means."""
    match key_storage:
        case "system keyring":
            return "The key to your messages lies in the system keyring."
        case "key file":
            return (
                "The key to your messages lies in a file beside them:"
                " keep the profile's folder to yourself."
            )
        case _:
            return f"The key to your messages lies here: {one_line(key_storage, 60)}."


def typing_line(names: Sequence[str]) -> str:
    shown = [one_line(name, 40) for name in names]
    match shown:
        case []:
            return ""
        case [one]:
            return f"{one} is typing…"
        case [one, other]:
            return f"{one} and {other} are typing…"
        case _:
            return f"{shown[0]} and {len(shown) - 1} others are typing…"


def muted_words(names: Sequence[str]) -> str:
    """Whose messages are not shown here; at least one name."""
    shown = [one_line(name, 40) for name in names]
    match shown:
        case [one]:
            return f"You muted {one}."
        case [one, other]:
            return f"You muted {one} and {other}."
        case _:
            return f"You muted {shown[0]} and {len(shown) - 1} others."


def flood_words(flood: FloodView, group_name: str) -> str:
    """Of somebody who sends more than anybody can want, and what became of it."""
    group = f"{one_line(group_name, 60)}: " if group_name else ""
    return (
        f"{group}{one_line(flood.name, 40)} is sending unusually much. "
        "Messages beyond a day's limit are kept aside and not shown."
    )
