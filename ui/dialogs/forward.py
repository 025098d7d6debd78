"""Choose the conversations that a message is forwarded to."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from engine.core.ids import ConversationId
from engine.events import ConversationView, MessageView
from ui.avatar import Avatar
from ui.conversation_words import is_group
from ui.dialogs.group import scrolling
from ui.dialogs.sheet import Sheet, field_label
from ui.foreign_text import one_line
from ui.people import cannot_write_words
from ui.translate import tr

_QUOTED = 120


class Forward(Sheet):
    """Accepted once at least one conversation is chosen."""

    def __init__(
        self,
        message: MessageView,
        conversations: Sequence[ConversationView],
        parent: QWidget | None = None,
    ) -> None:
        words = tr("It goes out as a message of yours that says it is forwarded: {text}")
        text = one_line(message.text, _QUOTED)
        super().__init__(tr("Forward to"), words.format(text=text), parent=parent)
        self.chosen: tuple[ConversationId, ...] = ()
        """Also once the sheet is gone."""
        usable = [view for view in conversations if not cannot_write_words(view)]
        self._rows = [_Choice(view) for view in usable]
        self.search = QLineEdit()
        self.search.setPlaceholderText(tr("Search"))
        self.body.addWidget(field_label(tr("Conversations"), self.search))
        self.body.addWidget(self.search)
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 8, 0)
        column.setSpacing(2)
        for row in self._rows:
            row.box.toggled.connect(self._judge)
            column.addWidget(row)
        column.addStretch(1)
        self.body.addWidget(scrolling(content, tr("Conversations")))
        cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.confirm = self.add_button(tr("Forward"), kind="primary")
        cancel.clicked.connect(self.reject)
        self.confirm.clicked.connect(self.accept)
        self.confirm.setDefault(True)
        self.search.textChanged.connect(self._filter)
        self._judge()
        self.search.setFocus()

    def choose(self, conversation_id: ConversationId) -> None:
        for row in self._rows:
            if row.conversation_id == conversation_id:
                row.box.setChecked(True)

    def _filter(self, text: str) -> None:
        wanted = text.strip().casefold()
        for row in self._rows:
            row.setVisible(wanted in row.name.casefold() or row.box.isChecked())

    def _judge(self) -> None:
        self.chosen = tuple(row.conversation_id for row in self._rows if row.box.isChecked())
        self.confirm.setEnabled(bool(self.chosen))


class _Choice(QWidget):
    def __init__(self, conversation: ConversationView) -> None:
        super().__init__()
        self.conversation_id = conversation.conversation_id
        self.name = one_line(conversation.name, 60)
        avatar = Avatar(28, is_group=is_group(conversation))
        avatar.show_identity(conversation.conversation_id, self.name)
        self.box = QCheckBox(self.name.replace("&", "&&"))
        self.box.setAccessibleName(self.name)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 2, 0, 2)
        row.setSpacing(10)
        row.addWidget(avatar)
        row.addWidget(self.box, 1, Qt.AlignmentFlag.AlignVCenter)
