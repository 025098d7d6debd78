"""Pictures that travel with the program: the app's icon and the interface's SVG icons.

The interface icons are our own: a 20 grid, strokes of 1.6 in ``currentColor``, no fills.
"""

from pathlib import Path

_ICONS = Path(__file__).parent / "icons"


def icon_path(name: str) -> Path:
    """The SVG file of an icon.  Raises FileNotFoundError for a name that does not exist."""
    path = _ICONS / f"{name}.svg"
    if not path.is_file():
        raise FileNotFoundError(path)
    return path


def icon_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _ICONS.glob("*.svg")))
