"""The inspector: everything that is known of one message, beside the conversation.

Rows stay, and only what has changed in them is written anew, so that a busy conversation costs
little and the keys stay where they are.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Generic, TypeVar

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine.answers import HolderView
from engine.core.ids import HolderSource, ParticipantId, UnixMs
from engine.inspection_views import (
    LinkView,
    MessageInspection,
    StoreReturned,
    WantedView,
    Whereabouts,
)
from ui.controls import Button, ElidedText, IconButton, Text
from ui.conversation_words import kind_words, sender_words
from ui.dialogs.holders import HolderRow, held_words
from ui.foreign_text import breaking, one_line
from ui.glyphs import pair_delivery_words
from ui.history_words import short_address
from ui.inspector.fields import not_recorded, part_fields, raw_fields
from ui.inspector.json_copy import as_json
from ui.inspector.life import (
    is_here,
    life_of,
    precise_time,
    short_id,
    time_to_the_second,
    waiting_words,
)
from ui.inspector.parts import (
    SHOWN_LINKS,
    CausalGraph,
    FieldTable,
    HeldBar,
    StepRow,
)
from ui.side.panel import Painted, SidePanel
from ui.speaking import announce
from ui.translate import tr

W = TypeVar("W", bound=QWidget)
MOST_HOLDERS = 40
_EXCERPT = 120


class InspectorPanel(SidePanel):
    link_chosen = Signal(LinkView)
    go_requested = Signal()
    """To the message itself, in the conversation."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(tr("Delivery of a message"))
        self._now = now
        self.found: MessageInspection | None = None
        self.copy_button = IconButton("copy", tr("Copy as JSON, without the text"))
        self.copy_button.clicked.connect(lambda _checked=False: self._copy())
        self.add_to_head(self.copy_button)
        self.excerpt = ElidedText(face="label", colour="ink2")
        self.body.addWidget(self.excerpt)
        self.state = Text(face="label", strong=True, wrap=True)
        self.bar = HeldBar()
        held = QHBoxLayout()
        held.setSpacing(10)
        held.addWidget(self.bar)
        held.addWidget(self.state, 1)
        self.body.addLayout(held)
        self.go = Button(tr("Show it in the conversation"), kind="ghost", size="small")
        self.go.clicked.connect(lambda _checked=False: self.go_requested.emit())
        going = QHBoxLayout()
        going.addSpacing(-self.go.inset())  # Its words stand below the others.
        going.addWidget(self.go)
        going.addStretch(1)
        self.body.addLayout(going)
        self.add_section(tr("Life"))
        self.life = _Rows(StepRow, spacing=0)
        self.body.addWidget(self.life)
        self._holders_title = self.add_section(tr("Who holds it"))
        self.holders = _Rows(HolderRow, spacing=8)
        self.body.addWidget(self.holders)
        self.more_holders = Text(face="caption", colour="ink2")
        self.body.addWidget(self.more_holders)
        self._waits_title = self.add_section(tr("What it waits for"))
        self.waits = Text(face="label", wrap=True)
        self.body.addWidget(self.waits)
        self.add_section(tr("Stores"))
        self.stores = Text(face="label", wrap=True)
        self.body.addWidget(self.stores)
        self._graph_title = self.add_section(tr("Causal history"))
        self.graph = CausalGraph()
        self.graph.chosen.connect(self.link_chosen)
        self.body.addWidget(self.graph)
        self.graph_words = Text(face="caption", colour="ink2", wrap=True)
        self.body.addWidget(self.graph_words)
        self.add_section(tr("Fields"))
        self.fields = FieldTable()
        self.body.addWidget(self.fields)
        self.add_section(tr("Size"))
        self.sizes = FieldTable()
        self.body.addWidget(self.sizes)
        self.body.addStretch(1)

    def show_message(
        self, found: MessageInspection, heard: Mapping[ParticipantId, UnixMs | None]
    ) -> None:
        """``heard``: when something live last came from whom, as far as that is known."""
        before, self.found = self.found, found
        # First whatever can move other parts, and then what changes in place: Qt moves what is
        # painted of a part as long as nothing in it has to be painted anew.
        with self.area.laid_out_once(self.life):
            self.excerpt.setText(_excerpt(found))
            self.state.setText(_state_words(found))
            self.go.setVisible(found.message is not None)
            self.copy_button.setEnabled(True)
            self._show_life(found)
            self._show_waiting(found)
            self.stores.setText(_store_words(found, self._now()))
            if before is None or _linked(before) != _linked(found):
                self._show_graph(found)
            self.fields.show_fields(raw_fields(found))
            self.sizes.show_fields(part_fields(found))
        self._show_holders(found, heard)

    def show_gone(self) -> None:
        """It was deleted here; what was seen of it stays until one leaves."""
        self.state.setText(tr("This message is not on this device any more."))
        self.bar.hide()
        self.go.hide()

    # --- sections ---------------------------------------------------------------------------------

    def _show_holders(
        self, found: MessageInspection, heard: Mapping[ParticipantId, UnixMs | None]
    ) -> None:
        holders = sorted(
            found.holders,
            key=lambda each: (each.source is None, not each.certain, each.since_ms or 0),
        )
        self.bar.show_holders(holders)
        self._holders_title.setVisible(bool(holders))
        self.holders.setVisible(bool(holders))
        shown = holders[:MOST_HOLDERS]
        for row, each in zip(self.holders.rows(len(shown)), shown, strict=True):
            sign = _sign(each, found) or _silence(each, found, heard, self._now())
            row.show_holder(
                each,
                self._now(),
                is_open=found.is_open,
                sign=sign,
                lacking_ms=found.saved_ms if found.is_own else None,
            )
        more = len(holders) - len(shown)
        self.more_holders.setText(tr("and %n more", "and %n more", more))
        self.more_holders.setVisible(bool(more))

    def _show_life(self, found: MessageInspection) -> None:
        steps, today = life_of(found), self._now()
        times = ["" if step.at_ms is None else precise_time(step.at_ms, today) for step in steps]
        stacked = any("," in time or " " in time for time in times)
        last = len(steps) - 1
        for place, row in enumerate(self.life.rows(len(steps))):
            ends = place == 0, place == last
            row.show_step(steps[place], times[place], ends=ends, stacked=stacked)

    def _show_waiting(self, found: MessageInspection) -> None:
        words = _waits_words(found, self._now())
        self._waits_title.setVisible(bool(words))
        self.waits.setVisible(bool(words))
        self.waits.setText(words)

    def _show_graph(self, found: MessageInspection) -> None:
        has_graph = found.sds is not None or bool(found.named_by)
        for part in (self._graph_title, self.graph, self.graph_words):
            part.setVisible(has_graph)
        self.graph.show_links(found)
        self.graph_words.setText(_graph_words(found))

    def _copy(self) -> None:
        if self.found is not None:
            QGuiApplication.clipboard().setText(as_json(self.found))
            announce(self.copy_button, tr("Copied"))


class _Rows(Painted, Generic[W]):
    """Rows that stay, whatever they show: a new one costs much more than other words in one."""

    def __init__(self, make: Callable[[], W], *, spacing: int) -> None:
        super().__init__()
        self._make = make
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(spacing)
        self._rows: list[W] = []

    def rows(self, count: int) -> Sequence[W]:
        """So many of them, from the top."""
        while len(self._rows) < count:
            row = self._make()
            row.setParent(self)
            row.resize(0, 0)  # Else it covers the others until it has its place.
            row.show()  # Else the layout passes over it, and is done anew once it is shown.
            self._rows.append(row)
            self._column.addWidget(row)
        for row in self._rows[count:]:
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        del self._rows[count:]
        return self._rows


def _sign(holder: HolderView, found: MessageInspection) -> str:
    """The message by which a member showed that it has this one; "" if that is not to be seen."""
    if holder.source != HolderSource.CAUSAL or found.is_open:
        return ""
    for link in found.named_by:
        if link.sender_id == holder.participant_id:
            return tr("names it in {id}").format(id=short_id(link.message_id))
    return ""


def _silence(
    holder: HolderView,
    found: MessageInspection,
    heard: Mapping[ParticipantId, UnixMs | None],
    today: datetime,
) -> str:
    """Of a member that gave no sign of having it: since when nothing came from it at all."""
    who = holder.participant_id
    if holder.source is not None or found.is_open or who not in heard:
        return ""
    at_ms = heard[who]
    if at_ms is None:
        return tr("not heard since the start")
    return tr("last heard {time}").format(time=time_to_the_second(at_ms, today))


def _linked(found: MessageInspection) -> object:
    is_read = found.sds is not None
    return found.message_id, is_read, found.names, found.named_by, found.named_by_complete


def _excerpt(found: MessageInspection) -> str:
    if found.message is None:
        name = one_line(found.sender_name, 40)
        if name and not is_here(found):
            name = tr("from {name}, as is claimed").format(name=name)
        id_ = short_id(found.message_id)
        return f"{name}, {id_}" if name else id_
    message = found.message
    words = tr("{name}: {words}")
    words = words.format(name=sender_words(message), words=kind_words(message))
    return one_line(words, _EXCERPT)


def _state_words(found: MessageInspection) -> str:
    elsewhere = {
        Whereabouts.MISSING: tr("Not here; it is looked for"),
        Whereabouts.LOST: tr("Not here, and given up"),
        Whereabouts.UNKNOWN: tr("Not here"),
    }
    if found.whereabouts in elsewhere:
        return elsewhere[found.whereabouts]
    if found.whereabouts is Whereabouts.WAITING:
        return waiting_words(found)
    if found.mvds is not None:
        return _pair_words(found)
    if not found.is_own and all(each.source is None for each in found.holders):
        return tr("Who else holds it is not recorded")
    return held_words(found.holders, is_open=found.is_open)


def _pair_words(found: MessageInspection) -> str:
    """Of two, the other one has it or not: nobody is counted."""
    if not found.is_own:
        return tr("Here, and acknowledged to its author")
    delivery = None if found.message is None else found.message.delivery
    return pair_delivery_words(delivery) if delivery else not_recorded()


def _waits_words(found: MessageInspection, today: datetime) -> str:
    lines = [_wanted_words(each, today) for each in found.waits_for]
    if found.whereabouts is Whereabouts.WAITING and not lines:
        lines.append(waiting_words(found))
    lacking = [one_line(each.name, 40) for each in found.holders if not each.certain]
    if found.is_own and found.again is not None and lacking and not found.is_open:
        named = ", ".join(lacking[:8]) + (" …" if len(lacking) > 8 else "")  # noqa: PLR2004
        lines.append(tr("An acknowledgement from any of: {names}").format(names=named))
    return "\n".join(lines)


def _wanted_words(wanted: WantedView, today: datetime) -> str:
    words = tr(
        "{id}, missing since {time}, asked for %n times",
        "{id}, missing since {time}, asked for %n time",
        wanted.requests,
    )
    words = words.format(id=short_id(wanted.message_id), time=precise_time(wanted.since_ms, today))
    if wanted.next_request_ms is None:
        return tr("{missing}; given up").format(missing=words)
    return tr("{missing}; next {time}").format(
        missing=words, time=precise_time(wanted.next_request_ms, today)
    )


def _store_words(found: MessageInspection, today: datetime) -> str:
    wanted = found.wanted
    if found.returned_by:
        return " ".join(_returned_words(each, today) for each in found.returned_by)
    if wanted is not None:
        if wanted.stores_asked_ms is None:
            return tr("No Store was asked for it by its hash yet.")
        return tr("Asked at {time}: without it {lack}, without an answer {silent}.").format(
            time=precise_time(wanted.stores_asked_ms, today),
            lack=wanted.stores_lacked,
            silent=wanted.stores_silent,
        )
    return tr("Which Stores keep it: {unknown}.").format(unknown=not_recorded())


def _returned_words(returned: StoreReturned, today: datetime) -> str:
    words = tr("{store} returned it at {time}.")
    where = breaking(short_address(returned.address))
    return words.format(store=where, time=precise_time(returned.at_ms, today))


def _graph_words(found: MessageInspection) -> str:
    names, by = len(found.names), len(found.named_by)
    is_read = found.sds is not None
    words = [
        tr("It names %n messages", "It names %n message", names)
        if is_read
        else tr("What it names is not known here"),
        tr("%n name it", "%n names it", by),
    ]
    if not found.named_by_complete:
        words.append(tr("others may name it, too"))
    if max(names, by) > SHOWN_LINKS:
        words.append(tr("the nearest are drawn"))
    said, *others = words
    for more in others:
        said = tr("{said}; {more}").format(said=said, more=more)
    return f"{said}."
