"""Says why a link to a message leads nowhere, and what to do about it."""

from PySide6.QtWidgets import QWidget

from ui.controls import Text
from ui.dialogs.sheet import Sheet
from ui.foreign_text import breaking, one_line
from ui.translate import tr

_LONGEST, _LONGEST_RUN = 200, 16


class LeadsNowhere(Sheet):
    def __init__(self, link: str, *, is_readable: bool, parent: QWidget | None = None) -> None:
        """``is_readable``: it is the link of a message, which is not here."""
        if is_readable:
            title = tr("This message is not on this device")
            words = tr(
                "No conversation of this profile knows of it. If it belongs to one that you are "
                "not in, open the link in a profile that is. If you deleted it, or left its "
                "conversation, it is gone from here. If it never came, wait until you are "
                "connected and the history was fetched, and open the link again."
            )
        else:
            title = tr("This link leads to no message")
            words = tr(
                "What follows “causerie:message/” is no message's id: it was changed or cut off. "
                "Open the report again, and click the message there."
            )
        super().__init__(title, words, parent=parent)
        shown = breaking(one_line(link, _LONGEST), _LONGEST_RUN)
        self.body.addWidget(Text(shown, face="code", colour="ink2", wrap=True))
        self.add_close()
