"""The file in a bubble: a picture at its own shape, or a card with the file's name and size.

Only its sender says how large a picture is, so the shape is bounded here, and what cannot be
decoded becomes a card.  Below stands how far a larger file has come, why it does not come, and what
can be done.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainterPath, QPen

from engine.events import MessageView
from engine.file_views import FileState, FileView
from ui.file_words import (
    done_share,
    file_problem_words,
    holders_words,
    is_moving,
    is_picture,
    seen_with_its_holders,
    state_words,
    widest_state_words,
)
from ui.foreign_text import file_name, one_line
from ui.icons import draw_icon
from ui.mirrored import upright
from ui.theme import Theme
from ui.timeline.buttons import RowButton, advance, button_words, strong
from ui.timeline.file_pictures import FilePictures
from ui.timeline.primitives import Primitives
from ui.translate import tr

_MOST = QSizeF(340, 260)
_LEAST_SIDE = 48.0
_CARD_HEIGHT = 44
_CARD_WIDTH = 300
"""Of a larger file at least."""
_ICON = 26
_RADIUS = 9
_BAR = 4
_BUTTON = 26
_KEEP = Qt.AspectRatioMode.KeepAspectRatio
_WRAPPED = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop


class FileBox(Struct, frozen=True, kw_only=True):
    rect: QRectF
    """The picture, or the card with name and size."""
    bottom: float
    """Of all that belongs to it."""
    width: float
    name: str
    """As it fits."""
    state: str
    is_picture: bool
    is_moving: bool
    """A picture that moves where it is shown large."""
    line: QRectF = QRectF()
    """Of the state, below a picture."""
    held: str = ""
    """Who has it, if that has no room beside the state."""
    held_line: QRectF = QRectF()
    bar: QRectF = QRectF()
    done: float = 0.0
    """Of the bar, from 0 to 1."""
    problem: str = ""
    problem_rect: QRectF = QRectF()
    buttons: tuple[tuple[RowButton, QRectF], ...] = ()

    def moved(self, right: float) -> "FileBox":
        return FileBox(
            rect=self.rect.translated(right, 0),
            bottom=self.bottom,
            width=self.width,
            name=self.name,
            state=self.state,
            is_picture=self.is_picture,
            is_moving=self.is_moving,
            line=self.line.translated(right, 0),
            held=self.held,
            held_line=self.held_line.translated(right, 0),
            bar=self.bar.translated(right, 0),
            done=self.done,
            problem=self.problem,
            problem_rect=self.problem_rect.translated(right, 0),
            buttons=tuple((button, rect.translated(right, 0)) for button, rect in self.buttons),
        )


def acts_of(message: MessageView) -> tuple[RowButton, ...]:
    """What can be done with a file now; what one wants most stands last."""
    file = message.file
    if file is None:
        return ()
    if file.state in {FileState.INLINE, FileState.COMPLETE}:
        kept = () if is_picture(file) else (RowButton.FILE_SAVE, RowButton.FILE_OPEN)
        return kept if file.problem is None else (*kept, RowButton.FILE_AGAIN)
    return _ACTS[file.state]


_ACTS = {
    FileState.OFFERED: (RowButton.FILE_FETCH,),
    FileState.WAITING: (RowButton.FILE_CANCEL, RowButton.FILE_PAUSE),
    FileState.RUNNING: (RowButton.FILE_CANCEL, RowButton.FILE_PAUSE),
    FileState.PAUSED: (RowButton.FILE_CANCEL, RowButton.FILE_GO_ON),
    FileState.FAILED: (RowButton.FILE_AGAIN,),
}


def file_box(  # noqa: PLR0913 - what it is, and where
    message: MessageView,
    file: FileView,
    top: float,
    room: float,
    theme: Theme,
    *,
    broken: bool,
    others: int,
    pair: bool,
    said_below: bool = False,
) -> FileBox:
    """From the bubble's content on, which is ``room`` wide; ``broken``: it was not decoded.

    ``others``: how many members may hold it as a whole.  ``said_below``: its problem is.
    """
    message = seen_with_its_holders(message, others)
    file = message.file or file
    shows_picture = is_picture(file) and not broken
    held = holders_words(file, others, is_own=message.is_own, pair=pair)
    state, widest = state_words(file), widest_state_words(file)
    if held and _fits(f"{widest} · {held}", room, theme, beside_icon=not shows_picture):
        state, widest, held = f"{state} · {held}", f"{widest} · {held}", ""
    rect = QRectF(0, top + 2, 0, 0)
    rect.setSize(
        _picture_size(file, room) if shows_picture else _card_size(file, widest, room, theme)
    )
    metrics = QFontMetricsF(strong(theme.type.label))
    beside = rect.width() - theme.metrics.scaled(_ICON) - theme.metrics.gap(10)
    box = FileBox(
        rect=rect,
        bottom=rect.bottom(),
        width=rect.width(),
        # Of the whole name: of one that was shortened a second part would be left out.
        name=metrics.elidedText(one_line(file.name), Qt.TextElideMode.ElideMiddle, beside),
        state=state,
        is_picture=shows_picture,
        is_moving=is_moving(file) and not broken,
    )
    if file.state is FileState.INLINE:
        return box
    below = _Below(message, file, theme, room=room, rect=rect)
    line = below.line(widest) if shows_picture else QRectF()
    held_line = below.line(held) if held else QRectF()
    bar = below.bar()
    problem, problem_rect = ("", QRectF()) if said_below else below.problem()
    buttons = below.buttons(acts_of(message))
    return replace(
        box,
        bottom=below.y,
        width=max(rect.width(), below.width),
        line=line,
        held=held,
        held_line=held_line,
        bar=bar,
        done=done_share(file) or 0.0,
        problem=problem,
        problem_rect=problem_rect,
        buttons=buttons,
    )


def _fits(words: str, room: float, theme: Theme, *, beside_icon: bool) -> bool:
    """In the line of the state."""
    icon = theme.metrics.scaled(_ICON) + theme.metrics.gap(10) if beside_icon else 0.0
    return advance(theme.type.caption.font, words) + icon + 2 <= room


class _Below:
    """What stands below the picture or card, line by line."""

    def __init__(
        self, message: MessageView, file: FileView, theme: Theme, *, room: float, rect: QRectF
    ) -> None:
        self._message = message
        self._file = file
        self._theme = theme
        self._room = room
        least = min(room, float(theme.metrics.scaled(_CARD_WIDTH)))
        self.width = max(rect.width(), least)
        self.y = rect.bottom()

    def line(self, words: str) -> QRectF:
        """Of the state; ``words``: what it says at its widest."""
        face = self._theme.type.caption
        self.width = max(self.width, min(self._room, advance(face.font, words) + 2))
        place = QRectF(0, self.y + 4, self.width, face.line_height)
        self.y = place.bottom()
        return place

    def bar(self) -> QRectF:
        if done_share(self._file) is None:
            return QRectF()
        place = QRectF(0, self.y + 4, self.width, self._theme.metrics.scaled(_BAR))
        self.y = place.bottom() + 2
        return place

    def problem(self) -> tuple[str, QRectF]:
        if self._file.problem is None:
            return "", QRectF()
        held, own = bool(self._file.held_whole_by), self._message.is_own
        words = file_problem_words(self._file.problem, is_own=own, is_held=held)
        metrics = QFontMetricsF(self._theme.type.caption.font)
        taken = metrics.boundingRect(QRectF(0, 0, self.width, 600), int(_WRAPPED), words)
        place = QRectF(0, self.y + 4, self.width, taken.height())
        self.y = place.bottom()
        return words, place

    def buttons(self, acts: Sequence[RowButton]) -> tuple[tuple[RowButton, QRectF], ...]:
        if not acts:
            return ()
        font, metrics = strong(self._theme.type.small), self._theme.metrics
        height, gap = float(metrics.scaled(_BUTTON)), metrics.gap(6)
        placed, x, y = [], 0.0, self.y + metrics.gap(6)
        for act in acts:
            width = float(int(advance(font, button_words(act)) + 2 * metrics.gap(10)))
            if x and x + width > self.width:
                x, y = 0.0, y + height + gap
            placed.append((act, QRectF(x, y, width, height)))
            x += width + gap
        self.y = y + height + 2
        return tuple(placed)


def _picture_size(file: FileView, room: float) -> QSizeF:
    most = QSizeF(min(_MOST.width(), room), _MOST.height())
    natural = QSizeF(file.width, file.height)
    fits = natural.width() <= most.width() and natural.height() <= most.height()
    fitted = natural if fits else natural.scaled(most, _KEEP)
    return fitted.expandedTo(QSizeF(_LEAST_SIDE, _LEAST_SIDE))


def _card_size(file: FileView, state: str, room: float, theme: Theme) -> QSizeF:
    """``state``: at its widest, so that its words do not move its edge while it comes."""
    face, small = theme.type.label, theme.type.caption
    words = max(advance(strong(face), file_name(file.name)), advance(small.font, state))
    width = theme.metrics.scaled(_ICON) + theme.metrics.gap(10) + words + 2
    if file.state is not FileState.INLINE:
        width = max(width, theme.metrics.scaled(_CARD_WIDTH))
    height = max(theme.metrics.scaled(_CARD_HEIGHT), face.line_height + small.line_height)
    return QSizeF(min(room, width), height)


class FilePainter:
    def __init__(self, draw: Primitives, pictures: FilePictures) -> None:
        self._draw = draw
        self._pictures = pictures

    def paint(self, message: MessageView, box: FileBox) -> None:
        theme = self._draw.theme
        quiet = theme.ownMeta if message.is_own else theme.ink3
        if box.is_picture:
            self._picture(message, box.rect)
            if box.is_moving:
                self._pill(box.rect, tr("GIF"))
            self._line(box.line, box.state, theme.type.caption.font, quiet)
        else:
            self._card(message, box)
        self._line(box.held_line, box.held, theme.type.caption.font, quiet)
        if not box.bar.isEmpty():
            self._bar(box)
        if box.problem:
            ink = theme.ownInk if message.is_own else theme.ink
            self._draw.text(
                box.problem_rect, box.problem, theme.type.caption.font, ink, int(_WRAPPED)
            )

    def _bar(self, box: FileBox) -> None:
        p, theme, rect = self._draw.painter, self._draw.theme, box.bar
        radius = rect.height() / 2
        p.setPen(QPen(theme.line2, 1) if theme.is_high_contrast else Qt.PenStyle.NoPen)
        p.setBrush(theme.thread)
        p.drawRoundedRect(rect, radius, radius)
        done = QRectF(rect)
        done.setWidth(rect.width() * box.done)
        if done.width() >= rect.height():
            p.setPen(Qt.PenStyle.NoPen)
            p.setBrush(theme.accent)
            p.drawRoundedRect(done, radius, radius)

    def _picture(self, message: MessageView, rect: QRectF) -> None:
        p, theme = self._draw.painter, self._draw.theme
        path = QPainterPath()
        path.addRoundedRect(rect, _RADIUS, _RADIUS)
        p.setPen(QPen(theme.line, 1))
        p.setBrush(theme.surface2)
        p.drawPath(path)
        scale = p.device().devicePixelRatioF()
        pixmap = self._pictures.pixmap(message, rect.size(), scale)
        if pixmap is None:
            self._draw.text(rect, tr("Picture…"), theme.type.caption.font, theme.ink3)
            return
        p.save()
        p.setClipPath(path, Qt.ClipOperation.IntersectClip)
        place = _centred(pixmap.deviceIndependentSize(), rect)
        with upright(p, place):
            p.drawPixmap(place.topLeft(), pixmap)
        p.restore()

    def _pill(self, picture: QRectF, words: str) -> None:
        """In the lower left corner of a picture."""
        p, theme = self._draw.painter, self._draw.theme
        face, gap = theme.type.micro, theme.metrics.gap(6)
        width, height = advance(strong(face), words) + 2 * gap, face.line_height + 2
        pill = QRectF(picture.left() + gap, picture.bottom() - gap - height, width, height)
        p.setPen(QPen(theme.line, 1))
        p.setBrush(theme.surface)
        p.drawRoundedRect(pill, height / 2, height / 2)
        self._draw.text(pill, words, strong(face), theme.ink2)

    def _line(self, rect: QRectF, words: str, font: QFont, colour: object) -> None:
        if not rect.isEmpty():
            left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
            shown = QFontMetricsF(font).elidedText(words, Qt.TextElideMode.ElideRight, rect.width())
            self._draw.text(rect, shown, font, colour, left)  # type: ignore[arg-type]

    def _card(self, message: MessageView, box: FileBox) -> None:
        theme, rect = self._draw.theme, box.rect
        ink = theme.ownInk if message.is_own else theme.ink
        quiet = theme.ownMeta if message.is_own else theme.ink3
        side = theme.metrics.scaled(_ICON)
        icon = QRectF(rect.left(), rect.center().y() - side / 2, side, side)
        draw_icon(self._draw.painter, "file", icon, quiet)
        line = QRectF(rect)
        line.setLeft(icon.right() + theme.metrics.gap(10))
        line.setHeight(rect.height() / 2)
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        self._draw.text(line, box.name, strong(theme.type.label), ink, left)
        line.translate(0, rect.height() / 2)
        self._line(line, box.state, theme.type.caption.font, quiet)


def _centred(size: QSizeF, rect: QRectF) -> QRectF:
    place = QRectF(0, 0, size.width(), size.height())
    place.moveCenter(rect.center())
    return place
