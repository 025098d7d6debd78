"""Named counters: every limit that is reached and everything that is dropped leaves a trace.

A name is ``area.reason``, for example ``envelope.bad_signature``; it never contains anything that a
peer chose.  Counters are plain numbers in memory; the profile's owner saves a snapshot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """Named numbers that only grow."""

    _values: dict[str, int] = field(default_factory=dict)
    _whole: "Counters | None" = None

    def add(self, name: str, amount: int = 1) -> None:
        self._values[name] = self._values.get(name, 0) + amount
        if self._whole is not None:
            self._whole.add(name, amount)

    def part(self) -> "Counters":
        """For one conversation of many: what it counts is counted here, too."""
        return Counters(_whole=self)

    def snapshot(self) -> Mapping[str, int]:
        """A copy, sorted by name."""
        return dict(sorted(self._values.items()))

    def __getitem__(self, name: str) -> int:
        return self._values.get(name, 0)
