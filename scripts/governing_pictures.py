"""The pictures of a group of people who are let in: three real windows on real engines, one story.

Olga makes the group and invites; Anna comes in, Tom asks and is let in; Anna becomes an admin and
removes Tom.  A part of ``scripts.screenshots``; by itself it draws only these.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine.core.ids import ConversationId
from engine.governance_views import EarlierMessages, GovernanceView
from scripts.release import version
from scripts.scene import Cast
from scripts.taking_pictures import NARROW, SIZE, draw_all, keep, picture, settled
from ui.app import build_window
from ui.dialogs.invite import Invite
from ui.dialogs.sheet import Sheet
from ui.settings import Appearance, UiSettings
from ui.window.main_window import MainWindow
from ui.window.window_context import WindowContext

_NAMES = ("Olga", "Anna", "Tom")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - a condition over several windows
            await asyncio.sleep(0.1)


async def open_sheet(window: MainWindow, open_it: Callable[[], None]) -> Sheet:
    window.looks.choose(Appearance.LIGHT)
    open_it()
    await until(lambda: window.flows.sheet is not None and window.flows.sheet.isVisible())
    sheet = window.flows.sheet
    if sheet is None:
        raise RuntimeError("no sheet")
    return sheet


async def close_sheet(window: MainWindow) -> None:
    if window.flows.sheet is not None:
        window.flows.sheet.reject()
    await until(lambda: window.flows.sheet is None)


class Story:
    def __init__(self, cast: Cast, windows: dict[str, MainWindow], group: ConversationId) -> None:
        self._cast = cast
        self._windows = windows
        self._group = group

    async def invite(self) -> None:
        """Both halves of the sheet."""
        window = self._windows["Olga"]
        header = window.pane.header
        sheet = await open_sheet(window, header.invite_requested.emit)
        if not isinstance(sheet, Invite):
            raise TypeError(type(sheet).__name__)
        await settled(sheet)
        keep(sheet, "invite-form.png")
        sheet.confirm.click()
        await until(lambda: bool(sheet.link))
        await settled(sheet)
        keep(sheet, "invite.png")
        link = sheet.link
        await close_sheet(window)
        await self._join("Anna", link)

    async def _join(self, name: str, link: str) -> None:
        window = self._windows[name]
        sheet = await open_sheet(window, partial(window.flows.show_invitation, link))
        if name == "Anna":
            await settled(sheet)
            keep(sheet, "join.png")
        await close_sheet(window)
        await self._cast.engines[name].groups.join(link)

    async def grow(self) -> None:
        """Anna is in and becomes an admin; Tom asks."""
        await until(lambda: self._windows["Anna"].pane.is_open(self._group))
        olga = self._cast.engines["Olga"].governing
        await self._cast.say("Anna", self._group, "Thanks for having me! I take the east quay.")
        await olga.set_topic(self._group, "Who stands watch, and where")
        await olga.promote(self._group, self._cast.id_of("Anna"))
        await self._cast.say("Olga", self._group, "Then I take the lock. High water is at 17:20.")
        link = await olga.invite(
            self._group, uses=5, days=7, needs_approval=True, earlier=EarlierMessages.ALL
        )
        tom = self._windows["Tom"]
        await self._join("Tom", link)
        await until(tom.panel.waiting.isVisible)
        await until(lambda: bool(self._view().asking))
        tom.resize(*NARROW)
        await picture(tom, Appearance.LIGHT, "waiting-narrow.png")
        tom.resize(*SIZE)
        window = self._windows["Olga"]
        window.side.show_open()
        await picture(window, Appearance.LIGHT, "roles-light.png")
        await picture(window, Appearance.DARK, "roles-dark.png")
        window.side.show_person(self._cast.id_of("Anna"))
        await picture(window, Appearance.LIGHT, "member-light.png")
        await picture(window, Appearance.DARK, "member-dark.png")
        window.side.close()

    def _view(self) -> GovernanceView:
        view = self._cast.engines["Olga"].governing.view(self._group)
        if view is None:
            raise RuntimeError("the group is gone")
        return view

    async def remove(self) -> None:
        olga, anna = (self._cast.engines[name].governing for name in ("Olga", "Anna"))
        window, tom = self._windows["Tom"], self._cast.id_of("Tom")
        await olga.approve(self._group, tom)
        await until(lambda: window.pane.is_open(self._group))
        await self._cast.say("Tom", self._group, "Buy cheap binoculars at my shop!")
        await asyncio.sleep(1)
        await anna.remove(self._group, tom)
        await until(window.pane.governance.out.isVisible)
        await picture(window, Appearance.LIGHT, "removed-light.png")
        await picture(window, Appearance.DARK, "removed-dark.png")


async def governing_pictures() -> None:
    """On profiles of their own, which are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="causerie-pictures-") as place:
        cast = Cast(Path(place))
        await _play(cast)
        for engine in cast.engines.values():
            await engine.stop()


async def _play(cast: Cast) -> None:
    windows: dict[str, MainWindow] = {}
    for name in _NAMES:
        engine = await cast.enter(name)
        context = WindowContext(version=version, now=cast.clock.now)
        windows[name] = window = build_window(engine, UiSettings(), context)
        window.resize(*SIZE)
        window.show()
        await window.start()
    group = await cast.engines["Olga"].governing.create("Harbour Watch")
    await until(lambda: windows["Olga"].model.conversation(group) is not None)
    windows["Olga"].open_conversation(group)
    await cast.say("Olga", group, "Welcome! We keep an eye on the water from here.")
    story = Story(cast, windows, group)
    await story.invite()
    await story.grow()
    await story.remove()
    for window in windows.values():
        await window.shutdown()
        window.close()


if __name__ == "__main__":
    sys.exit(draw_all(governing_pictures))
