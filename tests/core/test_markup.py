"""Markup in text: what is a mark, what stays what was typed, and how much work it takes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.core.markup import (
    BOLD,
    CODE,
    CODE_BLOCK,
    HIDDEN,
    ITALIC,
    ITEM,
    LARGE,
    LINK,
    MAX_CODE_BLOCKS,
    MAX_MARKS,
    MAX_SCANNED_CHARACTERS,
    QUOTE,
    STRIKE,
    MarkupSearch,
    find_spans,
)
from engine.core.shown_text import without_marks
from engine.text_spans import SpanKind

LOOKS = 4
"""How often a token, line or block is looked at, at most."""


def cut(units: bytes, start: int, length: int) -> str:
    return units[2 * start : 2 * (start + length)].decode("utf-16-le", "surrogatepass")


def shown(text: str) -> str:
    return without_marks(text, [span for span in find_spans(text) if span.kind == HIDDEN])


def styled(text: str) -> list[tuple[str, str, str]]:
    """(kind, what it covers without its marks, target) of everything but the marks themselves."""
    return [
        (span.kind, shown_part(text, span.start, span.start + span.length), span.target)
        for span in find_spans(text)
        if span.kind != HIDDEN
    ]


def shown_part(text: str, start: int, end: int) -> str:
    units = text.encode("utf-16-le", "surrogatepass")
    hidden = [s for s in find_spans(text) if s.kind == HIDDEN]
    kept = [
        cut(units, n, 1).encode("utf-16-le", "surrogatepass")
        for n in range(start, end)
        if not any(s.start <= n < s.start + s.length for s in hidden)
    ]
    return b"".join(kept).decode("utf-16-le", "surrogatepass")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**bold**", [(BOLD, "bold")]),
        ("__bold__", [(BOLD, "bold")]),
        ("*it* and _it_", [(ITALIC, "it"), (ITALIC, "it")]),
        ("~~gone~~ ~gone~", [(STRIKE, "gone"), (STRIKE, "gone")]),
        ("***both***", [(BOLD, "both"), (ITALIC, "both")]),
        ("**a *b* c**", [(BOLD, "a b c"), (ITALIC, "b")]),
        ("*a **b** c*", [(ITALIC, "a b c"), (BOLD, "b")]),
        ('(*a*), "*b*"!', [(ITALIC, "a"), (ITALIC, "b")]),
        ("*a\nb* *c*", [(ITALIC, "c")]),
        ("*a _b* c_", [(ITALIC, "a _b")]),
        ("これは**重要**です", [(BOLD, "重要")]),
        ("`a *b* c`", [(CODE, "a *b* c")]),
        ("``a`b``", [(CODE, "a`b")]),
        ("*`a*b`*", [(ITALIC, "a*b"), (CODE, "a*b")]),
        ("`https://a.example`", [(CODE, "https://a.example")]),
        ("```py\nx = *1*\n```", [(CODE_BLOCK, "x = *1*")]),
        ("```\n a\n\n b\n```\nc", [(CODE_BLOCK, " a\n\n b")]),
        ("```one line```", [(CODE_BLOCK, "one line")]),
        ("```a b\nc```", [(CODE_BLOCK, "a b\nc")]),
        ("```\r\na\r\n```\r\n", [(CODE_BLOCK, "a")]),
        ("```\na\n```\n```\nb\n```", [(CODE_BLOCK, "a"), (CODE_BLOCK, "b")]),
        ("> a\n> *b*\nc", [(QUOTE, "a\nb"), (ITALIC, "b")]),
        ("> a\n>> b", [(QUOTE, "a"), (QUOTE, "b")]),
        ("> a\n>\n> b", [(QUOTE, "a\n\nb")]),
        ("- a\n* b\n  - c", [(ITEM, "- "), (ITEM, "* "), (ITEM, "- ")]),
        ("1. a\n12) b", [(ITEM, "1. "), (ITEM, "12) ")]),
        ("> - a", [(QUOTE, "- a"), (ITEM, "- ")]),
        ("**https://a.example/b_c_**", [(BOLD, "https://a.example/b_c_"), (LINK, "https://a.example/b_c")]),
        ("see *www.a.example*", [(ITALIC, "www.a.example"), (LINK, "www.a.example")]),
        ("😀 **a**", [(BOLD, "a")]),
    ],
)  # fmt: skip
def test_marks_are_found_where_they_stand(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(kind, words) for kind, words, _ in styled(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "2*3*4 and 2 * 3 * 4",
        "snake_case_name",
        "¯\\_(ツ)_/¯",
        "\\*a\\*",
        "** a **",
        "**a",
        "a**",
        "****",
        "*****a*****",
        "**a*",
        "*a\nb*",
        "~5 to ~6",
        "` `",
        "`a\nb`",
        "```` a ````",
        "```\na",
        "```\n```",
        "x ```a```",
        ">a >:( >.<",
        "> ",
        ">\n> ",
        "-a",
        "- ",
        "-5 °C",
        "1.5 l",
        "2026. a",
        "# a",
        "[a](https://)",
        "![a](b)",
        "<b>a</b>",
        "&amp;",
        "😀😀😀😀",
        "😀 a",
    ],
)
def test_everything_else_stays_what_was_typed(text: str) -> None:
    assert find_spans(text) == ()


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("```Python\nx\n```", "python"),
        ("```c++ \nx\n```", "c++"),
        ("```\nx\n```", ""),
        ("```two words\nx\n```", ""),
        (">> x", "2"),
        ("> > > > x", "3"),
        ("      - x", "3"),
        ("2) x", "0"),
    ],
)
def test_the_target_says_what_is_special(text: str, target: str) -> None:
    assert target in [span.target for span in find_spans(text) if span.kind != HIDDEN]


def test_positions_count_utf_16_units() -> None:
    bold, before, after = find_spans("😀 **é😀**")
    assert (bold.start, bold.length) == (3, 7)
    assert (before.start, before.length) == (3, 2)
    assert (after.start, after.length) == (8, 2)


@pytest.mark.parametrize("text", ["👍", "👍🏽", " ❤️ ", "👨‍👩‍👧 🇩🇪", "😀😀😀"])
def test_one_to_three_emoji_are_large(text: str) -> None:
    [span] = find_spans(text)
    assert (span.kind, span.start, span.length) == (LARGE, 0, len(text.encode("utf-16-le")) // 2)


def test_everything_is_bounded() -> None:
    many = find_spans("*a* " * 2_000)
    assert sum(span.kind == ITALIC for span in many) <= MAX_MARKS
    blocks = find_spans("```a```\n" * 100)
    assert sum(span.kind == CODE_BLOCK for span in blocks) == MAX_CODE_BLOCKS
    assert len(find_spans("> *a*\n" * 10_000)) <= 3 * MAX_MARKS
    far_down = "x " * MAX_SCANNED_CHARACTERS
    assert find_spans(far_down + "*a*\n> b\n- c") == ()
    assert len(find_spans(far_down + "\n```\ncode\n```")) == 3


def test_a_long_block_of_code_is_code_to_its_end() -> None:
    lines = "\n".join(f"line {n} *x*" for n in range(5_000))
    [block, *_] = find_spans(f"```\n{lines}\n```")
    assert (block.kind, block.length) == (CODE_BLOCK, len(lines) + 8)


@pytest.mark.parametrize(
    ("text", "apart", "expected"),
    [
        ("@a_b_ *c*", [(0, 5)], [(ITALIC, "c")]),
        ("**@a*b** c*", [(2, 4)], [(BOLD, "@a*b")]),
        ("😀 *@b* c", [(4, 2)], [(ITALIC, "@b")]),
        ("_c_@a_b", [(3, 4)], [(ITALIC, "c")]),
        ("@www.a.example", [(0, 14)], []),
    ],
)
def test_what_stands_apart_is_no_markup(
    text: str, apart: list[tuple[int, int]], expected: list[tuple[str, str]]
) -> None:
    spans = find_spans(text, apart)
    styles = [
        (span.kind, without_marks(cut(text.encode("utf-16-le"), span.start, span.length), ()))
        for span in spans
        if span.kind != HIDDEN
    ]
    assert [(kind, words.strip("*_")) for kind, words in styles] == expected


HARD = [
    "*",
    "_",
    "~",
    "`",
    "``",
    "```",
    "```\n",
    "```a\n",
    "[",
    "\\",
    "> ",
    ">",
    ">> ",
    "- ",
    "1. ",
]
HARD += ["*a", "a*", "**a*", "*a* ", "_*~", "`a` ", "``a`", "\n", "\r\n", " ", "a", "😀", "("]
"""What makes naive parsers explode, again and again, alone or mixed."""


def work(text: str) -> int:
    search = MarkupSearch(text)
    search.run()
    return search.examined


@pytest.mark.parametrize("length", [1_024, 8_192, 65_536])
@pytest.mark.parametrize("piece", HARD)
def test_the_work_grows_as_the_text_does(piece: str, length: int) -> None:
    assert work(piece * (length // len(piece))) <= LOOKS * length


@given(st.lists(st.sampled_from(HARD), max_size=6).map("".join), st.integers(1, 200))
def test_the_work_grows_as_the_text_does_whatever_is_repeated(piece: str, times: int) -> None:
    text = piece * times
    assert work(text) <= LOOKS * len(text)


pieces = st.lists(
    st.sampled_from([*HARD, "https://a.example/_b_", "www.a.example", "word", "重要"])
    | st.text(max_size=3),
    max_size=14,
).map("".join)


@given(pieces)
@example("**a *b* c**")
@example("***a***> b")
def test_spans_lie_inside_the_text_nested_or_apart(text: str) -> None:
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    ends: list[int] = []
    at = 0
    for span in find_spans(text):
        assert SpanKind(span.kind)
        assert span.length > 0
        assert at <= span.start
        at = span.start
        while ends and ends[-1] <= span.start:
            ends.pop()
        end = span.start + span.length
        assert end <= (ends[-1] if ends else units)
        ends.append(end)


@given(pieces)
def test_nothing_that_was_typed_can_vanish(text: str) -> None:
    """What is hidden are marks, and something is left between them."""
    units = text.encode("utf-16-le", "surrogatepass")
    for span in find_spans(text):
        if span.kind == HIDDEN:
            assert not set(cut(units, span.start, span.length)) - set("*_~`> \t\r\n") - LANGUAGE
    assert bool(shown(text).strip()) == bool(text.strip())


LANGUAGE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#.-")


@given(pieces)
def test_a_line_of_styles_is_judged_alone(text: str) -> None:
    """The plain way to say what is right: a style knows nothing of other lines."""
    line = text.replace("\n", " ").replace("`", "")
    styles = [kind for kind, _, _ in styled(f"{line}\nx") if kind in {BOLD, ITALIC, STRIKE}]
    below = [kind for kind, _, _ in styled(f"*x\n{line}") if kind in {BOLD, ITALIC, STRIKE}]
    assert styles == below
