"""What a search finds in a text: folded words by their beginnings, and runs of characters.

Texts are folded (no accents, no difference between capital and small letters or between forms of
one letter) and cut into words of letters, digits and marks; whatever stands between is ignored, so
nothing that is typed is syntax.  Chinese, Japanese, Thai and others put no spaces between words:
of these a run of characters is found anywhere.  The index asks by ``terms``, ``Wanted.words`` and
``Wanted.pairs``, which miss nothing; ``Wanted.finds`` decides, and ``marked`` says where.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Struct

MAX_WORD_CHARACTERS: Final = 40
"""Of longer words only the beginning is compared."""
MAX_WORDS: Final = 32
"""Of what is searched for; further words are left out."""
MAX_QUERY_CHARACTERS: Final = 2_000
MAX_SHOWN_CHARACTERS: Final = 160
"""Of a text in a list of what was found."""
_BEFORE_MARK: Final = 40

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao; Burmese; Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3040-\u3096\u309d-\u30ff\u3100-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003fffd"
)
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+")
_PART: Final = re.compile(rf"[{_UNSPACED}]+|[^{_UNSPACED} ]+")
_FIRST_UNSPACED: Final = "\u0e00"
_RUN: Final = re.compile(rf"[{_UNSPACED}]")
PLAIN: Final = (
    "\t\n\r -~\u2014\u2018-\u201d\u2026\u3000-\u3002\u3008-\u3011\u3041-\u3096\u30a1-\u30fa\u30fc"
    "\u4e00-\u9fff\uff01-\uff5e\ufe0f\u2600-\u27bf\U0001f300-\U0001faff"
)
"""Characters that folding leaves as they are or makes ASCII: most of Chinese and Japanese.

So runs of a text of these are found by comparing it as it is.
"""
_PLAIN_TEXT: Final = re.compile(f"[{PLAIN}]*")
_ASCII_FOR: Final = {0x2026: "...", 0x3000: " "} | {
    number: chr(number - 0xFEE0) for number in range(0xFF01, 0xFF5F)
}
_CHUNK: Final = re.compile(r"\S+")
_ACCENTS: Final = (range(10, 37), range(200, 241))
"""Combining classes: vowel points of Hebrew and Arabic, and accents over and under letters.

Not those of marks that make another letter, as in Japanese and Hindi.
"""
_MARKS_IN_A_ROW: Final = 30
"""As in UAX #15 (stream-safe text).  Sorting them takes the square of their number."""
_TOO_MANY: Final = re.compile(rb"([^\0]{%d})[^\0]+" % _MARKS_IN_A_ROW)
_MADE_OF_MARKS: Final = {
    ord(one): unicodedata.normalize("NFKD", one) for one in "\u0f73\u0f75\u0f81\uff9e\uff9f"
}
"""Characters that only become marks when they are taken apart."""
_JAMO: Final = "\u1100-\u11ff\ua960-\ua97c\ud7b0-\ud7fb"
_TURNING: Final = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
"""Marks that turn the reading direction of what follows."""
_CLUSTER: Final = re.compile(rf"[{_JAMO}]+|.", re.DOTALL)


def folded(text: str) -> str:
    """Without accents and case, and each letter in its plainest form.

    Of marks that follow one another only the first few count.
    """
    if text.isascii():
        return text.lower()
    if _PLAIN_TEXT.fullmatch(text):
        return text.translate(_ASCII_FOR).lower()
    apart = unicodedata.normalize("NFKD", _with_few_marks(text))
    bare = "".join(one for one in apart if not _is_accent(one))
    return unicodedata.normalize("NFKC", bare.casefold())


def _with_few_marks(text: str) -> str:
    text = text.translate(_MADE_OF_MARKS)
    classes = bytes(map(unicodedata.combining, text))
    kept, at = list[str](), 0
    for run in _TOO_MANY.finditer(classes):
        kept.append(text[at : run.end(1)])
        at = run.end()
    return "".join((*kept, text[at:]))


def _is_accent(one: str) -> bool:
    kind = unicodedata.combining(one)
    return kind != 0 and any(kind in classes for classes in _ACCENTS)


class Terms(NamedTuple):
    """What the index keeps of a text."""

    words: set[str]
    pairs: set[str]
    """Each two neighbours of a run, and its last character alone."""


def terms(text: str) -> Terms:
    found = Terms(set(), set())
    for part in _parts(folded(text)):
        if _is_run(part):
            found.pairs.update(_pairs(part))
        else:
            found.words.add(part[:MAX_WORD_CHARACTERS])
    return found


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run))]


class Wanted(Struct, frozen=True):
    """What is searched for.  All of it must be found in a message."""

    words: tuple[str, ...]
    runs: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.words or self.runs)

    def pairs(self) -> tuple[str, ...]:
        """A text without one of these is not found; of one character, any that begins with it."""
        asked = dict.fromkeys(pair for run in self.runs for pair in _pairs(run))
        return tuple(sorted(asked, key=len, reverse=True))[:MAX_WORDS]

    def finds(self, text: str) -> bool:
        words: list[str] = []
        runs: list[str] = []
        for part in _parts(folded(text)):
            (runs if _is_run(part) else words).append(part)
        return all(any(word.startswith(asked) for word in words) for asked in self.words) and all(
            any(asked in run for run in runs) for asked in self.runs
        )


def wanted(query: str) -> Wanted:
    """What somebody typed.  Of very much only the beginning counts."""
    parts = dict.fromkeys(_parts(folded(query[:MAX_QUERY_CHARACTERS])))
    words = [part[:MAX_WORD_CHARACTERS] for part in parts if not _is_run(part)]
    runs = [part for part in parts if _is_run(part)]
    return Wanted(tuple(words[:MAX_WORDS]), tuple(runs[:MAX_WORDS]))


def is_shortened(query: str) -> bool:
    """Whether ``wanted`` leaves something of it out."""
    parts = set(_parts(folded(query)))
    runs = sum(map(_is_run, parts))
    return len(query) > MAX_QUERY_CHARACTERS or max(runs, len(parts) - runs) > MAX_WORDS


class Excerpt(Struct, frozen=True, kw_only=True):
    """A part of a text, in one line, and what was found in it."""

    text: str
    marks: tuple[tuple[int, int], ...]
    """Where each begins and ends, in characters of ``text``."""


def marked(text: str, asked: Wanted) -> tuple[tuple[int, int], ...]:
    """Where ``asked`` is found: beginnings of words, and runs; in order, without overlap."""
    return tuple(_marks(text, asked))


def _marks(text: str, asked: Wanted) -> Iterator[tuple[int, int]]:
    for chunk in _CHUNK.finditer(text):
        for begin, end in _joined(list(_marked_in(chunk.group(), asked))):
            yield chunk.start() + begin, chunk.start() + end


def excerpt(text: str, asked: Wanted) -> Excerpt:
    """The part of ``text`` in which most is found first."""
    line = " ".join(text.translate(_TURNING).split())
    begin, marks = 0, list[tuple[int, int]]()
    for first, last in _marks(line, asked):
        if not marks:
            begin = _begin_of_excerpt(line, first)
        if first >= begin + MAX_SHOWN_CHARACTERS:
            break  # A long text may have very many.
        marks.append((first, last))
    end = begin + MAX_SHOWN_CHARACTERS
    before, after = "…" * (begin > 0), "…" * (end < len(line))
    moved = len(before) - begin
    return Excerpt(
        text=before + line[begin:end] + after,
        marks=tuple((max(first, begin) + moved, min(last, end) + moved) for first, last in marks),
    )


def _begin_of_excerpt(line: str, first: int) -> int:
    """A little before the first mark, at the beginning of a word if there is one."""
    if len(line) <= MAX_SHOWN_CHARACTERS:
        return 0
    begin = max(min(first - _BEFORE_MARK, len(line) - MAX_SHOWN_CHARACTERS), 0)
    return (line.find(" ", begin, first) + 1 or begin) if begin else 0


def _parts(text: str) -> Iterator[str]:
    """The words and runs of a folded text."""
    if text.isascii():
        yield from _ASCII_WORD.findall(text)
        return
    plain = "".join(one if unicodedata.category(one)[0] in "LNM" else " " for one in text)
    yield from _PART.findall(plain)


def is_plain(text: str) -> bool:
    """Whether it has ``PLAIN`` characters only."""
    return _PLAIN_TEXT.fullmatch(text) is not None


def _is_run(part: str) -> bool:
    return part[0] >= _FIRST_UNSPACED and _RUN.match(part) is not None


def _marked_in(chunk: str, asked: Wanted) -> Iterator[tuple[int, int]]:
    """Of a text without spaces.  All of it, if folding mixes its characters."""
    whole = folded(chunk)
    found = tuple(_found_in(whole, asked))
    if not found or chunk.isascii():
        yield from found
        return
    pieces = [(one.group(), one.end()) for one in _CLUSTER.finditer(chunk)]
    ends: list[int] = []
    for piece, end in pieces:
        length = len(folded(piece))
        if not length and ends:  # An accent belongs to the letter before it.
            ends[-1] = end
        ends.extend([end] * length)
    starts = [0, *ends[:-1]]
    for begin, end in found:
        if len(ends) != len(whole):
            yield 0, len(chunk)
            return
        yield starts[begin], ends[end - 1]


def _found_in(text: str, asked: Wanted) -> Iterator[tuple[int, int]]:
    """Of a folded text."""
    at = 0
    for part in _parts(text):
        at = text.index(part, at)
        if _is_run(part):
            for run in asked.runs:
                begin = part.find(run)
                while begin >= 0:
                    yield at + begin, at + begin + len(run)
                    begin = part.find(run, begin + len(run))
        else:
            longest = max((len(word) for word in asked.words if part.startswith(word)), default=0)
            if longest:
                yield at, at + longest
        at += len(part)


def _joined(found: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    begin = end = -1
    for first, last in sorted(found):
        if first <= end:
            end = max(end, last)
            continue
        if end >= 0:
            yield begin, end
        begin, end = first, last
    if end >= 0:
        yield begin, end
