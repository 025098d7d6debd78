"""What travels with the program: the app's icon, the interface's SVG icons, the table of emoji.

The interface icons are our own: a 20 grid, strokes of 1.6 in ``currentColor``, no fills.  The table
of emoji is made by ``scripts/emoji.py``; ``emoji-licences.txt`` says whose its data are.
"""

from pathlib import Path

_HERE = Path(__file__).parent
_ICONS = _HERE / "icons"


def icon_path(name: str) -> Path:
    """The SVG file of an icon.  Raises FileNotFoundError for a name that does not exist."""
    path = _ICONS / f"{name}.svg"
    if not path.is_file():
        raise FileNotFoundError(path)
    return path


def app_icon_path() -> Path:
    """The program's own sign as SVG, in its own colours."""
    return _HERE / "icon.svg"


def app_icon_pictures() -> tuple[Path, ...]:
    """The same as PNG files, one for each size that desktops ask for."""
    return tuple(sorted(_HERE.glob("icon-*.png")))


def emoji_path() -> Path:
    return _HERE / "emoji.txt"
