"""What a link to a message may say, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.message_link import MESSAGE_PREFIX, linked_message, message_link

PLAIN = st.from_regex(r"[A-Za-z0-9_-]{1,128}", fullmatch=True)


@given(PLAIN)
def test_a_plain_id_comes_back_as_it_was(message_id: str) -> None:
    assert linked_message(message_link(message_id)) == message_id


@given(st.one_of(st.text(), st.text().map(MESSAGE_PREFIX.__add__)))
def test_whatever_is_read_is_what_would_be_written(text: str) -> None:
    """So nothing but an id passes: no path, no query, no quoting, no second link."""
    found = linked_message(text)
    if found is not None:
        assert text == message_link(found) == f"{MESSAGE_PREFIX}{found}"
        assert found.isascii()
        assert 1 <= len(found) <= 128


@pytest.mark.parametrize(
    "behind",
    [
        "",
        "a" * 129,
        "../x",
        "a/b",
        "a?b=c",
        "a#b",
        "%61",
        "a b",
        "a\n",
        "é",
        "\u202eab",
        "٣",
        "a\0",
    ],
)
def test_anything_else_is_neither_read_nor_written(behind: str) -> None:
    assert linked_message(MESSAGE_PREFIX + behind) is None
    assert message_link(behind) == ""


@pytest.mark.parametrize(
    "text", ["", "abc", "message/abc", "causerie:join/abc", "causerie:message"]
)
def test_other_links_are_not_of_messages(text: str) -> None:
    assert linked_message(text) is None


def test_no_id_has_no_link() -> None:
    assert message_link(None) == ""
