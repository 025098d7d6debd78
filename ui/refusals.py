"""Turns counters into sentences: what was refused or set aside.

For ``causerie doctor`` and the window.  What a member of a conversation causes, by a fault of their
program or on purpose, and where strangers took more than their share of requests and connections;
whatever else they throw at a node is no news to anybody.
"""

from collections.abc import Callable, Mapping
from typing import Final

from ui.translate import tr

_SERVICES: Final = ("store", "store_legacy", "lightpush", "filter")
_COUNTED_BY: Final = ("group", "pair", "open", "sds", "inbox", "libp2p", "relay", *_SERVICES)
"""The same fault is named alike in groups and between two people."""

_SENTENCES: Final[Mapping[str, Callable[[int], str]]] = {
    "id_mismatch": lambda n: tr(
        "%n messages with an id that does not belong to what was said; refused.",
        "%n message with an id that does not belong to what was said; refused.",
        n,
    ),
    "another_form": lambda n: tr(
        "%n messages known here already, with another history under the same id; the first stays.",
        "%n message known here already, with another history under the same id; the first stays.",
        n,
    ),
    "not_canonical": lambda n: tr(
        "%n messages with something packed in that nobody can read; refused.",
        "%n message with something packed in that nobody can read; refused.",
        n,
    ),
    "content_not_canonical": lambda n: tr(
        "%n messages with something packed into their content that nobody can read; refused.",
        "%n message with something packed into their content that nobody can read; refused.",
        n,
    ),
    "changed_by_another": lambda n: tr(
        "%n times somebody wanted to edit or delete what another wrote; ignored.",
        "%n time somebody wanted to edit or delete what another wrote; ignored.",
        n,
    ),
    "bad_annotation": lambda n: tr(
        "%n reactions, edits or deletions that say nothing readable; ignored.",
        "%n reaction, edit or deletion that says nothing readable; ignored.",
        n,
    ),
    "bad_padding": lambda n: tr(
        "%n messages padded in another way than all others; refused.",
        "%n message padded in another way than all others; refused.",
        n,
    ),
    "replayed": lambda n: tr(
        "%n messages that came once more, sealed as before; ignored.",
        "%n message that came once more, sealed as before; ignored.",
        n,
    ),
    "mixed_order_key": lambda n: tr(
        "%n messages with a key made to fit more than one secret; refused.",
        "%n message with a key made to fit more than one secret; refused.",
        n,
    ),
    "bad_holdings": lambda n: tr(
        "%n claims of what somebody holds that cannot be true; refused.",
        "%n claim of what somebody holds that cannot be true; refused.",
        n,
    ),
    "bad_sequence": lambda n: tr(
        "%n messages numbered in a way that cannot be; refused.",
        "%n message numbered in a way that cannot be; refused.",
        n,
    ),
    "fork": lambda n: tr(
        "%n authors told different people different things; both are kept.",
        "%n author told different people different things; both are kept.",
        n,
    ),
    "replaced": lambda n: tr(
        "%n messages dated by a wrong clock and said again; the copy took their place.",
        "%n message dated by a wrong clock and said again; the copy took their place.",
        n,
    ),
    "false_replacement": lambda n: tr(
        "%n messages that claimed to take the place of another, and may not; both stay.",
        "%n message that claimed to take the place of another, and may not; both stay.",
        n,
    ),
    "cycle_left": lambda n: tr(
        "%n messages of open channels that waited for each other; shown in the order of their "
        "times.",
        "%n message of an open channel that waited for what waits for it; shown at its time.",
        n,
    ),
    "wrong_channel": lambda n: tr(
        "%n messages of another channel; ignored.", "%n message of another channel; ignored.", n
    ),
    "other_key": lambda n: tr(
        "%n messages that the shared key of their channel does not open; ignored.",
        "%n message that the shared key of its channel does not open; ignored.",
        n,
    ),
    "held_ahead": lambda n: tr(
        "%n messages from the future by this device's clock; held until their time.",
        "%n message from the future by this device's clock; held until their time.",
        n,
    ),
    "held_ahead_gave_way": lambda n: tr(
        "%n messages held from the future that made room for sooner ones; fetched again later.",
        "%n message held from the future that made room for sooner ones; fetched again later.",
        n,
    ),
    "held_ahead_overflow": lambda n: tr(
        "%n messages from the future for which there was no room; fetched again later.",
        "%n message from the future for which there was no room; fetched again later.",
        n,
    ),
    "set_aside": lambda n: tr(
        "%n messages beyond what one author may send in a day; kept aside, or known by their "
        "ids alone.",
        "%n message beyond what one author may send in a day; kept aside, or known by their "
        "ids alone.",
        n,
    ),
    "set_aside_again": lambda n: tr(
        "%n messages known to be beyond that, that came once more; ignored.",
        "%n message known to be beyond that, that came once more; ignored.",
        n,
    ),
    "clock_ahead": lambda n: tr(
        "%n messages from the future between two people; placed by this device's clock.",
        "%n message from the future between two people; placed by this device's clock.",
        n,
    ),
    "too_many_requests": lambda n: tr(
        "%n requests to talk for which there was no room; they come again.",
        "%n request to talk for which there was no room; they come again.",
        n,
    ),
    "too_many_of_strangers": lambda n: tr(
        "%n requests to talk from strangers for which there was no room; they come again.",
        "%n request to talk from strangers for which there was no room; they come again.",
        n,
    ),
    "too_many_of_a_group": lambda n: tr(
        "%n requests to talk from members of one group for which there was no room; they come "
        "again.",
        "%n request to talk from members of one group for which there was no room; they come "
        "again.",
        n,
    ),
    "connections_per_address_limit": lambda n: tr(
        "%n connections from an address that has its share already; refused.",
        "%n connection from an address that has its share already; refused.",
        n,
    ),
    "handshakes_per_address_limit": lambda n: tr(
        "%n connections from an address that has begun too many at once; refused.",
        "%n connection from an address that has begun too many at once; refused.",
        n,
    ),
    "inbound_connections_limit": lambda n: tr(
        "%n connections for which there was no room; refused.",
        "%n connection for which there was no room; refused.",
        n,
    ),
    "connection_gave_way": lambda n: tr(
        "%n connections closed to make room: of those that misbehaved, or of the address that "
        "had most.",
        "%n connection closed to make room: of those that misbehaved, or of the address that "
        "had most.",
        n,
    ),
    "handshakes_limit": lambda n: tr(
        "%n connections refused because too many were being made at once.",
        "%n connection refused because too many were being made at once.",
        n,
    ),
    "handshake_gave_way": lambda n: tr(
        "%n handshakes that went on for too long and made room for another.",
        "%n handshake that went on for too long and made room for another.",
        n,
    ),
    "busy": lambda n: tr(
        "%n questions to this device's services that were too many at once; refused.",
        "%n question to this device's services that were too many at once; refused.",
        n,
    ),
    "rate_limited": lambda n: tr(
        "%n questions to this device's services that came too fast; refused.",
        "%n question to this device's services that came too fast; refused.",
        n,
    ),
    "too_many_silent_streams": lambda n: tr(
        "%n questions to this device's services that were begun and not asked; refused.",
        "%n question to this device's services that were begun and not asked; refused.",
        n,
    ),
    "answers_over_budget": lambda n: tr(
        "%n questions for history from somebody who has had enough for this minute; they may "
        "ask again.",
        "%n question for history from somebody who has had enough for this minute; they may "
        "ask again.",
        n,
    ),
    "query_too_slow": lambda n: tr(
        "%n questions for history that took too long to answer; refused.",
        "%n question for history that took too long to answer; refused.",
        n,
    ),
    "evicted": lambda n: tr(
        "%n messages taken out of the archive to make room: of whoever had put most into it.",
        "%n message taken out of the archive to make room: of whoever had put most into it.",
        n,
    ),
    "dropped_queue_full": lambda n: tr(
        "%n messages that came faster than the archive could take them; not archived.",
        "%n message that came faster than the archive could take them; not archived.",
        n,
    ),
    "paced": lambda n: tr(
        "%n messages from a peer that says so much that the next ones had to wait.",
        "%n message from a peer that says so much that the next ones had to wait.",
        n,
    ),
    "clock_was_ahead": lambda n: tr(
        "%n messages that came after this device's clock was set back; placed after earlier ones.",
        "%n message that came after this device's clock was set back; placed after earlier ones.",
        n,
    ),
}


def refusal_sentences(counters: Mapping[str, int]) -> tuple[str, ...]:
    """One for each kind that ever happened, the most frequent first."""
    numbers: dict[str, int] = {}
    for name, number in counters.items():
        where, _, reason = name.partition(".")
        if where in _COUNTED_BY and reason in _SENTENCES and number > 0:
            numbers[reason] = numbers.get(reason, 0) + number
    by_number = sorted(numbers.items(), key=lambda item: -item[1])
    return tuple(_SENTENCES[reason](number) for reason, number in by_number)
