"""Which glyph, which number, which words; and that the five shapes are what they are said to be."""

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QImage, QPainter

from engine.core.ids import DeliveryState
from engine.core.problems import FailureReason
from engine.events import DeliveryView
from tests.ui.timeline.timeline_stage import OTHERS, delivery, name_of
from ui.glyphs import (
    Glyph,
    count_of,
    delivery_words,
    draw_glyph,
    failure_words,
    glyph_of,
    glyph_path,
)

pytestmark = pytest.mark.usefixtures("qapp")

SAVED, SENT = DeliveryState.SAVED, DeliveryState.SENT
MAYBE, HELD, FAILED = DeliveryState.POSSIBLY_HELD, DeliveryState.HELD, DeliveryState.FAILED

CASES = [
    (delivery(SAVED), Glyph.SAVED, "", "Saved on this device, waiting for the network."),
    (delivery(SENT), Glyph.SENT, "", "Sent. Nobody is known to hold it yet."),
    (
        delivery(MAYBE, 0, 2),
        Glyph.MAYBE,
        "~2/5",
        "Maybe held by 2 of 5. Not yet: Priya, Luc, Tomas.",
    ),
    (
        delivery(HELD, 3, 1),
        Glyph.MAYBE,
        "3/5",
        "Held by 3 of 5, maybe 1 more. Not yet: Tomas.",
    ),
    (delivery(HELD, 4), Glyph.MAYBE, "4/5", "Held by 4 of 5. Not yet: Tomas."),
    (delivery(HELD, 5), Glyph.HELD, "5/5", "Held by 5 of 5."),
    (delivery(HELD, 1, of=1), Glyph.HELD, "", "Held by 1 of 1."),
    (
        delivery(FAILED, failure=FailureReason.NOBODY_TOOK_IT),
        Glyph.FAILED,
        "",
        "Not sent: 5 tries, nobody took it.",
    ),
]


@pytest.mark.parametrize(("view", "glyph", "count", "words"), CASES)
def test_glyph_number_and_words(view: DeliveryView, glyph: Glyph, count: str, words: str) -> None:
    assert glyph_of(view) is glyph
    assert count_of(view) == count
    assert delivery_words(view, OTHERS[: view.of], name_of) == words


def test_alone_in_a_group_sent_is_not_held() -> None:
    assert glyph_of(delivery(SENT, of=0)) is Glyph.SENT


def test_failed_wins_over_what_somebody_may_hold() -> None:
    assert glyph_of(delivery(FAILED, 0, 2)) is Glyph.FAILED


def test_a_large_group_is_not_listed_by_name() -> None:
    others = [OTHERS[0]] * 40
    words = delivery_words(DeliveryView(state=HELD, held_by=OTHERS[1:2], of=41), others, name_of)
    assert words.endswith("Not yet: Maya, Maya, Maya, Maya, Maya and 35 more.")


def test_a_hostile_name_stays_on_one_line() -> None:
    words = delivery_words(delivery(HELD, 4), OTHERS, lambda _who: "To\nmas\u2028 ")
    assert words == "Held by 4 of 5. Not yet: To mas."


@pytest.mark.parametrize(
    ("failure", "attempts", "words"),
    [
        (FailureReason.NOBODY_TOOK_IT, 1, "1 try, nobody took it."),
        (FailureReason.NOT_REACHED, 0, "They could not be reached for 30 days."),
        (None, 3, "3 tries, nobody took it."),
    ],
)
def test_why_it_was_given_up(failure: FailureReason | None, attempts: int, words: str) -> None:
    view = DeliveryView(state=FAILED, failure=failure, attempts=attempts)
    assert failure_words(view) == words


def ink(glyph: Glyph, scale: float = 4) -> tuple[QImage, int]:
    """The glyph in black on white, and how many pixels it covers."""
    image = QImage(round(16 * scale), round(12 * scale), QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    draw_glyph(painter, glyph, QPointF(0, 0), QColor("black"), scale=scale)
    painter.end()
    dark = sum(
        QColor(image.pixel(x, y)).lightness() < 128
        for x in range(image.width())
        for y in range(image.height())
    )
    return image, dark


def is_dark(image: QImage, x: float, y: float, scale: float = 4) -> bool:
    return QColor(image.pixel(round(x * scale), round(y * scale))).lightness() < 128


def test_the_five_shapes_differ_and_stay_on_their_grid() -> None:
    images = []
    for glyph in Glyph:
        image, dark = ink(glyph)
        assert dark > 0
        images.append(bytes(image.constBits()))
        bounds = glyph_path(glyph).boundingRect()
        assert bounds.left() >= 0
        assert bounds.right() <= 16
        assert bounds.top() >= 0
        assert bounds.bottom() <= 12
    assert len(set(images)) == len(Glyph)


def test_the_uncertain_tick_is_hollow_and_the_certain_one_is_not() -> None:
    maybe, _ = ink(Glyph.MAYBE)
    held, _ = ink(Glyph.HELD)
    assert not is_dark(maybe, 11.4, 6.25)  # On the second tick's own line: paper shows through.
    assert is_dark(held, 11.4, 5.9)


def test_clock_and_exclamation_have_an_open_ring() -> None:
    for glyph in (Glyph.SAVED, Glyph.FAILED):
        image, _ = ink(glyph)
        assert is_dark(image, 3.25, 6)
        assert not is_dark(image, 5.2, 6)
        assert is_dark(image, 8, 4.5)
