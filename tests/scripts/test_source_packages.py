"""A package without a wheel is made into one, once, and half-made ones are never used."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import source_packages

LOCK = """\
# a comment
first==1.0 ; python_full_version < '3.12' \\
    --hash=sha256:00
pyspark==4.3.0 \\
    --hash=sha256:11
pyspark-client==1 \\
    --hash=sha256:22
"""


class Pip:
    """Notes what it is asked for, and makes a file of a wheel's name."""

    def __init__(self, *, is_killed: bool = False) -> None:
        self.asked: list[list[str]] = []
        self._is_killed = is_killed

    def __call__(self, arguments: Sequence[str | Path]) -> None:
        asked = [str(argument) for argument in arguments]
        self.asked.append(asked)
        (Path(asked[asked.index("-w") + 1]) / "pyspark-4.3.0-py3-none-any.whl").touch()
        if self._is_killed:
            raise KeyboardInterrupt


def test_a_lock_is_split_by_whole_names() -> None:
    rest, found = source_packages.split(LOCK)
    assert found == ["pyspark==4.3.0 \\\n    --hash=sha256:11\n"]
    assert rest == LOCK.replace("# a comment\n", "").replace(found[0], "")


def test_the_second_environment_takes_the_wheel_that_is_there(tmp_path: Path) -> None:
    (entry,) = source_packages.split(LOCK)[1]
    pip = Pip()
    first = source_packages.wheel_of(tmp_path, entry, pip)
    assert first.exists()
    assert "--require-hashes" in pip.asked[0]
    assert source_packages.wheel_of(tmp_path, entry, pip) == first
    assert len(pip.asked) == 1


def test_another_version_or_hash_is_another_wheel(tmp_path: Path) -> None:
    (entry,) = source_packages.split(LOCK)[1]
    pip = Pip()
    first = source_packages.wheel_of(tmp_path, entry, pip)
    assert source_packages.wheel_of(tmp_path, entry.replace("11", "12"), pip) != first
    assert len(pip.asked) == 2


def test_a_build_that_was_killed_is_begun_anew(tmp_path: Path) -> None:
    (entry,) = source_packages.split(LOCK)[1]
    with pytest.raises(KeyboardInterrupt):
        source_packages.wheel_of(tmp_path, entry, Pip(is_killed=True))
    pip = Pip()
    assert source_packages.wheel_of(tmp_path, entry, pip).exists()
    assert len(pip.asked) == 1
