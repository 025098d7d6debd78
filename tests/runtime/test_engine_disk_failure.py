"""A disk that refuses: the user is told, nothing false is shown, and it goes on by itself."""

import pytest

from engine.core.errors import StorageError
from engine.events import (
    MessageAdded,
    MessageKind,
    NoticeCleared,
    NoticeLevel,
    NoticeRaised,
)
from tests.runtime.conftest import MakePerson
from ui.window.notices import notice_words


async def test_not_saved_is_said_nothing_is_sent_and_it_resumes_when_there_is_room(
    person: MakePerson,
) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group = await alice.engine.groups.create("Tide Gauge")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    await alice.engine.timeline.send_text(group, "before")
    assert alice.store is not None
    alice.store.broken = True
    with pytest.raises(StorageError, match="full"):
        await alice.engine.timeline.send_text(group, "into the void")
    raised = await alice.until(lambda event: isinstance(event, NoticeRaised))
    assert isinstance(raised, NoticeRaised)
    assert raised.level is NoticeLevel.ERROR
    assert notice_words(raised.content).startswith("Not saved: ")
    alice.store.broken = False
    await alice.until(lambda event: isinstance(event, NoticeCleared))
    await alice.engine.timeline.send_text(group, "after")
    await bob.until(lambda e: isinstance(e, MessageAdded) and e.message.text == "after")
    for one in (alice, bob):
        page = await one.engine.timeline.latest_page(group)
        texts = [m.text for m in page.messages if m.kind is MessageKind.TEXT]
        assert texts == ["before", "after"]


async def test_what_arrives_while_the_disk_refuses_arrives_afterwards(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    group = await alice.engine.groups.create("Tide Gauge")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    await alice.engine.timeline.send_text(group, "before")
    await bob.until(lambda e: isinstance(e, MessageAdded) and e.message.text == "before")
    assert bob.store is not None
    bob.store.broken = True
    await alice.engine.timeline.send_text(group, "during")
    await bob.until(lambda event: isinstance(event, NoticeRaised))
    shown = [e.message.text for e in bob.told if isinstance(e, MessageAdded)]
    assert "during" not in shown
    bob.store.broken = False
    await alice.engine.timeline.send_text(group, "after")
    await bob.until(lambda e: isinstance(e, MessageAdded) and e.message.text == "after")
    page = await bob.engine.timeline.latest_page(group)
    texts = [m.text for m in page.messages if m.kind is MessageKind.TEXT]
    assert texts == ["before", "during", "after"]
