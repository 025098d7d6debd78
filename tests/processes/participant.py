"""One real application process without a window, driven over its standard input and output.

It is put together exactly as the application is (``chat_app.compose``): encrypted profile on disk,
embedded node on a real socket.  Commands are JSON lines on stdin, answers and events JSON lines on
stdout, each flushed at once, so that whoever kills it knows what it had said before.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from chat_app import compose
from chat_app.compose import Overrides, build_engine
from chat_app.delivery_recording import RecordOptions, make_recorder
from chat_app.paths import profile_paths
from chat_app.settings import DeliverySettings, NetworkSettings, Settings, StorageSettings
from engine.core.errors import CommandError, CommandRefusal
from engine.core.faults import parse_fault_spec
from engine.core.ids import ConversationId, MessageId, ParticipantId
from engine.core.waku import WakuMessage
from engine.events import (
    ConversationAdded,
    ConversationChanged,
    EngineEvent,
    MessageAdded,
    MessageChanged,
    MessageView,
)
from engine.file_views import FileProgressed
from engine.governance_views import EarlierMessages, GovernanceChanged, GovernanceView
from engine.network.transport import Receipt, Transport
from engine.network.wrapped import WrappedTransport
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import open_profile_directory
from engine.runtime.engine import Engine

PAGE = 500
SENT = "sent"
"""A file in the profile's directory: what was handed to the network, a payload in each line."""


class NotedTransport(WrappedTransport):
    """Notes what is sent before it is, so that a kill in between cannot hide it."""

    def __init__(self, inner: Transport, notes: Path) -> None:
        super().__init__(inner)
        self._notes = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def publish(self, message: WakuMessage, /) -> Receipt:
        os.write(self._notes, message.payload.hex().encode() + b"\n")
        return await super().publish(message)


def note_what_is_sent(notes: Path) -> None:
    make = compose.make_transport

    def make_noted(*args: Any, **more: Any) -> Transport:  # noqa: ANN401 - as it is
        return NotedTransport(make(*args, **more), notes)

    compose.make_transport = make_noted


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def on_event(event: EngineEvent) -> None:
    if isinstance(event, FileProgressed):
        tell(event="file", id=event.message_id, state=event.file.state, done=event.file.done_bytes)
    elif isinstance(event, MessageAdded | MessageChanged):
        message = event.message
        delivery = message.delivery
        if message.file is not None:
            problem = message.file.problem
            tell(
                event="file",
                id=message.message_id,
                state=message.file.state,
                done=message.file.done_bytes,
                problem=None if problem is None else problem.fault,
            )
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
    elif isinstance(event, ConversationAdded | ConversationChanged):
        contact = event.conversation.contact
        if contact is not None:
            tell(event="contact", group=event.conversation.conversation_id, state=contact.state)
    elif isinstance(event, GovernanceChanged):
        tell(event="governing", **told_of(event.view))


def told_of(view: GovernanceView) -> dict[str, object]:
    return {
        "group": view.conversation_id,
        "role": view.own_role.name,
        "members": sorted(view.roles),
        "came": [list(one.came) for one in view.invitations],
        "open": [one.is_open for one in view.invitations],
    }


async def whole_log(engine: Engine, group: ConversationId) -> list[MessageView]:
    page = await engine.timeline.latest_page(group, limit=PAGE)
    messages = list(page.messages)
    while page.has_older:
        page = await engine.timeline.page_before(group, messages[0].position, limit=PAGE)
        messages = [*page.messages, *messages]
    return messages


async def obey_about_file(engine: Engine, group: ConversationId, command: dict[str, str]) -> None:
    match command["do"]:
        case "send_file":
            path = Path(command["path"])
            sent = await engine.files.send(
                group, str(path), name=path.name, media_type="application/octet-stream"
            )
            tell(answer="sent_file", id=sent)
        case "fetch":
            await engine.files.fetch(group, MessageId(command["id"]))
            tell(answer="fetching", id=command["id"])
        case "file":
            page = await engine.timeline.latest_page(group, limit=PAGE)
            found = [m.file for m in page.messages if m.message_id == command["id"] and m.file]
            tell(answer="file", state=found[0].state if found else "", id=command["id"])
        case "save_file":
            await engine.files.save_as(group, MessageId(command["id"]), command["path"])
            tell(answer="saved_file", id=command["id"])
        case other:
            raise ValueError(other)


async def obey_about_people(engine: Engine, group: ConversationId, command: dict[str, str]) -> None:
    match command["do"]:
        case "link":
            tell(answer="link", link=await engine.people.make_contact_link())
        case "ask":
            tell(answer="asked", group=await engine.people.add(command["link"]))
        case "accept":
            await engine.people.accept(group)
            tell(answer="accepted", group=group)
        case other:
            raise ValueError(other)


async def remove(engine: Engine, group: ConversationId, who: ParticipantId) -> None:
    """As its user would: again while the group is being read, and not who is out already."""
    while True:
        try:
            view = engine.governing.view(group)
            if view is None or who in view.roles:
                await engine.governing.remove(group, who)
        except CommandError as error:
            if error.refusal is not CommandRefusal.STILL_LOADING:
                raise
        else:
            return
        await asyncio.sleep(0.05)


async def obey_about_governing(
    engine: Engine, group: ConversationId, command: dict[str, str]
) -> None:
    match command["do"]:
        case "govern":
            tell(answer="governed", group=await engine.governing.create(command["name"]))
        case "invite":
            link = await engine.governing.invite(
                group,
                uses=int(command["uses"]),
                days=7,
                needs_approval=False,
                earlier=EarlierMessages.ALL,
            )
            tell(answer="invited", link=link)
        case "governing":
            view = engine.governing.view(group)
            told = {"group": group, "role": ""} if view is None else told_of(view)
            tell(answer="governing", joins=len(engine.governing.joins()), **told)
        case "members":
            known = {one.conversation_id: one.members for one in await engine.conversations()}
            names = {one.name: one.participant_id for one in known[group] if not one.has_left}
            tell(answer="members", names=names)
        case "remove":
            await remove(engine, group, ParticipantId(command["who"]))
            tell(answer="removed", group=group)
        case "deeds":
            rows = [m.deed for m in await whole_log(engine, group) if m.deed is not None]
            tell(answer="deeds", deeds=[[deed.kind, deed.about] for deed in rows])
        case other:
            raise ValueError(other)


async def obey(engine: Engine, command: dict[str, str]) -> None:
    group = ConversationId(command.get("group", ""))
    match command["do"]:
        case "create":
            made = await engine.groups.create(command["name"])
            tell(answer="created", group=made, link=await engine.groups.make_invite_link(made))
        case "join":
            tell(answer="joined", group=await engine.groups.join(command["link"]))
        case "say":
            message_id = await engine.timeline.send_text(group, command["text"])
            tell(answer="saved", text=command["text"], id=message_id)
        case "send_file" | "fetch" | "file" | "save_file":
            await obey_about_file(engine, group, command)
        case "govern" | "invite" | "governing" | "members" | "remove" | "deeds":
            await obey_about_governing(engine, group, command)
        case "log":
            messages = await whole_log(engine, group)
            rows = [m.text for m in messages if m.kind == "text" and not m.waiting]
            tell(answer="log", texts=rows)
        case "link" | "ask" | "accept":
            await obey_about_people(engine, group, command)
        case "counters":
            tell(answer="counters", counters=dict(engine.counters()))
        case other:
            raise ValueError(other)


async def main(
    directory: Path, name: str, faults: str, discover_on: str, delivery_key: str
) -> None:
    """``discover_on``: the address to listen on with discovery; loopback without it if empty.

    ``delivery_key``: what deliveries are recorded under; not recorded if empty.
    """
    note_what_is_sent(directory / SENT)
    network = NetworkSettings(listen_host=discover_on or "127.0.0.1", discovery=bool(discover_on))
    profile = open_profile_directory(directory)
    with ProfileLock(profile):
        settings = Settings(
            network=network,
            storage=StorageSettings(key="file"),
            delivery=DeliverySettings(record=bool(delivery_key), key=delivery_key),
        )
        engine = build_engine(
            profile,
            settings,
            Overrides(faults=parse_fault_spec(faults) if faults else None),
            recorder=make_recorder(profile_paths(directory=directory), settings, RecordOptions()),
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
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:6]))
