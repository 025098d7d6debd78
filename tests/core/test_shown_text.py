"""Present names in texts: every span keeps what it covered, and marks go."""

from hypothesis import given
from hypothesis import strategies as st

from engine.core.content import utf16_length
from engine.core.markup import find_spans
from engine.core.records import SpanRecord
from engine.core.shown_text import with_names, without_marks

texts = st.text("ab 😀é@", max_size=6)
names = st.text("xy 😀@", min_size=1, max_size=8)


def covered(text: str, span: SpanRecord) -> str:
    units = text.encode("utf-16-le")
    return units[2 * span.start : 2 * (span.start + span.length)].decode("utf-16-le")


@given(st.lists(st.tuples(texts, names, names), max_size=5), texts)
def test_spans_cover_afterwards_what_they_covered_before(
    pieces: list[tuple[str, str, str]], end: str
) -> None:
    text, expected = "", ""
    spans: list[SpanRecord] = []
    new_names: dict[str, str] = {}
    for number, (before, old, new) in enumerate(pieces):
        if before:
            start = utf16_length(text)
            beside = SpanRecord(kind="bold", start=start, length=utf16_length(before), target="")
            spans.append(beside)
        text, expected = text + before, expected + before
        start = utf16_length(text)
        target = str(number)
        spans.append(
            SpanRecord(kind="mention", start=start, length=utf16_length(old), target=target)
        )
        new_names[target] = new
        text, expected = text + old, expected + new
    text, expected = text + end, expected + end
    spans.append(SpanRecord(kind="italic", start=0, length=utf16_length(text), target=""))
    shown, moved = with_names(text, tuple(spans), new_names)
    assert shown == expected
    for span, after in zip(spans, moved, strict=True):
        if span.kind == "mention":
            assert covered(shown, after) == new_names[span.target]
        elif span.kind == "bold":
            assert covered(shown, after) == covered(text, span)
        else:
            assert covered(shown, after) == expected


def test_what_ends_beyond_a_text_that_is_cut_off_is_left_out() -> None:
    spans = (
        SpanRecord(kind="mention", start=0, length=3, target="a"),
        SpanRecord(kind="mention", start=4, length=3, target="b"),
    )
    shown, moved = with_names("@Al @B", spans, {"a": "@Alberta", "b": "@Bo"})
    assert shown == "@Alberta @B"
    assert [(span.start, span.length) for span in moved] == [(0, 8)]


def test_a_quote_has_no_marks() -> None:
    text = "😀 **bold** and `code`, 2 * 3"
    assert without_marks(text, find_spans(text)) == "😀 bold and code, 2 * 3"
    assert without_marks("plain", ()) == "plain"


def test_entries_of_a_list_have_dots() -> None:
    text = "- 😀\n  * b\n1. c"
    assert without_marks(text, find_spans(text)) == "• 😀\n• b\n1. c"
