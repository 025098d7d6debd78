"""Content of open channels: text and 22/TOY-CHAT, read by what they are, and nothing refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.open_content import (
    MAX_NICK_CHARACTERS,
    OpenContent,
    decode_open_content,
    encode_text,
    encode_toy_chat,
    message_id_of_content,
)
from engine.core.content import MAX_TEXT_BYTES, Text, Unsupported
from engine.core.ids import UnixMs
from engine.core.records import OpenFormat
from engine.session.open.rows import NAMELESS, stranger_name

NOW = UnixMs(1_760_000_000_123)
BINARY = OpenContent(body=Unsupported(kind="binary"))
texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(str.strip)


def test_the_id_is_js_wakus() -> None:
    assert message_id_of_content(b"hello") == (
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    )


def test_a_message_of_toy_chat_is_its_three_fields() -> None:
    assert encode_toy_chat("hei", "Kari", NOW).hex() == "0880f09dc70612044b6172691a03686569"


@given(text=texts)
def test_text_is_read_as_text(text: str) -> None:
    assert decode_open_content(encode_text(text)) == OpenContent(body=Text(text=text))


@given(text=texts, nick=texts)
def test_toy_chat_is_read_as_such(text: str, nick: str) -> None:
    said = decode_open_content(encode_toy_chat(text, nick, NOW))
    assert said.body == Text(text=text)
    assert said.nick == nick[:MAX_NICK_CHARACTERS]
    assert said.format is OpenFormat.TOY_CHAT


@given(content=st.binary())
def test_nothing_is_refused_and_nothing_shown_has_control_characters(content: bytes) -> None:
    said = decode_open_content(content)
    if isinstance(said.body, Text):
        assert not set(said.body.text) & {chr(each) for each in (0, 1, 8, 27, 127)}
        assert said.body.text.strip()


@pytest.mark.parametrize(
    "content",
    [b"", b"   ", b"\xff\xfe", b"a\x00b", b"\x08\x01", b"x" * (MAX_TEXT_BYTES + 1), b"\x1b[31m"],
)
def test_what_cannot_be_shown_says_so(content: bytes) -> None:
    assert decode_open_content(content) == BINARY


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Kari", "Kari"),
        ("\u202egpj.exe", "gpj.exe"),
        ("two\nlines", "two lines"),
        ("\u200b\u2060", NAMELESS),
        ("", NAMELESS),
        ("x" * 500, "x" * 64),
    ],
)
def test_a_strangers_name_cannot_turn_or_hide_anything(name: str, shown: str) -> None:
    assert stranger_name(name) == shown
