"""What members said that was refused or set aside, in words: counters → sentences.

For ``causerie doctor`` and the window.  Only what a member of a conversation causes, by a fault of
their program or on purpose; whatever strangers throw at a node is no news to anybody.
"""

from collections.abc import Mapping
from typing import Final

from ui.words import count

_MESSAGES: Final = ("message", "messages")
_CLAIMS: Final = ("claim", "claims")
_IN_A_CONVERSATION: Final = ("group", "pair", "sds")
"""Who counts it: the same fault is named alike in groups and between two people."""

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
    "clock_ahead": (_MESSAGES, "from the future between two people; held until their time"),
    "clock_was_ahead": (_MESSAGES, "held from the future whose time has come"),
}


def refusal_sentences(counters: Mapping[str, int]) -> tuple[str, ...]:
    """One for each kind that ever happened, the most frequent first."""
    numbers: dict[str, int] = {}
    for name, number in counters.items():
        where, _, reason = name.partition(".")
        if where in _IN_A_CONVERSATION and reason in _SENTENCES and number > 0:
            numbers[reason] = numbers.get(reason, 0) + number
    by_number = sorted(numbers.items(), key=lambda item: -item[1])
    return tuple(_sentence(reason, number) for reason, number in by_number)


def _sentence(reason: str, number: int) -> str:
    (one, many), words = _SENTENCES[reason]
    return f"{count(number, one, many)} {words}."
