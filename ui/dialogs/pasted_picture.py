"""A picture that was pasted or dropped, and the one link among the codes in it; words for the rest.

Pure questions about a clipboard and about texts.  A code says whatever its maker wanted: only what
starts as our links do goes on, to be judged like one that was typed.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage

from ui.foreign_text import one_line
from ui.pictures import PictureError
from ui.qr_reading import Picture
from ui.translate import tr

SCHEME = "causerie:"
_SUFFIXES = (".png", ".jpg", ".jpeg")
_SHOWN_OF_FOREIGN = 60


def picture_in(mime: QMimeData) -> Picture | None:
    """The picture that was pasted or dropped; None if it is text, which a link is.

    Raises PictureError for what is neither.
    """
    if mime.hasText() and SCHEME in mime.text():
        return None
    for kind in ("image/png", "image/jpeg"):
        if mime.hasFormat(kind):
            return bytes(mime.data(kind).data())
    if mime.hasImage():
        image = mime.imageData()
        return image if isinstance(image, QImage) else None
    return _file_in(mime)


def _file_in(mime: QMimeData) -> Path | None:
    urls = mime.urls() if mime.hasUrls() else []
    files = [Path(url.toLocalFile()) for url in urls if url.isLocalFile()]
    if len(files) > 1:
        raise PictureError(tr("These are several files. Take one picture at a time."))
    if files:
        return files[0]
    if any(url.path().lower().endswith(_SUFFIXES) for url in urls):
        raise PictureError(
            tr("Causerie fetches no picture from the web. Copy it and paste it here.")
        )
    return None


def holds_picture(mime: QMimeData) -> bool:
    """Whether it is ours to answer, if only with a sentence."""
    try:
        return picture_in(mime) is not None
    except PictureError:
        return True


def is_link(code: str) -> bool:
    return code.strip().startswith(SCHEME)


def link_among(codes: Sequence[str], works: Callable[[str], bool]) -> str:
    """The one link; of several the one that works.

    Raises PictureError if there is none, or if it cannot be known which is meant.
    """
    links = [text.strip() for text in codes if is_link(text)]
    if len(links) > 1:
        working = [link for link in links if works(link)]
        links = working or links
    if len(links) > 1:
        raise PictureError(
            tr(
                "There are %n codes with links here. Show only one of them.",
                "There is %n code with a link here. Show only one of them.",
                len(links),
            )
        )
    if links:
        return links[0]
    if len(codes) > 1:
        raise PictureError(
            tr(
                "There are %n QR codes here, and none is a Causerie link.",
                "There is %n QR code here, and it is no Causerie link.",
                len(codes),
            )
        )
    if not codes:
        raise PictureError(tr("There is no QR code in this picture that can be read."))
    said = one_line(codes[0], _SHOWN_OF_FOREIGN)
    raise PictureError(
        tr("This code is not a Causerie link. It says: {said}").format(said=said or tr("nothing"))
    )
