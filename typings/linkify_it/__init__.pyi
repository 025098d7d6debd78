from collections.abc import Mapping

class Match:
    schema: str
    index: int
    last_index: int
    raw: str
    text: str
    url: str

class LinkifyIt:
    def __init__(
        self,
        schemas: Mapping[str, object] | None = ...,
        options: Mapping[str, bool] | None = ...,
    ) -> None: ...
    def pretest(self, text: str) -> bool: ...
    def test(self, text: str) -> bool: ...
    def match(self, text: str) -> list[Match] | None: ...
