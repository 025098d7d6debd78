"""The Stores: which are asked for missed messages, in which order, and how they perform.

``StoresList`` stands on the settings page, and in a sheet where a window has none.  What is wrong
with a Store stands here, beside it, and nowhere else.  An address is judged while one types.  Every
command is the engine's; the list shown is always what the engine told last.
"""

from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from itertools import pairwise

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget
from shiboken6 import isValid

from engine.api import ChatEngine
from engine.core.errors import ChatError, ConfigError
from engine.history_views import StoreOrigin, StoresChanged, StoreTestView, StoreView
from ui.controls import Button, Text
from ui.dialogs.sheet import Sheet, field_label, problem_line, say_problem
from ui.dialogs.store_row import StoreRow
from ui.error_words import error_words
from ui.foreign_text import breaking
from ui.history_words import test_words
from ui.problem_words import sentence
from ui.switch import Spinner
from ui.tasks import Tasks
from ui.theme import current_theme
from ui.translate import tr

_WIDTH = 660


def _words() -> str:
    return tr(
        "Stores keep sealed messages for those who are away. They cannot read them, and what they"
        " answer is checked here. Those that are on are asked in this order."
    )


def _none_yet() -> str:
    return tr(
        "There is no Store in the list yet. Without one, what was said while you were away comes"
        " from the other members once they are there. Your group's founder or whoever runs a node"
        " can give you an address."
    )


def _found_words(*, rests: bool) -> str:
    if rests:
        return tr(
            "Connected peers that keep messages. They are not asked, because a Store of yours is"
            " on."
        )
    return tr("Connected peers that keep messages. They are asked while no Store of yours is on.")


def _allowed() -> str:
    return tr(
        "/ip4, /ip6, /dns4 or /dns6 with the host, then /tcp/ with the port, /ws or /wss for"
        " WebSocket, and at the end /p2p/ with the peer id."
    )


class StoresList(QWidget):
    """As high as what it holds: what it lies on scrolls."""

    changed = Signal()
    """What ``stores`` has."""

    def __init__(
        self,
        engine: ChatEngine,
        tasks: Tasks,
        *,
        problem_of: Callable[[str], ConfigError | None],
        now: Callable[[], datetime],
    ) -> None:
        super().__init__()
        self._engine = engine
        self._tasks = tasks
        self._problem_of = problem_of
        self._now = now
        self._stores: tuple[StoreView, ...] = ()
        self._rows: dict[tuple[StoreOrigin, str], StoreRow] = {}
        self.empty = Text(_none_yet(), face="label", colour="ink2", wrap=True)
        self.found_words = Text(_found_words(rests=False), face="caption", colour="ink3", wrap=True)
        self._found_title = Text(tr("Found"), face="small", colour="ink2", strong=True)
        self.problem = problem_line()
        self.field = QLineEdit()
        self.field_problem = problem_line()
        self.add = Button(tr("Add"), kind="primary")
        self.test_field = Button(tr("Test"))
        self._spinner = Spinner()
        self.field_result = Text(face="small", colour="ink2", wrap=True)
        self.test_all = Button(tr("Test all"), icon_name="again", size="small")
        self._lay_out()
        self.field.textChanged.connect(self._judge)
        self.field.returnPressed.connect(self._add)
        self.add.clicked.connect(self._add)
        self.test_field.clicked.connect(self._test_field)
        self.test_all.clicked.connect(self._test_all)
        self.reread()

    # --- building ---------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        self._list = QVBoxLayout()
        self._list.setSpacing(6)
        self._list.addWidget(self.empty)
        self._list.addSpacing(6)
        self._list.addWidget(self._found_title)
        self._list.addWidget(self.found_words)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(0, 0, 0, 0)
        self.body.setSpacing(8)
        self.body.addWidget(self.test_all, 0, Qt.AlignmentFlag.AlignRight)
        self.body.addLayout(self._list)
        self.body.addWidget(self.problem)
        self.body.addSpacing(4)
        self._lay_out_adding()

    def _lay_out_adding(self) -> None:
        self.body.addWidget(field_label(tr("Add a Store by its address"), self.field))
        self.field.setProperty("kind", "field")
        self.field.setPlaceholderText("/dns4/store.example.org/tcp/60000/p2p/16Uiu2…")
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.test_field)
        buttons.addWidget(self.add)
        self._line = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._line.setSpacing(8)
        self._line.addWidget(self.field, 1)
        self._line.addLayout(buttons)
        self.body.addLayout(self._line)
        self.body.addWidget(self.field_problem)
        testing = QHBoxLayout()
        testing.addWidget(self._spinner, 0, Qt.AlignmentFlag.AlignTop)
        testing.addWidget(self.field_result, 1)
        self.body.addLayout(testing)
        self.body.addWidget(Text(_allowed(), face="caption", colour="ink3", wrap=True))
        self._spinner.hide()
        self.field_result.hide()

    def set_narrow(self, narrow: bool) -> None:
        """Little room: the buttons stand below the field."""
        directions = QBoxLayout.Direction
        self._line.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)

    # --- what there is ----------------------------------------------------------------------------

    def reread(self) -> None:
        """Before the first start is through there is nobody who has any."""
        known = self._engine.identity() is not None
        self.setEnabled(known)
        self.show_stores(self._engine.history.stores() if known else ())

    def show_event(self, event: StoresChanged) -> None:
        self.show_stores(event.stores)

    @property
    def stores(self) -> Sequence[StoreView]:
        return self._stores

    def rows(self) -> list[StoreRow]:
        """As they stand, those of the user first."""
        return [self._rows[store.origin, store.multiaddr] for store in self._stores]

    def show_stores(self, stores: Sequence[StoreView]) -> None:
        own = [store for store in stores if store.origin is StoreOrigin.USER]
        found = [store for store in stores if store.origin is StoreOrigin.FOUND]
        self._stores = (*own, *found)
        self.changed.emit()
        wanted = {(store.origin, store.multiaddr) for store in self._stores}
        for key in [key for key in self._rows if key not in wanted]:
            self._forget(key)
        self.empty.setVisible(not own)
        for number, store in enumerate(own, 1):
            self._place(store, number, len(own), number)
        for part in (self._found_title, self.found_words):
            part.setVisible(bool(found))
        rests = any(store.enabled for store in own)
        self.found_words.setText(_found_words(rests=rests))
        above_found = self._list.indexOf(self.found_words)
        for number, store in enumerate(found, 1):
            self._place(store, number, len(found), above_found + number)
        self.test_all.setVisible(len(self._stores) > 1)
        self._order_tabs()
        self._judge()

    def _place(self, store: StoreView, number: int, of: int, index: int) -> None:
        key = (store.origin, store.multiaddr)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._new_row(store)
        if self._list.indexOf(row) != index:
            self._list.removeWidget(row)
            self._list.insertWidget(index, row)
        row.show_store(store, number, of, self._now())
        row.show()

    def _new_row(self, store: StoreView) -> StoreRow:
        row = StoreRow(store)
        row.test_requested.connect(self._test)
        row.keep_requested.connect(self._keep)
        row.remove_requested.connect(self._remove)
        row.use_requested.connect(self._use)
        row.move_requested.connect(self._move)
        return row

    def _forget(self, key: tuple[StoreOrigin, str]) -> None:
        row = self._rows.pop(key)
        focused = self.focusWidget()
        had_focus = focused is row or row.isAncestorOf(focused)
        index = self._list.indexOf(row)
        self._list.removeWidget(row)
        row.hide()
        row.deleteLater()
        if had_focus:
            after = self._list.itemAt(index)
            neighbour = None if after is None else after.widget()
            (neighbour if isinstance(neighbour, StoreRow) else self.field).setFocus()

    def _order_tabs(self) -> None:
        """Row by row, as one sees them, then the field."""
        chain: list[QWidget] = [self.test_all]
        for row in self.rows():
            chain += [row, row.test, row.keep, row.use, row.more]
        chain += [self.field, self.test_field, self.add]
        for before, after in pairwise(chain):
            QWidget.setTabOrder(before, after)

    # --- requests ---------------------------------------------------------------------------------

    def _command(self, work: Callable[[], Coroutine[object, object, None]], purpose: str) -> None:
        async def alone() -> None:
            try:
                await work()
            except ChatError as error:
                if not isValid(self):  # Closed meanwhile: it is said where everything is.
                    raise
                say_problem(self.problem, sentence(error_words(error)))
                self.reread()
                return
            if isValid(self):
                say_problem(self.problem, "")

        self._tasks.spawn(alone, purpose=purpose, retry=False)

    def _use(self, multiaddr: str, on: bool) -> None:
        self._command(
            lambda: self._engine.history.enable_store(multiaddr, enabled=on), tr("switch the Store")
        )

    def _remove(self, multiaddr: str) -> None:
        self._command(lambda: self._engine.history.remove_store(multiaddr), tr("remove the Store"))

    def _keep(self, multiaddr: str) -> None:
        self._command(lambda: self._engine.history.add_store(multiaddr), tr("add the Store"))

    def _move(self, multiaddr: str, by: int) -> None:
        own = [store.multiaddr for store in self._stores if store.origin is StoreOrigin.USER]
        place = own.index(multiaddr) + by
        self._command(
            lambda: self._engine.history.move_store(multiaddr, place=place), tr("move the Store")
        )

    def _test(self, multiaddr: str) -> None:
        for row in [row for row in self.rows() if row.store.multiaddr == multiaddr]:
            row.show_testing()

        def done(test: StoreTestView | None, problem: str) -> None:
            for row in [row for row in self.rows() if row.store.multiaddr == multiaddr]:
                row.show_test(test, problem)

        self._run_test(multiaddr, done)

    def _test_all(self) -> None:
        for multiaddr in dict.fromkeys(store.multiaddr for store in self._stores):
            self._test(multiaddr)

    def _run_test(self, multiaddr: str, done: Callable[[StoreTestView | None, str], None]) -> None:
        async def work() -> None:
            try:
                test, problem = await self._engine.history.test_store(multiaddr), ""
            except ChatError as error:
                test, problem = None, sentence(error_words(error))
            if isValid(self):
                done(test, problem)

        task = self._tasks.spawn(work, purpose=tr("test the Store"), retry=False)
        self.destroyed.connect(task.cancel)

    # --- adding -----------------------------------------------------------------------------------

    def address(self) -> str:
        return self.field.text().strip()

    def _judge(self) -> None:
        address = self.address()
        error = self._problem_of(address) if address else None
        problem = "" if error is None else sentence(error_words(error))
        own = (store.multiaddr for store in self._stores if store.origin is StoreOrigin.USER)
        if not problem and address in own:
            problem = tr("This Store is in the list already.")
        say_problem(self.field_problem, problem)
        usable = bool(address) and not problem
        self.add.setEnabled(usable)
        self.test_field.setEnabled(usable and not self._spinner.isVisibleTo(self))
        if self.sender() is self.field:
            self.field_result.hide()

    def _add(self) -> None:
        if not self.add.isEnabled():
            return
        address = self.address()
        self.add.setEnabled(False)

        async def work() -> None:
            try:
                await self._engine.history.add_store(address)
            except ChatError as error:
                if not isValid(self):
                    raise
                self._judge()
                say_problem(self.field_problem, sentence(error_words(error)))
                return
            if isValid(self):
                self.field.clear()
                self.field_result.hide()

        self._tasks.spawn(work, purpose=tr("add the Store"), retry=False)

    def _test_field(self) -> None:
        address = self.address()
        self._spinner.show()
        self.field_result.setText(tr("Testing…"))
        self.field_result.recolour("ink2")
        self.field_result.show()
        self.test_field.setEnabled(False)

        def done(test: StoreTestView | None, problem: str) -> None:
            self._spinner.hide()
            bad = test is None or bool(test.problem)
            self.field_result.setText(breaking(problem if test is None else test_words(test)))
            self.field_result.recolour("danger" if bad else "ink2")
            self.field_result.setVisible(address == self.address())
            self._judge()

        self._run_test(address, done)


class Stores(Sheet):
    def __init__(self, stores: StoresList, parent: QWidget | None = None) -> None:
        super().__init__(tr("Stores"), _words(), parent=parent)
        self.stores = stores
        self.body.addWidget(stores)
        self.footer.addStretch(1)
        self.add_button(tr("Close")).clicked.connect(self.reject)  # Enter is the field's.
        stores.field.setFocus()

    def _fit(self) -> None:
        """Wider than other sheets, but never wider than the window."""
        width = current_theme().metrics.scaled(_WIDTH)
        self.setFixedWidth(min(width, self.room().width()))
