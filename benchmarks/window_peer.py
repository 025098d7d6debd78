"""One real window in a process of its own, for ``e2e``: it makes or joins a group and talks.

Instead of a link it may be told ``contact``: it makes a contact link, and accepts whoever asks.

Prints JSON lines: ``{"link": …}``, ``{"ready": true}``, ``{"entered": text, "ns": …}`` when Enter
went into the composer, ``{"shown": text, "ns": …}`` when the timeline had painted somebody else's
message.  Times are the machine's monotonic clock, the same for every process.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtTest import QTest

from chat_app.compose import build_engine
from chat_app.delivery_recording import RecordOptions, make_recorder
from chat_app.paths import profile_paths
from chat_app.qt_loop import run_on_qt
from chat_app.settings import Settings, StorageSettings
from engine.core.contacts import CONTACT_PREFIX, ContactState
from engine.core.ids import ConversationId
from engine.delivery.pseudonym import KEY_BYTES, key_text
from engine.events import ConversationAdded, ConversationChanged, EngineEvent, MessageAdded
from engine.persistence.profile_directory import open_profile_directory
from engine.runtime.engine import Engine
from ui.app import build_window
from ui.settings import UiSettings
from ui.window.main_window import MainWindow

ACCEPT_CONTACT = "contact"
BETWEEN_S = 0.06
TYPED_S = 0.12
"""The text stands in the box for a moment before Enter, as it does when somebody types."""


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class ShownWatch(QObject):
    """Reports a message once the paint that shows it is over."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._added: list[str] = []
        window.bridge.message_added.connect(self._note)
        window.pane.timeline.viewport().installEventFilter(self)

    def _note(self, event: MessageAdded) -> None:
        if not event.message.is_own:
            self._added.append(event.message.text)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        if event.type() == QEvent.Type.Paint and self._added:
            painted, self._added = self._added, []
            QTimer.singleShot(0, lambda: self._report(painted))
        return super().eventFilter(watched, event)

    @staticmethod
    def _report(painted: list[str]) -> None:
        for text in painted:
            tell(shown=text, ns=time.monotonic_ns())


async def main(directory: Path, name: str, link: str, count: int, *, record: bool) -> int:
    settings = Settings(storage=StorageSettings(key="file"))
    wish = RecordOptions(wanted=record, key=key_text(bytes(KEY_BYTES)) if record else None)
    recorder = make_recorder(profile_paths(directory=directory), settings, wish)
    engine = build_engine(open_profile_directory(directory), settings, recorder=recorder)
    await engine.start()
    await engine.create_identity(name)
    both_here = asyncio.Event()
    engine.subscribe(lambda event: both_here.set() if _shows_the_other(event) else None)
    window = build_window(engine, UiSettings())
    watch = ShownWatch(window)
    window.show()
    await window.start()
    await _meet(engine, window, link)
    await asyncio.wait_for(both_here.wait(), 30)
    tell(ready=True)
    await asyncio.to_thread(sys.stdin.readline)
    for number in range(count):
        await _enter(window, f"{name} {number}")
    await asyncio.to_thread(sys.stdin.readline)
    window.close()
    await window.shutdown()
    watch.deleteLater()
    await engine.stop()
    return 0


def _shows_the_other(event: EngineEvent) -> bool:
    """In a group, the first message of the other is here.

    Nobody heard the founder's first message; the newcomer asks for it after a random delay, and
    whatever names it waits until it is here.  That is not the time that this benchmark measures.
    """
    match event:
        case MessageAdded(message=message):
            return not message.is_own
        case ConversationChanged(conversation=conversation):
            contact = conversation.contact
            return contact is not None and contact.state is ContactState.ACCEPTED
        case _:
            return False


async def _meet(engine: Engine, window: MainWindow, link: str) -> None:
    if link == ACCEPT_CONTACT:
        group = await _accept(engine)
    elif link.startswith(CONTACT_PREFIX):
        group = await engine.people.add(link)
    elif link:
        group = await engine.groups.join(link)
    else:
        group = await engine.groups.create("Benchmark")
        tell(link=await engine.groups.make_invite_link(group))
    await asyncio.sleep(0)
    window.open_conversation(group)


async def _accept(engine: Engine) -> ConversationId:
    """Make a contact link and accept the first who asks."""
    asked: asyncio.Future[ConversationId] = asyncio.get_running_loop().create_future()

    def on_event(event: EngineEvent) -> None:
        if isinstance(event, ConversationAdded) and not asked.done():
            asked.set_result(event.conversation.conversation_id)

    unsubscribe = engine.subscribe(on_event)
    tell(link=await engine.people.make_contact_link())
    pair = await asyncio.wait_for(asked, 30)
    unsubscribe()
    await engine.people.accept(pair)
    return pair


async def _enter(window: MainWindow, text: str) -> None:
    box = window.pane.composer.box
    box.setPlainText(text)
    await asyncio.sleep(TYPED_S)
    tell(entered=text, ns=time.monotonic_ns())
    QTest.keyClick(box, Qt.Key.Key_Return)
    await asyncio.sleep(BETWEEN_S)


if __name__ == "__main__":
    peer = (Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
    sys.exit(run_on_qt(lambda: main(*peer, record="record" in sys.argv[5:])))
