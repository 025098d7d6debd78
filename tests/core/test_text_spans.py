"""Links in text: the right ones, at the right place for Qt, and never a misleading one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.text_spans import (
    MAX_SCANNED_CHARACTERS,
    MAX_SPANS,
    MAX_TARGET_CHARACTERS,
    find_spans,
)


def links(text: str) -> list[tuple[str, str]]:
    """(what is underlined, what it opens), cut out of the text as Qt would."""
    units = text.encode("utf-16-le", "surrogatepass")
    return [
        (
            units[2 * span.start : 2 * (span.start + span.length)].decode("utf-16-le"),
            span.target,
        )
        for span in find_spans(text)
    ]


@pytest.mark.parametrize(
    ("text", "shown", "target"),
    [
        ("see https://example.org/a.", "https://example.org/a", "https://example.org/a"),
        ("(https://example.org/a(b)c)", "https://example.org/a(b)c", "https://example.org/a(b)c"),
        ("HTTPS://Example.ORG:8443/X?y#z", "HTTPS://Example.ORG:8443/X?y#z", None),
        ("write to bob@example.org!", "bob@example.org", "mailto:bob@example.org"),
        ("mailto:bob@example.org", "mailto:bob@example.org", "mailto:bob@example.org"),
        ("😀😀 https://example.org 😀", "https://example.org", "https://example.org"),
        ("é\u0301 https://example.org/é", "https://example.org/é", "https://example.org/é"),
        ("it is causerie:contact/aB3-_x.", "causerie:contact/aB3-_x", "causerie:contact/aB3-_x"),
        ("(causerie:join/aB3)", "causerie:join/aB3", "causerie:join/aB3"),
        ("Causerie:join/aB3", "Causerie:join/aB3", "causerie:join/aB3"),
        (
            "https://example.org/causerie:join/aB3",
            "https://example.org/causerie:join/aB3",
            "https://example.org/causerie:join/aB3",
        ),
    ],
)
def test_links_are_found_where_they_stand(text: str, shown: str, target: str | None) -> None:
    assert links(text) == [(shown, target or "https://example.org:8443/X?y#z")]


def test_positions_count_utf_16_units() -> None:
    [first, second] = find_spans("😀 https://a.example 😀 https://b.example")
    assert (first.start, first.length, first.kind) == (3, 17, "link")
    assert (second.start, second.length) == (24, 17)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Bonjour",
        "http://example.org",
        "http://example.org/https://example.com",
        "ftp://example.org",
        "//example.org",
        "www.example.org example.com/x",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://localhost/",
        "https://",
        "https://[::1]/",
        "https://example.org:99999/",
        "@bob",
        "a@b",
        "causerie:",
        "causerie:contact/",
        "causerie:open/x",
        "causerie://contact/x",
        "xcauserie:join/x",
        "causerie:contact/" + "x" * MAX_TARGET_CHARACTERS,
    ],
)
def test_everything_else_stays_text(text: str) -> None:
    assert find_spans(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "https://bank.example@evil.example/",
        "https://bank.example:443@evil.example/",
        "https://evil.example\\@bank.example/",
        "https://bank.example/\u202egnp.exe",
        "https://bank\u200b.example/",
        "https://bank.example\u2044login.evil.example/",
        "https://stra\u00dfe.example/",
    ],
)
def test_links_that_are_not_what_they_look_like_open_nothing(text: str) -> None:
    assert find_spans(text) == ()


def test_a_lookalike_host_opens_as_what_it_is() -> None:
    cyrillic = "https://\u0430pple.example/x"
    assert links(cyrillic) == [(cyrillic, "https://xn--pple-43d.example/x")]
    assert links("https://xn--pple-43d.example") == [
        ("https://xn--pple-43d.example", "https://xn--pple-43d.example")
    ]


def test_number_and_length_are_bounded() -> None:
    assert len(find_spans("https://a.example " * 400)) == MAX_SPANS
    far_down = "x " * MAX_SCANNED_CHARACTERS + "https://a.example"
    assert find_spans(far_down) == ()
    endless = "https://a.example/" + "x" * 3000
    assert find_spans(endless) == ()


def test_a_link_across_the_border_of_what_is_scanned_is_not_cut() -> None:
    text = "x" * (MAX_SCANNED_CHARACTERS - 12) + " https://a.example/path"
    assert find_spans(text) == ()


@pytest.mark.parametrize(
    "piece",
    [
        "https://",
        "a@",
        "mailto:",
        "a.",
        "https://a.example/(",
        "@",
        "a:b@",
        "<https://a",
        "\u0430.",
    ],
)
def test_no_repetition_takes_long(piece: str) -> None:
    """64 KiB of what makes naive patterns explode; the suite's time-out is the judge."""
    assert len(find_spans(piece * (65536 // len(piece)))) <= MAX_SPANS


pieces = st.lists(
    st.sampled_from(
        ["https://", "http://", "mailto:", "a.example", "b@c.example", "/p", "@", ":", " ", "😀"]
    )
    | st.text(max_size=4),
    max_size=12,
)


@given(pieces.map("".join))
def test_spans_ascend_lie_inside_the_text_and_open_two_schemes_only(text: str) -> None:
    end = 0
    for span in find_spans(text):
        assert span.start >= end
        assert span.length > 0
        end = span.start + span.length
        assert span.target.startswith(("https://", "mailto:"))
        assert span.target.isprintable()
    assert end <= len(text.encode("utf-16-le", "surrogatepass")) // 2
