"""Pictures of messages are decoded as large as they are shown, and take no more than a bound."""

from PySide6.QtCore import QSize, QSizeF, Qt
from PySide6.QtGui import QImage

from engine.events import MessageView
from tests.ui.driving import group_stage, play
from ui.timeline.file_pictures import FilePictures

ROOM = QSizeF(340, 260)
MOST_BYTES = 40 * 1024 * 1024


def a_picture(most: QSize) -> QImage:
    """What comes of a camera's picture that is to be no larger than this."""
    size = QSize(4000, 3000).scaled(most, Qt.AspectRatioMode.KeepAspectRatio)
    image = QImage(size, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.red)
    return image


class Decoder:
    """Gives what is ordered, at once if it is told to."""

    def __init__(self, pictures: FilePictures) -> None:
        self.pictures = pictures
        self.orders: list[tuple[MessageView, QSize]] = []
        pictures.wanted.connect(lambda message, most: self.orders.append((message, most)))

    def work(self) -> list[QSize]:
        orders, self.orders = self.orders, []
        for message, most in orders:
            self.pictures.give(message, a_picture(most))
        return [most for _, most in orders]


def messages(count: int) -> list[MessageView]:
    found: list[MessageView] = []

    async def scenario() -> None:
        async with group_stage() as (_it, engine, group):
            sender = engine.views[group].members[0]
            found.extend(engine.row(group, sender, "", number) for number in range(count))

    play(scenario)
    return found


def test_a_picture_is_kept_once_as_it_is_shown() -> None:
    (message,) = messages(1)
    pictures = FilePictures()
    decoder = Decoder(pictures)
    for width in range(200, 340):  # A window is being made wider.
        pictures.pixmap(message, QSizeF(width, 260), 1.0)
        assert len(decoder.orders) <= 1
        decoder.work()
        shown = pictures.pixmap(message, QSizeF(width, 260), 1.0)
        assert shown is not None
        assert shown.width() == width
    assert pictures.kept_bytes <= 2 * 340 * 255 * 4
    tile = pictures.pixmap(message, QSizeF(170, 170), 1.0, cover=True)
    assert tile is not None
    assert tile.size() == QSize(170, 170)
    assert decoder.work() == [], "its tile in an album is made of it"


def test_a_tall_screen_full_of_pictures_fits_and_no_more_are_kept() -> None:
    pictures = FilePictures()
    decoder = Decoder(pictures)
    many = messages(60)
    for message in many:
        pictures.pixmap(message, ROOM, 1.0)
        decoder.work()
        pictures.pixmap(message, ROOM, 1.0)
    assert pictures.kept_bytes < 6 * 1024 * 1024
    for message in many[-16:]:
        assert pictures.pixmap(message, ROOM, 1.0) is not None
    assert decoder.work() == []


def test_hundreds_of_pictures_take_no_more_than_the_bound_and_show_what_is_in_view() -> None:
    pictures = FilePictures()
    decoder = Decoder(pictures)
    for message in messages(60):
        for _ in range(4):
            for scale in (1.0, 3.0):
                pictures.pixmap(message, ROOM, scale)
                decoder.work()
        assert pictures.kept_bytes < MOST_BYTES
    last = pictures.pixmap(message, ROOM, 1.0)
    assert last is not None
    assert last.size() == QSize(340, 255)
    assert decoder.work() == []


def test_a_picture_is_decoded_as_large_as_it_is_shown_and_again_only_for_a_larger_screen() -> None:
    (message,) = messages(1)
    pictures = FilePictures()
    decoder = Decoder(pictures)

    assert pictures.pixmap(message, ROOM, 1.0) is None
    (small,) = decoder.work()
    assert small.width() < 400
    shown = pictures.pixmap(message, ROOM, 1.0)
    assert shown is not None
    assert pictures.pixmap(message, QSizeF(330, 250), 1.0) is not None
    assert decoder.work() == [], "a little narrower needs no other"

    for_now = pictures.pixmap(message, ROOM, 2.0)
    assert for_now is not None
    assert for_now.size() == QSize(680, 510), "the small one stands there until the other is here"
    (larger,) = decoder.work()
    assert larger.width() >= 680
    sharp = pictures.pixmap(message, ROOM, 2.0)
    assert sharp is not None
    assert sharp.cacheKey() != for_now.cacheKey()
    assert pictures.pixmap(message, ROOM, 1.0) is not None
    assert decoder.work() == [], "the larger one does for both"


def test_what_is_no_picture_is_asked_for_once() -> None:
    (message,) = messages(1)
    pictures = FilePictures()
    decoder = Decoder(pictures)
    pictures.pixmap(message, ROOM, 1.0)
    for ordered, _ in decoder.orders:
        pictures.give(ordered, None)
    decoder.orders.clear()
    assert pictures.pixmap(message, ROOM, 3.0) is None
    assert decoder.orders == []
    assert pictures.is_broken(message)
