"""Asks once a day whether a newer version was released, if the user agreed; fetches nothing else.

Where announcements lie, and by which key they are signed, is told to whoever builds the program
(scripts/release_channel.py); a program that was not told offers nothing.  What is announced is
shown, and a page for the browser; nothing is downloaded or changed.  When it was asked last, and
which announcement was the newest, is in the profile's database, so that an old one is known.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from chat_app.compose import unix_now_ms
from chat_app.effective_network import proxy_of
from chat_app.settings import Settings
from chat_app.settings_control import SettingsControl
from chat_app.version import version
from engine.core.errors import StorageError
from engine.core.ids import UnixMs
from engine.core.releases import MAX_MANIFEST_BYTES, Release, ReleaseError, is_newer
from engine.crypto.releases import believe
from ui.settings_port import SettingName, SettingsPort
from ui.update_port import Updates, UpdateState

if TYPE_CHECKING:
    from engine.network.https import HttpsAddress

CHANNEL_FILE: Final = Path(__file__).resolve().parent.parent / "assets" / "release-channel.txt"
STATE_KEY: Final = "updates"
WISH: Final[SettingName] = ("privacy", "ask_for_updates")
LOOK_EVERY_S: Final = 600.0
FIRST_LOOK_S: Final = 90.0
"""After a start, which has other work."""
DAY_MS: Final = 24 * 3_600_000
_KEY_BYTES: Final = 32

logger = logging.getLogger(__name__)

Fetch: TypeAlias = "Callable[[HttpsAddress], Awaitable[bytes]]"


class Channel(Struct, frozen=True, kw_only=True):
    address: "HttpsAddress"
    """Of the announcement."""
    page: str
    """For people."""
    key: bytes


class Keeping(Protocol):
    """Small values in the profile's database; an engine is one."""

    async def value(self, key: str, /) -> str | None: ...

    async def save_value(self, key: str, value: str, /) -> None: ...


class _State(Struct, frozen=True, kw_only=True):
    asked_ms: int = 0
    serial: int = 0
    version: str = ""
    day: str = ""
    news: tuple[str, ...] = ()
    dismissed: str = ""


def parse_channel(text: str) -> Channel:
    """Three lines: address of the announcement, of the page, key in hex.  Raises ValueError."""
    from engine.network.https import parse_https  # noqa: PLC0415 - where there is a channel

    address, page, key = text.splitlines()
    parse_https(page)
    public = bytes.fromhex(key)
    if len(public) != _KEY_BYTES:
        raise ValueError("a key has 32 bytes")
    return Channel(address=parse_https(address), page=page, key=public)


def channel_here(file: Path = CHANNEL_FILE) -> Channel | None:
    """Where this program looks; None if it was not told, or not rightly."""
    try:
        return parse_channel(file.read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("no news of releases", extra={"error": type(error).__name__})
        return None


class UpdateNotice:
    """A ``ui.update_port.UpdatePort``; ``running`` as long as the window is open."""

    def __init__(  # noqa: PLR0913 - keyword-only: what it asks
        self,
        channel: Channel,
        keeping: Keeping,
        *,
        version: str,
        wanted: Callable[[], bool],
        now_ms: Callable[[], UnixMs],
        fetch_from: Fetch,
    ) -> None:
        self._channel = channel
        self._keeping = keeping
        self._version = version
        self._wanted = wanted
        self._now_ms = now_ms
        self._fetch = fetch_from
        self._state = _State()
        self._problem: ReleaseError | None = None
        self._listeners: list[Callable[[], None]] = []
        self._awake = asyncio.Event()

    @property
    def page(self) -> str:
        return self._channel.page

    def view(self) -> Updates:
        state = self._state
        if not self._wanted():
            return Updates(state=UpdateState.OFF)
        if not state.asked_ms:
            return Updates(state=UpdateState.NOT_YET)
        release = self._announced()
        newer = release is not None and is_newer(release.version, self._version)
        return Updates(
            state=UpdateState.NEWER if newer else UpdateState.CURRENT,
            release=release,
            asked_ms=UnixMs(state.asked_ms),
            problem=self._problem,
            is_dismissed=newer and state.dismissed == state.version,
        )

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def dismiss(self) -> None:
        await self._keep(replace(self._state, dismissed=self._state.version))

    @contextlib.asynccontextmanager
    async def running(self, settings: SettingsPort) -> AsyncIterator[None]:
        await self.load()
        call_off = settings.listen(self._heard)
        task = asyncio.create_task(self._run(), name="news of releases")
        try:
            yield
        finally:
            call_off()
            task.cancel()
            await asyncio.wait([task])

    async def load(self) -> None:
        self._state = _read_state(await self._keeping.value(STATE_KEY))

    async def look(self) -> None:
        """Ask, if that is wanted and due."""
        now_ms = self._now_ms()
        # A clock that was set back makes it due: it would not be for long, otherwise.
        is_due = not 0 <= now_ms - self._state.asked_ms < DAY_MS
        if not self._wanted() or not is_due:
            return
        await self._keep(replace(self._state, asked_ms=now_ms), tell=False)
        try:
            data = await self._fetch(self._channel.address)
            release = believe(data, self._channel.key, seen_serial=self._state.serial)
        except ReleaseError as error:
            logger.info("no news of releases", extra={"reason": error.flaw.value})
            self._problem = error
            self._tell()
            return
        self._problem = None
        await self._keep(
            replace(
                self._state,
                serial=release.serial,
                version=release.version,
                day=release.day,
                news=release.news,
            )
        )

    async def _run(self) -> None:
        wait_s = FIRST_LOOK_S
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._awake.wait()
            self._awake.clear()
            try:
                await self.look()
            except StorageError as error:  # Nobody is asked if that cannot be remembered.
                logger.warning("no news of releases", extra={"error": type(error).__name__})
            wait_s = LOOK_EVERY_S

    def _heard(self, name: SettingName) -> None:
        if name == WISH:
            self._awake.set()
            self._tell()

    def _announced(self) -> Release | None:
        state = self._state
        if not state.serial:
            return None
        return Release(serial=state.serial, version=state.version, day=state.day, news=state.news)

    async def _keep(self, state: _State, *, tell: bool = True) -> None:
        self._state = state
        await self._keeping.save_value(STATE_KEY, _state_text(state))
        if tell:
            self._tell()

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()


def notice_here(
    keeping: Keeping, kept: SettingsControl, began: Settings, channel: Channel | None
) -> UpdateNotice | None:
    """``began``: the settings of this start, by whose proxy all connections go."""
    if channel is None:
        return None
    from engine.network.https import fetch  # noqa: PLC0415 - likewise

    return UpdateNotice(
        channel,
        keeping,
        version=version(),
        wanted=lambda: kept.settings.privacy.ask_for_updates,
        now_ms=unix_now_ms,
        fetch_from=partial(fetch, most=MAX_MANIFEST_BYTES, proxy=proxy_of(began)),
    )


@contextlib.asynccontextmanager
async def while_open(notice: UpdateNotice | None, settings: SettingsPort) -> AsyncIterator[None]:
    if notice is None:
        yield
        return
    async with notice.running(settings):
        yield


def _state_text(state: _State) -> str:
    return json.dumps(
        {
            "asked_ms": state.asked_ms,
            "serial": state.serial,
            "version": state.version,
            "day": state.day,
            "news": list(state.news),
            "dismissed": state.dismissed,
        }
    )


def _read_state(text: str | None) -> _State:
    """Ours alone writes it; what cannot be read is as if nobody had asked."""
    try:
        found = json.loads(text or "{}")
        return _State(
            asked_ms=int(found.get("asked_ms", 0)),
            serial=int(found.get("serial", 0)),
            version=str(found.get("version", "")),
            day=str(found.get("day", "")),
            news=tuple(str(line) for line in found.get("news", ())),
            dismissed=str(found.get("dismissed", "")),
        )
    except (ValueError, TypeError, AttributeError):
        return _State()
