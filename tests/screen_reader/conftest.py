"""A desk of its own for each test, in a directory that no other user may read."""

from collections.abc import AsyncIterator

import pytest

from tests.screen_reader.desk import Desk, desk


@pytest.fixture
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    place = tmp_path_factory.mktemp("d")
    place.chmod(0o700)
    async with desk(place) as made:
        yield made
