"""Sheets about open channels: join one by its names, and change its label.

Joining and creating are the same: anyone who knows the names is in.  The sheet says, where the user
agrees to it, that nothing is encrypted there and that nobody's name is proved.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import Struct
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from engine.api import MAX_NAME_CHARACTERS
from engine.core.errors import ChatError, InputError
from engine.core.ids import ChannelId, ContentTopic
from engine.core.records import ChannelName, OpenFormat, OpenPace
from engine.events import ConversationView, OpenChannelView
from ui.controls import Button, Text
from ui.conversation_words import open_channel_line, shard_words, shared_key_words
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
    format: OpenFormat = OpenFormat.AUTO
    pace: OpenPace = OpenPace.JS_WAKU


class ChannelSheet(Sheet):
    """Names, more choices in their place if they are asked for, a warning, and a button that joins.

    ``join`` may refuse, and then the reason stands under the fields.
    """

    def __init__(
        self,
        title: str,
        words: str,
        join: Callable[[ChannelChoice], Awaitable[None]],
        tasks: Tasks,
        *,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(title, words, parent=parent)
        self._join = join
        self._tasks = tasks
        self.more = Button(tr("More choices"), kind="ghost", size="small")
        self.problem = problem_line()

    def _lay_out(self, names: QWidget, choices: QWidget, warning: str, yes: str) -> None:
        self._names, self._choices = names, choices
        self.body.addWidget(names)
        self.body.addWidget(choices)
        more = QHBoxLayout()
        more.addSpacing(-self.more.inset())  # Its words stand below the fields.
        more.addWidget(self.more)
        more.addStretch(1)
        self.body.addLayout(more)
        self.body.addWidget(Text(warning, face="label", colour="warn", strong=True, wrap=True))
        self.body.addWidget(self.problem)
        cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.confirm = self.add_button(yes, kind="primary")
        self.confirm.setDefault(True)
        cancel.clicked.connect(self.reject)
        self.confirm.clicked.connect(self._submit)
        self.more.clicked.connect(self._turn)

    def _turn(self) -> None:
        """Show the choices, or the names again: together, in large type, they outgrow a screen."""
        to_choices = self._choices.isHidden()
        self._names.setVisible(not to_choices)
        self._choices.setVisible(to_choices)
        self.more.rename(tr("Back to the names") if to_choices else tr("More choices"))
        shown = self._choices if to_choices else self._names
        next(iter(shown.findChildren(QLineEdit))).setFocus()

    def _choice(self) -> ChannelChoice:
        """Raises ValueError for a cluster or shard that is no number, and InputError for a key."""
        raise NotImplementedError

    def _submit(self) -> None:
        try:
            choice = self._choice()
        except InputError as error:
            say_problem(self.problem, error_words(error))
            return
        except ValueError:
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


class OpenChannel(ChannelSheet):
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
            join,
            tasks,
            parent=parent,
        )
        self.channel_id = line_field("", _LONGEST_ID, tr("For example general"))
        self.content_topic = line_field("", _LONGEST_TOPIC, "/my-app/1/room/proto")
        self.cluster = line_field(str(cluster_id), _DIGITS)
        self.shard = line_field("", _DIGITS, tr("By content topic"))
        self.nick = line_field(nick, MAX_NAME_CHARACTERS)
        self.label = line_field("", MAX_NAME_CHARACTERS, tr("As the channel is called"))
        self.format = Segments(
            tr("Messages as"), (tr("As others do"), tr("Plain text"), tr("TOY-CHAT"))
        )
        self.pace = Segments(tr("Histories and retries"), (tr("As js-waku"), tr("As Causerie")))
        self.format.choose(0)
        self.pace.choose(0)
        warning = tr("Not encrypted: anybody can read and write, under any name.")
        self._lay_out(self._name_fields(), self._more_choices(), warning, tr("Open channel"))
        for field in (self.channel_id, self.content_topic, self.cluster, self.shard, self.nick):
            field.textChanged.connect(self._judge)
        self._judge()
        self.channel_id.setFocus()

    def _name_fields(self) -> QWidget:
        box, column = field_box()
        for words, field in (
            (tr("Channel id"), self.channel_id),
            (tr("Content topic"), self.content_topic),
        ):
            column.addWidget(field_label(words, field))
            column.addWidget(field)
        places = QHBoxLayout()
        places.setSpacing(12)
        places.addLayout(field_column(tr("Cluster"), self.cluster))
        places.addLayout(field_column(tr("Shard"), self.shard))
        column.addLayout(places)
        column.addWidget(field_label(tr("Your name there"), self.nick))
        column.addWidget(self.nick)
        return box

    def _more_choices(self) -> QWidget:
        box, column = field_box()
        for words, field in (
            (tr("Label in your list"), self.label),
            (tr("Messages as"), self.format),
            (tr("Histories and retries"), self.pace),
        ):
            column.addWidget(field_label(words, field))
            column.addWidget(field)
        box.hide()
        return box

    def _judge(self) -> None:
        say_problem(self.problem, "")
        needed = (self.content_topic, self.cluster, self.nick)
        self.confirm.setEnabled(all(field.text().strip() for field in needed))

    def _choice(self) -> ChannelChoice:
        shard = self.shard.text().strip()
        return ChannelChoice(
            name=ChannelName(
                channel_id=ChannelId(self.channel_id.text().strip()),
                content_topic=ContentTopic(self.content_topic.text().strip()),
                cluster_id=typed_number(self.cluster.text()),
                shard=typed_number(shard) if shard else None,
            ),
            label=self.label.text().strip(),
            nick=self.nick.text().strip(),
            format=_FORMATS[self.format.chosen_number],
            pace=_PACES[self.pace.chosen_number],
        )


class ChannelDoing(Struct, frozen=True, kw_only=True):
    """What the page of a channel can do."""

    set_label: Callable[[str], Awaitable[None]]
    link: Callable[[], Awaitable[str]]
    """With which others join a channel with a shared key."""
    key: Callable[[], Awaitable[str]]
    """That of such a channel, in hexadecimal digits."""


class ChannelDetails(Sheet):
    """What others need to join, and the label, which is only here.

    The key itself is not shown: it can be copied, alone or in a link.
    """

    def __init__(
        self,
        conversation: ConversationView,
        channel: OpenChannelView,
        doing: ChannelDoing,
        tasks: Tasks,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(one_line(conversation.name, 60), open_channel_line(channel), parent=parent)
        self._doing = doing
        self._tasks = tasks
        for words, value in (
            (tr("Channel id"), channel.channel_id),
            (tr("Content topic"), channel.content_topic),
            (tr("Cluster and shard"), shard_words(channel)),
            (tr("You are there"), channel.sender_id),
        ):
            self.body.addWidget(Text(words, face="caption", colour="ink3"))
            self.body.addWidget(selectable(value))
        self.copy_link = Button(tr("Copy link"), size="small")
        self.copy_key = Button(tr("Copy key"), size="small")
        if channel.has_key:
            self._offer_key()
        self.label = line_field(
            one_line(conversation.name, MAX_NAME_CHARACTERS), MAX_NAME_CHARACTERS
        )
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

    def _offer_key(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(8)
        for button, text in ((self.copy_link, self._doing.link), (self.copy_key, self._doing.key)):
            button.clicked.connect(partial(self._start_copying, button, text))
            row.addWidget(button)
        row.addStretch(1)
        warning = Text(shared_key_words(), face="label", colour="warn", strong=True, wrap=True)
        self.body.addWidget(warning)
        self.body.addLayout(row)

    def _start_copying(
        self, button: Button, text: Callable[[], Awaitable[str]], _checked: bool = False
    ) -> None:
        async def copy() -> None:
            QGuiApplication.clipboard().setText(await text())
            button.rename(tr("Copied"))

        self._tasks.spawn(copy, purpose=tr("copy the channel's link"), retry=False)

    def _judge(self) -> None:
        say_problem(self.problem, "")
        self.confirm.setEnabled(bool(self.label.text().strip()))

    def _submit(self) -> None:
        self._tasks.spawn(self._do, purpose=tr("label the channel"), retry=False)

    async def _do(self) -> None:
        try:
            await self._doing.set_label(self.label.text().strip())
        except ChatError as error:
            say_problem(self.problem, error_words(error))
            self.label.setFocus()
        else:
            self.accept()


def leave_channel_confirm(conversation: ConversationView, parent: QWidget) -> Confirm:
    channel = conversation.open_channel
    if channel is not None and channel.has_key:
        words = tr(
            "Its messages and its key are removed from this device. Nobody is told, and you can"
            " join again only by its link."
        )
    else:
        words = tr(
            "Its messages are removed from this device. Nobody is told, and you can join again by"
            " its names."
        )
    return Confirm(
        tr("Leave {name}?").format(name=one_line(conversation.name, 60)),
        words,
        yes=tr("Leave channel"),
        kind="danger",
        parent=parent,
    )


def typed_number(text: str) -> int:
    """Raises ValueError for anything but digits."""
    if not text.strip().isdecimal():
        raise ValueError(text)
    return int(text)


def line_field(text: str, most: int, placeholder: str = "") -> QLineEdit:
    field = QLineEdit(text)
    field.setMaxLength(most)
    field.setPlaceholderText(placeholder)
    return field


def field_box() -> tuple[QWidget, QVBoxLayout]:
    box = QWidget()
    column = QVBoxLayout(box)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(8)
    return box, column


def field_column(words: str, field: QLineEdit) -> QVBoxLayout:
    column = QVBoxLayout()
    column.setSpacing(8)
    column.addWidget(field_label(words, field))
    column.addWidget(field)
    return column
