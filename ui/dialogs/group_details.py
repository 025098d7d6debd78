"""The sheet of a governed group's name, topic and picture, for those who may change them."""

from collections.abc import Awaitable, Callable

from msgspec import Struct
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget
from shiboken6 import isValid

from engine.core.admin_log.acts import MAX_TOPIC_CHARACTERS
from engine.core.errors import ChatError
from engine.events import ConversationView
from engine.governance_views import GovernanceView
from ui.avatar import Avatar
from ui.controls import Button
from ui.dialogs.profile import ChoosePicture, chosen_picture
from ui.dialogs.sheet import Sheet, field_label, limit_name, problem_line, say_problem
from ui.error_words import error_words
from ui.foreign_text import one_line
from ui.tasks import Tasks
from ui.translate import tr


class Details(Struct, frozen=True, kw_only=True):
    name: str
    topic: str
    picture: bytes
    """PNG or JPEG, or empty."""


class GroupDetails(Sheet):
    """``save`` may refuse something, and then the reason stands below."""

    def __init__(  # noqa: PLR0913 - what it shows and does
        self,
        conversation: ConversationView,
        view: GovernanceView,
        tasks: Tasks,
        parent: QWidget | None = None,
        *,
        choose: ChoosePicture,
        save: Callable[[Details], Awaitable[None]],
    ) -> None:
        super().__init__(
            tr("Name, topic and picture"), tr("Everybody in the group sees them."), parent=parent
        )
        self._group = conversation
        self._tasks = tasks
        self._choose = choose
        self._save = save
        self._before = Details(name=conversation.name, topic=view.topic, picture=view.picture)
        self.picture = view.picture
        self._avatar = Avatar(72, is_group=True)
        self.choose_button = Button(tr("Choose a picture…"))
        self.remove_button = Button(tr("Remove picture"), kind="ghost")
        self.name = QLineEdit(one_line(conversation.name, 120))
        self.topic = QLineEdit(view.topic)
        self.topic.setMaxLength(MAX_TOPIC_CHARACTERS)
        self.topic.setPlaceholderText(tr("What it is about"))
        self.problem = problem_line()
        limit_name(self.name, self.problem)
        self._lay_out()
        cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        cancel.clicked.connect(self.reject)
        self.confirm = self.add_button(tr("Save"), kind="primary")
        self.confirm.setDefault(True)
        self.confirm.clicked.connect(self._submit)
        self.choose_button.clicked.connect(self._start_choosing)
        self.remove_button.clicked.connect(lambda _checked=False: self._take(b""))
        for field in (self.name, self.topic):
            field.textChanged.connect(self._judge)
        self._take(view.picture)
        self.name.setFocus()

    def _lay_out(self) -> None:
        buttons = QVBoxLayout()
        buttons.setSpacing(6)
        buttons.addStretch(1)
        buttons.addWidget(self.choose_button)
        buttons.addWidget(self.remove_button)
        buttons.addStretch(1)
        row = QHBoxLayout()
        row.setSpacing(16)
        row.addWidget(self._avatar)
        row.addLayout(buttons)
        row.addStretch(1)
        self.body.addLayout(row)
        for words, field in ((tr("Name of the group"), self.name), (tr("Topic"), self.topic)):
            self.body.addWidget(field_label(words, field))
            self.body.addWidget(field)
        self.body.addWidget(self.problem)

    def entered(self) -> Details:
        return Details(
            name=self.name.text().strip(), topic=self.topic.text().strip(), picture=self.picture
        )

    def _take(self, picture: bytes) -> None:
        self.picture = picture
        name = one_line(self._group.name)
        self._avatar.show_identity(self._group.conversation_id, name, picture=picture)
        self._avatar.setAccessibleName(
            tr("The group's picture") if picture else tr("The group has no picture")
        )
        self.remove_button.setVisible(bool(picture))
        self._judge()

    def _judge(self) -> None:
        say_problem(self.problem, "")
        wanted = self.entered()
        self.confirm.setEnabled(bool(wanted.name) and wanted != self._before)

    def _start_choosing(self) -> None:
        self.choose_button.setEnabled(False)
        self._tasks.spawn(self._read_chosen, purpose=tr("read the picture"), retry=False)

    async def _read_chosen(self) -> None:
        picture, problem = await chosen_picture(self._choose, self)
        if isValid(self):
            self.choose_button.setEnabled(True)
            self._take(self.picture if picture is None else picture)
            say_problem(self.problem, problem)

    def _submit(self) -> None:
        self.confirm.setEnabled(False)
        self._tasks.spawn(self._keep, purpose=tr("change the group"), retry=False)

    async def _keep(self) -> None:
        try:
            await self._save(self.entered())
        except ChatError as error:
            say_problem(self.problem, error_words(error))
            self.confirm.setEnabled(True)
        else:
            self.accept()
