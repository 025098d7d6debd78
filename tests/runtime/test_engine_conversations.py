"""The engine as the window uses it: groups, messages, reading, deleting, leaving, coming back."""

import asyncio
from collections.abc import Callable

import pytest

from engine.core.content import Mention
from engine.core.errors import ConfigError, InviteError, LocalProtocolError
from engine.core.ids import ConversationId, DeliveryState, ParticipantId, UnixMs
from engine.core.ports import SaveMuted
from engine.events import (
    ConversationAdded,
    ConversationChanged,
    ConversationRemoved,
    EngineEvent,
    MessageAdded,
    MessageChanged,
    MessageKind,
    MessageRemoved,
    TimelineChanged,
    TypingChanged,
)
from engine.persistence import muting
from engine.persistence.database import open_readonly
from engine.persistence.removal import SLICE_ROWS
from tests.patience import PATIENCE_S
from tests.persistence.store_examples import row
from tests.runtime.conftest import KEY, MakePerson, Person


def shows(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: isinstance(event, MessageAdded) and event.message.text == text


def held(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, MessageChanged)
        and event.message.text == text
        and event.message.delivery is not None
        and event.message.delivery.state is DeliveryState.HELD
    )


def has_members(count: int) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, ConversationChanged)
        and sum(not m.has_left for m in event.conversation.members) == count
    )


async def pair(person: MakePerson) -> tuple[Person, Person, ConversationId]:
    alice, bob = await person("Alice"), await person("Bob")
    group = await alice.engine.groups.create("Tide Gauge")
    await bob.join(alice, group)
    await alice.until(has_members(2))
    await bob.until(has_members(2))
    return alice, bob, group


async def test_a_message_is_saved_shown_and_held(person: MakePerson) -> None:
    alice, bob, group = await pair(person)
    message_id = await alice.engine.timeline.send_text(group, "hello")
    shown = await bob.until(shows("hello"))
    assert isinstance(shown, MessageAdded)
    assert shown.notify
    assert shown.message.message_id == message_id
    assert shown.message.sender_name == "Alice"
    await alice.until(held("hello"))
    (line,) = await alice.engine.timeline.holders(group, message_id)
    assert (line.name, line.certain) == ("Bob", True)


async def test_unread_counts_what_others_said_and_the_mark_never_moves_back(
    person: MakePerson,
) -> None:
    alice, bob, group = await pair(person)
    for number in range(3):
        await alice.engine.timeline.send_text(group, f"n{number}")
    await bob.until(shows("n2"))
    (view,) = await bob.engine.conversations()
    assert view.unread == 3
    page = await bob.engine.timeline.latest_page(group)
    first, *_, last = [m for m in page.messages if m.kind is MessageKind.TEXT]
    assert view.first_unread == first.position
    await bob.engine.timeline.mark_read(group, last.position)
    await bob.engine.timeline.mark_read(group, first.position)
    (view,) = await bob.engine.conversations()
    assert view.unread == 0
    (own,) = await alice.engine.conversations()
    assert own.unread == 0


async def test_drafts_and_mute_are_kept_and_a_muted_group_does_not_notify(
    person: MakePerson,
) -> None:
    alice, bob, group = await pair(person)
    await bob.engine.timeline.save_draft(group, "half a thou")
    await bob.engine.set_muted(group, muted=True)
    (view,) = await bob.engine.conversations()
    assert (view.draft, view.muted) == ("half a thou", True)
    meant = Mention(participant_id=ParticipantId("alice"), start=0, length=6)
    await bob.engine.timeline.save_draft(group, "@Alice half", mentions=[meant])
    (view,) = await bob.engine.conversations()
    assert (view.draft, view.draft_mentions) == ("@Alice half", (meant,))
    await alice.engine.timeline.send_text(group, "psst")
    shown = await bob.until(shows("psst"))
    assert isinstance(shown, MessageAdded)
    assert not shown.notify


async def test_a_mute_ends_by_itself_and_rings_from_then_on(person: MakePerson) -> None:
    alice, bob, group = await pair(person)
    await bob.engine.set_muted(group, muted=True, for_ms=1)
    await bob.until(
        lambda event: isinstance(event, ConversationChanged) and event.conversation.muted
    )
    await bob.until(
        lambda event: isinstance(event, ConversationChanged) and not event.conversation.muted
    )
    await alice.engine.timeline.send_text(group, "heard again")
    shown = await bob.until(shows("heard again"))
    assert isinstance(shown, MessageAdded)
    assert shown.notify
    with bob.disk() as disk:
        (kept,) = disk.groups()
    assert (kept.muted, kept.muted_until_ms) == (False, None)


async def test_a_mute_by_a_clock_that_was_years_ahead_ends_when_the_clock_is_right(
    person: MakePerson,
) -> None:
    alice, bob, group = await pair(person)
    years_ms = 5 * 365 * 86_400_000
    bob.passed_ms = years_ms
    await bob.engine.set_muted(group, muted=True, for_ms=8 * 3_600_000)
    (view,) = await bob.engine.conversations()
    assert view.muted
    await bob.engine.stop()
    bob = await person("Bob")
    await alice.engine.timeline.send_text(group, "at the right time")
    shown = await bob.until(shows("at the right time"))
    assert isinstance(shown, MessageAdded)
    assert shown.notify
    await bob.until(
        lambda event: isinstance(event, ConversationChanged) and not event.conversation.muted
    )


async def test_a_mute_that_goes_on_survives_a_restart_and_one_that_is_over_rings_before_it_ends(
    person: MakePerson,
) -> None:
    alice, bob, group = await pair(person)
    await bob.engine.set_muted(group, muted=True, for_ms=3_600_000)
    (before,) = await bob.engine.conversations()
    assert before.muted_until_ms is not None
    await bob.engine.stop()
    bob = await person("Bob")
    (after,) = await bob.engine.conversations()
    assert (after.muted, after.muted_until_ms) == (True, before.muted_until_ms)
    bob.passed_ms = alice.passed_ms + 3_600_000  # Nobody has looked at the time since.
    await alice.engine.timeline.send_text(group, "late enough")
    shown = await bob.until(shows("late enough"))
    assert isinstance(shown, MessageAdded)
    assert shown.notify


async def test_a_mute_that_ended_while_nothing_ran_is_over_at_the_next_start(
    person: MakePerson,
) -> None:
    _, bob, group = await pair(person)
    await bob.engine.stop()
    bob.save([SaveMuted(conversation_id=group, muted=True, until_ms=UnixMs(5))])
    bob = await person("Bob")
    await bob.until(
        lambda event: isinstance(event, ConversationChanged) and not event.conversation.muted
    )


@pytest.mark.parametrize("for_ms", [0, -1, 86_400_001])
async def test_no_mute_lasts_no_time_or_for_ever_by_mistake(
    person: MakePerson, for_ms: int
) -> None:
    _, bob, group = await pair(person)
    with pytest.raises(LocalProtocolError):
        await bob.engine.set_muted(group, muted=True, for_ms=for_ms)
    (view,) = await bob.engine.conversations()
    assert not view.muted


async def test_what_is_deleted_here_is_gone_here_only(person: MakePerson) -> None:
    alice, bob, group = await pair(person)
    message_id = await alice.engine.timeline.send_text(group, "oops")
    await bob.until(shows("oops"))
    await alice.engine.timeline.delete_locally(group, message_id)
    await alice.until(lambda event: isinstance(event, MessageRemoved))
    texts = [m.text for m in (await alice.engine.timeline.latest_page(group)).messages]
    assert "oops" not in texts
    assert "oops" in [m.text for m in (await bob.engine.timeline.latest_page(group)).messages]


async def test_what_is_deleted_of_a_muted_member_stays_deleted_when_they_are_not_muted(
    person: MakePerson,
) -> None:
    alice, bob, group = await pair(person)
    deleted = await alice.engine.timeline.send_text(group, "deleted while muted")
    await alice.engine.timeline.send_text(group, "comes back")
    await bob.until(shows("comes back"))
    identity = alice.engine.identity()
    assert identity is not None
    who = identity.participant_id
    await bob.engine.groups.set_member_muted(group, who, muted=True)
    (before,) = await bob.engine.conversations()
    await bob.engine.timeline.delete_locally(group, deleted)
    await bob.engine.groups.set_member_muted(group, who, muted=False)
    page = await bob.engine.timeline.latest_page(group)
    assert [m.text for m in page.messages if m.kind == "text"] == ["comes back"]
    (after,) = await bob.engine.conversations()
    assert (before.unread, after.unread) == (0, 1)


async def test_offline_messages_wait_and_go_out_in_order_when_back(person: MakePerson) -> None:
    alice, bob, group = await pair(person)
    alice.transport.set_online(False)
    for number in range(5):
        await alice.engine.timeline.send_text(group, f"later {number}")
    (view,) = await alice.engine.conversations()
    assert view.waiting_to_send == 5
    alice.transport.set_online(True)
    await bob.until(shows("later 4"))
    added = [e.message.text for e in bob.told if isinstance(e, MessageAdded)]
    assert [t for t in added if t.startswith("later")] == [f"later {n}" for n in range(5)]


async def test_leaving_tells_the_others_and_forgets_the_group(person: MakePerson) -> None:
    alice, bob, group = await pair(person)
    await bob.engine.groups.leave(group)
    await alice.until(has_members(1))
    await bob.until(lambda event: isinstance(event, ConversationRemoved))
    assert await bob.engine.conversations() == []
    with pytest.raises(LocalProtocolError):
        await bob.engine.timeline.send_text(group, "still here?")


async def test_a_restart_finds_everything_as_it_was(person: MakePerson) -> None:
    alice, bob, group = await pair(person)
    await alice.engine.timeline.send_text(group, "before")
    await bob.until(shows("before"))
    await bob.engine.stop()
    await alice.engine.timeline.send_text(group, "meanwhile")
    again = await person("Bob")
    (view,) = await again.engine.conversations()
    assert view.name == "Tide Gauge"
    await again.until(shows("meanwhile"))
    page = await again.engine.timeline.latest_page(group)
    texts = [m.text for m in page.messages if m.kind is MessageKind.TEXT]
    assert texts == ["before", "meanwhile"]
    await again.engine.timeline.send_text(group, "after")
    await alice.until(shows("after"))


async def test_typing_is_heard_and_ends_with_the_message(person: MakePerson) -> None:
    alice, bob, group = await pair(person)
    await alice.engine.timeline.set_typing(group, active=True)
    await bob.until(lambda e: isinstance(e, TypingChanged) and e.names == ("Alice",))
    await alice.engine.timeline.send_text(group, "done")
    await bob.until(lambda e: isinstance(e, TypingChanged) and e.names == ())


async def test_a_sent_text_needs_no_word_that_its_author_stopped_typing(person: MakePerson) -> None:
    """Told right after the text, as the window does, it stays behind it and is not sent at all."""
    alice, bob, group = await pair(person)
    ear = alice.network.attach("ear")
    typed: asyncio.Queue[None] = asyncio.Queue()
    ear.subscribe(alice.topic(group), lambda m, _: typed.put_nowait(None) if m.ephemeral else None)
    await ear.start()
    for number in range(8):
        await alice.engine.timeline.set_typing(group, active=True)
        await typed.get()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(alice.engine.timeline.send_text(group, f"n{number}"))
            tasks.create_task(alice.engine.timeline.set_typing(group, active=False))
        await bob.until(shows(f"n{number}"))
    await alice.engine.runner(group).flush(timeout_ms=10_000)
    assert typed.empty()
    await ear.stop()


async def test_pages_fit_together_without_hole_or_overlap(person: MakePerson) -> None:
    alice = await person("Alice")
    group = await alice.engine.groups.create("Alone")
    (view,) = await alice.engine.conversations()
    assert (view.waiting_to_send, view.failed) == (0, 0)
    for number in range(25):
        await alice.engine.timeline.send_text(group, f"n{number}")
    everything = [m.position for m in (await alice.engine.timeline.latest_page(group)).messages]
    assert len(everything) == 26
    for middle in everything:
        around = await alice.engine.timeline.page_around(group, middle, limit=10)
        positions = [m.position for m in around.messages]
        assert middle in positions
        start = everything.index(positions[0])
        assert positions == everything[start : start + len(positions)]
        assert around.older_count == start
        assert around.total == 26
        assert around.has_older == (start > 0)
        assert around.has_newer == (positions[-1] != everything[-1])


@pytest.mark.parametrize("text", ["", "   \n", "x" * 70_000])
async def test_unusable_texts_are_refused_in_words_and_nothing_is_sent(
    person: MakePerson, text: str
) -> None:
    alice = await person("Alice")
    group = await alice.engine.groups.create("Alone")
    with pytest.raises(ConfigError):
        await alice.engine.timeline.send_text(group, text)
    assert len((await alice.engine.timeline.latest_page(group)).messages) == 1


async def test_lone_surrogates_and_controls_survive_the_trip(person: MakePerson) -> None:
    alice, bob, group = await pair(person)
    await alice.engine.timeline.send_text(group, "a\ud800b\x00c\u202ed")
    shown = await bob.until(
        lambda e: isinstance(e, MessageAdded) and e.message.kind is MessageKind.TEXT
    )
    assert isinstance(shown, MessageAdded)
    assert shown.message.text == "a?b\x00c\u202ed"


async def test_bad_links_and_names_are_refused_and_joining_twice_is_one_join(
    person: MakePerson,
) -> None:
    alice, bob, group = await pair(person)
    with pytest.raises(InviteError):
        await bob.engine.groups.join("https://example.org/")
    with pytest.raises(ConfigError):
        await bob.engine.groups.create("\u202e")
    link = await alice.engine.groups.make_invite_link(group)
    assert bob.engine.groups.preview_invite(link).already_joined
    assert await bob.engine.groups.join(link) == group
    added = [e for e in bob.told if isinstance(e, ConversationAdded)]
    assert len(added) == 1


async def test_a_new_name_reaches_the_groups_that_were_joined_before(person: MakePerson) -> None:
    alice, bob, group = await pair(person)
    await bob.engine.timeline.send_text(group, "hello")
    await alice.until(shows("hello"))
    await bob.engine.set_profile(name="Robert", picture=b"")
    for someone in (alice, bob):
        said = await someone.until(shows("Bob\nRobert"))
        assert isinstance(said, MessageAdded)
        assert said.message.kind is MessageKind.RENAMED
        await someone.until(has_member("Robert"))
        page = await someone.engine.timeline.latest_page(group)
        by_bob = {m.sender_name for m in page.messages if m.text == "hello"}
        assert by_bob == {"Robert"}


def has_member(name: str) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, ConversationChanged)
        and name in {member.name for member in event.conversation.members}
    )


async def test_a_large_conversation_that_was_left_is_deleted_in_the_background(
    person: MakePerson,
) -> None:
    alice = await person("Alice")
    group, other = [await alice.engine.groups.create(name) for name in ("Tide", "Harbour")]
    await alice.engine.stop()
    alice.save(
        [row(number, f"m{number}", conversation_id=group) for number in range(4 * SLICE_ROWS)]
    )
    alice = await person("Alice")
    await alice.engine.groups.leave(group)
    assert something_is_left(alice), "for later"
    await alice.engine.timeline.send_text(other, "saved meanwhile")
    async with asyncio.timeout(PATIENCE_S):
        while something_is_left(alice):  # noqa: ASYNC110 - the disk tells nobody
            await asyncio.sleep(0)


async def test_the_rows_of_a_muted_member_go_in_the_background_and_the_window_is_told(
    person: MakePerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(muting, "SLICE_ROWS", 2)

    alice, bob, group = await pair(person)
    for number in range(9):
        await alice.engine.timeline.send_text(group, f"number {number}")
    await bob.until(shows("number 8"))
    identity = alice.engine.identity()
    assert identity is not None
    for muted in (True, False):
        bob.told.clear()
        await bob.engine.groups.set_member_muted(group, identity.participant_id, muted=muted)
        await bob.until(lambda event: isinstance(event, TimelineChanged))
        bob.told.clear()
        await bob.until(lambda event: isinstance(event, TimelineChanged))
        page = await bob.engine.timeline.latest_page(group)
        texts = [m for m in page.messages if m.text.startswith("number")]
        assert len(texts) == (0 if muted else 9)
        (view,) = await bob.engine.conversations()
        assert view.unread == len(texts)


def something_is_left(person: Person) -> bool:
    """Of conversations that were removed."""
    connection = open_readonly(person.database, KEY)
    try:
        (count,) = connection.execute("SELECT count(*) FROM removed_conversation").fetchone()
    finally:
        connection.close()
    return bool(count)
