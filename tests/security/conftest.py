"""The stage for attacks, cleared at the end of each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.security.stage import Stage
from tests.security.stage import stage as made_stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with made_stage(tmp_path) as made:
        yield made
