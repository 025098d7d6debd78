"""One process of ``benchmarks.files``: an engine without a window, told what to do line by line."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from chat_app.compose import build_engine
from chat_app.settings import NetworkSettings, Settings, StorageSettings
from engine.core.ids import ConversationId, MessageId
from engine.events import EngineEvent, MessageAdded, MessageChanged
from engine.file_views import FileState
from engine.persistence.profile_directory import open_profile_directory
from engine.runtime.engine import Engine

PAUSE_S = 0.01
"""Between two texts."""


class Ears:
    """What was heard, and when."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.states: dict[MessageId, FileState] = {}
        self._news = asyncio.Event()

    def hear(self, event: EngineEvent) -> None:
        if isinstance(event, MessageAdded | MessageChanged):
            message = event.message
            if message.file is not None:
                self.states[message.message_id] = message.file.state
            else:
                self.texts.setdefault(message.text, time.monotonic_ns())
            self._news.set()

    async def until_state(self, message_id: MessageId, state: FileState) -> None:
        while self.states.get(message_id) is not state:
            await self._more()

    async def until_texts(self, about: str, count: int) -> dict[str, int]:
        while len(found := self._about(about)) < count:
            await self._more()
        return found

    def _about(self, about: str) -> dict[str, int]:
        return {text: ns for text, ns in self.texts.items() if text.startswith(f"{about} ")}

    async def _more(self) -> None:
        self._news.clear()
        await self._news.wait()


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def obey(engine: Engine, ears: Ears, command: dict[str, Any]) -> None:
    group = ConversationId(command.get("group", ""))
    message_id = MessageId(command.get("id", ""))
    match command["do"]:
        case "create":
            made = await engine.groups.create("Files")
            tell(answer="created", group=made, link=await engine.groups.make_invite_link(made))
        case "join":
            tell(answer="joined", group=await engine.groups.join(command["link"]))
        case "send":
            sent = await engine.files.send(group, command["path"], name="a.bin", media_type="x/y")
            tell(answer="sent", id=sent)
        case "get" | "begin":
            await get(engine, ears, group, message_id, tells=command["do"] == "begin")
        case "say":
            await say(engine, group, command["about"], command["count"])
        case "hear":
            tell(answer="heard", ns=await ears.until_texts(command["about"], command["count"]))
        case other:
            raise ValueError(other)


async def get(
    engine: Engine, ears: Ears, group: ConversationId, message_id: MessageId, *, tells: bool
) -> None:
    while message_id not in ears.states:
        await ears.until_state(message_id, FileState.OFFERED)
    before, begun_s = engine.connection().bytes_in, time.monotonic()
    await engine.files.fetch(group, message_id)
    if tells:
        tell(answer="begun")
    await ears.until_state(message_id, FileState.COMPLETE)
    seconds, bytes_in = time.monotonic() - begun_s, engine.connection().bytes_in - before
    tell(answer="got", seconds=seconds, bytes=bytes_in)


async def say(engine: Engine, group: ConversationId, about: str, count: int) -> None:
    said = {}
    for number in range(count):
        text = f"{about} {number}"
        said[text] = time.monotonic_ns()
        await engine.timeline.send_text(group, text)
        await asyncio.sleep(PAUSE_S)
    tell(answer="said", ns=said)


async def main(directory: Path, name: str) -> None:
    settings = Settings(
        network=NetworkSettings(listen_host="127.0.0.1", discovery=False),
        storage=StorageSettings(key="file"),
    )
    engine, ears = build_engine(open_profile_directory(directory), settings), Ears()
    engine.subscribe(ears.hear)
    await engine.start()
    await engine.create_identity(name)
    tell(answer="ready")
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        await obey(engine, ears, json.loads(line))
    await engine.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
