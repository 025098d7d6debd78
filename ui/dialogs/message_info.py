"""Sheets about one message: how it came and who holds it, its earlier versions, who reacted."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from engine.answers import Arrival, MessageInfo, ReactorView, VersionView
from engine.api import MAX_EMOJI_EACH
from engine.core.ids import UnixMs
from ui.avatar import Avatar
from ui.controls import Card, ElidedText, Text
from ui.conversation_words import sender_words
from ui.dialogs.holders import HolderRow, held_words
from ui.dialogs.sheet import ScrolledPart, Sheet
from ui.foreign_text import one_line
from ui.glyphs import Glyph, glyph_of
from ui.marked_text import shown_text
from ui.regional import grouped
from ui.times import moment, moment_words, off_words, spoken_time
from ui.translate import tr

_QUOTED = 120
_LONGEST_VERSION = 4000


def arrival_words(info: MessageInfo) -> str:
    match info.arrival:
        case Arrival.WRITTEN_HERE:
            return tr("Written on this device")
        case Arrival.LIVE:
            return tr("Directly, when it was sent")
        case Arrival.STORE:
            return tr("From a Store")
        case Arrival.REPAIR if info.repaired_by:
            name = one_line(info.repaired_by, 60)
            return tr("{name} sent it again, because it was missing").format(name=name)
        case Arrival.REPAIR:
            return tr("A member sent it again, because it was missing")
        case Arrival.UNKNOWN:
            return tr("Unknown: it came before this was noted")


class MessageInfoSheet(Sheet):
    """Times, the way it came, and who holds it."""

    def __init__(
        self,
        info: MessageInfo,
        now: datetime,
        parent: QWidget | None = None,
        *,
        is_open: bool = False,
        is_pair: bool = False,
    ) -> None:
        """``is_open``: in an open channel, where nobody is proved; ``is_pair``: one-to-one."""
        message = info.message
        words = one_line(shown_text(message), _QUOTED)
        super().__init__(tr("Message info"), words, parent=parent)
        facts = [(tr("From"), sender_words(message)), (tr("Sent"), _full(message.sent_ms))]
        if info.arrival is not Arrival.WRITTEN_HERE:
            facts.append((tr("Received"), _full(info.received_ms)))
        if info.placed_ms is not None:
            waited = off_words(info.placed_ms - info.received_ms)
            words = tr("{time}, after it had waited {duration} for others")
            facts.append((tr("Shown"), words.format(time=_full(info.placed_ms), duration=waited)))
        facts.append((tr("Came"), arrival_words(info)))
        if message.edited_ms is not None:
            facts.append((tr("Edited"), _full(message.edited_ms)))
        if message.late:
            facts.append((tr("Late"), tr("It arrived after messages that follow it")))
        if names := _whole_at(info):
            facts.append((tr("All of the file"), tr("{names} said so").format(names=names)))
        if info.size:
            facts.append((tr("Size"), tr("{size} bytes").format(size=grouped(info.size))))
        self.facts = QWidget()
        grid = QGridLayout(self.facts)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(16)
        grid.setColumnStretch(1, 1)
        for row, (name, value) in enumerate(facts):
            label = Text(name, face="label", colour="ink2")
            shown = Text(value, face="label", wrap=True)
            shown.setAccessibleName(f"{name}: {value}")
            shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(shown, row, 1)
        self.body.addWidget(self.facts)
        if info.holders or not is_pair:  # Of two, what the other one wrote is at both.
            self._add_holders(info, now, is_open=is_open)
        self.add_close()

    def _add_holders(self, info: MessageInfo, now: datetime, *, is_open: bool) -> None:
        self.body.addSpacing(8)
        words = held_words(info.holders, is_open=is_open)
        self.body.addWidget(Text(words, face="label", strong=True, wrap=True))
        content = QWidget()
        rows = QVBoxLayout(content)
        rows.setContentsMargins(0, 0, 8, 0)
        rows.setSpacing(8)
        for holder in info.holders:
            row = HolderRow()
            row.show_holder(holder, now, is_open=is_open)
            rows.addWidget(row)
        rows.addStretch(1)
        self.body.addWidget(ScrolledPart(content, tr("Who holds it")))


class Versions(Sheet):
    """What a message said before, the newest first."""

    def __init__(
        self, versions: Sequence[VersionView], now: datetime, parent: QWidget | None = None
    ) -> None:
        super().__init__(
            tr("Versions of this message"),
            tr("Everybody who received an earlier version can still read it."),
            parent=parent,
        )
        content = QWidget()
        rows = QVBoxLayout(content)
        rows.setContentsMargins(0, 0, 8, 0)
        rows.setSpacing(8)
        for version in sorted(versions, key=lambda each: each.sent_ms, reverse=True):
            rows.addWidget(_VersionRow(version, now))
        rows.addStretch(1)
        self.body.addWidget(ScrolledPart(content, tr("Versions of this message")))
        self.add_close()


class _VersionRow(Card):
    def __init__(self, version: VersionView, now: datetime) -> None:
        super().__init__("surface2", "line", radius=9)
        when = spoken_time(version.sent_ms, now)
        title = tr("{time}, shown now").format(time=when) if version.is_shown else when
        text = version.text[:_LONGEST_VERSION]
        if len(text) < len(version.text):
            text = f"{text.rstrip()}…"
        self.setAccessibleName(f"{title}: {one_line(text, _QUOTED)}")
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(2)
        column.addWidget(Text(title, face="caption", colour="ink2", strong=version.is_shown))
        words = Text(text, face="body", wrap=True)
        words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column.addWidget(words)


class Reactors(Sheet):
    """Who reacted, and with what."""

    def __init__(
        self, reactors: Sequence[ReactorView], now: datetime, parent: QWidget | None = None
    ) -> None:
        super().__init__(tr("Who reacted"), parent=parent)
        content = QWidget()
        rows = QVBoxLayout(content)
        rows.setContentsMargins(0, 0, 8, 0)
        rows.setSpacing(8)
        for reactor in reactors:
            rows.addWidget(_ReactorRow(reactor, now))
        if not reactors:
            rows.addWidget(Text(tr("Nobody any more."), face="body", colour="ink2"))
        rows.addStretch(1)
        self.body.addWidget(ScrolledPart(content, tr("Who reacted")))
        most = max(Counter(each.participant_id for each in reactors).values(), default=0)
        if most >= MAX_EMOJI_EACH:
            words = tr("Of each person the {most} newest reactions count.")
            words = words.format(most=MAX_EMOJI_EACH)
            self.body.addWidget(Text(words, face="caption", colour="ink2", wrap=True))
        self.add_close()


class _ReactorRow(QWidget):
    def __init__(self, reactor: ReactorView, now: datetime) -> None:
        super().__init__()
        known_as = one_line(reactor.name, 60)
        name = tr("You") if reactor.is_own else known_as
        when = spoken_time(reactor.sent_ms, now)
        if reactor.delivery is not None and glyph_of(reactor.delivery) is Glyph.SAVED:
            when = tr("not sent yet")
        self.setAccessibleName(f"{name}: {reactor.emoji}, {when}")
        avatar = Avatar(28, is_group=False)
        avatar.show_identity(reactor.participant_id, known_as)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(avatar)
        row.addWidget(ElidedText(name, face="label", strong=True), 1)
        row.addWidget(Text(when, face="caption", colour="ink3"))
        row.addWidget(Text(reactor.emoji, face="heading"))


def _whole_at(info: MessageInfo) -> str:
    """The names of those who said, signed, that they have the file as a whole."""
    held_by = () if info.message.file is None else info.message.file.held_whole_by
    names = {holder.participant_id: one_line(holder.name, 60) for holder in info.holders}
    return ", ".join(names.get(who, tr("Somebody who left")) for who in held_by)


def _full(at_ms: UnixMs) -> str:
    return moment_words(moment(at_ms))
