"""The cards of the delivery page that are words: what was refused, and the records of MVDS."""

from collections.abc import Mapping
from typing import Final

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.live_views import PairDelivery, RecordView
from ui.controls import Text
from ui.delivery.figures import span_words
from ui.delivery.table import FigureTable
from ui.file_words import size_words
from ui.refusals import refusal_sentences
from ui.regional import clock_with_seconds, grouped
from ui.times import moment
from ui.translate import tr

_SHORT_ID: Final = 10


class RefusalsContent(QWidget):
    """One sentence for each kind: of this conversation, and below of all else on this device."""

    def __init__(self) -> None:
        super().__init__()
        self.words = Text(face="label", colour="ink2", wrap=True)
        self.note = Text(
            tr("In this conversation, since the program was started."),
            face="caption",
            colour="ink3",
            wrap=True,
        )
        self.elsewhere = Text(face="label", colour="ink2", wrap=True)
        self.elsewhere_note = Text(
            tr("In all other conversations, and of what strangers sent."),
            face="caption",
            colour="ink3",
            wrap=True,
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for part in (self.words, self.note, self.elsewhere, self.elsewhere_note):
            column.addWidget(part)

    def show_counters(self, here: Mapping[str, int], everywhere: Mapping[str, int]) -> None:
        """``everywhere``: ``here`` among it."""
        words = "\n".join(refusal_sentences(here)) or tr("Nothing was refused or set aside.")
        elsewhere = "\n".join(
            refusal_sentences(
                {name: number - here.get(name, 0) for name, number in everywhere.items()}
            )
        )
        for text, said in ((self.words, words), (self.elsewhere, elsewhere)):
            if said != text.text():
                text.setText(said)
        self.elsewhere.setVisible(bool(elsewhere))
        self.elsewhere_note.setVisible(bool(elsewhere))


class RecordsContent(QWidget):
    """What MVDS still has to do between two people."""

    def __init__(self) -> None:
        super().__init__()
        self.head = Text(face="label", colour="ink2", wrap=True)
        self.table = FigureTable(tr("Records of MVDS"))
        self.note = Text(
            tr(
                "MVDS forgets a message once it is acknowledged. There are no prekeys: messages "
                "are sealed for the key of the other's profile, which does not change."
            ),
            face="caption",
            colour="ink3",
            wrap=True,
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for part in (self.head, self.table, self.note):
            column.addWidget(part)
        column.addStretch(1)

    def show_records(self, found: PairDelivery) -> None:
        self.head.setText(rounds_words(found))
        self.table.setVisible(bool(found.records))
        headings = (
            tr("Message"),
            tr("To do"),
            tr("Attempts"),
            tr("Next attempt"),
            tr("Epoch"),
            tr("Size"),
            tr("Written"),
        )
        self.table.show_rows(headings, [_record_row(each, found) for each in found.records])


def rounds_words(found: PairDelivery) -> str:
    """How much is to do, and how long the rounds of MVDS are, which it calls epochs."""
    number = len(found.records)
    if not number:
        todo = tr("Nothing to do: all is acknowledged.")
    elif not found.is_all:
        todo = tr("More than {number} records are open; these are due first.").format(
            number=grouped(number)
        )
    else:
        todo = tr("%n records are open.", "%n record is open.", number)
    epochs = tr("This is round (epoch) {epoch}; a round takes {length}.").format(
        epoch=grouped(found.epoch), length=span_words(found.epoch_ms)
    )
    return f"{todo} {epochs}"


def _record_row(record: RecordView, found: PairDelivery) -> tuple[str, ...]:
    names = {
        "offer": tr("offer (OFFER)"),
        "request": tr("ask for it (REQUEST)"),
        "message": tr("send it (MESSAGE)"),
    }
    short = f"{record.message_id[:_SHORT_ID]}…"
    return (
        short if record.is_shown else tr("{id} (about the contact)").format(id=short),
        names.get(record.record, record.record),
        grouped(record.send_count),
        _next_words(record, found),
        "" if record.send_epoch is None else grouped(record.send_epoch),
        size_words(record.size) if record.size else "",
        clock_with_seconds(moment(record.created_ms)),
    )


def _next_words(record: RecordView, found: PairDelivery) -> str:
    if record.next_ms is None:
        return tr("given up")
    away_ms = record.next_ms - found.at_ms
    at = clock_with_seconds(moment(record.next_ms))
    if away_ms <= 0:
        return tr("as soon as somebody can be reached")
    return tr("{time}, in {duration}").format(time=at, duration=span_words(away_ms))
