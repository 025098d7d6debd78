"""Has the key of a profile before anything opens it: without asking, or by a window that asks.

A later start that meets the window brings it to the front, and the link that it has waits until the
profile is open.
"""

import asyncio
from typing import Final

from msgspec import Struct

from chat_app.interrupts import Interrupts, closed_or_interrupted
from chat_app.passphrase_control import StartUnlock
from chat_app.passphrase_options import PassphraseSource
from engine.core.errors import StorageError
from engine.persistence.errors import PassphraseNeededError
from engine.persistence.key import DatabaseKey, obtain_database_key
from engine.persistence.profile_directory import ProfileDirectory
from ui.app import build_unlocking
from ui.settings import UiSettings
from ui.tasks import Tasks

_MOST_LINKS: Final = 4


class ForgottenError(Exception):
    """The user wants a backup restored instead."""


class Unlocking(Struct, frozen=True, kw_only=True):
    directory: ProfileDirectory
    profile: str
    """Its name."""
    force_key_file: bool
    source: PassphraseSource
    can_ask: bool = True
    """Whether somebody sees a window."""


class Unlocked(Struct, frozen=True, kw_only=True):
    key: DatabaseKey
    links: tuple[str, ...] = ()
    """That later starts brought meanwhile."""


async def unlocked(
    wanted: Unlocking, settings: UiSettings, interrupts: Interrupts
) -> Unlocked | None:
    """None: the user closed the window.

    Raises ForgottenError, ConfigError, StorageError.
    """
    try:
        key = await asyncio.to_thread(
            obtain_database_key,
            wanted.directory,
            force_key_file=wanted.force_key_file,
            passphrase=wanted.source.read(),
        )
    except PassphraseNeededError as error:
        if not wanted.can_ask:
            raise
        return await _asked(wanted, error, settings, interrupts)
    return Unlocked(key=key)


async def _asked(
    wanted: Unlocking, error: StorageError, settings: UiSettings, interrupts: Interrupts
) -> Unlocked | None:
    from chat_app.one_instance import InstanceServer  # noqa: PLC0415 - seldom wanted

    tasks, over, forgotten = Tasks(), asyncio.Event(), asyncio.Event()
    port = StartUnlock(wanted.directory, force_key_file=wanted.force_key_file)
    window = build_unlocking(port, tasks, settings, profile=wanted.profile, reason=error.detail)
    links = list[str]()

    def called(link: str) -> None:
        if link and len(links) < _MOST_LINKS:
            links.append(link)
        window.showNormal()
        window.raise_()
        window.activateWindow()

    server = InstanceServer(wanted.directory.path, window)
    server.called.connect(called)
    window.finished.connect(over.set)
    window.restore_requested.connect(forgotten.set)
    window.restore_requested.connect(over.set)
    window.show()
    await closed_or_interrupted(over, interrupts)
    server.close()
    window.close()
    await tasks.settle()
    window.deleteLater()
    if forgotten.is_set():
        raise ForgottenError
    if port.key is None or interrupts.asked.is_set():
        return None
    return Unlocked(key=port.key, links=tuple(links))
