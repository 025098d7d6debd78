"""Governed groups as the window meets them: invite, ask, let in, and write to each other."""

from collections.abc import Callable

from engine.core.ids import ConversationId
from engine.events import ConversationAdded, EngineEvent, MessageAdded
from engine.governance_views import EarlierMessages, JoinsChanged, JoinState
from tests.runtime.conftest import MakePerson, Person


def shows(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: isinstance(event, MessageAdded) and event.message.text == text


def added(group: ConversationId) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, ConversationAdded) and event.conversation.conversation_id == group
    )


def join_is(state: JoinState) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, JoinsChanged) and [one.state for one in event.joins] == [state]
    )


async def invited(
    by: Person,
    group: ConversationId,
    *,
    uses: int = 1,
    needs_approval: bool = False,
    earlier: EarlierMessages = EarlierMessages.ALL,
) -> str:
    return await by.engine.governing.invite(
        group, uses=uses, days=7, needs_approval=needs_approval, earlier=earlier
    )


async def test_who_is_invited_is_let_in_at_once_and_all_talk(person: MakePerson) -> None:
    olga, anna, ben = await person("Olga"), await person("Anna"), await person("Ben")
    group = await olga.engine.governing.create("Walks")
    await olga.engine.timeline.send_text(group, "before")
    link = await invited(olga, group)
    preview = anna.engine.groups.preview_invite(link)
    assert (preview.asks_first, preview.group_name, preview.inviter_name) == (True, "Walks", "Olga")
    assert await anna.engine.groups.join(link) == group
    await anna.until(added(group))
    await anna.until(shows("before"))
    assert await ben.engine.groups.join(link) == group
    await ben.until(join_is(JoinState.SPENT))
    await anna.engine.timeline.send_text(group, "hello Olga")
    await olga.until(shows("hello Olga"))
    await olga.engine.timeline.send_text(group, "hello Anna")
    await anna.until(shows("hello Anna"))
    await ben.engine.governing.forget_join(group)
    await ben.engine.groups.join(await invited(olga, group, earlier=EarlierMessages.NONE))
    await ben.until(added(group))
    await ben.engine.timeline.send_text(group, "hello all")
    await olga.until(shows("hello all"))
    await anna.until(shows("hello all"))
    texts = [one.text for one in (await ben.engine.timeline.latest_page(group)).messages]
    assert "before" not in texts
