"""How messages travel: the role of this device, and the service nodes it may use.

Addresses are judged while one types; what is wrong is named.  Nothing changes before one says so,
and then the old way goes on until the new one is connected.
"""

from typing import Final

from PySide6.QtWidgets import QPlainTextEdit, QWidget

from engine.core.errors import ChatError
from ui.controls import Button, Text
from ui.dialogs.outward import Outward
from ui.dialogs.sheet import Sheet, field_label, problem_line, say_problem
from ui.error_words import error_words
from ui.network_choice import NetworkChoice, NetworkPort
from ui.problem_words import sentence
from ui.segments import Segments
from ui.tasks import Tasks
from ui.translate import tr

ROLES: Final = ("auto", "relay", "edge")
_LINES: Final = 4


def _role_names() -> tuple[str, ...]:
    """In the order of ``ROLES``."""
    return tr("Automatic"), tr("Direct"), tr("Service nodes")


def _role_words() -> tuple[str, ...]:
    """In the order of ``ROLES``."""
    return (
        tr("Direct, and through service nodes while nobody else can be reached."),
        tr("This device passes messages on, and others reach it directly."),
        tr(
            "Everything goes through service nodes, as the public Waku network needs it. They learn"
            " which topics you follow, and not what is written."
        ),
    )


class Network(Sheet):
    def __init__(self, port: NetworkPort, tasks: Tasks, parent: QWidget | None = None) -> None:
        super().__init__(tr("Network"), tr("How this device meets others."), parent=parent)
        self._port = port
        self._tasks = tasks
        chosen = port.chosen()
        self.roles = Segments(tr("Role"), _role_names())
        self._role_words = Text(face="small", colour="ink2", wrap=True)
        self.nodes = QPlainTextEdit("\n".join(chosen.service_nodes))
        self.outward = Outward(discovery=chosen.discovery, proxy=chosen.proxy)
        self.problem = problem_line()
        self._number = ROLES.index(chosen.role)
        self._lay_out()
        self.confirm = self._add_buttons()
        self.roles.chosen.connect(self._choose)
        self.nodes.textChanged.connect(self._judge)
        self.outward.changed.connect(self._judge)
        self.roles.choose(self._number)
        self._judge()

    def _lay_out(self) -> None:
        self.nodes.setProperty("kind", "field")
        self.nodes.setPlaceholderText("/dns4/node.example.org/tcp/60000/p2p/16Uiu2…")
        self.nodes.setTabChangesFocus(True)
        self.nodes.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        line = self.nodes.fontMetrics().lineSpacing()
        self.nodes.setFixedHeight(line * (_LINES + 1) + 24)
        self.body.addWidget(self.roles)
        self.body.addWidget(self._role_words)
        self.body.addSpacing(6)
        self.body.addWidget(field_label(tr("Service nodes, one address on each line"), self.nodes))
        self.body.addWidget(self.nodes)
        hint = tr("Two or more are best: if one fails, nothing is lost.")
        self.body.addWidget(Text(hint, face="caption", colour="ink3", wrap=True))
        self.body.addSpacing(6)
        self.body.addWidget(self.outward)
        self.body.addWidget(self.problem)

    def _add_buttons(self) -> Button:
        cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        cancel.clicked.connect(self.reject)
        confirm = self.add_button(tr("Save"), kind="primary")
        confirm.setDefault(True)
        confirm.clicked.connect(self._submit)
        return confirm

    def choice(self) -> NetworkChoice:
        lines = (line.strip() for line in self.nodes.toPlainText().splitlines())
        return NetworkChoice(
            role=ROLES[self._number],
            service_nodes=tuple(line for line in lines if line),
            discovery=self.outward.discovery(),
            proxy=self.outward.proxy_text(),
        )

    def _choose(self, number: int) -> None:
        self._number = number
        self._judge()

    def _judge(self) -> None:
        role, words = ROLES[self._number], _role_words()[self._number]
        choice = self.choice()
        if role == "edge" and not choice.service_nodes:
            words = tr("{words} Name one, or nothing can be sent or received.").format(words=words)
        self._role_words.setText(words)
        problem = self._port.problem(choice)
        say_problem(self.problem, "" if problem is None else sentence(error_words(problem)))
        self.confirm.rename(tr("Save"))
        self.confirm.setEnabled(problem is None)

    def _submit(self) -> None:
        self.confirm.setEnabled(False)
        self.confirm.rename(tr("Changing…"))
        self._tasks.spawn(self._do, purpose=tr("change the network"), retry=False)

    async def _do(self) -> None:
        try:
            await self._port.change(self.choice())
        except ChatError as error:
            self._judge()
            say_problem(self.problem, sentence(error_words(error)))
        else:
            self.accept()
