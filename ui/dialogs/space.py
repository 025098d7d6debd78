"""Where the space goes: of each conversation and of the rest, and what may be let go.

Only files that another member says to have are let go, since these can be fetched again; one's own
are never.  First go those that a connected member has just now; the others after one more question,
since what members said may be out of date.  Unused room of the database is given back to the disk.
Measuring and that stop when the sheet closes.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from engine.core.errors import ChatError
from engine.core.ids import ConversationId
from ui.controls import Button, Text
from ui.dialogs.sheet import Sheet, problem_line, say_problem
from ui.error_words import error_words
from ui.file_words import size_words
from ui.fitted_scroll_area import FittedScrollArea
from ui.foreign_text import one_line
from ui.problem_words import sentence
from ui.progress_line import ProgressLine
from ui.space_port import ConversationTakes, ProfileTakes, SpacePort
from ui.speaking import announce
from ui.tasks import Tasks
from ui.translate import tr

LetGo = Callable[[ConversationTakes, bool], Awaitable[int]]
"""The fetchable files of a conversation, without asking anybody or only those that a connected
member has.  Returns how many stay; raises ChatError."""
_MOST_SHOWN = 200
_WORTH_PACKING = 1_000_000
"""Bytes; less is soon filled again."""
_LIST_HEIGHT = 330


class SpaceTaken(Sheet):
    def __init__(
        self,
        port: SpacePort,
        names: Mapping[ConversationId, str],
        let_go: LetGo,
        tasks: Tasks,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(tr("Where the space goes"), parent=parent)
        self._port = port
        self._names = names
        self._let_go = let_go
        self._tasks = tasks
        self._is_closed = False
        self._stayed: set[ConversationId] = set()
        """Nobody who is connected has the rest of what is fetchable there."""
        self.total = Text(face="body", colour="ink2", wrap=True)
        self.line = ProgressLine(tr("How far it is"))
        self.stop_button = Button(tr("Stop"), size="small")
        self.stop_button.clicked.connect(lambda _checked=False: self._stop())
        self.stop_button.hide()
        self._is_stopped = False
        """The user stopped the packing."""
        self.outcome = Text(face="body", wrap=True)
        self.outcome.hide()
        self.problem = problem_line()
        self.rows: list[SpaceRow] = []
        self.list = QWidget()
        whole = QVBoxLayout(self.list)
        whole.setContentsMargins(0, 0, 2, 0)
        self._column = QVBoxLayout()
        self._column.setSpacing(10)
        whole.addLayout(self._column)
        whole.addStretch(1)  # A short list does not spread its rows.
        self.area = FittedScrollArea(self.list)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setMinimumHeight(_LIST_HEIGHT)
        self.area.setAccessibleName(tr("Where the space goes"))
        self.area.verticalScrollBar().rangeChanged.connect(self._show_question)
        self.body.addWidget(self.total)
        self.body.addWidget(self.line)
        self.body.addWidget(self.stop_button, 0, Qt.AlignmentFlag.AlignLeft)
        for part in (self.outcome, self.problem, self.area):
            self.body.addWidget(part)
        self.close_button = self.add_close()
        self.finished.connect(self._end)
        self.measure()

    def measure(self) -> None:
        self.line.show()
        self.area.hide()
        self.total.setText(tr("Measuring…"))

        async def work() -> None:
            try:
                found = await self._port.measure(self._show_share, lambda: not self._is_closed)
            except ChatError as error:
                if not self._is_closed:
                    self.line.hide()
                    self.total.setText("")
                    say_problem(self.problem, sentence(error_words(error)))
            else:
                if not self._is_closed:
                    self.show_found(found)

        self._tasks.spawn(work, purpose=tr("measure the space"), retry=False)

    def _show_share(self, share: float) -> None:
        if not self._is_closed:
            self.line.show_fraction(share)

    def _end(self) -> None:
        self._is_closed = True

    # --- what there is ----------------------------------------------------------------------------

    def show_found(self, found: ProfileTakes) -> None:
        self.line.hide()
        words = tr("This profile takes {size} on this device.")
        self.total.setText(words.format(size=size_words(found.total)))
        for row in self.rows:
            self._column.removeWidget(row)
            row.deleteLater()
        self.rows = [*self._of_conversations(found), *self._of_the_rest(found)]
        for row in self.rows:
            self._column.addWidget(row)
        self.area.show()

    def _of_conversations(self, found: ProfileTakes) -> "Iterator[SpaceRow]":
        for takes in found.conversations[:_MOST_SHOWN]:
            name = self._names.get(takes.conversation_id) or tr("A conversation that was left")
            row = SpaceRow(one_line(name, 60), takes.total, conversation_words(takes))
            if takes.fetchable.count:
                self._offer_to_free(row, takes)
            yield row

    def _offer_to_free(self, row: "SpaceRow", takes: ConversationTakes) -> None:
        count, size = takes.fetchable.count, size_words(takes.fetchable.size)
        unasked = takes.conversation_id in self._stayed
        if unasked:
            offer = tr("Let {size} go too")
            words = tr(
                "No connected member has these %n files just now. Members said earlier that they"
                " have them; if they let them go too, nobody may have them any more.",
                "No connected member has this file just now. Members said earlier that they have"
                " it; if they let it go too, nobody may have it any more.",
                count,
            )
        else:
            offer = tr("Let {size} go")
            words = tr(
                "Of %n files those go from this device that a connected member has just now. They"
                " can be fetched again only as long as somebody still has them.",
                "%n file goes from this device if a connected member has it just now. It can be"
                " fetched again only as long as somebody still has it.",
                count,
            )
        row.offer(offer.format(size=size), words, partial(self._free, takes, unasked=unasked))

    def _of_the_rest(self, found: ProfileTakes) -> "Iterator[SpaceRow]":
        for title, size, hint in (
            (tr("The search"), found.search, tr("Its index of all messages.")),
            (
                tr("Kept for others"),
                found.kept_for_others,
                tr("Sealed; the settings say how much."),
            ),
            (tr("People, addresses, lists"), found.lists, ""),
            (tr("Logs"), found.logs, ""),
            (tr("On its way to the database, and other files"), found.other, ""),
        ):
            if size:
                yield SpaceRow(title, size, hint)
        if found.unused:
            hint = tr("New messages fill it before the file grows.")
            row = SpaceRow(tr("Unused room in the database"), found.unused, hint)
            if found.unused >= _WORTH_PACKING:
                self._offer_to_reclaim(row, found)
            yield row
        if found.records:
            row = SpaceRow(tr("Recorded deliveries"), found.records, "")
            words = tr("Those of earlier starts are deleted. This cannot be undone.")
            row.offer(tr("Let earlier ones go"), words, self._free_records)
            yield row

    def _offer_to_reclaim(self, row: "SpaceRow", found: ProfileTakes) -> None:
        words = tr(
            "The database is packed. For a while that takes up to {room} more on the disk. What you"
            " send or get meanwhile waits, and is saved afterwards."
        ).format(room=size_words(found.room_to_pack))
        offer = tr("Give {size} back").format(size=size_words(found.unused))
        row.offer(offer, words, self._reclaim, keep=tr("Not now"), is_lossy=False)

    def _show_question(self) -> None:
        """It makes its row higher, so that its buttons may be below what is seen.

        In a small window the sheet is scrolled, too.
        """
        for row in self.rows:
            if row.asking is None or not row.asking.isVisible():
                continue
            area: QWidget | None = self.area
            while area is not None:
                if isinstance(area, QScrollArea):
                    area.ensureWidgetVisible(row.go)
                area = area.parentWidget()

    # --- letting go -------------------------------------------------------------------------------

    def _free(self, takes: ConversationTakes, *, unasked: bool) -> None:
        async def free() -> None:
            stay = await self._let_go(takes, unasked)
            if stay and not self._is_closed:
                self._stayed.add(takes.conversation_id)
                words = tr(
                    "%n files stay: no connected member has them just now.",
                    "%n file stays: no connected member has it just now.",
                    stay,
                )
                say_problem(self.problem, words)

        self._do(free)

    def _reclaim(self) -> None:
        async def reclaim() -> None:
            self._is_stopped = False
            self.area.hide()
            self.line.show_fraction(0.0)
            self.line.show()
            self.stop_button.setEnabled(True)
            self.stop_button.show()
            self.total.setText(tr("Packing the database…"))
            announce(self.stop_button, self.total.text())
            try:
                given_back = await self._port.reclaim(
                    self._show_share, lambda: not (self._is_stopped or self._is_closed)
                )
                words = tr("{size} given back to the disk.").format(size=size_words(given_back))
            except ChatError:
                if not self._is_stopped:
                    raise
                words = tr("Packing was stopped; nothing was changed.")
            finally:
                if not self._is_closed:
                    self.stop_button.hide()
            if not self._is_closed:
                self.outcome.setText(words)
                self.outcome.show()
                announce(self.outcome, words)

        self._do(reclaim, again=True)

    def _stop(self) -> None:
        self._is_stopped = True
        self.stop_button.setEnabled(False)
        self.close_button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _free_records(self) -> None:
        self._do(self._port.let_records_go)

    def _do(self, free: Callable[[], Awaitable[None]], *, again: bool = False) -> None:
        """``again``: the list is shown anew also after a failure."""

        async def work() -> None:
            is_done = True
            try:
                await free()
            except ChatError as error:
                is_done = again
                if not self._is_closed:
                    say_problem(self.problem, sentence(error_words(error)))
            if is_done and not self._is_closed:
                self.measure()

        say_problem(self.problem, "")
        self.outcome.hide()
        self.close_button.setFocus(Qt.FocusReason.OtherFocusReason)
        for row in self.rows:
            row.settle()
        self._tasks.spawn(work, purpose=tr("let files go"), retry=False)


def conversation_words(takes: ConversationTakes) -> str:
    parts = [
        tr("Texts {texts}, files {files}, evidence and index {evidence}.").format(
            texts=size_words(takes.texts),
            files=size_words(takes.files),
            evidence=size_words(takes.evidence),
        )
    ]
    of = takes.fetchable.count + takes.unheld.count
    if of:
        words = tr(
            "Of %n larger files of others, {held} can be fetched again from members who hold them.",
            "Of %n larger file of others, {held} can be fetched again from members who hold it.",
            of,
        )
        parts.append(words.format(held=takes.fetchable.count))
    if takes.own.count:
        words = tr(
            "%n larger files are your own and stay; {alone} of them nobody else is known to have.",
            "%n larger file is your own and stays; {alone} of it nobody else is known to have.",
            takes.own.count,
        )
        parts.append(words.format(alone=takes.own_only_here.count))
    return " ".join(parts)


class SpaceRow(QWidget):
    """What it is, how much that is, and perhaps a button that lets some of it go."""

    def __init__(self, title: str, size: int, hint: str) -> None:
        super().__init__()
        self.size_bytes = size
        self.button: Button | None = None
        self.asking: Asking | None = None
        line = QHBoxLayout()
        line.setSpacing(10)
        self.title = Text(title, face="body", wrap=True)
        self.said = Text(size_words(size), face="body", colour="ink2")
        line.addWidget(self.title, 1)
        line.addWidget(self.said, 0, Qt.AlignmentFlag.AlignTop)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2)
        self._column.addLayout(line)
        self.hint = Text(hint, face="caption", colour="ink3", wrap=True)
        if hint:
            self._column.addWidget(self.hint)

    def offer(
        self,
        words: str,
        means: str,
        run: Callable[[], None],
        *,
        keep: str = "",
        is_lossy: bool = True,
    ) -> None:
        """``means``: what is said before it is done; ``keep``: the button that leaves it so."""
        self.button = Button(words, size="small")
        self.button.setAccessibleName(f"{self.title.text()}: {words}")
        self.button.clicked.connect(lambda _checked=False: self._ask(True))
        self._column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        self.means = Text(means, face="body", wrap=True)
        self.keep = Button(keep or tr("Keep them"), size="small")
        self.go = Button(words, kind="danger" if is_lossy else "primary", size="small")
        self.keep.clicked.connect(lambda _checked=False: self._ask(False))
        self.go.clicked.connect(lambda _checked=False: run())
        self.asking = Asking(self.means, self.keep, self.go)
        self.asking.hide()
        self._column.addWidget(self.asking)

    def _ask(self, asks: bool) -> None:
        """The safe answer has the focus."""
        if self.button is None or self.asking is None:
            return
        self.button.setVisible(not asks)
        self.asking.setVisible(asks)
        (self.keep if asks else self.button).setFocus(Qt.FocusReason.OtherFocusReason)
        if asks:
            announce(self.keep, self.means.text())

    def settle(self) -> None:
        """One thing at a time."""
        if self.button is not None:
            self.button.setEnabled(False)
            self.keep.setEnabled(False)
            self.go.setEnabled(False)


class Asking(QWidget):
    """A question and its answers: one below the other where they have no room side by side."""

    def __init__(self, question: Text, *answers: Button) -> None:
        super().__init__()
        self._answers = answers
        column, self._line = QVBoxLayout(self), QBoxLayout(QBoxLayout.Direction.TopToBottom)
        column.setContentsMargins(0, 4, 0, 4)
        for button in answers:
            self._line.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        self._line.addStretch(1)
        column.addWidget(question)
        column.addLayout(self._line)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        gaps = self._line.spacing() * (len(self._answers) - 1)
        needed = sum(button.sizeHint().width() for button in self._answers) + gaps
        across = QBoxLayout.Direction.LeftToRight
        down = QBoxLayout.Direction.TopToBottom
        self._line.setDirection(across if needed <= self.width() else down)
