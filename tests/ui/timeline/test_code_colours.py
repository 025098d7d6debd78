"""Colours of code: roughly right in any language, and no line is read twice from far."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.timeline.code_colours import coloured


def parts(line: str, language: str = "") -> list[tuple[str, str]]:
    return [(part.role.name, line[part.start : part.end]) for part in coloured(line, language)]


@pytest.mark.parametrize(
    ("line", "language", "expected"),
    [
        (
            "13:54:30 level=2.41 m",
            "",
            [("QUIET", "13:54:30"), ("NAME", "level"), ("NUMBER", "2.41")],
        ),
        ("if a == 1", "", [("NUMBER", "1")]),
        ("if a == 1", "python", [("NAME", "if"), ("NUMBER", "1")]),
        ('x("a#b") # c', "py", [("TEXT", '"a#b"'), ("QUIET", "# c")]),
        ("a; // don't", "c", [("QUIET", "// don't")]),
        ("SELECT 1 -- all", "sql", [("NAME", "SELECT"), ("NUMBER", "1"), ("QUIET", "-- all")]),
        ("http://a.example", "js", []),
        ("say 'hi' and don't", "", [("TEXT", "'hi'")]),
        ('"open', "py", [("TEXT", '"open')]),
        ("", "py", []),
    ],
)
def test_parts_of_a_line(line: str, language: str, expected: list[tuple[str, str]]) -> None:
    assert parts(line, language) == expected


@given(st.text(max_size=60), st.sampled_from(["", "python", "c", "sql", "nothing known"]))
def test_parts_ascend_and_lie_inside_the_line(line: str, language: str) -> None:
    at = 0
    for part in coloured(line, language):
        assert at <= part.start < part.end <= len(line)
        at = part.end
