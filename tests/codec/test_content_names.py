"""Names in content: cleaned on arrival, short, visible, and real ones left as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.content import (
    decode_content,
)
from engine.core.content import (
    MAX_NAME_CHARACTERS,
    Created,
    clean_name,
)
from proto import content_pb2
from tests.codec.content_examples import reason_of, wire


def test_names_are_cleaned_on_arrival() -> None:
    body = content_pb2.Body()
    body.created.name = "  Team\u202e\u2066 \n\tgnp.exe\u200b\x00 "
    assert decode_content(wire(body)).body == Created(name="Team gnp.exe")
    body.created.name = "\u202e\u200b"
    assert reason_of(decode_content, wire(body)) == "content_bad_name"
    body.created.name = "x" * (MAX_NAME_CHARACTERS + 1)
    assert reason_of(decode_content, wire(body)) == "content_bad_name"


@given(st.text(max_size=80))
def test_a_clean_name_is_short_visible_and_stays_as_it_is(name: str) -> None:
    try:
        cleaned = clean_name(name)
    except ValueError:
        return
    assert 1 <= len(cleaned) <= MAX_NAME_CHARACTERS
    assert clean_name(cleaned) == cleaned
    assert not set(cleaned) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\n\0")


@pytest.mark.parametrize(
    "name",
    [
        "Zoë",
        "李小龙",
        "👩\u200d🚀",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "O'Neil, J.",
    ],
)
def test_real_names_stay_as_they_are(name: str) -> None:
    assert clean_name(name) == name


@pytest.mark.parametrize("name", ["", " ", "\u200d", "\u3164", "\u200c \u200d", "\U000e0041"])
def test_names_that_nobody_could_see_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="nothing is left"):
        clean_name(name)
