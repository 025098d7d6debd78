"""A member sends files that lie about name, type, size and shape, and takes away others' files."""

from functools import partial
from typing import Final

import pytest

from engine.codec.content import encode_content
from engine.core.content import MAX_FILE_BYTES, Attachment, Content, Leave, Retraction
from engine.core.file_names import ANY_FILE
from engine.core.ids import AuthorSequence, MessageId
from engine.core.sds.config import FloodLimits
from engine.core.sds.vocabulary import Message
from engine.events import MessageKind, MessageView
from engine.file_views import FileView
from proto import content_pb2
from tests.security.mallory import Mallory
from tests.security.stage import NOTHING_KEPT, Stage, Victim

LIMITS: Final = FloodLimits(
    bytes_per_day=3 * MAX_FILE_BYTES,
    messages_per_day=400,
    waiting_bytes=3 * MAX_FILE_BYTES,
    waiting_messages=40,
    bare_ids=60,
)
EXECUTABLE: Final = b"MZ\x90\x00"


async def row(person: Victim, message_id: MessageId) -> MessageView:
    return next(view for view in await person.rows() if view.message_id == message_id)


async def counted(person: Victim, name: str, number: int) -> bool:
    return person.counted(name) >= number


async def aside(person: Victim, mallory: Mallory) -> bool:
    state = await person.state()
    return any(entry.sender_id == mallory.me for entry in state.set_aside)


def said_of(mallory: Mallory, attachment: content_pb2.Attachment) -> Message:
    """A file as no version of ours sends it."""
    author = AuthorSequence(instance_id=mallory.instance, sequence=mallory.sequence + 1)
    some = Content(
        author=author,
        previous_id=mallory.previous,
        nonce=bytes(16),
        sent_ms=mallory.clock_ms(),
        body=Leave(),
    )
    wire = content_pb2.Content.FromString(encode_content(some))
    body = content_pb2.Body(attachment=attachment)
    wire.body = body.SerializeToString(deterministic=True)
    return mallory.with_content(wire.SerializeToString(deterministic=True))


async def send(mallory: Mallory, attachment: content_pb2.Attachment) -> MessageId:
    message = said_of(mallory, attachment)
    mallory.advance(message)
    await mallory.relay.publish(mallory.payload(message))
    return message.message_id


async def test_what_a_file_claims_is_cleaned_and_its_size_is_counted(stage: Stage) -> None:
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    lie = content_pb2.Attachment(
        name="../../.ssh/\u202egnp.exe\x00",
        media_type="image/png\r\nX: y",
        size=100 * 1024 * 1024,
        inline=EXECUTABLE,
        width=2**31,
        height=2**31,
    )
    device = content_pb2.Attachment(name="CON.png", media_type="image/png", inline=EXECUTABLE)
    first, second = await send(mallory, lie), await send(mallory, device)
    await mallory.say("done")
    await stage.heals(["done"])
    for person in (alice, bob):
        shown = FileView(name="gnp.exe", media_type=ANY_FILE, size=len(EXECUTABLE))
        assert (await row(person, first)).file == shown
        assert await person.engine.timeline.file_data(stage.group, first) == EXECUTABLE
        named = FileView(name="_CON.png", media_type="image/png", size=len(EXECUTABLE))
        assert (await row(person, second)).file == named


@pytest.mark.parametrize(
    "attachment",
    [
        content_pb2.Attachment(name="movie.mkv", size=10**8, key=bytes(32), root=bytes(32)),
        content_pb2.Attachment(name="large.bin", inline=bytes(MAX_FILE_BYTES + 1)),
        content_pb2.Attachment(
            name="a.txt", inline=b"x", caption=content_pb2.Text(text="x" * 2_000)
        ),
    ],
    ids=["elsewhere", "too large", "long caption"],
)
async def test_what_cannot_be_shown_needs_a_newer_version(
    stage: Stage, attachment: content_pb2.Attachment
) -> None:
    """It is a row that says so, and what comes after it waits for nothing."""
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    message_id = await send(mallory, attachment)
    await mallory.say("done")
    await stage.heals(["done"])
    for person in (alice, bob):
        view = await row(person, message_id)
        assert (view.kind, view.file) == (MessageKind.UNSUPPORTED, None)


async def test_nobody_else_takes_a_file_away(stage: Stage) -> None:
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    kept = await alice.engine.timeline.send_file(
        stage.group, name="proof.pdf", media_type="application/pdf", data=b"proof"
    )
    await alice.say("There it is")
    await stage.heals(["There it is"])
    await mallory.say(Retraction(target_id=kept))
    await mallory.say("done")
    await stage.heals(["done"])
    for person in (alice, bob):
        await stage.until(partial(counted, person, "group.changed_by_another", 1))
        assert not (await row(person, kept)).retracted
        assert await person.engine.timeline.file_data(stage.group, kept) == b"proof"


async def test_files_beyond_a_days_quota_are_set_aside(stage: Stage) -> None:
    stage.settings, stage.flood = NOTHING_KEPT, LIMITS
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    for _ in range(6):
        await mallory.say(Attachment(name="a.bin", media_type=ANY_FILE, data=bytes(MAX_FILE_BYTES)))
    await bob.say("meanwhile")
    await stage.heals(["meanwhile"])
    for person in (alice, bob):
        await stage.until(partial(aside, person, mallory))
        files = [view for view in await person.rows() if view.kind is MessageKind.FILE]
        assert len(files) * MAX_FILE_BYTES <= LIMITS.bytes_per_day
