"""Sheets about open channels: join one by its names, and change its label.

Joining and creating are the same: anyone who knows the names is in.  The sheet says, where the user
agrees to it, that nothing is encrypted there and that nobody's name is proved.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from engine.api import MAX_NAME_CHARACTERS
from engine.core.errors import ChatError
from engine.core.ids import ChannelId, ContentTopic
from engine.core.records import ChannelName, OpenFormat, OpenPace
from engine.events import ConversationView, OpenChannelView
from ui.controls import Button, Text
from ui.conversation_words import open_channel_line, shard_words
from ui.dialogs.confirm import Confirm
from ui.dialogs.group import selectable
from ui.dialogs.sheet import Sheet, field_label, problem_line, say_problem
from ui.error_words import error_words
from ui.foreign_text import one_line
from ui.segments import Segments
from ui.tasks import Tasks
from ui.translate import tr

_LONGEST_TOPIC: Final = 256
_LONGEST_ID: Final = 128
_DIGITS: Final = 5
_FORMATS: Final = (OpenFormat.AUTO, OpenFormat.TEXT, OpenFormat.TOY_CHAT)
_PACES: Final = (OpenPace.JS_WAKU, OpenPace.CAUSERIE)


class ChannelChoice(Struct, frozen=True, kw_only=True):
    """What the sheet asks for."""

    name: ChannelName
    label: str
    nick: str
    format: OpenFormat
    pace: OpenPace


class OpenChannel(Sheet):
    """``join`` may refuse, and then the reason stands under the fields."""

    def __init__(
        self,
        join: Callable[[ChannelChoice], Awaitable[None]],
        tasks: Tasks,
        *,
        cluster_id: int,
        nick: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(
            tr("Open channel"),
            tr("Join a channel by its names, or make one. Other Waku programs can be in it, too."),
            parent=parent,
        )
        self._join = join
        self._tasks = tasks
        self.channel_id = _line("", _LONGEST_ID, tr("For example general"))
        self.content_topic = _line("", _LONGEST_TOPIC, "/my-app/1/room/proto")
        self.cluster = _line(str(cluster_id), _DIGITS)
        self.shard = _line("", _DIGITS, tr("By content topic"))
        self.nick = _line(nick, MAX_NAME_CHARACTERS)
        self.label = _line("", MAX_NAME_CHARACTERS, tr("As the channel is called"))
        self.format = Segments(
            tr("Messages as"), (tr("As others do"), tr("Plain text"), tr("TOY-CHAT"))
        )
        self.pace = Segments(tr("Histories and retries"), (tr("As js-waku"), tr("As Causerie")))
        self.format.choose(0)
        self.pace.choose(0)
        self.more = Button(tr("More choices"), kind="ghost", size="small")
        self.problem = problem_line()
        self._names = self._name_fields()
        self._choices = self._more_choices()
        self._lay_out()
        cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.confirm = self.add_button(tr("Open channel"), kind="primary")
        self.confirm.setDefault(True)
        cancel.clicked.connect(self.reject)
        self.confirm.clicked.connect(self._submit)
        self.more.clicked.connect(self._turn)
        for field in (self.channel_id, self.content_topic, self.cluster, self.shard, self.nick):
            field.textChanged.connect(self._judge)
        self._judge()
        self.channel_id.setFocus()

    def _lay_out(self) -> None:
        self.body.addWidget(self._names)
        self.body.addWidget(self._choices)
        self.body.addWidget(self.more)
        warning = Text(
            tr("Not encrypted: anybody can read and write, under any name."),
            face="label",
            colour="warn",
            strong=True,
            wrap=True,
        )
        self.body.addWidget(warning)
        self.body.addWidget(self.problem)

    def _name_fields(self) -> QWidget:
        box, column = _box()
        for words, field in (
            (tr("Channel id"), self.channel_id),
            (tr("Content topic"), self.content_topic),
        ):
            column.addWidget(field_label(words, field))
            column.addWidget(field)
        places = QHBoxLayout()
        places.setSpacing(12)
        places.addLayout(_column(tr("Cluster"), self.cluster))
        places.addLayout(_column(tr("Shard"), self.shard))
        column.addLayout(places)
        column.addWidget(field_label(tr("Your name there"), self.nick))
        column.addWidget(self.nick)
        return box

    def _more_choices(self) -> QWidget:
        box, column = _box()
        for words, field in (
            (tr("Label in your list"), self.label),
            (tr("Messages as"), self.format),
            (tr("Histories and retries"), self.pace),
        ):
            column.addWidget(field_label(words, field))
            column.addWidget(field)
        box.hide()
        return box

    def _turn(self) -> None:
        """Show the choices, or the names again: together, in large type, they outgrow a screen."""
        to_choices = self._choices.isHidden()
        self._names.setVisible(not to_choices)
        self._choices.setVisible(to_choices)
        self.more.rename(tr("Back to the names") if to_choices else tr("More choices"))
        (self.label if to_choices else self.channel_id).setFocus()

    def _judge(self) -> None:
        say_problem(self.problem, "")
        needed = (self.content_topic, self.cluster, self.nick)
        self.confirm.setEnabled(all(field.text().strip() for field in needed))

    def _choice(self) -> ChannelChoice | None:
        """None if cluster or shard is not a number."""
        cluster, shard = self.cluster.text().strip(), self.shard.text().strip()
        if not cluster.isdecimal() or (shard and not shard.isdecimal()):
            return None
        return ChannelChoice(
            name=ChannelName(
                channel_id=ChannelId(self.channel_id.text().strip()),
                content_topic=ContentTopic(self.content_topic.text().strip()),
                cluster_id=int(cluster),
                shard=int(shard) if shard else None,
            ),
            label=self.label.text().strip(),
            nick=self.nick.text().strip(),
            format=_FORMATS[self.format.chosen_number],
            pace=_PACES[self.pace.chosen_number],
        )

    def _submit(self) -> None:
        choice = self._choice()
        if choice is None:
            say_problem(self.problem, tr("Cluster and shard are numbers."))
            return
        self.confirm.setEnabled(False)

        async def work() -> None:
            try:
                await self._join(choice)
            except ChatError as error:
                say_problem(self.problem, error_words(error))
                self.confirm.setEnabled(True)
            else:
                self.accept()

        self._tasks.spawn(work, purpose=tr("open the channel"), retry=False)


class ChannelDetails(Sheet):
    """What others need to join, and the label, which is only here."""

    def __init__(
        self,
        conversation: ConversationView,
        channel: OpenChannelView,
        set_label: Callable[[str], Awaitable[None]],
        tasks: Tasks,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(one_line(conversation.name, 60), open_channel_line(channel), parent=parent)
        self._set_label = set_label
        self._tasks = tasks
        for words, value in (
            (tr("Channel id"), channel.channel_id),
            (tr("Content topic"), channel.content_topic),
            (tr("Cluster and shard"), shard_words(channel)),
            (tr("You are there"), channel.sender_id),
        ):
            self.body.addWidget(Text(words, face="caption", colour="ink3"))
            self.body.addWidget(selectable(value))
        self.label = _line(one_line(conversation.name, MAX_NAME_CHARACTERS), MAX_NAME_CHARACTERS)
        self.problem = problem_line()
        self.body.addWidget(field_label(tr("Label in your list"), self.label))
        self.body.addWidget(self.label)
        self.body.addWidget(self.problem)
        close = self.add_button(tr("Close"), left=True, kind="ghost")
        close.clicked.connect(self.reject)
        self.confirm = self.add_button(tr("Set label"), kind="primary")
        self.confirm.setDefault(True)
        self.confirm.clicked.connect(self._submit)
        self.label.textChanged.connect(self._judge)

    def _judge(self) -> None:
        say_problem(self.problem, "")
        self.confirm.setEnabled(bool(self.label.text().strip()))

    def _submit(self) -> None:
        self._tasks.spawn(self._do, purpose=tr("label the channel"), retry=False)

    async def _do(self) -> None:
        try:
            await self._set_label(self.label.text().strip())
        except ChatError as error:
            say_problem(self.problem, error_words(error))
            self.label.setFocus()
        else:
            self.accept()


def leave_channel_confirm(conversation: ConversationView, parent: QWidget) -> Confirm:
    return Confirm(
        tr("Leave {name}?").format(name=one_line(conversation.name, 60)),
        tr(
            "Its messages are removed from this device. Nobody is told, and you can join again by"
            " its names."
        ),
        yes=tr("Leave channel"),
        kind="danger",
        parent=parent,
    )


def _line(text: str, most: int, placeholder: str = "") -> QLineEdit:
    field = QLineEdit(text)
    field.setMaxLength(most)
    field.setPlaceholderText(placeholder)
    return field


def _box() -> tuple[QWidget, QVBoxLayout]:
    box = QWidget()
    column = QVBoxLayout(box)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(8)
    return box, column


def _column(words: str, field: QLineEdit) -> QVBoxLayout:
    column = QVBoxLayout()
    column.setSpacing(8)
    column.addWidget(field_label(words, field))
    column.addWidget(field)
    return column
