"""The section of the network: how this device meets others, and the Stores."""

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QBoxLayout, QVBoxLayout, QWidget

from engine.events import ConnectionView
from engine.history_views import StoreHealth, StoreView
from ui.connection_words import connection_line, connection_reason, traffic
from ui.controls import Card, Text
from ui.dialogs.stores import StoresList
from ui.settings_page.rows import (
    Bound,
    ChoiceRow,
    FieldRow,
    LinesRow,
    NumberRow,
    SwitchRow,
)
from ui.settings_page.section import SettingsSection
from ui.translate import tr


class Summary(Card):
    """How it stands now, in a few large words."""

    def __init__(self) -> None:
        super().__init__("surface", "line")
        self.cells = tuple((Text(strong=True, wrap=True), _small()) for _ in range(3))
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(18, 10, 18, 10)
        self._row.setSpacing(18)
        for large, small in self.cells:
            cell = QWidget()
            words = QVBoxLayout(cell)
            words.setContentsMargins(0, 0, 0, 0)
            words.setSpacing(0)
            words.addWidget(large)
            words.addWidget(small)
            words.addStretch(1)
            self._row.addWidget(cell, 1)

    def set_narrow(self, narrow: bool) -> None:
        """Little room: below each other."""
        directions = QBoxLayout.Direction
        self._row.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)

    def show_state(self, connection: ConnectionView, stores: Sequence[StoreView]) -> None:
        used = [store for store in stores if store.enabled]
        failed = [store for store in used if store.health is StoreHealth.FAILED]
        answering = [store for store in used if store.health is StoreHealth.GOOD]
        silent = tr("%n do not", "%n does not", len(failed)) if failed else ""
        shown = (
            (connection_line(connection), connection_reason(connection)),
            (
                tr("%n Stores answer", "%n Store answers", len(answering))
                if used
                else tr("No Store yet"),
                silent,
            ),
            (
                traffic(connection.bytes_in + connection.bytes_out),
                tr("sent and received since the start"),
            ),
        )
        for (large, small), (much, little) in zip(self.cells, shown, strict=True):
            large.setText(much)
            small.setText(little)
            small.setVisible(bool(little))


def _small() -> Text:
    return Text(face="caption", colour="ink3", wrap=True)


def _card_of(stores: StoresList) -> Card:
    card = Card("surface", "line")
    column = QVBoxLayout(card)
    column.setContentsMargins(18, 12, 18, 14)
    column.addWidget(stores)
    return card


def network_section(
    bound: Bound,
    *,
    connection: Callable[[], ConnectionView],
    stores: StoresList,
) -> SettingsSection:
    section = SettingsSection(
        "network",
        "store",
        tr("Network and Stores"),
        tr("Stores keep sealed messages for members who are away. They cannot read them."),
    )
    summary = Summary()
    section.add_part(summary, set_narrow=summary.set_narrow)
    stores.changed.connect(lambda: summary.show_state(connection(), stores.stores))
    section.shown_again.connect(stores.reread)
    stores.reread()
    section.add_part(
        _card_of(stores), heading=tr("Stores"), words=tr("Test all"), set_narrow=stores.set_narrow
    )
    _add_service_nodes(section, bound)
    _add_connections(section, bound)
    return section


def _add_service_nodes(section: SettingsSection, bound: Bound) -> None:
    section.add_rows(
        LinesRow(
            bound,
            ("network", "service_nodes"),
            tr("Service nodes, one address on each line"),
            tr(
                "They take and keep messages for you while nobody else can be reached. Two or more"
                " are best: if one fails, nothing is lost."
            ),
            "/dns4/node.example.org/tcp/60000/p2p/16Uiu2…",
        ),
    )


def _add_connections(section: SettingsSection, bound: Bound) -> None:
    section.add_rows(
        ChoiceRow(
            bound,
            ("network", "role"),
            tr("How messages travel"),
            (
                ("auto", tr("Automatic")),
                ("relay", tr("Direct")),
                ("edge", tr("Service nodes")),
            ),
            tr(
                "Automatic: direct, and through service nodes while nobody else can be reached."
                " Direct: this device passes messages on. Service nodes: everything goes through"
                " them; they learn which topics you follow, and not what is written."
            ),
        ),
        SwitchRow(
            bound,
            ("network", "discovery"),
            tr("Find people on this network"),
            tr("Works without internet. Others there can see that this device is here."),
        ),
        FieldRow(
            bound,
            ("network", "proxy"),
            tr("SOCKS5 proxy for all connections"),
            tr(
                "Everything goes through it, names are looked up by it, and nothing is said on the"
                " local network."
            ),
            placeholder=tr("none; Tor's is socks5://127.0.0.1:9050"),
        ),
        NumberRow(
            bound,
            ("network", "port"),
            tr("Listen on port"),
            tr("Lets peers reach this device directly. 0: the system chooses one."),
        ),
        LinesRow(
            bound,
            ("network", "peers"),
            tr("Always connect to, one address on each line"),
            tr("Besides those that invitations name."),
            "/dns4/node.example.org/tcp/60000/p2p/16Uiu2…",
        ),
        heading=tr("Connections"),
    )
