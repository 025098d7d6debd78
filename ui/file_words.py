"""What is said of a file: its size, and what it is in one word."""

from engine.events import MessageView
from engine.file_views import FileView
from ui.foreign_text import one_line
from ui.translate import tr

_KIB = 1024
_MAX_NAME = 80


def size_words(size: int) -> str:
    if size < _KIB:
        return tr("%n bytes", "%n byte", size)
    if size < _KIB * _KIB:
        return tr("{size} kB").format(size=max(1, round(size / _KIB)))
    return tr("{size:.1f} MB").format(size=size / _KIB / _KIB)


def is_picture(file: FileView) -> bool:
    """What its sender says is one; only a decoder knows."""
    return file.width > 0 and file.height > 0 and file.media_type.startswith("image/")


def is_moving(file: FileView) -> bool:
    return is_picture(file) and file.media_type == "image/gif"


def file_title(file: FileView) -> str:
    """For one line: "Photo", or the file's name."""
    if is_moving(file):
        return tr("GIF")
    if is_picture(file):
        return tr("Photo")
    return tr("File {name}").format(name=one_line(file.name, _MAX_NAME))


def with_caption(message: MessageView, text: str) -> str:
    """What a message says in one line, with what came with it."""
    if message.file is None:
        return text
    title = file_title(message.file)
    return tr("{file}: {text}").format(file=title, text=text) if text else title
