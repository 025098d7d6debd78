"""Links in text: the right ones, at the right place for Qt, and never a misleading one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.links import MAX_LINKS, MAX_TARGET_CHARACTERS, LinkSearch, find_links
from engine.core.markup import LINK, MAX_SCANNED_CHARACTERS, find_spans

LOOKS = 3
"""How often a character is looked at, at most, by all parts of the search together."""


def links(text: str) -> list[tuple[str, str]]:
    """(what is underlined, what it opens)."""
    return [(text[link.start : link.end], link.target) for link in find_links(text)]


@pytest.mark.parametrize(
    ("text", "shown", "target"),
    [
        ("see https://example.org/a.", "https://example.org/a", "https://example.org/a"),
        ("(https://example.org/a(b)c)", "https://example.org/a(b)c", "https://example.org/a(b)c"),
        ("HTTPS://Example.ORG:8443/X?y#z", "HTTPS://Example.ORG:8443/X?y#z", None),
        ("write to bob@example.org!", "bob@example.org", "mailto:bob@example.org"),
        ("mailto:bob@example.org", "mailto:bob@example.org", "mailto:bob@example.org"),
        (
            "ask bob@example.engineering",
            "bob@example.engineering",
            "mailto:bob@example.engineering",
        ),
        ("« https://a.example/b », dit-il", "https://a.example/b", "https://a.example/b"),
        ("«https://a.example/b»", "https://a.example/b", "https://a.example/b"),
        ("http://Example.org/a", "http://Example.org/a", "http://example.org/a"),
        ("see www.Example.org.", "www.Example.org", "https://www.example.org"),
        ("(www.example.org/a(b)c)", "www.example.org/a(b)c", "https://www.example.org/a(b)c"),
        ("http://www.example.org", "http://www.example.org", "http://www.example.org"),
        ("**https://a.example/b**", "https://a.example/b", "https://a.example/b"),
        ("__https://a.example__", "https://a.example", "https://a.example"),
        ("~~https://a.example/b_c~~", "https://a.example/b_c", "https://a.example/b_c"),
        ("https://a.example…", "https://a.example", "https://a.example"),
        ("[b](https://a.example/b).", "https://a.example/b", "https://a.example/b"),
        ("https://a.example: yes", "https://a.example", "https://a.example"),
        ("so?https://a.example/b", "https://a.example/b", "https://a.example/b"),
        ("😀https://a.example", "https://a.example", "https://a.example"),
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
    assert (first.start, first.length, first.kind) == (3, 17, LINK)
    assert (second.start, second.length) == (24, 17)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Bonjour",
        "ftp://example.org/https://example.com",
        "ftp://example.org/?to=bob@example.com",
        "https://a_b.example",
        "https://a__b.example",
        "https://example.org:123456/",
        "bob@1.2.3.4",
        "ftp://example.org",
        "//example.org",
        "example.com/x",
        "www.",
        "www.example",
        "www.example.",
        "www..example.org",
        "xwww.example.org",
        "www.a@b.example.org",
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
    assert links(text) == []


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
    assert links(text) == []


def test_a_lookalike_host_opens_as_what_it_is() -> None:
    cyrillic = "https://\u0430pple.example/x"
    assert links(cyrillic) == [(cyrillic, "https://xn--pple-43d.example/x")]
    assert links("https://xn--pple-43d.example") == [
        ("https://xn--pple-43d.example", "https://xn--pple-43d.example")
    ]


def test_number_and_length_are_bounded() -> None:
    assert len(find_spans("https://a.example " * 400)) == MAX_LINKS
    far_down = "x " * MAX_SCANNED_CHARACTERS + "https://a.example"
    assert find_spans(far_down) == ()
    endless = "https://a.example/" + "x" * 3000
    assert links(endless) == []


def test_a_link_across_the_border_of_what_is_scanned_is_not_cut() -> None:
    text = "x" * (MAX_SCANNED_CHARACTERS - 12) + " https://a.example/path"
    assert find_spans(text) == ()


HARD = [
    "https://",
    "a?https://",
    "http://a?",
    "https://a.b/(",
    "https://a.b/)",
    'https://a.b/"',
    "https://a.b/'",
    "https://a.b/a,",
    "https://a.b,",
    "https://a.example/(",
    "<https://a",
    "a@",
    "a@a.",
    "@a.b",
    "@",
    "mailto:",
    "mailto:a.b",
    "a:b@",
    "a.",
    "\u0430.",
    "causerie:join/",
    "causerie:",
    "www.",
    "www.a.b/(",
    "causerie:www.",
    "www.a:1",
    "https://a_",
    "a@a_",
    "/(",
    "\u00bb",
    " ",
]
"""What makes naive searches explode, again and again, alone or mixed."""


@pytest.mark.parametrize("length", [1_024, 8_192, 65_536])
@pytest.mark.parametrize("piece", HARD)
def test_the_work_grows_as_the_text_does(piece: str, length: int) -> None:
    search = LinkSearch(piece * (length // len(piece)))
    assert sum(1 for _ in search) <= length
    assert search.examined <= LOOKS * length


@given(st.lists(st.sampled_from(HARD), max_size=6).map("".join), st.integers(1, 200))
def test_the_work_grows_as_the_text_does_whatever_is_repeated(piece: str, times: int) -> None:
    text = piece * times
    search = LinkSearch(text)
    list(search)
    assert search.examined <= LOOKS * len(text)


pieces = st.lists(
    st.sampled_from(
        [
            "https://",
            "http://",
            "www.",
            "mailto:",
            "_",
            "*",
            "a.example",
            "b@c.example",
            "/p",
            "@",
            ":",
            " ",
            "😀",
        ]
    )
    | st.text(max_size=4),
    max_size=12,
)


@given(pieces.map("".join))
def test_links_ascend_lie_inside_the_text_and_open_three_schemes_only(text: str) -> None:
    end = 0
    for link in find_links(text):
        assert end <= link.start < link.end
        end = link.end
        assert link.target.startswith(("https://", "http://", "mailto:"))
        assert link.target.isprintable()
    assert end <= len(text)


@given(st.lists(pieces.map("".join).map(lambda text: "".join(text.split())), max_size=5))
def test_words_are_searched_as_if_each_stood_alone(words: list[str]) -> None:
    """The plain way to say what is right: nothing before or after a space matters."""
    alone = [link for word in words for link in links(word)]
    assert links(" ".join(words)) == alone


@given(pieces.map("".join))
def test_a_link_is_one_wherever_it_stands(text: str) -> None:
    for shown, target in links(text):
        assert links(shown) == [(shown, target)]
