"""Texts that are made to take long: what a member says costs every window what it costs here."""

import time

from engine.core.links import LinkSearch
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
