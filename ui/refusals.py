"""What was refused or set aside, in words: counters → sentences.

For ``causerie doctor`` and the window.  What a member of a conversation causes, by a fault of their
program or on purpose, and where strangers took more than their share of requests and connections;
whatever else they throw at a node is no news to anybody.
"""

from collections.abc import Mapping
from typing import Final

from ui.words import count

_MESSAGES: Final = ("message", "messages")
_CLAIMS: Final = ("claim", "claims")
_REQUESTS: Final = ("request", "requests")
_CONNECTIONS: Final = ("connection", "connections")
_HANDSHAKES: Final = ("handshake", "handshakes")
_QUESTIONS: Final = ("question", "questions")
_SERVICES: Final = ("store", "store_legacy", "lightpush", "filter")
_COUNTED_BY: Final = ("group", "pair", "sds", "inbox", "libp2p", *_SERVICES)
"""The same fault is named alike in groups and between two people."""

_SENTENCES: Final[Mapping[str, tuple[tuple[str, str], str]]] = {
    "id_mismatch": (_MESSAGES, "with an id that does not belong to what was said; refused"),
    "another_form": (
        _MESSAGES,
        "known here already, with another history under the same id; the first stays",
    ),
    "not_canonical": (_MESSAGES, "with something packed in that nobody can read; refused"),
    "content_not_canonical": (
        _MESSAGES,
        "with something packed into their content that nobody can read; refused",
    ),
    "bad_padding": (_MESSAGES, "padded in another way than all others; refused"),
    "replayed": (_MESSAGES, "that came once more, sealed as before; passed over"),
    "mixed_order_key": (_MESSAGES, "with a key made to fit more than one secret; refused"),
    "bad_holdings": (_CLAIMS, "of what somebody holds that cannot be true; refused"),
    "bad_sequence": (_MESSAGES, "numbered in a way that cannot be; refused"),
    "fork": (("author", "authors"), "told different people different things; both are kept"),
    "replaced": (_MESSAGES, "dated by a wrong clock and said again; the copy took their place"),
    "false_replacement": (
        _MESSAGES,
        "that claimed to take the place of another, and may not; both stay",
    ),
    "held_ahead": (_MESSAGES, "from the future by this device's clock; held until their time"),
    "held_ahead_gave_way": (
        _MESSAGES,
        "held from the future that made room for sooner ones; fetched again later",
    ),
    "held_ahead_overflow": (
        _MESSAGES,
        "from the future for which there was no room; fetched again later",
    ),
    "set_aside": (
        _MESSAGES,
        "beyond what one author may send in a day; kept aside, or known by their ids alone",
    ),
    "set_aside_again": (_MESSAGES, "known to be beyond that, that came once more; passed over"),
    "clock_ahead": (_MESSAGES, "from the future between two people; held until their time"),
    "too_many_requests": (
        _REQUESTS,
        "to talk for which there was no room; they come again",
    ),
    "too_many_of_strangers": (
        _REQUESTS,
        "to talk from strangers for which there was no room; they come again",
    ),
    "too_many_of_a_group": (
        _REQUESTS,
        "to talk from members of one group for which there was no room; they come again",
    ),
    "connections_per_address_limit": (
        _CONNECTIONS,
        "from an address that has its share already; refused",
    ),
    "handshakes_per_address_limit": (
        _CONNECTIONS,
        "from an address that has begun too many at once; refused",
    ),
    "inbound_connections_limit": (_CONNECTIONS, "for which there was no room; refused"),
    "connection_gave_way": (
        _CONNECTIONS,
        "closed to make room: of those that misbehaved, or of the address that had most",
    ),
    "handshakes_limit": (_CONNECTIONS, "refused because too many were being made at once"),
    "handshake_gave_way": (_HANDSHAKES, "that went on for too long and made room for another"),
    "busy": (_QUESTIONS, "to this device's services that were too many at once; refused"),
    "rate_limited": (_QUESTIONS, "to this device's services that came too fast; refused"),
    "too_many_silent_streams": (
        _QUESTIONS,
        "to this device's services that were begun and not asked; refused",
    ),
    "answers_over_budget": (
        _QUESTIONS,
        "for history from somebody who has had enough for this minute; they may ask again",
    ),
    "query_too_slow": (_QUESTIONS, "for history that took too long to answer; refused"),
    "evicted": (
        _MESSAGES,
        "taken out of the archive to make room: of whoever had put most into it",
    ),
    "dropped_queue_full": (
        _MESSAGES,
        "that came faster than the archive could take them; not archived",
    ),
    "clock_was_ahead": (_MESSAGES, "held from the future whose time has come"),
}


def refusal_sentences(counters: Mapping[str, int]) -> tuple[str, ...]:
    """One for each kind that ever happened, the most frequent first."""
    numbers: dict[str, int] = {}
    for name, number in counters.items():
        where, _, reason = name.partition(".")
        if where in _COUNTED_BY and reason in _SENTENCES and number > 0:
            numbers[reason] = numbers.get(reason, 0) + number
    by_number = sorted(numbers.items(), key=lambda item: -item[1])
    return tuple(_sentence(reason, number) for reason, number in by_number)


def _sentence(reason: str, number: int) -> str:
    (one, many), words = _SENTENCES[reason]
    return f"{count(number, one, many)} {words}."
