"""Questions with consequences: leave, delete, open a link, quit.  The safe answer has the focus."""

from PySide6.QtCore import Qt, QUrl
from PySide6.QtWidgets import QLineEdit, QWidget

from engine.events import ConversationView, MessageView
from engine.file_views import FileView
from engine.governance_views import GovernanceView
from ui.controls import ButtonKind, Text
from ui.conversation_words import sender_words
from ui.dialogs.sheet import Sheet
from ui.foreign_text import file_name, one_line
from ui.governing_words import is_out, leaves_nobody_in_charge
from ui.translate import tr

_OPENABLE = frozenset({"https", "http", "mailto"})
_LONGEST_URL = 4096


class Confirm(Sheet):
    def __init__(
        self,
        title: str,
        words: str,
        *,
        yes: str,
        kind: ButtonKind = "primary",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(title, words, parent=parent)
        self.cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.confirm = self.add_button(yes, kind=kind)
        self.cancel.clicked.connect(self.reject)
        self.confirm.clicked.connect(self.accept)
        self.cancel.setDefault(True)
        self.cancel.setFocus()


def unsent_words(number: int) -> str:
    return tr(
        "%n messages of yours never got out and will be lost.",
        "%n message of yours never got out and will be lost.",
        number,
    )


def run_confirm(message: MessageView, file: FileView, parent: QWidget) -> Confirm:
    """Before another program opens what may run; also what we sent, which may be forwarded."""
    words = tr(
        "“{name}” can run programs on this computer, and {sender} says what it is: nobody has "
        "checked it. Open it only if you expected it from them."
    )
    if message.is_own:
        words = tr(
            "“{name}” can run programs on this computer. Open it only if you know what it does."
        )
    name = file_name(file.name)
    return Confirm(
        tr("Open this file?"),
        words.format(name=name, sender=sender_words(message)),
        yes=tr("Open anyway"),
        kind="danger",
        parent=parent,
    )


def leave_confirm(
    conversation: ConversationView, parent: QWidget, view: GovernanceView | None = None
) -> Confirm:
    """``view``: of a governed group."""
    name = one_line(conversation.name, 60)
    if is_out(view):
        return Confirm(
            tr("Remove {name}?").format(name=name),
            tr("You are not in it any more. Its messages are removed from this device."),
            yes=tr("Remove"),
            kind="danger",
            parent=parent,
        )
    words = tr(
        "The others are told if they can be reached. Its messages are removed from this device"
        " and you need a new invitation to come back."
    )
    if conversation.waiting_to_send or conversation.failed:
        unsent = conversation.waiting_to_send + conversation.failed
        words = f"{words} {unsent_words(unsent)}"
    if view is not None and leaves_nobody_in_charge(view):
        alone = tr(
            "You are the only one who can let others in or remove anybody: after you nobody can."
            " Make somebody an admin first."
        )
        words = f"{alone} {words}"
    return Confirm(
        tr("Leave {name}?").format(name=name),
        words,
        yes=tr("Leave group"),
        kind="danger",
        parent=parent,
    )


def delete_confirm(parent: QWidget, *, unsent: bool) -> Confirm:
    words = (
        tr(
            "It has not reached anybody yet. It goes from your view and is not sent by itself any"
            " more, but what you write after it may still lead others to it."
        )
        if unsent
        else tr("It is removed from this device only. The others keep it.")
    )
    title = tr("Discard this message?") if unsent else tr("Delete for you?")
    yes = tr("Discard") if unsent else tr("Delete")
    return Confirm(title, words, yes=yes, kind="danger", parent=parent)


class _HereOrForAll(Sheet):
    """Away for everybody, or only here.  Accepted is for everybody, unless ``here_only``."""

    def __init__(self, title: str, words: str, parent: QWidget | None) -> None:
        super().__init__(title, words, parent=parent)
        self.here_only = False
        cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.here = self.add_button(tr("Delete here"))
        self.everybody = self.add_button(tr("Delete for everybody"), kind="danger")
        cancel.clicked.connect(self.reject)
        self.here.clicked.connect(self._choose_here)
        self.everybody.clicked.connect(self.accept)
        cancel.setDefault(True)
        cancel.setFocus()

    def _choose_here(self) -> None:
        self.here_only = True
        self.accept()


class DeleteChoice(_HereOrForAll):
    """Of our own message."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            tr("Delete this message?"),
            tr(
                "For everybody: the others are asked to hide it, in ten seconds, so that you can"
                " still undo it. Whoever has it now, or kept a copy, can keep it."
            ),
            parent,
        )


class DeleteAsAdmin(_HereOrForAll):
    """Of somebody else's message, in a group where we outrank them."""

    def __init__(self, message: MessageView, parent: QWidget | None = None) -> None:
        words = tr(
            "For everybody: the message of {name} is hidden in the whole group. Everybody sees that"
            " you deleted it, and it cannot be undone. Whoever kept a copy can keep it."
        )
        super().__init__(
            tr("Delete this message?"), words.format(name=sender_words(message)), parent
        )


def quit_confirm(waiting: int, parent: QWidget) -> Confirm:
    return Confirm(
        tr("Quit while messages wait?"),
        tr(
            "%n messages could not be sent yet. "
            "Nothing is lost: sending goes on when you start Causerie again.",
            "%n message could not be sent yet. "
            "Nothing is lost: sending goes on when you start Causerie again.",
            waiting,
        ),
        yes=tr("Quit"),
        parent=parent,
    )


def openable(target: str) -> QUrl | None:
    """The address, if it is one that may be opened: https, http and mailto only."""
    if len(target) > _LONGEST_URL:
        return None
    url = QUrl(target, QUrl.ParsingMode.StrictMode)
    if not url.isValid() or url.scheme().lower() not in _OPENABLE:
        return None
    return url if url.scheme().lower() == "mailto" or url.host() else None


def _unencrypted() -> str:
    return tr("It is not encrypted (http): others on the way can read and change what it shows.")


class OpenLinkConfirm(Confirm):
    """Shows the address in its encoded form, in which look-alike letters give themselves away."""

    def __init__(self, url: QUrl, parent: QWidget | None = None) -> None:
        super().__init__(
            tr("Open this address?"),
            tr(
                "It leaves Causerie and opens in another program, which tells that site your"
                " network address."
            ),
            yes=tr("Open"),
            parent=parent,
        )
        encoded = url.toString(QUrl.ComponentFormattingOption.FullyEncoded)
        self.address = QLineEdit(encoded)
        self.address.setReadOnly(True)
        self.address.setAccessibleName(tr("Full address"))
        self.address.setCursorPosition(0)
        self.body.addWidget(self.address)
        host = url.host(QUrl.ComponentFormattingOption.FullyEncoded)
        if host:
            site = Text(
                tr("Site: {host}").format(host=host),
                face="label",
                colour="ink",
                strong=True,
                wrap=True,
            )
            site.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self.body.addWidget(site)
        if url.scheme().lower() == "http":
            self.body.addWidget(Text(_unencrypted(), face="label", colour="warn", wrap=True))


class RefusedLink(Sheet):
    def __init__(self, target: str, parent: QWidget | None = None) -> None:
        super().__init__(
            tr("This address is not opened"),
            tr("Causerie opens web addresses (https and http) and mail addresses only."),
            parent=parent,
        )
        self.body.addWidget(Text(one_line(target, 200), face="code", colour="ink2", wrap=True))
        self.add_close()
