"""How tests unpack archives of the project's own, on every Python that the project supports.

Before 3.11.4 Python knew no filters, and since 3.12 it warns where an archive is unpacked without.
"""

import tarfile
from pathlib import Path


def unpack(archive: Path, place: Path) -> None:
    with tarfile.open(archive) as opened:
        opened.extraction_filter = getattr(tarfile, "data_filter", None)
        opened.extractall(place)  # noqa: S202 - we made it
