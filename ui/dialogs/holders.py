"""Who holds a message, and how we know."""

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine.answers import HolderView
from engine.core.ids import HolderSource
from ui.avatar import Avatar
from ui.controls import ColourRole, ElidedText, Pill, Text
from ui.dialogs.group import scrolling
from ui.dialogs.sheet import Sheet
from ui.words import chance_words, one_line, spoken_time

_SOURCES = {
    HolderSource.CAUSAL.value: "named it in a later message",
    HolderSource.HOLDINGS.value: "told us so",
    HolderSource.REPAIR.value: "sent it again for somebody",
    HolderSource.BLOOM.value: "its filter says so, which can err",
}


def source_words(holder: HolderView) -> str:
    if holder.source is None:
        return "no sign yet"
    if not holder.certain and holder.false_probability is not None:
        return f"{chance_words(holder.false_probability)} it is wrong"
    return _SOURCES.get(holder.source, one_line(holder.source, 60))


class Holders(Sheet):
    def __init__(
        self, holders: Sequence[HolderView], now: datetime, parent: QWidget | None = None
    ) -> None:
        certain = sum(1 for holder in holders if holder.source is not None and holder.certain)
        maybe = sum(1 for holder in holders if holder.source is not None and not holder.certain)
        words = f"Held by {certain} of {len(holders)} others"
        words += f", maybe {maybe} more." if maybe else "."
        if not holders:
            words = "Nobody else is in this group yet."
        super().__init__("Who holds it", words, parent=parent)
        content = QWidget()
        rows = QVBoxLayout(content)
        rows.setContentsMargins(0, 0, 8, 0)
        rows.setSpacing(8)
        for holder in holders:
            rows.addWidget(_HolderRow(holder, now))
        rows.addStretch(1)
        self.body.addWidget(scrolling(content, "Who holds it"))
        self.add_close()


class _HolderRow(QWidget):
    def __init__(self, holder: HolderView, now: datetime) -> None:
        super().__init__()
        name = one_line(holder.name, 60)
        avatar = Avatar(28, is_group=False)
        avatar.show_identity(holder.participant_id, name)
        mark, ink, fill = _mark(holder)
        words = source_words(holder)
        since = "" if holder.since_ms is None else spoken_time(holder.since_ms, now)
        self.setAccessibleName(f"{name}: {mark}, {words} {since}".rstrip())
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(ElidedText(name, face="label", strong=True))
        if holder.source is not None:
            texts.addWidget(ElidedText(words, face="caption", colour="ink2"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(avatar)
        row.addLayout(texts, 1)
        row.addWidget(Pill(mark, ink=ink, fill=fill))
        row.addWidget(Text(since, face="caption", colour="ink3"))


def _mark(holder: HolderView) -> tuple[str, ColourRole, ColourRole]:
    if holder.source is None:
        return "no sign", "ink3", "surface2"
    if holder.certain:
        return "holds it", "accentInk", "accentSoft"
    return "maybe", "ink2", "surface2"
