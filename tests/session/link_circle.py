"""A small group that anyone with the link is in, of whole sessions, until somebody is removed."""

from collections.abc import Sequence
from typing import Final

from engine.core.content import Leave
from engine.governance_views import DeedKind
from engine.session.group.deeds import DEED, deed_in
from tests.session.governed_circle import Circle

NAMES: Final = ("Olga", "Anna", "Ben", "Cem")
LATER: Final = ("Dora", "Eve")
"""Not in it from the beginning."""


class LinkCircle(Circle):
    def __init__(self, seed: int = 5, names: Sequence[str] = (*NAMES, *LATER)) -> None:
        super().__init__(seed, names)

    def begin(self) -> None:
        self.send("Olga", self["Olga"].create_group("Walks", now_ms=self.now))
        self.link = self["Olga"].invite_link()
        for name in NAMES[1:]:
            self.join(name)
        self.live(90)

    def join(self, name: str) -> None:
        self.inside.add(name)
        self.send(name, self[name].join_group(self.link, now_ms=self.now))

    def leave(self, name: str) -> None:
        self.send(name, self[name].say(Leave(), now_ms=self.now))

    def deeds(self, name: str) -> list[DeedKind]:
        """The rows of what was done."""
        page = self[name].store.latest_page(self[name].session.record.conversation_id, limit=50)
        records = (stored.record for stored in page.messages)
        return [deed_in(one.text).kind for one in records if one.kind == DEED]

    def is_governed(self, name: str) -> bool:
        return self[name].session.governed is not None
