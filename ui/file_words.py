"""Sentences about a file: its size and kind, its progress, and why it does not arrive.

Words only, no pixels.  Names come from other people: here they are put on one line.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from engine.core.errors import StorageError
from engine.core.problems import FileFault, FileProblem
from engine.events import MessageView
from engine.file_views import FetchView, FileState, FileView
from ui.error_words import error_words
from ui.foreign_text import file_name
from ui.regional import decimal
from ui.times import off_words
from ui.translate import tr

_KIB = 1024
_LARGEST_NUMBER = 1000
_LONGEST_LEFT_MS = 86_400_000
_WIDEST_RATE = 99_900_000
_WIDEST_LEFT_MS = 59 * 60_000
_ONLY_SHOWN: Final = frozenset({
    "7z", "aac", "avi", "avif", "bmp", "bz2", "csv", "docx", "epub", "flac", "gif", "gz", "heic",
    "jpeg", "jpg", "json", "log", "m4a", "m4v", "md", "mkv", "mov", "mp3", "mp4", "mpeg", "mpg",
    "odp", "ods", "odt", "oga", "ogg", "ogv", "opus", "pdf", "png", "pptx", "rar", "rtf", "srt",
    "tar", "tgz", "tif", "tiff", "toml", "tsv", "txt", "wav", "webm", "webp", "xlsx", "xz", "yaml",
    "yml", "zip", "zst",
})  # fmt: skip
"""What desktops open in a program that shows it, plays it or lists it, and runs nothing in it.

A list of what can run would never be complete: each system adds to it, and each program.
"""


def size_words(size: int) -> str:
    if size < _KIB:
        return tr("%n bytes", "%n byte", size)
    if round(size / _KIB) < _LARGEST_NUMBER:
        return tr("{size} kB").format(size=max(1, round(size / _KIB)))
    return tr("{size} MB").format(size=decimal(size / _KIB / _KIB))


def is_picture(file: FileView) -> bool:
    """What its sender says is one; only a decoder knows."""
    return file.width > 0 and file.height > 0 and file.media_type.startswith("image/")


def is_moving(file: FileView) -> bool:
    return is_picture(file) and file.media_type == "image/gif"


def is_here(file: FileView) -> bool:
    """Whether all of its bytes are on this device."""
    return file.state in {FileState.INLINE, FileState.COMPLETE} or file.is_upload


def may_run(file: FileView) -> bool:
    """Whether opening it can do more than show it: by its name, which is what the desktop goes by.

    What has no suffix, or one that is not known, may be anything.
    """
    stem, _, suffix = file.name.rpartition(".")
    return not stem or suffix.casefold() not in _ONLY_SHOWN


def file_title(file: FileView) -> str:
    """For one line: "Photo", or the file's name."""
    if is_moving(file):
        return tr("GIF")
    if is_picture(file):
        return tr("Photo")
    return tr("File {name}").format(name=file_name(file.name))


def with_caption(message: MessageView, text: str) -> str:
    """What a message says in one line, with what came with it."""
    return text if message.file is None else titled(message.file, text)


def titled(file: FileView, text: str) -> str:
    """``text``: its caption, or ""."""
    title = file_title(file)
    return tr("{file}: {text}").format(file=title, text=text) if text else title


# --- larger files ---------------------------------------------------------------------------------


def state_words(file: FileView) -> str:
    """How far it has come, in a line; of a file that came with its message its size."""
    match file.state:
        case FileState.RUNNING:
            return _on_its_way(file)
        case FileState.WAITING:
            return tr("Waiting · {size}").format(size=_done_words(file))
        case FileState.PAUSED:
            return tr("Paused · {size}").format(size=_done_words(file))
        case FileState.OFFERED:
            return _not_fetched(file)
        case FileState.COMPLETE | FileState.FAILED if file.fetch is not None:
            return _fetched_from_here(file.fetch, file.size)
        case FileState.INLINE | FileState.COMPLETE | FileState.FAILED:
            return size_words(file.size)


def widest_state_words(file: FileView) -> str:
    """What ``state_words`` says at its widest while the file moves, so that its row does not."""
    if file.fetch is not None:
        file = replace(file, fetch=replace(file.fetch, done_bytes=file.size, rate=0))
    words = state_words(replace(file, done_bytes=file.size, rate=0))
    if done_share(file) is None:
        return words
    rate = tr("{size}/s").format(size=size_words(_WIDEST_RATE))
    left = tr("{duration} left").format(duration=off_words(_WIDEST_LEFT_MS))
    return f"{words} · {rate} · {left}"


def is_fetched(file: FileView) -> bool:
    """Peers get it from here, and its row says so: it says nothing of nodes that would get it."""
    return file.fetch is not None and file.state in {FileState.COMPLETE, FileState.FAILED}


def _not_fetched(file: FileView) -> str:
    whole, thrown = size_words(file.size), file.thrown_away_bytes
    if not thrown:
        return tr("{size}, not fetched yet").format(size=whole)
    words = tr("Cancelled; {size} of {whole} were thrown away")
    return words.format(size=size_words(thrown), whole=whole)


def _done_words(file: FileView) -> str:
    return _of_whole(file.done_bytes, file.size)


def _of_whole(done_bytes: int, size: int) -> str:
    whole = size_words(size)
    if not done_bytes:
        return whole
    return tr("{done} of {whole}").format(done=size_words(done_bytes), whole=whole)


def _on_its_way(file: FileView) -> str:
    words = tr("To service nodes: {done}") if file.is_upload else tr("{done}")
    said = words.format(done=_done_words(file))
    return " · ".join((said, *_pace_words(file.rate, file.size - file.done_bytes)))


def _fetched_from_here(fetch: FetchView, size: int) -> str:
    words = tr(
        "Being fetched over %n connections, the furthest: {done}",
        "Being fetched: {done}",
        fetch.peers,
    )
    said = words.format(done=_of_whole(fetch.done_bytes, size))
    return " · ".join((said, *_pace_words(fetch.rate, size - fetch.done_bytes)))


def _pace_words(rate: int, left_bytes: int) -> Iterator[str]:
    if rate:
        yield tr("{size}/s").format(size=size_words(rate))
        left_ms = max(0, left_bytes) * 1_000 // rate
        if 0 < left_ms < _LONGEST_LEFT_MS:
            yield tr("{duration} left").format(duration=off_words(left_ms))


def holders_words(file: FileView, others: int, *, is_own: bool, pair: bool) -> str:
    """Of those beside its sender, as all windows say it: a receiver who has it is one of them.

    Empty while nobody else says, signed, that they have all of it.
    """
    holding = len(file.held_whole_by)
    if not holding:
        return ""
    if pair:
        return tr("held as a whole by them")
    if not is_own and file.state is FileState.COMPLETE:
        holding += 1
    words = tr("held as a whole by {number} of {others}")
    return words.format(number=holding, others=max(others, holding))


def seen_with_its_holders(message: MessageView, others: int) -> MessageView:
    """The message as it is shown: what all others have needs no service node any more."""
    file = message.file
    if file is None or file.problem is None or file.problem.fault is not FileFault.NOBODY_KEEPS_IT:
        return message
    if len(file.held_whole_by) < max(others, 1):
        return message
    return replace(message, file=replace(file, problem=None))


def has_problem(message: MessageView, others: int) -> bool:
    """As it is shown."""
    file = seen_with_its_holders(message, others).file
    return file is not None and file.problem is not None


def done_share(file: FileView) -> float | None:
    """From 0 to 1, of what comes, or goes to nodes or peers; None while nothing does."""
    if file.state in {FileState.RUNNING, FileState.WAITING, FileState.PAUSED}:
        done_bytes = file.done_bytes
    elif is_fetched(file) and file.fetch is not None:
        done_bytes = file.fetch.done_bytes
    else:
        return None
    return min(1.0, done_bytes / file.size) if file.size else 0.0


def cancel_words(file: FileView) -> str:
    """Before it is cancelled; "" if nothing came that would be thrown away."""
    if file.is_upload or not file.done_bytes:
        return ""
    words = tr("Cancel: throws away the {size} that came")
    return words.format(size=size_words(file.done_bytes))


def file_problem_words(problem: FileProblem, *, is_own: bool, is_held: bool = False) -> str:
    """Why it does not come, or is with nobody else yet, and what helps: sentences.

    ``is_held``: beside its sender somebody says, signed, that they have all of it.
    """
    if problem.fault is FileFault.STORAGE and problem.storage is not None:
        return error_words(StorageError("", problem.storage))
    if problem.fault is FileFault.NOBODY_HAS_IT:
        return _nobody_has_it(problem, is_held=is_held)
    if problem.fault is FileFault.NOT_HERE and is_own:
        return tr("A part of it cannot be read any more on this device. Send it again.")
    return _PROBLEMS[problem.fault]()


def _nobody_has_it(problem: FileProblem, *, is_held: bool) -> str:
    peers = tr("%n people", "%n person", problem.peers)
    nodes = tr("%n service nodes", "%n service node", problem.nodes)
    if problem.peers and problem.nodes:
        words = tr("{peers} and {nodes} were asked, and have nothing of what is missing.")
    elif problem.nodes:
        words = tr("{nodes} asked, and nothing of what is missing is there.")
    else:
        words = tr("{peers} asked, and nothing of what is missing is there.")
    again = tr("They are asked again by and by.")
    if is_held:
        again = tr("Whoever has all of it seems not to be connected. It is asked for by and by.")
    return f"{words.format(peers=peers, nodes=nodes)} {again}"


_PROBLEMS: Final[Mapping[FileFault, Callable[[], str]]] = {
    FileFault.NOBODY_CONNECTED: lambda: tr(
        "This device is offline. It goes on by itself once somebody is connected."
    ),
    FileFault.NEEDS_SERVICE_NODE: lambda: tr(
        "It needs a service node: nobody who could be asked is connected. Add a node that keeps "
        'files under "Network" in the menu, the same one as its sender.'
    ),
    FileFault.NOBODY_HAS_IT: lambda: tr("Nobody who was asked has what is missing."),
    FileFault.NOBODY_KEEPS_IT: lambda: tr(
        "No service node keeps it: others get it only while you are connected. Add a node that "
        'keeps files under "Network" in the menu.'
    ),
    FileFault.NOT_AS_SAID: lambda: tr(
        "It is not what its message says, so it was thrown away. Only its sender can be to blame."
    ),
    FileFault.NOT_HERE: lambda: tr(
        "A part of it cannot be read any more on this device. Try again to get it anew."
    ),
    FileFault.STORAGE: lambda: tr("The disk reported an error."),
}
