"""The desktop's own dialog for a file or a folder, as something to await.

The dialog may also go with its window, and then nothing was chosen.
"""

import asyncio
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog


async def chosen_path(dialog: QFileDialog) -> Path | None:
    """Open it; None if nothing was chosen."""
    answer: asyncio.Future[Path | None] = asyncio.get_running_loop().create_future()
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def settle(code: int) -> None:
        files = dialog.selectedFiles() if code == QFileDialog.DialogCode.Accepted.value else []
        if not answer.done():
            answer.set_result(Path(files[0]) if files else None)

    dialog.finished.connect(settle)
    dialog.destroyed.connect(lambda: settle(QFileDialog.DialogCode.Rejected.value))
    dialog.open()
    return await answer
