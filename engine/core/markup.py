"""Finds the markup in a message's text, once when it is stored, never while it is painted.

The text stays what was typed; a span says how a part of it is shown, and spans of kind HIDDEN cover
the marks themselves.  The grammar is a small part of Markdown and documented in ``docs/markup.md``:
blocks first (code, then quotes and lists by the beginning of a line), then code in a line and
links, then bold, italic and strike, which begin and end in one line.  What does not match stays
text, so nothing a person types can vanish.

Each step walks through the text once, so the work grows linearly with any text.  Number of spans
and length of what is searched are bounded; only blocks of code are searched to the end.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from engine.core.emoji import emoji_only
from engine.core.links import find_links
from engine.core.records import SpanRecord

LINK, HIDDEN, LARGE = "link", "hidden", "large"
BOLD, ITALIC, STRIKE, CODE = "bold", "italic", "strike", "code"
CODE_BLOCK, QUOTE, ITEM = "code_block", "quote", "item"

MAX_SCANNED_CHARACTERS = 8 * 1024
"""Links and marks further down in a message stay plain text; blocks of code do not."""
MAX_MARKS = 400
MAX_TOKENS = 2000
"""Runs of marks and line ends; with more of them the rest stays plain text, too."""
MAX_CODE_BLOCKS = 32
MAX_ITEM_LEVEL = 3

# Two expressions: as one they take five times as long for a text that has neither.
_ANY_MARK: Final = re.compile(r"[*_~`]")
_ANY_LINE: Final = re.compile(r"^ {0,6}(?:>|- |\d{1,3}[.)] )", re.MULTILINE)
_FENCE = "```"
_OPENING: Final = re.compile(r"^```(?!`)", re.MULTILINE)
_LANGUAGE: Final = re.compile(r"([A-Za-z0-9+#._-]{0,32})[ \t\r]*\n")
_CLOSING: Final = re.compile(r"(?<!`)```(?=[ \t\r]*(?:\n|\Z))")
_PREFIX: Final = re.compile(
    r"^(?=[> \-*\d])(?P<quote>(?:> ?){0,2}>(?: |(?=\r?$)))?"
    r"(?:(?P<indent> {0,6})(?P<marker>(?:[-*]|\d{1,3}[.)]) )(?=\S))?",
    re.MULTILINE,
)
_TOKEN: Final = re.compile(r"(?P<end>\n+)|(?P<ticks>`+)|(?P<run>\*+|_+|~+)")
_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "*": (ITALIC,),
    "_": (ITALIC,),
    "~": (STRIKE,),
    "**": (BOLD,),
    "__": (BOLD,),
    "~~": (STRIKE,),
    "***": (BOLD, ITALIC),
    "___": (BOLD, ITALIC),
}
_MOST_TICKS = 2
_APART = "\ufffc"
"""Neither mark nor letter nor space, and part of no link."""
MAX_LARGE = 3
"""So many emoji, and nothing else, are shown large."""
_MOST_LARGE_CHARACTERS = 64


class Mark(Struct, frozen=True):
    """One span, by indexes into the text.  ``before`` and ``after``: so much of it is hidden."""

    kind: str
    start: int
    end: int
    target: str = ""
    before: int = 0
    after: int = 0


def find_spans(text: str, apart: Sequence[tuple[int, int]] = ()) -> tuple[SpanRecord, ...]:
    """The markup of ``text``, ascending, outer before inner, counted in UTF-16 units as Qt does.

    ``apart``: start and length of what is no markup inside, as a mention; ascending and disjoint.

    ``target``: what a LINK opens, the language of a CODE_BLOCK, the depth of a QUOTE, the level of
    an ITEM.  A CODE_BLOCK reaches from one fence to the other, a QUOTE over whole lines, an ITEM
    over the marker alone.
    """
    units = _UnitIndex(text)
    kept = [Mark("", units.character(at), units.character(at + length)) for at, length in apart]
    search = MarkupSearch(text, kept)
    search.run()
    return tuple(_spans(units, search.marks))


class MarkupSearch:
    """All marks of ``text``, after ``run``."""

    def __init__(self, text: str, apart: Sequence[Mark] = ()) -> None:
        self._text = text
        self._apart = apart
        self.marks: list[Mark] = []
        self.examined = 0
        """Tokens, lines and blocks that were looked at, counting repeats; without links."""

    def run(self) -> None:
        if _is_large(self._text):
            self.marks.append(Mark(LARGE, 0, len(self._text)))
            return
        blocks = list(self._code_blocks()) if _FENCE in self._text else []
        # Neither a mark nor a link begins or ends inside code.
        searched = _masked(self._text, blocks, "\n")[:MAX_SCANNED_CHARACTERS]
        searched = _masked(searched, self._apart, _APART)[:MAX_SCANNED_CHARACTERS]
        if _ANY_MARK.search(searched) is None and _ANY_LINE.search(searched) is None:
            self.marks = [*blocks, *self._links(searched)]
            return
        lines = list(self._quotes_and_items(searched))
        tokens = list(islice(_TOKEN.finditer(searched), MAX_TOKENS))
        self.examined += len(tokens)
        code = list(self._code(searched, tokens))
        links = list(self._links(_masked(searched, code, " ")))
        taken = sorted([*code, *links], key=lambda mark: mark.start)
        styles = [*lines, *code, *self._emphasis(searched, tokens, taken)]
        styles.sort(key=lambda mark: mark.start)
        self.marks = [*blocks, *links, *styles[:MAX_MARKS]]

    # --- blocks ---------------------------------------------------------------------------------

    def _code_blocks(self) -> Iterator[Mark]:
        text, at = self._text, 0
        for _ in range(MAX_CODE_BLOCKS):
            opening = _OPENING.search(text, at)
            if opening is None:
                return
            self.examined += 1
            language = _LANGUAGE.match(text, opening.end())
            begin = opening.end() if language is None else language.end()
            closing = _CLOSING.search(text, begin)
            if closing is None:
                return  # What closes a later one would have closed this one.
            at = closing.end()
            end = closing.start()
            if end > begin and text[end - 1] == "\n":
                end -= 2 if text[end - 2 : end] == "\r\n" and end - 2 >= begin else 1
            if not text[begin:end].strip():
                at = closing.start()  # Nothing is in it; perhaps it opens one.
                continue
            yield Mark(
                CODE_BLOCK,
                opening.start(),
                at,
                "" if language is None else language[1].lower(),
                before=begin - opening.start(),
                after=at - end,
            )

    def _quotes_and_items(self, text: str) -> Iterator[Mark]:
        quoted: list[Mark] = []
        for prefix in islice(_PREFIX.finditer(text), MAX_MARKS):
            self.examined += 1
            if quote := prefix["quote"]:
                line_end = text.find("\n", prefix.end())
                line_end = len(text) if line_end < 0 else line_end
                depth = str(quote.count(">"))
                line = Mark(QUOTE, prefix.start(), line_end, depth, before=len(quote))
                if quoted and not _goes_on(quoted[-1], line):
                    yield from self._quote(quoted)
                    quoted = []
                quoted.append(line)
            if prefix["marker"]:
                start, end = prefix.span("marker")
                level = min(len(prefix["indent"]) // 2, MAX_ITEM_LEVEL)
                if prefix["indent"]:
                    yield Mark(HIDDEN, prefix.start("indent"), start)
                yield Mark(ITEM, start, end, str(level))
        yield from self._quote(quoted)

    def _quote(self, lines: Sequence[Mark]) -> Iterator[Mark]:
        """One span for all lines, and one for each beginning that is hidden."""
        if any(self._text[line.start + line.before : line.end].strip() for line in lines):
            yield Mark(QUOTE, lines[0].start, lines[-1].end, lines[0].target)
            for line in lines:
                yield Mark(HIDDEN, line.start, line.start + line.before)

    # --- within a line --------------------------------------------------------------------------

    def _code(self, text: str, tokens: Sequence[re.Match[str]]) -> Iterator[Mark]:
        """From one or two backticks to as many, with something in between."""
        closers = _closers(tokens)
        passed = 0
        for opening, closing in zip(tokens, closers, strict=True):
            self.examined += 1
            if closing is None or opening.start() < passed:
                continue
            if text[opening.end() : closing.start()].strip():
                passed = closing.end()
                ticks = len(opening[0])
                yield Mark(CODE, opening.start(), passed, before=ticks, after=ticks)

    def _links(self, text: str) -> Iterator[Mark]:
        for link in find_links(text):
            if link.end == MAX_SCANNED_CHARACTERS < len(self._text):
                return  # It may go on beyond what is searched.
            yield Mark(LINK, link.start, link.end, link.target)

    def _emphasis(
        self, text: str, tokens: Iterable[re.Match[str]], taken: Sequence[Mark]
    ) -> Iterator[Mark]:
        """Bold, italic and strike: a run of marks opens and the same run closes.

        What was opened in between and not closed stays text.  Each run is put on the stack and
        taken off it at most once.
        """
        opened: list[re.Match[str]] = []
        by_run: dict[str, list[int]] = {}
        ahead = iter(taken)
        covering = next(ahead, None)
        for token in tokens:
            while covering is not None and covering.end <= token.start():
                covering = next(ahead, None)
            if token["end"]:
                opened.clear()
                by_run.clear()
                continue
            run = token["run"]
            if run not in _KINDS or (covering is not None and covering.start <= token.start()):
                continue
            places = by_run.setdefault(run, [])
            if places and _can_close(text, token):
                at = places[-1]
                for inner in opened[at:]:
                    self.examined += 1
                    by_run[inner[0]].pop()
                yield from _emphasis(run, opened[at].start(), token.end())
                del opened[at:]
            elif _can_open(text, token):
                places.append(len(opened))
                opened.append(token)


def _emphasis(run: str, start: int, end: int) -> Iterator[Mark]:
    outer, *inner = _KINDS[run]
    yield Mark(outer, start, end, before=len(run), after=len(run))
    for kind in inner:
        yield Mark(kind, start, end)


def _is_large(text: str) -> bool:
    return len(text) <= _MOST_LARGE_CHARACTERS and 1 <= emoji_only(text) <= MAX_LARGE


def _goes_on(above: Mark, line: Mark) -> bool:
    return above.end + 1 == line.start and above.target == line.target


def _closers(tokens: Sequence[re.Match[str]]) -> list[re.Match[str] | None]:
    """For each run of backticks the next one that is as long, in the same line."""
    closers: list[re.Match[str] | None] = []
    following: dict[int, re.Match[str]] = {}
    for token in reversed(tokens):
        ticks = len(token["ticks"] or "")
        if token["end"]:
            following.clear()
        is_code = 1 <= ticks <= _MOST_TICKS
        closers.append(following.get(ticks) if is_code else None)
        if is_code:
            following[ticks] = token
    closers.reverse()
    return closers


def _can_open(text: str, run: re.Match[str]) -> bool:
    after = text[run.end() : run.end() + 1]
    return bool(after) and not after.isspace() and is_edge(text[run.start() - 1 : run.start()])


def _can_close(text: str, run: re.Match[str]) -> bool:
    before = text[run.start() - 1 : run.start()]
    return not before.isspace() and before != "\\" and is_edge(text[run.end() : run.end() + 1])


def is_edge(character: str) -> bool:
    """Whether a style may begin or end beside it: no letter or digit, and no backslash.

    Scripts without spaces between words are the exception, and with them all of category Lo.
    """
    if character.isalnum():
        return unicodedata.category(character) == "Lo"
    return character != "\\"


def _masked(text: str, marks: Sequence[Mark], filling: str) -> str:
    """``text`` with what ``marks`` cover replaced; every character keeps its index."""
    parts, at = [], 0
    for mark in marks:
        parts += [text[at : mark.start], filling * (mark.end - mark.start)]
        at = mark.end
    return "".join([*parts, text[at:]])


def _spans(units: "_UnitIndex", marks: Iterable[Mark]) -> list[SpanRecord]:
    spans: list[SpanRecord] = []
    for mark in marks:
        spans.append(units.span(mark.kind, mark.start, mark.end, mark.target))
        if mark.before:
            spans.append(units.span(HIDDEN, mark.start, mark.start + mark.before))
        if mark.after:
            spans.append(units.span(HIDDEN, mark.end - mark.after, mark.end))
    spans.sort(key=lambda span: (span.start, -span.length))
    return spans


class _UnitIndex:
    """From indexes of characters to those of UTF-16 units."""

    def __init__(self, text: str) -> None:
        self._wide = [] if text.isascii() else [n for n, c in enumerate(text) if c > "\uffff"]
        self._wide_units = [index + before for before, index in enumerate(self._wide)]

    def span(self, kind: str, start: int, end: int, target: str = "") -> SpanRecord:
        first, last = self._unit(start), self._unit(end)
        return SpanRecord(kind=kind, start=first, length=last - first, target=target)

    def character(self, unit: int) -> int:
        """The index of the character that begins at ``unit``, or after it."""
        wide = bisect_left(self._wide_units, unit)
        return unit - wide

    def _unit(self, index: int) -> int:
        return index + bisect_left(self._wide, index)
