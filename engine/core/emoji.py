"""Says whether a text is an emoji: for reactions, and for messages that are drawn large.

A reaction that is no emoji is refused, so every version must decide alike, whatever Unicode data
its Python, its fonts or its picker have.  The rule is therefore the grammar of emoji sequences
(Unicode Technical Standard 51, section 1.4.9) over fixed ranges, and no list of known emoji:
emoji that do not exist yet pass, some sequences that no font draws as one picture pass, too, and
nothing that is no pictograph does.  The ranges are part of what members agree on and stay as
they are.  A text is read once from left to right, so the work grows linearly.
"""

import re
from typing import Final

MAX_EMOJI_EACH: Final = 16
"""Different emoji of one member for one message."""
MAX_ELEMENTS: Final = 6
"""Of one sequence, joined by U+200D.  The longest in Unicode 17 has four (two people kissing)."""

# Below U+1F300: the emoji of Unicode 15, digits aside.  From there on: the blocks of pictographs as
# a whole (Extended_Pictographic), with the places kept free for emoji to come.  Regional
# indicators (1F1E6 to 1F1FF) and skin tones (1F3FB to 1F3FF) are not among them.
_PICTOGRAPHS: Final = """
    a9 ae 203c 2049 2122 2139 2194-2199 21a9-21aa 231a-231b 2328 23cf 23e9-23f3 23f8-23fa 24c2
    25aa-25ab 25b6 25c0 25fb-25fe 2600-2604 260e 2611 2614-2615 2618 261d 2620 2622-2623 2626 262a
    262e-262f 2638-263a 2640 2642 2648-2653 265f-2660 2663 2665-2666 2668 267b 267e-267f 2692-2697
    2699 269b-269c 26a0-26a1 26a7 26aa-26ab 26b0-26b1 26bd-26be 26c4-26c5 26c8 26ce-26cf 26d1
    26d3-26d4 26e9-26ea 26f0-26f5 26f7-26fa 26fd 2702 2705 2708-270d 270f 2712 2714 2716 271d 2721
    2728 2733-2734 2744 2747 274c 274e 2753-2755 2757 2763-2764 2795-2797 27a1 27b0 27bf 2934-2935
    2b05-2b07 2b1b-2b1c 2b50 2b55 3030 303d 3297 3299
    1f004 1f0cf 1f170-1f171 1f17e-1f17f 1f18e 1f191-1f19a 1f201-1f202 1f21a 1f22f 1f232-1f23a
    1f250-1f251
    1f300-1f3fa 1f400-1f53d 1f546-1f64f 1f680-1f6ff 1f7e0-1f7ff 1f90c-1f93a 1f93c-1f945 1f947-1f9ff
    1fa70-1faff 1fc00-1fffd
"""


def _character_class(ranges: str) -> str:
    pairs = (piece.split("-") for piece in ranges.split())
    return "".join("-".join(f"\\U{int(end, 16):08x}" for end in pair) for pair in pairs)


_PICTOGRAPH = f"[{_character_class(_PICTOGRAPHS)}]"
_ELEMENT = rf"{_PICTOGRAPH}[\ufe0f\U0001f3fb-\U0001f3ff]?"
_EMOJI: Final = re.compile(
    r"[0-9#*]\ufe0f?\u20e3"
    r"|[\U0001f1e6-\U0001f1ff]{2}"
    r"|\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
    rf"|{_ELEMENT}(?:\u200d{_ELEMENT}){{0,{MAX_ELEMENTS - 1}}}"
)
"""A keycap, a flag of two letters, a flag of a region, or pictographs joined to one."""


def is_emoji(text: str) -> bool:
    """Whether ``text`` is exactly one emoji; selectors for its coloured form may be left out."""
    return _EMOJI.fullmatch(text) is not None


def emoji_only(text: str) -> int:
    """How many emoji ``text`` has if it holds nothing else but white space; 0 otherwise."""
    found = 0
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        emoji = _EMOJI.match(text, at)
        if emoji is None:
            return 0
        found += 1
        at = emoji.end()
    return found


def without_selectors(emoji: str) -> str:
    """The same for both spellings of an emoji: ❤ and ❤ with U+FE0F are one reaction."""
    return emoji.replace("\ufe0f", "")
