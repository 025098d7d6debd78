"""The pictures of a conversation as people hold it: one real window on real engines, one story.

Four friends plan a walk with all that a message can be: a reply, reactions, an edited and a deleted
text, a mention, markup with a code block, a picture and an answer to it.  Each is drawn in light
and in dark.  A part of ``scripts.screenshots``; by itself it draws only these.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine.api import Mention
from engine.core.ids import ConversationId, MessageId
from engine.events import MessageView
from scripts.governing_pictures import until
from scripts.painted_pictures import lighthouse, pier_photo
from scripts.rarer_pictures import Rarer
from scripts.release import version
from scripts.scene import Cast
from scripts.taking_pictures import SIZE, draw_all, keep, picture, settled
from ui.app import build_window
from ui.dialogs.forward import Forward
from ui.dialogs.picture_viewer import PictureViewer
from ui.settings import Appearance, UiSettings
from ui.timeline.rows import message_in
from ui.window.main_window import MainWindow
from ui.window.window_context import WindowContext

_BOTH = {"light": Appearance.LIGHT, "dark": Appearance.DARK}
_PLAN = """\
Plan for Saturday:
- **9:00** at the slip, *not* the pier
- lunch at the mill, ~~one~~ two hours
- the ferry back, see `times.py`"""
_TIMES = """\
```python
low_water = "10:52"
for ferry in ("16:10", "17:40"):
    print(ferry, "stops at the mill")
```"""


class Talk:
    def __init__(self, cast: Cast, window: MainWindow, group: ConversationId) -> None:
        self._cast = cast
        self._window = window
        self._group = group
        self._said: dict[str, MessageId] = {}

    async def _say(
        self,
        who: str,
        text: str,
        *,
        reply_to: MessageId | None = None,
        mentions: tuple[Mention, ...] = (),
    ) -> None:
        """Kept by the first letters of the text."""
        said = await self._cast.say(who, self._group, text, reply_to=reply_to, mentions=mentions)
        self._said[text[:4]] = said

    async def hold(self) -> None:
        cast, group = self._cast, self._group
        photo = await cast.send_file(
            "Luc",
            group,
            "pier.jpg",
            pier_photo(),
            caption="Low water yesterday. The slip is dry until noon.",
            media_type="image/jpeg",
            size=(560, 250),
        )
        await self._say("Maya", _PLAN, reply_to=photo)
        await self._say("Jonas", _TIMES)
        await self._say("Ines", "I'll bring the ladder and soup for everybody.")
        ines = Mention(participant_id=cast.id_of("Ines"), start=0, length=5)
        words = "@Ines can you take the map, too? Mine is from 1987."
        await self._say("Luc", words, reply_to=self._said["Plan"], mentions=(ines,))
        await self._say("Jonas", "Is that the one with coffee on it?")
        await self._say("Maya", "🥾☀️")
        await until(lambda: all(self._find(said) is not None for said in self._said.values()))
        for name, emoji in (("Ines", "🎉"), ("Jonas", "🎉"), ("Luc", "🎉"), ("Jonas", "👏")):
            await cast.engines[name].timeline.react(group, self._said["Plan"], emoji, active=True)
            cast.clock.forward(1)
        await cast.engines["Ines"].timeline.edit(
            group, self._said["I'll"], "I'll bring the ladder, and soup for six."
        )
        await cast.engines["Jonas"].timeline.retract(group, self._said["Is t"])
        await until(lambda: len(self._row("Plan").reactions) == 2)  # noqa: PLR2004 - two emoji
        await asyncio.sleep(2)

    def _find(self, wanted: MessageId) -> MessageView | None:
        rows = map(message_in, self._window.pane.timeline.scene.loaded.rows)
        return next((row for row in rows if row is not None and row.message_id == wanted), None)

    def _row(self, letters: str) -> MessageView:
        row = self._find(self._said[letters])
        if row is None:
            raise RuntimeError(f"no row that begins with {letters}")
        return row

    async def draw(self, elsewhere: ConversationId) -> None:
        """``elsewhere``: a conversation that something is forwarded to."""
        pane, group = self._window.pane, self._window.model.conversation(self._group)
        if group is None:
            raise RuntimeError("the group is gone")
        mention = self._row("@Ine")
        pane.writing.reply(mention)
        pane.timeline.go_to_newest()
        await self._window_in_both("everyday")
        pane.ask_emoji()
        await self._window_in_both("emoji-picker")
        pane.ask_emoji()
        pane.writing.cancel()
        await settled(self._window)
        pane.timeline.reactionPickRequested.emit(self._row("🥾☀️"))
        await self._window_in_both("reaction-picker")
        pane.timeline.reactionPickRequested.emit(self._row("🥾☀️"))
        about = self._window.about
        await self._sheet_in_both("reactions", partial(about.reactions, group, self._said["Plan"]))
        await self._sheet_in_both("versions", partial(about.versions, group, self._said["I'll"]))
        await self._sheet_in_both("info", partial(about.info, group, self._said["I'll"]))
        await self._sheet_in_both("forward", partial(about.forward, mention))
        await self._forwarded(mention, elsewhere)
        await self._sheet_in_both("search", partial(self._window.search.open, "ladder"))
        await self._sheet_in_both("ctrl-k", partial(self._window.search.open, "ma"))
        await self._sheet_in_both("calendar", partial(self._window.flows.go_to_date, pane.timeline))
        await self._look_at_the_picture()

    async def _forwarded(self, message: MessageView, elsewhere: ConversationId) -> None:
        """What says so goes by itself, so each picture has its own."""
        for which, appearance in _BOTH.items():
            self._window.looks.choose(appearance)
            await settled(self._window)
            self._window.about.forward(message)
            await until(lambda: isinstance(self._window.flows.sheet, Forward))
            sheet = self._window.flows.sheet
            if not isinstance(sheet, Forward):
                raise TypeError(type(sheet).__name__)
            sheet.choose(elsewhere)
            sheet.confirm.click()
            await until(lambda: bool(self._window.notices.rows))
            await asyncio.sleep(0.5)
            keep(self._window, f"forwarded-{which}.png")
            self._window.notices.rows[0].close_button.click()

    async def _window_in_both(self, name: str) -> None:
        for which, appearance in _BOTH.items():
            await picture(self._window, appearance, f"{name}-{which}.png")

    async def _sheet_in_both(self, name: str, open_it: Callable[[], None]) -> None:
        """The same sheet in both: it is dressed anew while it is open."""
        open_it()
        await until(lambda: self._window.flows.sheet is not None)
        sheet = self._window.flows.sheet
        if sheet is None:
            raise RuntimeError(f"no sheet for {name}")
        for which, appearance in _BOTH.items():
            self._window.looks.choose(appearance)
            await settled(sheet)
            keep(sheet, f"{name}-{which}.png")
        sheet.reject()
        await until(lambda: self._window.flows.sheet is None)

    async def _look_at_the_picture(self) -> None:
        rows = map(message_in, self._window.pane.timeline.scene.loaded.rows)
        shown = next((row for row in rows if row is not None and row.file is not None), None)
        if shown is None:
            raise RuntimeError("no picture")
        self._window.pane.files.open(shown)
        await until(lambda: self._window.findChild(PictureViewer) is not None)
        viewer = self._window.findChild(PictureViewer)
        if not isinstance(viewer, PictureViewer):
            raise TypeError(type(viewer).__name__)
        await until(lambda: viewer.message is not None)
        await self._window_in_both("viewer")
        viewer.reject()


async def everyday_pictures() -> None:
    """On profiles of their own, which are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="causerie-pictures-") as place:
        cast = Cast(Path(place))
        for name in ("Ines", "Maya", "Luc", "Jonas"):
            await cast.enter(name)
        await cast.engines["Luc"].set_profile(name="Luc", picture=lighthouse("#3b6ea5", "#f2c9a0"))
        kitchen = await cast.group("Sunday Kitchen", "Ines", "Luc", "Maya")
        await cast.say("Luc", kitchen, "Who has the ladder? The lamp is out.")
        await cast.say("Ines", kitchen, "I have it, and a lamp that fits.")
        await cast.befriend("Maya", "Ines")
        group = await cast.group("Saturday Walk", "Maya", "Ines", "Luc", "Jonas")
        context = WindowContext(version=version, now=cast.clock.now)
        window = build_window(cast.engines["Ines"], UiSettings(), context)
        window.resize(*SIZE)
        window.show()
        await window.start()
        window.open_conversation(group)
        window.activateWindow()
        talk = Talk(cast, window, group)
        await talk.hold()
        await talk.draw(kitchen)
        await Rarer(cast, window, group).draw(kitchen)
        await window.shutdown()
        window.close()
        for engine in cast.engines.values():
            await engine.stop()


if __name__ == "__main__":
    sys.exit(draw_all(everyday_pictures))
