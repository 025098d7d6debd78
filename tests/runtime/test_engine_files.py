"""Pictures and files between engines, in a group and in a pair: as sure to arrive as texts."""

import pytest

from engine.api import MAX_CAPTION_BYTES, MAX_FILE_BYTES
from engine.core.content import Mention
from engine.core.errors import (
    CommandError,
    CommandRefusal,
    InputError,
    InputFlaw,
    LocalProtocolError,
)
from engine.core.ids import ChannelId, ContentTopic, ConversationId, MessageId
from engine.core.records import ChannelName
from engine.events import MessageAdded, MessageChanged, MessageKind, MessageView, ReactionReceived
from engine.file_views import FileView
from tests.runtime.conftest import MakePerson, Person
from tests.runtime.test_engine_annotations import Talk, own_id, row, shown, talk

__all__ = ["talk"]
LARGEST = bytes(range(256)) * (MAX_FILE_BYTES // 256)


async def file_row(person: Person, name: str) -> MessageView:
    event = await person.until(shown(lambda m: m.file is not None and m.file.name == name))
    assert isinstance(event, MessageAdded | MessageChanged)
    return event.message


async def send(person: Person, place: ConversationId, data: bytes = b"bytes") -> MessageId:
    return await person.engine.timeline.send_file(
        place, name="notes.txt", media_type="text/plain", data=data
    )


async def test_who_hears_of_a_reaction_to_a_file_hears_what_file_it_is(talk: Talk) -> None:
    alice, bob, place = talk
    sent = await send(alice, place)
    await file_row(bob, "notes.txt")
    await bob.engine.timeline.react(place, sent, "🎉", active=True)
    told = await alice.until(lambda event: isinstance(event, ReactionReceived))
    assert isinstance(told, ReactionReceived)
    file = told.annotation.target_file
    assert file is not None
    assert file.name == told.annotation.target_text == "notes.txt"


async def test_the_largest_file_arrives_with_all_that_goes_with_it(talk: Talk) -> None:
    alice, bob, place = talk
    asked = await bob.engine.timeline.send_text(place, "How is it there?")
    await row(alice, "How is it there?")
    sent = await alice.engine.timeline.send_file(
        place,
        name="C:\\photos\\sea.jpg",
        media_type="image/jpeg",
        data=LARGEST,
        caption="@Bob the sea",
        mentions=[Mention(participant_id=own_id(bob), start=0, length=4)],
        reply_to=asked,
        width=1280,
        height=960,
    )
    picture = FileView(
        name="sea.jpg", media_type="image/jpeg", size=len(LARGEST), width=1280, height=960
    )
    for person in (alice, bob):
        view = await file_row(person, "sea.jpg")
        assert (view.message_id, view.kind, view.file) == (sent, MessageKind.FILE, picture)
        assert view.text == "@Bob the sea"
        assert view.quote is not None
        assert view.quote.text == "How is it there?"
        assert await person.engine.timeline.file_data(place, sent) == LARGEST
    (added,) = (
        event
        for event in bob.told
        if isinstance(event, MessageAdded) and event.message.message_id == sent
    )
    assert (added.notify, added.message.mentions_me) == (True, True)
    (place_of_bob,) = await bob.engine.conversations()
    assert (place_of_bob.unread, place_of_bob.mentions) == (1, 1)
    assert place_of_bob.last_message is not None
    assert place_of_bob.last_message.file == picture


async def test_a_forwarded_file_says_so(talk: Talk) -> None:
    alice, bob, place = talk
    sent = await alice.engine.timeline.send_file(
        place, name="notes.txt", media_type="text/plain", data=b"x", caption="low", forwarded=True
    )
    for person in (alice, bob):
        view = await file_row(person, "notes.txt")
        assert (view.message_id, view.forwarded, view.text) == (sent, True, "low")


async def test_a_quote_of_a_file_has_its_name(talk: Talk) -> None:
    alice, bob, place = talk
    sent = await send(alice, place)
    await file_row(bob, "notes.txt")
    await bob.engine.timeline.send_text(place, "Thanks", reply_to=sent)
    answer = await row(alice, "Thanks")
    assert answer.quote is not None
    assert (answer.quote.message_id, answer.quote.text) == (sent, "notes.txt")
    assert answer.quote.file == (await file_row(alice, "notes.txt")).file
    await alice.engine.timeline.edit(place, sent, "Of yesterday")
    edited = await bob.until(shown(lambda m: m.text == "Of yesterday"))
    assert isinstance(edited, MessageChanged)
    assert edited.message.file is not None
    await bob.until(shown(lambda m: m.quote is not None and m.quote.text == "Of yesterday"))


async def test_a_retraction_takes_the_bytes_everywhere(talk: Talk) -> None:
    alice, bob, place = talk
    sent = await send(alice, place)
    await file_row(bob, "notes.txt")
    with pytest.raises(CommandError) as not_ours:
        await bob.engine.timeline.retract(place, sent)
    assert not_ours.value.refusal is CommandRefusal.NOT_OURS
    await alice.engine.timeline.retract(place, sent)
    for person in (alice, bob):
        gone = await person.until(shown(lambda m: m.retracted))
        assert isinstance(gone, MessageChanged)
        assert (gone.message.kind, gone.message.file) == (MessageKind.FILE, None)
        with pytest.raises(CommandError) as retracted:
            await person.engine.timeline.file_data(place, sent)
        assert retracted.value.refusal is CommandRefusal.RETRACTED
        with person.disk() as store:
            assert store.file_data(place, sent) is None


async def test_a_message_without_a_file_says_so(talk: Talk) -> None:
    alice, _, place = talk
    text = await alice.engine.timeline.send_text(place, "No file")
    for message_id, refusal in (
        (text, CommandRefusal.NO_FILE),
        (MessageId("A" * 22), CommandRefusal.NO_MESSAGE),
    ):
        with pytest.raises(CommandError) as error:
            await alice.engine.timeline.file_data(place, message_id)
        assert error.value.refusal is refusal


@pytest.mark.parametrize(
    ("name", "data", "caption", "flaw"),
    [
        ("a.txt", b"", "", InputFlaw.FILE_EMPTY),
        ("a.txt", bytes(MAX_FILE_BYTES + 1), "", InputFlaw.FILE_TOO_LARGE),
        ("..", b"x", "", InputFlaw.FILE_NAME),
        ("", b"x", "", InputFlaw.FILE_NAME),
        ("a.txt", b"x", "x" * (MAX_CAPTION_BYTES + 1), InputFlaw.TEXT_TOO_LONG),
    ],
)
async def test_what_cannot_be_sent_says_why(
    person: MakePerson, name: str, data: bytes, caption: str, flaw: InputFlaw
) -> None:
    alice = await person("Alice")
    group = await alice.engine.groups.create("Friends")
    with pytest.raises(InputError) as error:
        await alice.engine.timeline.send_file(
            group, name=name, media_type="text/plain", data=data, caption=caption
        )
    assert error.value.flaw is flaw
    page = await alice.engine.timeline.latest_page(group)
    assert [view.kind for view in page.messages if view.kind is MessageKind.FILE] == []


async def test_an_open_channel_takes_no_files(person: MakePerson) -> None:
    alice = await person("Alice")
    channels = alice.engine.open_channels
    name = ChannelName(
        channel_id=ChannelId("room"),
        content_topic=ContentTopic("/causerie-test/1/room/proto"),
        cluster_id=channels.cluster_id(),
    )
    place = await channels.join(name, label="", nick="Alice")
    with pytest.raises(LocalProtocolError):
        await send(alice, place)


async def test_what_was_shared_is_listed_for_both(talk: Talk) -> None:
    alice, bob, place = talk
    await alice.engine.timeline.send_text(place, "no file")
    first = await send(alice, place)
    await file_row(bob, "notes.txt")
    second = await send(bob, place, b"more")
    await alice.until(shown(lambda m: m.message_id == second))
    for person in (alice, bob):
        files = await person.engine.files.shared(place)
        assert [(file.message_id, file.sender_name) for file in files] == [
            (second, "Bob"),
            (first, "Alice"),
        ]
        (older,) = await person.engine.files.shared(place, before=files[0].position, limit=5)
        assert older == files[1]
