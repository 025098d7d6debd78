"""One real application process without a window, driven over its standard input and output.

It is put together exactly as the application is (``chat_app.compose``): encrypted profile on disk,
embedded node on a real socket.  Commands are JSON lines on stdin, answers and events JSON lines on
stdout, each flushed at once, so that whoever kills it knows what it had said before.
"""

import asyncio
import json
import sys
from pathlib import Path

from chat_app.compose import Overrides, build_engine
from chat_app.settings import Settings, StorageSettings
from engine.core.faults import parse_fault_spec
from engine.core.types import ConversationId
from engine.events import EngineEvent, MessageAdded, MessageChanged
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import open_profile_directory
from engine.runtime.engine import Engine


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def on_event(event: EngineEvent) -> None:
    if isinstance(event, MessageAdded | MessageChanged):
        message = event.message
        delivery = message.delivery
        tell(
            event="message",
            text=message.text,
            kind=message.kind,
            own=message.is_own,
            waiting=message.waiting,
            state=delivery.state if delivery else None,
            held=len(delivery.held_by) if delivery else 0,
            of=delivery.of if delivery else 0,
        )


async def obey(engine: Engine, command: dict[str, str]) -> None:
    group = ConversationId(command.get("group", ""))
    match command["do"]:
        case "create":
            made = await engine.create_group(command["name"])
            tell(answer="created", group=made, link=await engine.make_invite_link(made))
        case "join":
            tell(answer="joined", group=await engine.join_group(command["link"]))
        case "say":
            message_id = await engine.send_text(group, command["text"])
            tell(answer="saved", text=command["text"], id=message_id)
        case "log":
            page = await engine.latest_page(group, limit=600)
            rows = [m.text for m in page.messages if m.kind == "text" and not m.waiting]
            tell(answer="log", texts=rows)
        case "counters":
            tell(answer="counters", counters=dict(engine.counters()))
        case other:
            raise ValueError(other)


async def main(directory: Path, name: str, faults: str) -> None:
    profile = open_profile_directory(directory)
    with ProfileLock(profile):
        engine = build_engine(
            profile,
            Settings(storage=StorageSettings(key="file")),
            Overrides(faults=parse_fault_spec(faults) if faults else None),
        )
        engine.subscribe(on_event)
        await engine.start()
        if engine.identity() is None:
            await engine.create_identity(name)
        groups = [view.conversation_id for view in await engine.conversations()]
        tell(answer="ready", groups=groups)
        loop = asyncio.get_running_loop()
        commands = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        while line := await commands.readline():
            await obey(engine, json.loads(line))
        await engine.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""))
