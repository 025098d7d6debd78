"""Names of files: whatever a stranger calls one, it can be shown and saved under."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.core.file_names import (
    ANY_FILE,
    MAX_FILE_NAME_BYTES,
    MAX_FILE_NAME_CHARACTERS,
    clean_file_name,
    clean_media_type,
)


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("notes.txt", "notes.txt"),
        ("Été à la mer.JPG", "Été à la mer.JPG"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Windows\\system32\\cmd.exe", "cmd.exe"),
        ("C:cmd.exe", "C_cmd.exe"),
        ("photo.jpg:stream", "photo.jpg_stream"),
        ("folder/", "folder"),
        ("folder/..", "folder"),
        ("..", ""),
        (" . ", ""),
        ("", ""),
        ("/", ""),
        ("\u202e\u200b", ""),
        ("\u200d", ""),
        ("invoice\u202egpj.exe", "invoicegpj.exe"),
        ("a\r\nb\x00c\x1b[31m.txt", "a bc[31m.txt"),
        (".bashrc", "bashrc"),
        ("evil.exe . .", "evil.exe"),
        ("what?*.txt", "what__.txt"),
        ("con", "_con"),
        ("NUL.txt", "_NUL.txt"),
        ("Com1 .tar.gz", "_Com1 .tar.gz"),
        ("lpt\u00b3", "_lpt\u00b3"),
        ("console.txt", "console.txt"),
        ("x" * 200 + ".jpeg", "x" * 123 + ".jpeg"),
        ("😀" * 100 + ".png", "😀" * 59 + ".png"),
        ("x." + "y" * 200, "x." + "y" * 126),
    ],
)
def test_names(name: str, cleaned: str) -> None:
    assert clean_file_name(name) == cleaned


@given(st.text() | st.text(".con /\\:\u202e\u200d\x00é1", max_size=200))
@example(" " + "x" * 127 + ". .txt")
@example("x" * 127 + "." + "y" * 9)
def test_a_name_is_usable_and_stays_as_it_is(name: str) -> None:
    cleaned = clean_file_name(name)
    assert len(cleaned) <= MAX_FILE_NAME_CHARACTERS
    assert len(cleaned.encode("utf-8", "surrogatepass")) <= MAX_FILE_NAME_BYTES
    assert not set(cleaned) & set('<>:"/\\|?*\x00\n\u202e')
    assert cleaned == cleaned.strip(" .")
    assert clean_file_name(cleaned) == cleaned


@pytest.mark.parametrize(
    ("media_type", "cleaned"),
    [
        ("image/png", "image/png"),
        ("Image/SVG+xml", "image/svg+xml"),
        ("", ANY_FILE),
        ("image", ANY_FILE),
        ("image/png; charset=x", ANY_FILE),
        ("image/png\n", ANY_FILE),
        ("image/pñg", ANY_FILE),
        ("a/b/c", ANY_FILE),
        ("a/" + "b" * 63, ANY_FILE),
    ],
)
def test_media_types(media_type: str, cleaned: str) -> None:
    assert clean_media_type(media_type) == cleaned
