"""The network view: a sheet that answers whether one's own network is bad, and shows why.

It reads the engine's figures while it is open, once a second, and nothing once it is closed.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from PySide6.QtCore import QTimer
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.api import ChatEngine
from engine.core.ids import ConversationId
from engine.network_views import LinkEvent, NetworkView, PeerView
from ui.connection_words import traffic
from ui.controls import Text
from ui.dialogs.sheet import Sheet
from ui.fault_words import fault_words
from ui.foreign_text import breaking, one_line, short_peer
from ui.history_words import short_address
from ui.inspector.parts import FieldTable
from ui.network import words
from ui.network.health import HealthLine, HealthRow, node_line, store_line
from ui.network.table import FactTable, Row
from ui.theme import current_theme
from ui.times import spoken_time
from ui.translate import tr

EVERY_MS: Final = 1_000
_WIDTH: Final = 900
_NARROW: Final = 640
_NARROWEST: Final = 300
_MOST_EVENTS: Final = 100
_MOST_PEOPLE: Final = 64
"""Those who were heard last."""


class NetworkSheet(Sheet):
    def __init__(
        self,
        engine: ChatEngine,
        here: Callable[[], ConversationId | None],
        now: Callable[[], datetime],
        parent: QWidget | None = None,
    ) -> None:
        """``here``: the conversation that is open."""
        super().__init__(tr("Network"), parent=parent)
        self._engine, self._here, self._now = engine, here, now
        self._peers: dict[str, PeerView] = {}
        self._events: tuple[LinkEvent, ...] | None = None
        self._happened: dict[str, str] = {}
        """What each event is in full."""
        self._timer = QTimer(self)
        self._timer.setInterval(EVERY_MS)
        self._timer.timeout.connect(self.refresh)
        self.verdict = Text(face="body", wrap=True)
        self.body.addWidget(self.verdict)
        self._lay_out_peers()
        self.nodes_title, self.nodes = self._health(tr("Service nodes"))
        self.stores_title, self.stores = self._health(tr("Stores"))
        self._section(tr("People"))
        self.people = FactTable(
            tr("When people were last heard"), (tr("Name"), tr("Last heard live")), wide=0
        )
        self.body.addWidget(self.people)
        self.no_people = self._note(tr("There is nobody to hear from yet."))
        self._section(tr("What happened"))
        columns = tr("Time"), tr("Peer"), tr("What")
        self.events = FactTable(tr("What happened to connections"), columns, wide=2)
        self.events.leave_out((1,), below=_NARROW)
        self.events.chosen.connect(self._show_event)
        self.body.addWidget(self.events)
        self.in_full = Text(face="caption", colour="ink2", wrap=True)
        self.body.addWidget(self.in_full)
        self.no_events = self._note(tr("Nothing since the start."))
        self.addresses = Text(face="caption", colour="ink2", wrap=True)
        self.body.addWidget(self.addresses)
        self.add_close()
        self.refresh()
        self._timer.start()
        self.finished.connect(self._timer.stop)
        self.peers.setFocus()

    def _lay_out_peers(self) -> None:
        self._section(tr("Peers"))
        columns = (
            tr("Peer"),
            tr("Does"),
            tr("Mesh"),
            tr("Round trip"),
            tr("Score"),
            tr("Received"),
            tr("Sent"),
            tr("Since"),
        )
        self.peers = FactTable(tr("Connected peers"), columns, wide=0)
        self.peers.leave_out((1, 2, 5, 6, 7), below=_NARROW)
        self.peers.leave_out((3,), below=_NARROWEST)
        self.peers.chosen.connect(self._show_details)
        self.no_peers = self._note(tr("No peer is connected."))
        self.details = FieldTable()
        self.details.setAccessibleName(tr("The chosen peer"))
        self.body.addWidget(self.peers)
        self.body.addWidget(self.details)

    def _section(self, title: str) -> Text:
        heading = Text(title, face="small", colour="ink2", strong=True)
        self.body.addSpacing(8)
        self.body.addWidget(heading)
        return heading

    def _note(self, text: str) -> Text:
        note = Text(text, face="label", colour="ink2", wrap=True)
        self.body.addWidget(note)
        return note

    def _health(self, title: str) -> tuple[Text, "_HealthRows"]:
        heading, rows = self._section(title), _HealthRows()
        self.body.addWidget(rows)
        return heading, rows

    def refreshed_every_ms(self) -> int:
        """0 once it is closed."""
        return self._timer.interval() if self._timer.isActive() else 0

    # --- what is shown ----------------------------------------------------------------------------

    def refresh(self) -> None:
        view = self._engine.network()
        faults = self._engine.faults.view().is_on
        said = " ".join(words.verdict(view, self._here(), faults=faults))
        if self.verdict.text() != said:
            self.verdict.setText(said)
            self.verdict.setAccessibleName(said)
        self._show_peers(view)
        self.nodes.show_lines([node_line(node, view.at_ms) for node in view.facts.service_nodes])
        self.nodes_title.setVisible(bool(view.facts.service_nodes))
        self.stores.show_lines([store_line(past, view.at_ms) for past in view.stores])
        self.stores_title.setVisible(bool(view.stores))
        self._show_people(view)
        self._show_events(view)
        where = ", ".join(one_line(address, 200) for address in view.addresses)
        reached = tr("Others reach this device at {addresses}").format(addresses=where)
        self.addresses.setText(breaking(reached) if where else "")
        self.addresses.setVisible(bool(where))

    def _show_peers(self, view: NetworkView) -> None:
        self._peers = {peer.peer_id: peer for peer in view.facts.peers}
        now = self._now()
        self.peers.show_rows([_peer_row(peer, now) for peer in view.facts.peers])
        self.peers.setVisible(bool(self._peers))
        self.no_peers.setVisible(not self._peers)
        self._show_details(self.peers.key())

    def _show_details(self, peer_id: str) -> None:
        peer = self._peers.get(peer_id)
        self.details.setVisible(peer is not None)
        if peer is not None:
            details = [*words.peer_details(peer, self._now()), *self._done_on_purpose(peer_id)]
            self.details.show_fields(tuple((name, breaking(value)) for name, value in details))

    def _done_on_purpose(self, peer_id: str) -> list[tuple[str, str]]:
        faults, now = self._engine.faults.view(), self._now()
        return [
            (tr("Faults on purpose"), fault_words(fault, faults, now))
            for fault in faults.of_peers
            if fault.target.peer_id == peer_id
        ]

    def _show_people(self, view: NetworkView) -> None:
        rows = [
            Row(
                key=one.participant_id,
                cells=(one_line(one.name, 40), words.heard_words(one, view.at_ms)),
            )
            for one in view.people[:_MOST_PEOPLE]
        ]
        self.people.show_rows(rows)
        self.people.setVisible(bool(rows))
        self.no_people.setVisible(not rows)

    def _show_events(self, view: NetworkView) -> None:
        if view.facts.events == self._events:
            return
        self._events = view.facts.events
        now, rows = self._now(), []
        for event in view.facts.events[:_MOST_EVENTS]:
            said, who = words.event_words(event), words.event_who(event)
            key = f"{event.first_ms} {event.kind} {event.peer_id} {event.address}"
            when = words.event_time(event, now)
            tip = f"{when}, {one_line(event.address, 200)}: {said}"
            rows.append(Row(key=key, cells=(when, who, said), tip=tip))
        self._happened = {row.key: row.tip for row in rows}
        self.events.show_rows(rows)
        self._show_event(self.events.key())
        self.events.setVisible(bool(rows))
        self.no_events.setVisible(not rows)

    def _show_event(self, key: str) -> None:
        """In full: a row shows of it what there is room for."""
        said = self._happened.get(key, "")
        self.in_full.setText(breaking(said))
        self.in_full.setAccessibleName(said)
        self.in_full.setVisible(bool(said))

    def closeEvent(self, event: QCloseEvent) -> None:
        self._timer.stop()
        super().closeEvent(event)

    def _fit(self) -> None:
        """Wider than other sheets, but never wider than the window."""
        width = current_theme().metrics.scaled(_WIDTH)
        self.setFixedWidth(min(width, self.room().width()))


class _HealthRows(QWidget):
    """Rows that stay as long as what they are about."""

    def __init__(self) -> None:
        super().__init__()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(10)
        self.rows: dict[str, HealthRow] = {}

    def show_lines(self, lines: Sequence[HealthLine]) -> None:
        before, self.rows = self.rows, {}
        for place, line in enumerate(lines):
            row = before.pop(line.key, None) or HealthRow()
            self.rows[line.key] = row
            if self._column.indexOf(row) != place:
                self._column.insertWidget(place, row)
            row.show_line(line)
        for row in before.values():
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.setVisible(bool(lines))


def _peer_row(peer: PeerView, now: datetime) -> Row:
    return Row(
        key=peer.peer_id,
        cells=(
            f"{short_address(peer.address)} {short_peer(peer.peer_id)}",
            words.services_words(peer),
            words.mesh_words(peer.relay),
            words.round_trip_words(peer),
            words.score_number(peer.relay),
            traffic(peer.bytes_in),
            traffic(peer.bytes_out),
            spoken_time(peer.since_ms, now),
        ),
        tip=one_line(peer.peer_id, 100),
    )
