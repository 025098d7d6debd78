"""Commands that meet: twice at once, while the disk is slow, while the engine stops or fails."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from engine.core.errors import ChatError, LocalProtocolError, StorageError
from engine.core.ids import ConversationId, MessageId, Position, WakuHash
from engine.core.ports import StoreWrite
from engine.core.sds.log_table import LogTable
from engine.events import (
    ConversationRemoved,
    EngineEvent,
    MessageAdded,
    MessageKind,
    NoticeCleared,
    NoticeRaised,
)
from engine.session.inputs import CopiesAccepted
from tests.patience import PATIENCE_S
from tests.runtime.conftest import MakePerson, Person


class SlowDisk:
    """Holds up whatever is to be written to a person's store until it is let go."""

    def __init__(self, person: Person) -> None:
        assert person.store is not None
        self.go = threading.Event()
        self.reached = threading.Event()

        def slowly(_writes: Sequence[StoreWrite]) -> None:
            self.reached.set()
            assert self.go.wait(PATIENCE_S)

        person.store.before_write = slowly

    async def wait_until_reached(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, PATIENCE_S)


async def outcomes(tasks: Sequence[asyncio.Task[object]]) -> list[object]:
    """What became of all of them; TimeoutError if any hangs."""
    async with asyncio.timeout(PATIENCE_S):
        return await asyncio.gather(*tasks, return_exceptions=True)


async def texts_of(person: Person, group: ConversationId) -> list[str]:
    page = await person.engine.timeline.latest_page(group)
    return [m.text for m in page.messages if m.kind is MessageKind.TEXT]


async def test_whoever_waits_when_the_engine_stops_is_told(person: MakePerson) -> None:
    alice = await person("Alice")
    group = await alice.engine.groups.create("Tide")
    disk = SlowDisk(alice)
    first = asyncio.create_task(alice.engine.timeline.send_text(group, "in hand"))
    await disk.wait_until_reached()
    waiting = [
        asyncio.create_task(alice.engine.timeline.send_text(group, f"behind {n}")) for n in range(3)
    ]
    await asyncio.sleep(0)
    stopping = asyncio.create_task(alice.engine.stop())
    told = await outcomes([first, *waiting])
    assert all(isinstance(one, StorageError) for one in told)
    disk.go.set()
    assert await outcomes([stopping]) == [None]
    with pytest.raises(ChatError):
        await alice.engine.timeline.send_text(group, "too late")
    with pytest.raises(ChatError):
        await alice.engine.groups.create("too late")


async def test_a_group_is_left_once_and_nobody_waits_for_it_for_ever(person: MakePerson) -> None:
    alice = await person("Alice")
    group = await alice.engine.groups.create("Tide")
    leaving = [asyncio.create_task(alice.engine.groups.leave(group)) for _ in range(2)]
    saying = [
        asyncio.create_task(alice.engine.timeline.send_text(group, f"while going {n}"))
        for n in range(20)
    ]
    left = await outcomes(leaving)
    said = await outcomes(saying)
    assert sorted(type(one).__name__ for one in left) == ["CommandError", "NoneType"]
    assert all(isinstance(one, str | LocalProtocolError) for one in said)
    assert sum(isinstance(event, ConversationRemoved) for event in alice.told) == 1
    assert await alice.engine.conversations() == []


async def test_joining_twice_at_once_is_one_join_and_one_session(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    link = await alice.engine.groups.make_invite_link(await alice.engine.groups.create("Tide"))
    joining = [asyncio.create_task(bob.engine.groups.join(link)) for _ in range(3)]
    first, *others = await outcomes(joining)
    assert others == [first, first]
    (view,) = await bob.engine.conversations()
    page = await bob.engine.timeline.latest_page(view.conversation_id)
    own = [m for m in page.messages if m.is_own and m.kind is MessageKind.JOINED]
    assert len(own) == 1


async def test_a_profile_gets_one_identity_however_often_it_is_asked_for(
    person: MakePerson,
) -> None:
    alice = await person("Alice")
    nobody = Person("Nobody", alice.place, alice.network)
    await nobody.engine.start()
    creating = [asyncio.create_task(nobody.engine.create_identity("N")) for _ in range(3)]
    results = await outcomes(creating)
    refused = [one for one in results if isinstance(one, LocalProtocolError)]
    assert len(refused) == 2
    identity = nobody.engine.identity()
    assert identity in results
    await nobody.engine.stop()
    again = await person("Nobody")
    assert again.engine.identity() == identity


@pytest.mark.logs_a_traceback
async def test_a_command_in_the_same_slice_as_a_bug_is_answered_and_life_goes_on(
    person: MakePerson,
) -> None:
    alice = await person("Alice")
    group = await alice.engine.groups.create("Tide")
    runner = alice.engine.runner(group)

    # An input that nobody should ever make: handling it is a bug's exception.
    broken = CopiesAccepted(message_ids=None, peers=1, waku_hash=WakuHash(b""))  # type: ignore[arg-type]

    tasks: list[asyncio.Task[object]] = [
        asyncio.create_task(alice.engine.timeline.send_text(group, "before the bug")),
        asyncio.create_task(runner.do(broken)),
        asyncio.create_task(alice.engine.timeline.send_text(group, "after the bug")),
    ]
    before, bug, after = await outcomes(tasks)
    assert isinstance(bug, LocalProtocolError)
    assert isinstance(before, StorageError)
    assert isinstance(after, str)
    assert await texts_of(alice, group) == ["after the bug"]
    assert alice.engine.counters()["runner.crashed"] == 1


@pytest.mark.logs_a_traceback
async def test_a_listener_that_fails_harms_nobody_else(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")

    def broken(_event: EngineEvent) -> None:
        raise ZeroDivisionError

    alice.engine.subscribe(broken)
    group = await alice.engine.groups.create("Tide")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    await alice.engine.timeline.send_text(group, "still here")
    await bob.until(lambda e: isinstance(e, MessageAdded) and e.message.text == "still here")
    assert "runner.crashed" not in alice.engine.counters()
    assert alice.engine.counters()["engine.listener_failed"] > 0


async def test_a_cancelled_command_is_not_done_and_harms_nobody(person: MakePerson) -> None:
    alice = await person("Alice")
    group = await alice.engine.groups.create("Tide")
    disk = SlowDisk(alice)
    first = asyncio.create_task(alice.engine.timeline.send_text(group, "one"))
    await disk.wait_until_reached()
    regretted = asyncio.create_task(alice.engine.timeline.send_text(group, "regretted"))
    last = asyncio.create_task(alice.engine.timeline.send_text(group, "two"))
    await asyncio.sleep(0)
    regretted.cancel()
    disk.go.set()
    results = await outcomes([first, regretted, last])
    assert isinstance(results[1], asyncio.CancelledError)
    assert await texts_of(alice, group) == ["one", "two"]


async def test_when_the_profile_cannot_be_read_again_those_who_wait_are_told(
    person: MakePerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = await person("Alice")
    group = await alice.engine.groups.create("Tide")
    await alice.engine.timeline.send_text(group, "before")
    assert alice.store is not None
    alice.store.broken = True
    read = alice.store.channel_state
    unreadable = True

    def channel_state(
        conversation_id: ConversationId, /, *, log: LogTable | None, held_since: int
    ) -> object:
        if unreadable:
            raise StorageError("The database is damaged.")
        return read(conversation_id, log=log, held_since=held_since)

    monkeypatch.setattr(alice.store, "channel_state", channel_state)
    results = await outcomes(
        [asyncio.create_task(alice.engine.timeline.send_text(group, f"lost {n}")) for n in range(2)]
    )
    assert all(isinstance(one, StorageError) for one in results)
    (later,) = await outcomes([asyncio.create_task(alice.engine.timeline.send_text(group, "lost"))])
    assert isinstance(later, StorageError)
    await alice.until(lambda event: isinstance(event, NoticeRaised))

    (view,) = await alice.engine.conversations()
    assert view.name == "Tide"
    (shown,) = [
        m
        for m in (await alice.engine.timeline.latest_page(group)).messages
        if m.kind is MessageKind.TEXT
    ]
    assert shown.sender_name == "Alice"

    unreadable = alice.store.broken = False
    await alice.until(lambda event: isinstance(event, NoticeCleared))
    await alice.engine.timeline.send_text(group, "after")
    assert await texts_of(alice, group) == ["before", "after"]


@pytest.mark.parametrize(
    "position",
    [
        Position(lamport_timestamp=-1, message_id=MessageId("")),
        Position(lamport_timestamp=0, message_id=MessageId("\x00")),
        Position(lamport_timestamp=2**62, message_id=MessageId("\U0010ffff" * 200)),
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 10**9])
async def test_pages_around_made_up_positions_are_pages(
    person: MakePerson, position: Position, limit: int
) -> None:
    alice = await person("Alice")
    group = await alice.engine.groups.create("Tide")
    for number in range(3):
        await alice.engine.timeline.send_text(group, f"n{number}")
    page = await alice.engine.timeline.page_around(group, position, limit=limit)
    everything = (await alice.engine.timeline.latest_page(group)).messages
    start = page.older_count
    assert page.messages == everything[start : start + len(page.messages)]
    assert page.total == len(everything) == 4
    assert page.has_older == (start > 0)
    assert page.has_newer == (start + len(page.messages) < 4)
    (only,) = (
        await alice.engine.timeline.page_around(group, everything[2].position, limit=1)
    ).messages
    assert only == everything[2]
    with pytest.raises(ChatError):
        await alice.engine.timeline.page_around(
            group, Position(lamport_timestamp=2**70, message_id=MessageId("")), limit=10
        )
    with pytest.raises(ChatError):
        await alice.engine.timeline.page_around(group, position, limit=0)
