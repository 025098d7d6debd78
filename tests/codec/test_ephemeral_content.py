"""Content that is not kept: typing and presence come back, and other kinds may be dropped."""

import pytest

from engine.codec.content import (
    decode_ephemeral,
    decode_pair_ephemeral,
    encode_ephemeral,
)
from engine.core.content import (
    EphemeralContent,
    Presence,
    Typing,
)
from tests.codec.content_examples import reason_of


@pytest.mark.parametrize("active", [True, False])
def test_typing_comes_back(active: bool) -> None:
    assert decode_ephemeral(encode_ephemeral(Typing(active=active))) == Typing(active=active)


def test_other_ephemeral_content_may_be_dropped() -> None:
    assert reason_of(decode_ephemeral, b"") == "ephemeral_unsupported"
    assert reason_of(decode_ephemeral, b"\xa2\x06\x03abc") == "ephemeral_unsupported"
    assert reason_of(decode_ephemeral, bytes(1025)) == "ephemeral_oversized"
    assert reason_of(decode_ephemeral, b"\xff") == "ephemeral_malformed"


@pytest.mark.parametrize(
    "said",
    [
        Typing(active=True),
        Typing(active=False),
        Presence(answer_wanted=True),
        Presence(answer_wanted=False),
    ],
)
def test_what_is_not_kept_comes_back_too(said: EphemeralContent) -> None:
    assert decode_pair_ephemeral(encode_ephemeral(said)) == said


def test_a_presence_is_nothing_for_a_group() -> None:
    encoded = encode_ephemeral(Presence(answer_wanted=True))
    assert reason_of(decode_ephemeral, encoded) == "ephemeral_unsupported"


def test_other_ephemeral_content_of_a_pair_may_be_dropped() -> None:
    assert reason_of(decode_pair_ephemeral, b"") == "ephemeral_unsupported"
    assert reason_of(decode_pair_ephemeral, b"\xa2\x06\x03abc") == "ephemeral_unsupported"
    assert reason_of(decode_pair_ephemeral, bytes(1025)) == "ephemeral_oversized"
    assert reason_of(decode_pair_ephemeral, b"\xff") == "ephemeral_malformed"
