"""Who holds a message, and how we know."""

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine.answers import HolderView
from engine.core.ids import HolderSource, UnixMs
from ui.avatar import Avatar
from ui.controls import ColourRole, ElidedText, Pill, Text
from ui.conversation_words import chance_words
from ui.dialogs.sheet import ScrolledPart, Sheet
from ui.foreign_text import one_line
from ui.theme import current_theme, theme_changed
from ui.times import spoken_time
from ui.translate import tr


def _sign_words(source: str) -> str:
    match source:
        case HolderSource.CAUSAL:
            return tr("named it later")
        case HolderSource.HOLDINGS:
            return tr("told us so")
        case HolderSource.REPAIR:
            return tr("sent it again for somebody")
        case HolderSource.BLOOM:
            return tr("its filter says so, which can err")
        case _:
            return one_line(source, 60)


def source_words(holder: HolderView, *, is_open: bool = False) -> str:
    if holder.source is None:
        return tr("no sign yet")
    if not holder.certain and holder.false_probability is not None:
        return tr("{chance} it is wrong").format(chance=chance_words(holder.false_probability))
    if is_open:
        return tr("says so, unproved")
    return _sign_words(holder.source)


def held_words(holders: Sequence[HolderView], *, is_open: bool = False) -> str:
    """``is_open``: in an open channel, where nobody is proved."""
    if is_open:
        return tr(
            "Maybe held under %n names; nobody here is proved.",
            "Maybe held under %n name; nobody here is proved.",
            sum(1 for holder in holders if holder.source is not None),
        )
    if not holders:
        return tr("Nobody else is in this group yet.")
    certain = sum(1 for holder in holders if holder.source is not None and holder.certain)
    maybe = sum(1 for holder in holders if holder.source is not None and not holder.certain)
    if len(holders) == 1:  # "Of 1 others" is no English.
        words = tr("Held by {number} of {all}, maybe {maybe} more.")
        words = words if maybe else tr("Held by {number} of {all}.")
    elif maybe:
        words = tr("Held by {number} of {all} others, maybe {maybe} more.")
    else:
        words = tr("Held by {number} of {all} others.")
    return words.format(number=certain, all=len(holders), maybe=maybe)


class Holders(Sheet):
    def __init__(
        self,
        holders: Sequence[HolderView],
        now: datetime,
        parent: QWidget | None = None,
        *,
        is_open: bool = False,
    ) -> None:
        words = held_words(holders, is_open=is_open)
        super().__init__(tr("Who holds it"), words, parent=parent)
        content = QWidget()
        rows = QVBoxLayout(content)
        rows.setContentsMargins(0, 0, 8, 0)
        rows.setSpacing(8)
        for holder in holders:
            row = HolderRow()
            row.show_holder(holder, now, is_open=is_open)
            rows.addWidget(row)
        rows.addStretch(1)
        self.body.addWidget(ScrolledPart(content, tr("Who holds it")))
        self.add_close()


class HolderRow(QWidget):
    """Of one height, whatever is known: those below stay where they are when more is known."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: object = None
        self._avatar = Avatar(28, is_group=False)
        self._name = ElidedText(face="label", strong=True)
        self._words = ElidedText(face="caption", colour="ink2")
        self._pill = Pill("", ink="ink3", fill="surface2")
        self._since = Text(face="caption", colour="ink3")
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(self._name)
        texts.addWidget(self._words)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(self._avatar)
        row.addLayout(texts, 1)
        row.addWidget(self._pill)
        row.addWidget(self._since)
        theme_changed.connect(self._dress)
        self._dress()

    def _dress(self) -> None:
        faces = current_theme().type
        self.setMinimumHeight(int(faces.label.line_height) + int(faces.caption.line_height))

    def show_holder(
        self,
        holder: HolderView,
        now: datetime,
        *,
        is_open: bool = False,
        sign: str = "",
        lacking_ms: UnixMs | None = None,
    ) -> None:
        """``sign``: how we know, if more is known than the kind of sign.

        ``lacking_ms``: since when somebody without a sign could have given one.
        """
        told = holder, is_open, sign, lacking_ms, now.date()
        if told == self._shown:
            return
        self._shown = told
        since = "" if holder.since_ms is None else spoken_time(holder.since_ms, now)
        if holder.source is None and lacking_ms is not None and not is_open:
            since = tr("since {time}").format(time=spoken_time(lacking_ms, now))
        name = one_line(holder.name, 60)
        mark, ink, fill = _mark(holder)
        words = sign or source_words(holder, is_open=is_open)
        self.setAccessibleName(f"{name}: {mark}, {words} {since}".rstrip())
        self._avatar.show_identity(holder.participant_id, name)
        self._name.setText(name)
        self._words.setText(words)
        self._words.setVisible(bool(sign) or holder.source is not None)
        self._pill.show_mark(mark, ink=ink, fill=fill)
        self._since.setText(since)
        self._since.setVisible(bool(since))  # Nothing keeps a mark from the edge without a time.


def _mark(holder: HolderView) -> tuple[str, ColourRole, ColourRole]:
    if holder.source is None:
        return tr("no sign"), "ink3", "surface2"
    if holder.certain:
        return tr("holds it"), "accentInk", "accentSoft"
    return tr("maybe"), "ink2", "surface2"
