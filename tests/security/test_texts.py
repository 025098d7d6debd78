"""Texts that are made to take long: what a member says costs every window what it costs here."""

import time

from engine.core.links import LinkSearch
from engine.core.markup import MAX_MARKS, MAX_TOKENS, MarkupSearch, find_spans
from tests.security.stage import Stage, figure

TEXT = "a?https://" * 800
LOOKS = 3
"""How often the search looks at a character."""


async def test_a_text_full_of_beginnings_of_links_is_searched_once(stage: Stage) -> None:
    founder, other = await stage.founded("Ines", "Jan")
    await founder.say(TEXT)
    await stage.heals([TEXT], [other])
    search = LinkSearch(TEXT)
    begun_s = time.perf_counter()
    found = list(search)
    took_ms = (time.perf_counter() - begun_s) * 1_000
    assert search.examined <= LOOKS * len(TEXT)
    assert len(found) == 1
    figure(
        f"{len(TEXT)} characters, 800 beginnings of links: {search.examined} looked at,"
        f" {took_ms:.1f} ms (was 95 ms; {len(TEXT) * 800 // 2} characters)"
    )


async def test_a_text_full_of_marks_is_searched_as_far_as_marks_are_kept(stage: Stage) -> None:
    founder, other = await stage.founded("Ines", "Jan")
    pieces = ("*a* ", "_*~", "`a` ", "> a\n", "- a\n", "```\n", "[", "**a*")
    worst_ms = 0.0
    texts = [(piece * 60_000)[:60_000] for piece in pieces]
    for text in texts:
        search = MarkupSearch(text)
        search.run()
        assert search.examined <= 4 * MAX_TOKENS
        began_s = time.perf_counter()
        spans = find_spans(text)
        worst_ms = max(worst_ms, (time.perf_counter() - began_s) * 1_000)
        assert len(spans) <= 3 * MAX_MARKS
    await founder.say(texts[0])
    await stage.heals([texts[0]], [other])
    figure(f"60 000 characters of marks, {len(pieces)} kinds: at most {worst_ms:.1f} ms each")
