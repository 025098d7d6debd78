"""Notifications by the desktop's own server, ``org.freedesktop.Notifications`` (version 1.2).

One task speaks with the server and one call is under way at a time; what is wanted meanwhile waits,
the newest of each key only.  A server that is gone, answers errors or never answers costs the
notification and nothing else, and is left alone for a while.  Only the server's own signals
count, and only for notifications that are ours.
"""

import asyncio
import contextlib
import html
import logging
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from jeepney import DBusAddress, Message, new_method_call
from PySide6.QtGui import QImage

from chat_app.session_bus import BusError, BusSignal, SessionBus
from engine.core.counters import Counters
from ui.desktop.port import (
    DesktopNotification,
    Dismissed,
    Heard,
    MarkedRead,
    NotificationAnswer,
    Opened,
    Replied,
)

NAME: Final = "org.freedesktop.Notifications"
APPLICATION_ID: Final = "chat.causerie.Causerie"
ANSWER_S: Final = 5.0
REST_S: Final = 30.0
"""For which a server that did not answer, or a bus that is not there, is left alone."""
LONGEST_REPLY: Final = 100_000
"""Characters; the engine says what is too long for a message."""
_SERVER: Final = DBusAddress("/org/freedesktop/Notifications", bus_name=NAME, interface=NAME)
_SIGNALS: Final = f"type='signal',sender='{NAME}',interface='{NAME}'"
_OWNERS: Final = (
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
    f"member='NameOwnerChanged',arg0='{NAME}'"
)
_DEFAULT, _REPLY, _MARK_READ = "default", "inline-reply", "mark-read"
_ANSWERS: Final[Mapping[str, Callable[[str], NotificationAnswer]]] = {
    _DEFAULT: Opened,
    _REPLY: Opened,  # Of a server that has no field for it: the window has one.
    _MARK_READ: MarkedRead,
}
_NORMAL: Final = 1
_BY_EXPIRY: Final = 1
_UNSPEAKABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""The bus hangs up after NUL or a lone surrogate; no desktop can draw the rest."""

logger = logging.getLogger(__name__)


class DBusNotifications:
    """A ``NotificationPort``; ``run`` is the task that does what its methods ask for."""

    def __init__(self, address: str, *, answer_s: float = ANSWER_S, rest_s: float = REST_S) -> None:
        self._address = address
        self.answer_s = answer_s
        """For which an answer is waited."""
        self._rest_s = rest_s
        self._heard: Heard = lambda _answer: None
        self._wanted: dict[str, DesktopNotification | None] = {}
        """By key; None: to be withdrawn."""
        self._under_way: tuple[str, ...] = ()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._ids: dict[str, int] = {}
        self._bus: SessionBus | None = None
        self._owner = ""
        self._capabilities: frozenset[str] | None = None
        self._rests_until_s = 0.0
        self._closed = False
        self.counters = Counters()
        """What was not shown or not believed, and why."""

    # --- NotificationPort -------------------------------------------------------------------------

    def listen(self, heard: Heard, /) -> None:
        self._heard = heard

    def show(self, notification: DesktopNotification, /) -> None:
        self._want(notification.key, notification)

    def withdraw(self, key: str, /) -> None:
        self._want(key, None)

    def close(self) -> None:
        for key in (*self._ids, *self._wanted, *self._under_way):
            self._want(key, None)
        self._closed = True

    def _want(self, key: str, notification: DesktopNotification | None) -> None:
        if not self._closed:
            self._wanted[key] = notification
            self._idle.clear()
            self._wake.set()

    # --- the task ---------------------------------------------------------------------------------

    async def idle(self) -> None:
        """Wait until nothing is wanted that was not tried."""
        await self._idle.wait()

    async def run(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._wanted:
                    key = next(iter(self._wanted))
                    self._under_way = (key,)
                    await self._do(key, self._wanted.pop(key))
                    self._under_way = ()
                self._idle.set()
        finally:
            if self._bus is not None:
                await self._bus.close()

    async def _do(self, key: str, notification: DesktopNotification | None) -> None:
        if notification is None and key not in self._ids:
            return
        if asyncio.get_running_loop().time() < self._rests_until_s:
            self.counters.add("notification.server_rests")
            return
        try:
            bus = await self._connected()
            if notification is None:
                await self._withdraw(bus, key)
            else:
                await self._show(bus, notification)
        except BusError as error:
            self._failed(error)

    def _failed(self, error: BusError) -> None:
        """Wrong once is not wrong for ever, but nobody is asked again and again."""
        reason = error.name.rpartition(".")[2] or "NoBus"
        self.counters.add(f"notification.not_shown_{reason}")
        logger.info("no notification", extra={"error": reason})
        self._capabilities = None
        if reason in {"NoReply", "NoBus", "ServiceUnknown"}:
            self._rests_until_s = asyncio.get_running_loop().time() + self._rest_s

    async def _connected(self) -> SessionBus:
        if self._bus is not None and not self._bus.closed.is_set():
            return self._bus
        self._forget_server("")
        bus = await SessionBus.connect(self._address)
        bus.on_signal = self._hear
        try:
            await bus.watch(_SIGNALS, self.answer_s)
            await bus.watch(_OWNERS, self.answer_s)
            self._owner = await bus.owner_of(NAME, self.answer_s)
        except BaseException:  # Cancelled, too: nobody else knows of this connection.
            await bus.close()
            raise
        self._bus = bus
        return bus

    def _forget_server(self, owner: str) -> None:
        """Ids of another server may be those of somebody else's notifications."""
        self._owner = owner
        self._ids.clear()
        self._capabilities = None
        self._rests_until_s = 0.0

    # --- what is said -----------------------------------------------------------------------------

    async def _what_it_can(self, bus: SessionBus) -> frozenset[str]:
        if self._capabilities is None:
            call = new_method_call(_SERVER, "GetCapabilities")
            body = await bus.call(call, self.answer_s)
            listed = body[0] if body else ()
            if not isinstance(listed, list | tuple):
                raise BusError("org.freedesktop.DBus.Error.InvalidArgs", "no list")
            self._capabilities = frozenset(one for one in listed if isinstance(one, str))
        return self._capabilities

    async def _show(self, bus: SessionBus, wanted: DesktopNotification) -> None:
        can = await self._what_it_can(bus)
        asked = bus.ask(notify_call(wanted, can, replaces_id=self._ids.get(wanted.key, 0)))
        # By a callback, so that it is known before the next signal is heard.
        asked.add_done_callback(partial(self._shown_as, wanted.key, self._owner))
        done, _ = await asyncio.wait({asked}, timeout=self.answer_s)
        if not done:
            raise BusError("org.freedesktop.DBus.Error.NoReply", "no answer")
        _id_in(asked.result())

    def _shown_as(self, key: str, owner: str, answer: "asyncio.Future[tuple[object, ...]]") -> None:
        """Even if nobody waits any more: what is on the screen must be withdrawn some day."""
        if answer.cancelled() or answer.exception() is not None or owner != self._owner:
            return
        if key not in self._under_way:
            self.counters.add("notification.answer_came_late")
            self._rests_until_s = 0.0
        with contextlib.suppress(BusError):
            number = _id_in(answer.result())
            for other in [other for other, known in self._ids.items() if known == number]:
                del self._ids[other]
            self._ids[key] = number

    async def _withdraw(self, bus: SessionBus, key: str) -> None:
        number = self._ids.pop(key, None)
        if number is None:  # The server changed meanwhile.
            return
        await bus.call(new_method_call(_SERVER, "CloseNotification", "u", (number,)), self.answer_s)

    # --- what is heard ----------------------------------------------------------------------------

    def _hear(self, signal: BusSignal) -> None:
        if signal.member == "NameOwnerChanged" and signal.sender == "org.freedesktop.DBus":
            match signal.body:
                case (str(name), str(_), str(owner)) if name == NAME:
                    self.counters.add("notification.server_changed")
                    self._forget_server(owner)
            return
        if signal.interface != NAME:
            return
        if not self._owner or signal.sender != self._owner:
            self.counters.add("notification.signal_of_another")
            return
        match signal.body:
            case (int(number), *said):
                key = next((key for key, known in self._ids.items() if known == number), None)
            case _:
                self.counters.add("notification.signal_malformed")
                return
        if key is None:
            self.counters.add("notification.signal_for_another")
            return
        answer = self._answer(signal.member, key, said)
        if answer is not None:
            asyncio.get_running_loop().call_soon(self._heard, answer)

    def _answer(self, member: str, key: str, said: list[object]) -> NotificationAnswer | None:
        match (member, said):
            case ("ActionInvoked", [str(action)]):
                return _answer_to(action, key)
            case ("NotificationReplied", [str(text)]):
                return Replied(key, text[:LONGEST_REPLY])
            case ("NotificationClosed", [int(reason)]):
                del self._ids[key]
                # What only ran out of time still waits to be read.
                return None if reason == _BY_EXPIRY else Dismissed(key)
            case ("ActivationToken", [str(token)]):
                _use_token(token)
                return None
            case _:
                self.counters.add("notification.signal_malformed")
                return None


def _id_in(body: tuple[object, ...]) -> int:
    """Raises BusError if the answer to ``Notify`` has none."""
    number = body[0] if body else 0
    if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
        raise BusError("org.freedesktop.DBus.Error.InvalidArgs", "no id")
    return number


def _answer_to(action: str, key: str) -> NotificationAnswer | None:
    made = _ANSWERS.get(action)
    return None if made is None else made(key)


def _use_token(token: str) -> None:
    """Qt hands it to the compositor, which then lets the window come to the front (Wayland)."""
    if "\0" not in token:
        os.environ["XDG_ACTIVATION_TOKEN"] = token[:1024]


def notify_call(wanted: DesktopNotification, can: frozenset[str], *, replaces_id: int) -> Message:
    """The call of ``Notify``, with no more than the server can show."""
    title, body = _speakable(wanted.title), _speakable(wanted.body)
    if "body" not in can:
        title, body = f"{title}: {' '.join(body.split())}", ""
    elif "body-markup" in can:
        body = html.escape(body, quote=False)
    hints: dict[str, tuple[str, object]] = {
        "desktop-entry": ("s", APPLICATION_ID),
        "category": ("s", "im.received"),
        "urgency": ("y", _NORMAL),
        "image-data": ("(iiibiiay)", _image_data(wanted.picture)),
    }
    if wanted.is_update:
        hints["suppress-sound"] = ("b", True)
    actions = _actions(wanted, can)
    if _REPLY in actions:
        hints["x-kde-reply-placeholder-text"] = ("s", wanted.labels.reply)
    return new_method_call(
        _SERVER,
        "Notify",
        "susssasa{sv}i",
        ("Causerie", replaces_id, APPLICATION_ID, title, body, actions, hints, -1),
    )


def _actions(wanted: DesktopNotification, can: frozenset[str]) -> list[str]:
    if "actions" not in can:
        return []
    actions = [_DEFAULT, wanted.labels.open]
    if wanted.can_reply and _REPLY in can:
        actions += [_REPLY, wanted.labels.reply]
    if wanted.can_mark_read:
        actions += [_MARK_READ, wanted.labels.mark_read]
    return actions


def _speakable(text: str) -> str:
    return _UNSPEAKABLE.sub("\ufffd", text)


def _image_data(picture: QImage) -> tuple[int, int, int, bool, int, int, bytes]:
    """Width, height, bytes per row, alpha, bits, channels, and the pixels as RGBA."""
    image = picture.convertToFormat(QImage.Format.Format_RGBA8888)
    pixels = bytes(image.constBits())
    return (image.width(), image.height(), image.bytesPerLine(), True, 8, 4, pixels)
