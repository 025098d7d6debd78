"""The sheet about a channel with a shared key: make one, or join one by its link or its names.

Its names and a new random key stand there already.  A link that is pasted puts those of its channel
in their place, before anybody agrees to anything; without the link they are as before.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace
from PySide6.QtWidgets import QHBoxLayout, QWidget

from engine.api import MAX_NAME_CHARACTERS
from engine.core.channel_link import MAX_CHANNEL_ID_BYTES, MAX_TOPIC_BYTES, SHARED_KEY_BYTES
from engine.core.errors import InputError, InputFlaw, InviteError
from engine.core.ids import ChannelId, ContentTopic
from engine.core.records import ChannelName
from ui.conversation_words import shared_key_words
from ui.dialogs.open_channel import (
    ChannelChoice,
    ChannelSheet,
    field_box,
    field_column,
    line_field,
    typed_number,
)
from ui.dialogs.pasted_link import MAX_LINK_CHARACTERS
from ui.dialogs.sheet import field_label, say_problem
from ui.error_words import error_words
from ui.tasks import Tasks
from ui.translate import tr

_DIGITS: Final = 5
_KEY_CHARACTERS: Final = 4 * SHARED_KEY_BYTES
"""Room for spaces between the digits."""


class KeyChannel(ChannelSheet):
    def __init__(  # noqa: PLR0913 - keyword-only: what it shows, and what it does
        self,
        join: Callable[[ChannelChoice], Awaitable[None]],
        tasks: Tasks,
        *,
        proposed: ChannelName,
        preview: Callable[[str], ChannelName],
        nick: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(
            tr("Channel with a shared key"),
            tr("Make a channel, or join one by its link. Other Waku programs can be in it, too."),
            join,
            tasks,
            parent=parent,
        )
        self._proposed = proposed
        self._preview = preview
        self._is_linked = False
        self.link = line_field("", MAX_LINK_CHARACTERS, tr("Paste it, if you were given one"))
        self.channel_id = line_field("", MAX_CHANNEL_ID_BYTES, tr("For example general"))
        self.nick = line_field(nick, MAX_NAME_CHARACTERS)
        self.content_topic = line_field("", MAX_TOPIC_BYTES, "/my-app/1/room/proto")
        self.cluster = line_field("", _DIGITS)
        self.shard = line_field("", _DIGITS, tr("By content topic"))
        self.key = line_field("", _KEY_CHARACTERS, tr("64 digits from 0 to 9 and a to f"))
        self.label = line_field("", MAX_NAME_CHARACTERS, tr("As the channel is called"))
        self._lay_out(
            self._name_fields(), self._more_choices(), shared_key_words(), tr("Create channel")
        )
        self._fill(proposed)
        for field in (self.channel_id, self.content_topic, self.cluster, self.shard, self.key):
            field.textChanged.connect(self._judge)
        self.nick.textChanged.connect(self._judge)
        self.link.textChanged.connect(self._read_link)
        self._judge()
        self.link.setFocus()

    def show_link(self, link: str) -> None:
        """One that was pressed."""
        self.link.setText(link)

    def _name_fields(self) -> QWidget:
        box, column = field_box()
        for words, field in (
            (tr("Channel link"), self.link),
            (tr("Channel id"), self.channel_id),
            (tr("Your name there"), self.nick),
        ):
            column.addWidget(field_label(words, field))
            column.addWidget(field)
        return box

    def _more_choices(self) -> QWidget:
        box, column = field_box()
        column.addWidget(field_label(tr("Content topic"), self.content_topic))
        column.addWidget(self.content_topic)
        places = QHBoxLayout()
        places.setSpacing(12)
        places.addLayout(field_column(tr("Cluster"), self.cluster))
        places.addLayout(field_column(tr("Shard"), self.shard))
        column.addLayout(places)
        for words, field in ((tr("Shared key"), self.key), (tr("Label in your list"), self.label)):
            column.addWidget(field_label(words, field))
            column.addWidget(field)
        box.hide()
        return box

    def _fill(self, name: ChannelName) -> None:
        self.channel_id.setText(name.channel_id)
        self.content_topic.setText(name.content_topic)
        self.cluster.setText(str(name.cluster_id))
        self.shard.setText("" if name.shard is None else str(name.shard))
        self.key.setText(name.key.hex())
        for field in (self.content_topic, self.key):
            field.setCursorPosition(0)

    def _read_link(self) -> None:
        """Put the names of the link's channel into the fields, or the proposed ones again."""
        link = "".join(self.link.text().split())
        problem = ""
        if link:
            try:
                self._fill(self._preview(link))
            except InviteError as error:
                problem = error_words(error)
            else:
                self._is_linked = True
        if self._is_linked and (problem or not link):
            self._is_linked = False
            self._fill(self._proposed)
        self._judge()
        say_problem(self.problem, problem)
        if problem:
            self.confirm.setEnabled(False)
        self.confirm.rename(tr("Join channel") if link else tr("Create channel"))

    def _judge(self) -> None:
        say_problem(self.problem, "")
        needed = (self.channel_id, self.content_topic, self.cluster, self.nick, self.key)
        self.confirm.setEnabled(all(field.text().strip() for field in needed))

    def _choice(self) -> ChannelChoice:
        shard = self.shard.text().strip()
        name = replace(
            self._proposed,
            channel_id=ChannelId(self.channel_id.text().strip()),
            content_topic=ContentTopic(self.content_topic.text().strip()),
            cluster_id=typed_number(self.cluster.text()),
            shard=typed_number(shard) if shard else None,
            key=_key(self.key.text()),
        )
        return ChannelChoice(
            name=name, label=self.label.text().strip(), nick=self.nick.text().strip()
        )


def _key(text: str) -> bytes:
    try:
        key = bytes.fromhex(text.strip().removeprefix("0x"))
    except ValueError:
        key = b""
    if len(key) != SHARED_KEY_BYTES:
        raise InputError(InputFlaw.SHARED_KEY, limit=SHARED_KEY_BYTES)
    return key
