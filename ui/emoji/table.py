"""All emoji with their names, in Unicode's order, searched by name and keyword.

The table is read when it is first asked for (``emoji_table``), which takes about a hundredth of a
second that no start has to spend.  Names and keywords are English.
"""

from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Final

from msgspec import Struct

from assets import emoji_path
from engine.core.emoji import without_selectors

SKIN_TONES: Final = ("", "\U0001f3fb", "\U0001f3fc", "\U0001f3fd", "\U0001f3fe", "\U0001f3ff")
"""None, then from light to dark."""
MAX_FOUND: Final = 200
_LIGHT = SKIN_TONES[1]
_COLUMNS: Final = 5


class Emoji(Struct, frozen=True):
    """``version`` is that of Unicode's emoji.

    Of two thousand, all names and words as strings of their own would take megabytes.
    """

    text: str
    version: float
    written: str
    """Lines with its name, its codes and its words, which are parted by commas: most emoji are
    ruled out by looking there once."""
    light: str = ""
    """With the lightest skin tone; empty for what has none."""
    tones_version: float = 0

    @property
    def name(self) -> str:
        return self.written.partition("\n")[0]

    @property
    def codes(self) -> list[str]:
        """They stand between colons: +1 in :+1:."""
        return self.written.split("\n")[1].split(",")

    @property
    def words(self) -> list[str]:
        """Others to search for."""
        return self.written.split("\n")[2].split(",")

    def toned(self, tone: int) -> str:
        """With this one of SKIN_TONES, if it has skin tones at all."""
        if not tone or not self.light:
            return self.text
        return self.light.replace(_LIGHT, SKIN_TONES[tone])


class Group(Struct, frozen=True):
    """``key`` is Unicode's name for it: smileys-emotion."""

    key: str
    emoji: tuple[Emoji, ...]


class EmojiTable:
    """``newest``: the version that can be drawn; what came later is left out."""

    def __init__(self, groups: tuple[Group, ...], newest: float = float("inf")) -> None:
        self.groups = tuple(_drawable(group, newest) for group in groups)
        self._by_text = {_plain(emoji.text): emoji for emoji in self}

    def __iter__(self) -> Iterator[Emoji]:
        return chain.from_iterable(group.emoji for group in self.groups)

    def find(self, text: str) -> Emoji | None:
        """What this is, in any skin tone and with or without selectors."""
        return self._by_text.get(_plain(text))

    def search(self, words: str) -> list[Emoji]:
        """Those that have all of the words, the best first; at most MAX_FOUND."""
        wanted = words.casefold().strip(": ").replace("_", " ").split()
        if not wanted:
            return []
        ranked = [
            (max(_rank(word, emoji) for word in wanted), number, emoji)
            for number, emoji in enumerate(self)
            if all(word in emoji.written for word in wanted)
        ]
        ranked.sort(key=lambda each: each[:2])
        return [emoji for rank, _, emoji in ranked[:MAX_FOUND] if rank != _NO]

    def coded(self, query: str) -> list[tuple[str, Emoji]]:
        """For ``:query``: emoji with the name that fits, the best and shortest first.

        At most MAX_FOUND.  ``:query:`` finds only the one that is called so.
        """
        wanted = query.casefold()
        if wanted.endswith(":"):
            return [(code, emoji) for emoji in self for code in emoji.codes if code == wanted[:-1]][
                :1
            ]
        found: list[tuple[int, int, int, str, Emoji]] = []
        for number, emoji in enumerate(self):
            if wanted not in emoji.written:
                continue
            ranks = [(_code_rank(wanted, code), code) for code in emoji.codes]
            rank, code = min(ranks, key=lambda each: each[0])
            if rank == _NO and any(word.startswith(wanted) for word in emoji.words):
                rank = _KEYWORD
            if rank != _NO:
                found.append((rank, len(code), number, code, emoji))
        found.sort(key=lambda each: each[:3])
        return [(code, emoji) for _, _, _, code, emoji in found[:MAX_FOUND]]


_TONES: Final = str.maketrans("", "", "".join(SKIN_TONES))


def _plain(text: str) -> str:
    """Without selectors and skin tones, which may be several in one picture."""
    return without_selectors(text).translate(_TONES)


_NO: Final = 9
_KEYWORD: Final = 4


def _code_rank(wanted: str, code: str) -> int:
    if code == wanted:
        return 0
    if code.startswith(wanted):
        return 1
    at = code.find(wanted)
    if at < 0:
        return _NO
    return 2 if code[at - 1] == "_" else 3


def _rank(word: str, emoji: Emoji) -> int:
    """Called so, begins so, a word of its name, another word, part of its name."""
    if word in emoji.codes or emoji.name == word:
        return 0
    named = emoji.name.split()
    if named[0].startswith(word) or any(code.startswith(word) for code in emoji.codes):
        return 1
    if any(each.startswith(word) for each in named):
        return 2
    if word in emoji.words:
        return 3
    if any(each.startswith(word) for each in emoji.words):
        return 4
    return 5 if word in emoji.name else _NO


def _drawable(group: Group, newest: float) -> Group:
    return Group(
        group.key,
        tuple(
            emoji if emoji.tones_version <= newest else _untoned(emoji)
            for emoji in group.emoji
            if emoji.version <= newest
        ),
    )


def _untoned(emoji: Emoji) -> Emoji:
    return Emoji(emoji.text, emoji.version, emoji.written)


def _emoji(line: str) -> Emoji:
    columns = line.split("\t")
    text, name, version, codes, words = columns[:_COLUMNS]
    light, tones_version = columns[_COLUMNS:] or ("", "0")
    return Emoji(
        text,
        float(version),
        "\n".join((name, ",".join(codes.split()), words)),
        light,
        float(tones_version),
    )


@cache
def emoji_groups() -> tuple[Group, ...]:
    """As the file has them, all versions."""
    groups: list[tuple[str, list[Emoji]]] = []
    for line in emoji_path().read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            groups.append((line[2:], []))
        else:
            groups[-1][1].append(_emoji(line))
    return tuple(Group(key, tuple(emoji)) for key, emoji in groups)
