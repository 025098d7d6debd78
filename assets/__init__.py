"""What travels with the program: the app's icon, the interface's icons, a font, the table of emoji.

The interface icons are our own: a 20 grid, strokes of 1.6 in ``currentColor``, no fills.  The table
of emoji is made by ``scripts/emoji.py``; ``emoji-licences.txt`` says whose its data are.  The font
is Inter; ``fonts`` has its licence and says how its files were made.
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


def font_paths() -> tuple[Path, ...]:
    """Inter in the weights that the window uses."""
    return tuple(sorted((_HERE / "fonts").glob("*.ttf")))


def emoji_path() -> Path:
    return _HERE / "emoji.txt"
