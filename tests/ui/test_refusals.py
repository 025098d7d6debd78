"""What was refused: a sentence for each counter that there is."""

import re
from pathlib import Path

from ui.refusals import refusal_sentences

ENGINE = Path(__file__).parents[2] / "engine"


def test_the_same_fault_in_groups_and_pairs_is_one_sentence_and_the_most_frequent_comes_first() -> (
    None
):
    counters = {
        "group.replayed": 2,
        "pair.replayed": 3,
        "group.id_mismatch": 1,
        "sds.fork": 0,
        "runner.outbox_full": 9,
        "replayed": 7,
    }
    assert refusal_sentences(counters) == (
        "5 messages that came once more, sealed as before; ignored.",
        "1 message with an id that does not belong to what was said; refused.",
    )


def test_who_took_more_than_their_share_is_told() -> None:
    counters = {
        "inbox.too_many_of_strangers": 5,
        "libp2p.connections_per_address_limit": 136,
        "relay.paced": 3,
    }
    paced, requests, connections = reversed(refusal_sentences(counters))
    assert paced == "3 messages from a peer that says so much that the next ones had to wait."
    assert requests.startswith("5 requests to talk from strangers for which there was no room;")
    assert connections == ("136 connections from an address that has its share already; refused.")


def test_who_has_another_key_is_told_why_nothing_is_shown() -> None:
    assert refusal_sentences({"open.other_key": 4}) == (
        "4 messages that the shared key of their channel does not open; ignored.",
    )


def test_nothing_is_said_of_a_profile_to_which_nothing_happened() -> None:
    assert refusal_sentences({}) == ()


def test_every_counter_that_has_words_is_one_that_the_engine_counts() -> None:
    """A name that is changed there would fall silent here."""
    source = "\n".join(path.read_text() for path in ENGINE.rglob("*.py"))
    words = (Path(__file__).parents[2] / "ui" / "refusals.py").read_text()
    reasons = re.findall(r'^    "([a-z_]+)": lambda', words, flags=re.MULTILINE)
    assert len(reasons) > 10
    for reason in reasons:
        assert re.search(rf'["\.]{reason}["`]', source), reason
