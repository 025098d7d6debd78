"""How well a few letters fit a name: beginnings of words first, then letters in order."""

from engine.core.search_text import folded

_BEGINS, _WORD_BEGINS, _WITHIN, _SCATTERED = 0, 100, 200, 300


def fit(letters: str, name: str, *, scattered: bool = True) -> int | None:
    """The smaller the better; None if not all letters are there in this order.

    ``scattered``: whether there may be others between them.
    """
    asked, text = folded(letters).strip(), folded(name)
    if not asked:
        return _BEGINS
    at = text.find(asked)
    if at == 0:
        return _BEGINS
    if at > 0:
        begins = not text[at - 1].isalnum()
        return (_WORD_BEGINS if begins else _WITHIN) + min(at, 99)
    if not scattered:
        return None
    place = first = -1
    for letter in asked.replace(" ", ""):
        place = text.find(letter, place + 1)
        if place < 0:
            return None
        first = place if first < 0 else first
    return _SCATTERED + place - first
