"""The parts of a text that are shown differently: read models of ``engine.core.markup``'s spans."""

from enum import StrEnum

from msgspec import Struct


class SpanKind(StrEnum):
    """What a part of a text is (``engine.core.markup``); spans may lie within each other."""

    LINK = "link"
    """``target``: what a click opens; of a MENTION a participant id."""
    MENTION = "mention"
    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    CODE = "code"
    CODE_BLOCK = "code_block"
    """From fence to fence.  ``target``: the language, if it was named."""
    QUOTE = "quote"
    """Whole lines.  ``target``: the depth, "1" to "3"."""
    ITEM = "item"
    """The marker that begins a list's entry.  ``target``: its level, "0" to "3"."""
    LARGE = "large"
    """The whole text is one to three emoji."""
    HIDDEN = "hidden"
    """Marks that are not shown."""


class TextSpan(Struct, frozen=True, kw_only=True):
    """``start`` and ``length`` count UTF-16 code units, as Qt does."""

    kind: SpanKind
    start: int
    length: int
    target: str
