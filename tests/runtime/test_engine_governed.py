"""Governed groups as the window meets them: invite, ask, let in, govern, remove, come back."""

from collections.abc import Callable

import pytest

from engine.core.admin_log.acts import Role
from engine.core.errors import CommandError, CommandRefusal, InputError, LocalProtocolError
from engine.core.ids import ConversationId, MessageId, ParticipantId
from engine.events import ConversationAdded, EngineEvent, GapUpdated, MessageAdded, MessageKind
from engine.governance_views import (
    DeedKind,
    EarlierMessages,
    GovernanceChanged,
    GovernanceView,
    JoinsChanged,
    JoinState,
)
from tests.runtime.conftest import MakePerson, Person

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
PNG = b"\x89PNG\r\n\x1a\n" + bytes(99)


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


def governed(wanted: Callable[[GovernanceView], bool]) -> Callable[[EngineEvent], bool]:
    return lambda event: isinstance(event, GovernanceChanged) and wanted(event.view)


def view_of(person: Person, group: ConversationId) -> GovernanceView:
    view = person.engine.governing.view(group)
    assert view is not None
    return view


def id_of(person: Person) -> ParticipantId:
    identity = person.engine.identity()
    assert identity is not None
    return identity.participant_id


async def invited(  # noqa: PLR0913 - as the command
    by: Person,
    group: ConversationId,
    *,
    uses: int = 1,
    days: int = 7,
    needs_approval: bool = False,
    earlier: EarlierMessages = EarlierMessages.ALL,
) -> str:
    return await by.engine.governing.invite(
        group, uses=uses, days=days, needs_approval=needs_approval, earlier=earlier
    )


async def let_in(who: Person, by: Person, group: ConversationId) -> None:
    await who.engine.groups.join(await invited(by, group))
    await who.until(added(group))
    await by.until(governed(lambda view: id_of(who) in view.roles))


async def texts(person: Person, group: ConversationId) -> list[str]:
    page = await person.engine.timeline.latest_page(group)
    return [one.text for one in page.messages if one.text]


async def quotes(person: Person, group: ConversationId) -> dict[str, tuple[str, bool]]:
    """By the text of each answer what it quotes, and whether that is from before they came."""
    page = await person.engine.timeline.latest_page(group)
    return {
        one.text: (one.quote.message_id, one.quote.from_before)
        for one in page.messages
        if one.quote
    }


def kept_joins(person: Person) -> int:
    with person.disk() as disk:
        return len(disk.joining.joins())


# --- being let in ---------------------------------------------------------------------------------


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
    assert kept_joins(anna) == 0
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
    assert "before" not in await texts(ben, group)
    first = (await ben.engine.timeline.latest_page(group)).messages[0]
    assert first.deed is not None
    assert (first.sender_name, first.deed.kind, first.deed.about_self) == (
        "Olga", DeedKind.ADDED, True,
    )  # fmt: skip


async def test_who_is_let_in_with_thirty_days_knows_since_when_and_who_chose_it(
    person: MakePerson,
) -> None:
    olga, anna, ben = await person("Olga"), await person("Anna"), await person("Ben")
    group = await olga.engine.governing.create("Walks")
    await let_in(anna, olga, group)
    await olga.engine.timeline.send_text(group, "long ago")
    await anna.until(shows("long ago"))
    for one in (olga, ben):
        one.ahead_ms += 20 * DAY_MS
    await olga.engine.governing.remove(group, id_of(anna))  # From then on another key.
    made_ms = olga.now_ms()
    await olga.engine.timeline.send_text(group, "lately")
    for one in (olga, ben):
        one.ahead_ms += 40 * DAY_MS
    await olga.engine.timeline.send_text(group, "today")
    await ben.engine.groups.join(await invited(olga, group, earlier=EarlierMessages.DAYS_30))
    await ben.until(added(group))
    await olga.engine.timeline.send_text(group, "welcome")
    await ben.until(shows("welcome"))
    view = view_of(ben, group)
    assert not view.is_history_withheld
    assert view.withheld_by_name == "Olga"
    assert view.reads_since_ms is not None
    assert abs(view.reads_since_ms - made_ms) < HOUR_MS
    assert "long ago" not in await texts(ben, group)
    first = (await ben.engine.timeline.latest_page(group)).messages[0]
    assert first.kind is not MessageKind.CREATED, "what is said above it is not shown there"
    hers = view_of(olga, group)
    assert (hers.reads_since_ms, hers.withheld_by_name) == (None, "")


async def test_of_a_quote_from_before_one_came_it_is_said_that_its_key_was_not_given(
    person: MakePerson,
) -> None:
    olga, anna = await person("Olga"), await person("Anna")
    group = await olga.engine.governing.create("Walks")
    before = await olga.engine.timeline.send_text(group, "before")
    await anna.engine.groups.join(await invited(olga, group, earlier=EarlierMessages.NONE))
    await anna.until(added(group))
    answer = await olga.engine.timeline.send_text(group, "Yes", reply_to=before)
    await anna.until(shows("Yes"))
    assert await quotes(anna, group) == {"Yes": (before, True)}
    with pytest.raises(CommandError) as error:
        await anna.engine.timeline.fetch_quoted(group, answer)
    assert error.value.refusal is CommandRefusal.NOT_FOR_US
    nowhere = await olga.engine.timeline.send_text(group, "No", reply_to=MessageId("Q" * 22))
    await anna.until(shows("No"))
    await anna.engine.timeline.fetch_quoted(group, nowhere)
    await anna.until(lambda event: isinstance(event, GapUpdated) and event.gap is not None)
    assert await quotes(anna, group) == {"Yes": (before, True), "No": ("Q" * 22, False)}


async def test_invitations_are_shown_with_who_came_and_can_be_revoked(person: MakePerson) -> None:
    olga, anna, ben = await person("Olga"), await person("Anna"), await person("Ben")
    group = await olga.engine.governing.create("Walks")
    await let_in(anna, olga, group)
    link = await invited(olga, group, uses=2)
    await olga.until(governed(lambda view: "Anna" in view.invitations[-1].came_names))
    fresh, used = view_of(olga, group).invitations
    assert (fresh.is_open, fresh.link, fresh.needs_approval) == (True, link, False)
    assert fresh.earlier is EarlierMessages.ALL
    assert (used.is_open, used.link, used.came) == (False, None, (id_of(anna),))
    await anna.until(governed(lambda view: len(view.invitations) == 2))
    seen = view_of(anna, group).invitations[0]
    assert (seen.link, seen.needs_approval, seen.by_name, seen.may_revoke) == (
        None, None, "Olga", False,
    )  # fmt: skip
    await olga.engine.governing.revoke(group, fresh.invitation_id)
    await ben.engine.groups.join(link)
    await ben.until(join_is(JoinState.REVOKED))
    assert id_of(ben) not in view_of(olga, group).roles
    olga.passed_ms += 38 * 86_400_000
    assert view_of(olga, group).invitations == ()


async def test_an_invitation_of_whoever_may_not_invite_any_more_is_not_open(
    person: MakePerson,
) -> None:
    olga, anna = await person("Olga"), await person("Anna")
    group = await olga.engine.governing.create("Walks")
    await let_in(anna, olga, group)
    await olga.engine.governing.promote(group, id_of(anna))
    await anna.until(governed(lambda view: view.own_role is Role.ADMIN))
    await invited(anna, group)

    def first_is_open(wanted: bool) -> Callable[[EngineEvent], bool]:
        return governed(lambda view: view.invitations[0].is_open is wanted)

    await olga.until(governed(lambda view: len(view.invitations) == 2))
    assert view_of(olga, group).invitations[0].is_open
    for one in (olga, anna):
        one.told.clear()
    await olga.engine.governing.demote(group, id_of(anna))
    for one in (olga, anna):
        await one.until(first_is_open(False))
    assert view_of(anna, group).invitations[0].link is None
    for one in (olga, anna):
        one.told.clear()
    await olga.engine.governing.promote(group, id_of(anna))
    for one in (olga, anna):
        await one.until(first_is_open(True))
    olga.told.clear()
    await anna.engine.groups.leave(group)
    await olga.until(first_is_open(False))
    assert not view_of(olga, group).invitations[0].is_revoked


async def test_an_invitation_for_two_lets_in_two_at_once_and_not_a_third(
    person: MakePerson,
) -> None:
    olga, *others = [await person(name) for name in ("Olga", "Anna", "Ben", "Cem")]
    group = await olga.engine.governing.create("Walks")
    link = await invited(olga, group, uses=2)
    for one in others[:2]:
        await one.engine.groups.join(link)
        await one.until(added(group))
    await others[2].engine.groups.join(link)
    await others[2].until(join_is(JoinState.SPENT))

    def both_came(view: GovernanceView) -> bool:
        (used,) = view.invitations
        return (used.is_open, used.came_names) == (False, ("Anna", "Ben"))

    if not both_came(view_of(olga, group)):  # Ben's name comes by his own first message.
        await olga.until(governed(both_came))


async def test_an_expired_invitation_is_refused_here_and_there(person: MakePerson) -> None:
    olga, anna = await person("Olga"), await person("Anna")
    group = await olga.engine.governing.create("Walks")
    link = await invited(olga, group, days=1)
    olga.passed_ms += 86_400_000
    await anna.engine.groups.join(link)
    await anna.until(join_is(JoinState.EXPIRED))
    anna.passed_ms += 86_400_000
    with pytest.raises(Exception, match="expired"):
        anna.engine.groups.preview_invite(link)


async def test_who_needs_approval_waits_until_somebody_decides(person: MakePerson) -> None:
    olga, anna, ben = await person("Olga"), await person("Anna"), await person("Ben")
    group = await olga.engine.governing.create("Walks")
    link = await invited(olga, group, uses=2, needs_approval=True)
    for one in (anna, ben):
        await one.engine.groups.join(link)
        await one.until(join_is(JoinState.WAITS))
    asking = view_of(olga, group).asking
    assert [one.name for one in asking] == ["Anna", "Ben"]
    identity = anna.engine.identity()
    assert identity is not None
    assert asking[0].fingerprint == identity.fingerprint
    await olga.restart()
    assert [one.name for one in view_of(olga, group).asking] == ["Anna", "Ben"]
    await olga.engine.governing.approve(group, id_of(anna))
    await anna.until(added(group))
    await olga.engine.governing.refuse(group, id_of(ben))
    await ben.until(join_is(JoinState.REFUSED))
    assert view_of(olga, group).asking == ()
    for wrong in (id_of(anna), id_of(ben)):
        with pytest.raises(CommandError) as error:
            await olga.engine.governing.approve(group, wrong)
        assert error.value.refusal is CommandRefusal.NOBODY_ASKS
    await ben.engine.groups.join(link)
    await ben.until(join_is(JoinState.ASKED))
    await ben.until(join_is(JoinState.REFUSED))


async def test_who_was_declined_is_forgotten_with_the_invitation(person: MakePerson) -> None:
    olga, anna = await person("Olga"), await person("Anna")
    group = await olga.engine.governing.create("Walks")
    await anna.engine.groups.join(await invited(olga, group, needs_approval=True))
    await anna.until(join_is(JoinState.WAITS))
    await olga.engine.governing.refuse(group, id_of(anna))
    await anna.until(join_is(JoinState.REFUSED))
    for days, is_kept in ((36, True), (38, False)):
        olga.passed_ms = days * 86_400_000
        await olga.restart()
        with olga.disk() as disk:
            assert bool(disk.joining.asking()) is is_kept
            assert bool(disk.joining.invitations()) is is_kept


async def test_asking_goes_on_after_a_restart_and_until_it_is_forgotten(person: MakePerson) -> None:
    olga, anna = await person("Olga"), await person("Anna")
    group = await olga.engine.governing.create("Walks")
    link = await invited(olga, group)
    olga.transport.set_online(False)
    await anna.engine.groups.join(link)
    assert [one.state for one in anna.engine.governing.joins()] == [JoinState.ASKED]
    await anna.restart()
    assert [one.group_name for one in anna.engine.governing.joins()] == ["Walks"]
    await anna.engine.governing.forget_join(group)
    assert anna.engine.governing.joins() == ()
    await anna.restart()
    assert anna.engine.governing.joins() == ()
    await anna.engine.groups.join(link)
    await anna.restart()
    olga.transport.set_online(True)
    await anna.until(added(group))


async def test_who_is_blocked_gets_no_answer(person: MakePerson) -> None:
    olga, anna = await person("Olga"), await person("Anna")
    pair = await olga.engine.people.add(await anna.engine.people.make_contact_link())
    await olga.engine.people.set_blocked(pair, blocked=True)
    group = await olga.engine.governing.create("Walks")
    await anna.engine.groups.join(await invited(olga, group))
    await olga.until_counted("inbox.join_blocked", 1)
    assert len(view_of(olga, group).roles) == 1


async def test_an_inviter_who_never_answers_is_not_asked_for_ever(person: MakePerson) -> None:
    """Unless it is our clock that is wrong."""
    olga, anna = await person("Olga"), await person("Anna")
    group = await olga.engine.governing.create("Walks")
    link = await invited(olga, group, days=1)
    await olga.engine.groups.leave(group)
    await anna.engine.groups.join(link)
    await olga.until_counted("inbox.join_unknown", 1)
    anna.passed_ms = 32 * 86_400_000
    await anna.restart()
    await anna.until(join_is(JoinState.EXPIRED))
    anna.passed_ms = 0
    await anna.restart()
    await olga.until_counted("inbox.join_unknown", 2)
    assert [one.state for one in anna.engine.governing.joins()] == [JoinState.ASKED]


# --- governing ------------------------------------------------------------------------------------


async def test_roles_name_topic_and_picture_follow_on_everybody(person: MakePerson) -> None:
    olga, anna = await person("Olga"), await person("Anna")
    group = await olga.engine.governing.create("Walks")
    await let_in(anna, olga, group)
    assert view_of(anna, group).own_role is Role.MEMBER
    assert view_of(olga, group).outranked == {id_of(anna)}
    with pytest.raises(CommandError):
        await invited(anna, group)
    await olga.engine.governing.set_inviters(group, Role.MEMBER)
    await anna.until(governed(lambda view: view.may_invite))
    assert (await invited(anna, group)).startswith("causerie:join/")
    await olga.engine.governing.promote(group, id_of(anna))
    await anna.until(governed(lambda view: view.own_role is Role.ADMIN))
    await anna.engine.governing.set_topic(group, " Sundays\u202e ")
    await anna.engine.governing.set_picture(group, PNG)
    await olga.until(governed(lambda view: (view.topic, view.picture) == ("Sundays", PNG)))
    anna.told.clear()
    await olga.engine.governing.demote(group, id_of(anna))
    await anna.until(governed(lambda view: view.own_role is Role.MEMBER))
    for refused in (
        anna.engine.governing.set_topic(group, "mine"),
        anna.engine.governing.remove(group, id_of(olga)),
    ):
        with pytest.raises(CommandError):
            await refused
    with pytest.raises(InputError):
        await olga.engine.governing.set_topic(group, "x" * 257)
    simple = await olga.engine.groups.create("Open")
    assert olga.engine.governing.view(simple) is None
    with pytest.raises(CommandError):
        await olga.engine.governing.set_topic(simple, "no")


async def test_a_governed_group_has_no_link_that_opens_it(person: MakePerson) -> None:
    olga = await person("Olga")
    group = await olga.engine.governing.create("Walks")
    with pytest.raises(LocalProtocolError):
        await olga.engine.groups.make_invite_link(group)


async def test_the_removed_come_back_by_a_new_invitation_only(person: MakePerson) -> None:
    olga, anna = await person("Olga"), await person("Anna")
    other_key = await person("Anna's other profile")
    group = await olga.engine.governing.create("Walks")
    old = await invited(olga, group, uses=5)
    await anna.engine.groups.join(old)
    await anna.until(added(group))
    await anna.until(shows("Walks"))
    await anna.engine.timeline.send_text(group, "mine")
    await olga.until(shows("mine"))
    await olga.engine.governing.remove(group, id_of(anna))
    await anna.until(governed(lambda view: view.own_role is Role.NOBODY))
    assert view_of(anna, group).removed_by_name == "Olga"
    assert view_of(olga, group).invitations[-1].needs_approval, "whoever has it could be Anna"
    with pytest.raises(CommandError):
        await anna.engine.timeline.send_text(group, "not in")
    assert not anna.engine.groups.preview_invite(old).already_joined
    await anna.engine.groups.join(old)
    await anna.until(join_is(JoinState.WAITS))
    await other_key.engine.groups.join(old)
    await other_key.until(join_is(JoinState.WAITS))
    assert len(view_of(olga, group).asking) == 2
    await olga.engine.governing.refuse(group, id_of(anna))
    await anna.until(join_is(JoinState.REFUSED))
    anna.told.clear()
    await anna.engine.groups.join(await invited(olga, group))
    await anna.until(governed(lambda view: view.own_role is Role.MEMBER))
    last = (await anna.engine.timeline.latest_page(group)).messages[-1]
    assert last.deed is not None
    assert (last.sender_name, last.deed.kind) == ("Olga", DeedKind.ADDED)
    await anna.engine.timeline.send_text(group, "back")
    await olga.until(shows("back"))
    assert await texts(anna, group) == await texts(olga, group)
    assert {"mine", "back"} <= {*await texts(olga, group)}
    assert kept_joins(anna) == 0


async def test_who_leaves_is_gone_for_all_and_can_come_back(person: MakePerson) -> None:
    olga, anna = await person("Olga"), await person("Anna")
    group = await olga.engine.governing.create("Walks")
    await let_in(anna, olga, group)
    await anna.engine.timeline.send_text(group, "bye")
    await olga.until(shows("bye"))
    olga.told.clear()
    await anna.engine.groups.leave(group)
    await olga.until(governed(lambda view: id_of(anna) not in view.roles))
    anna.told.clear()
    await let_in(anna, olga, group)
    await anna.engine.timeline.send_text(group, "again")
    await olga.until(shows("again"))
    await anna.until(shows("bye"))


async def names_of(person: Person) -> dict[str, bool]:
    """Of the members of their only conversation, with whether each is an admin."""
    (conversation,) = await person.engine.conversations()
    return {one.name: one.is_admin for one in conversation.members if not one.has_left}


async def test_a_newcomer_knows_all_members_before_they_say_a_word(person: MakePerson) -> None:
    olga, anna, ben = await person("Olga"), await person("Anna"), await person("Ben")
    group = await olga.engine.governing.create("Walks")
    await olga.engine.timeline.send_text(group, "to nobody else")

    async def invites(newcomer: Person) -> None:
        await newcomer.engine.groups.join(await invited(olga, group, earlier=EarlierMessages.NONE))

    await invites(ben)
    await ben.until(added(group))
    assert await names_of(ben) == {"Olga": True, "Ben": False}
    await olga.engine.governing.remove(group, id_of(ben))
    await ben.until(governed(lambda view: view.own_role is Role.NOBODY))
    await invites(anna)
    await anna.until(added(group))
    await olga.engine.governing.promote(group, id_of(anna))
    ben.told.clear()
    await invites(ben)
    await ben.until(governed(lambda view: view.own_role is Role.MEMBER))
    assert await names_of(ben) == {"Olga": True, "Anna": True, "Ben": False}


async def test_who_came_later_and_cannot_read_it_is_not_said_to_lack_a_message(
    person: MakePerson,
) -> None:
    """Where it is told who holds it those are counted whom the ticks count."""
    olga, anna, ben = await person("Olga"), await person("Anna"), await person("Ben")
    group = await olga.engine.governing.create("Walks")
    await let_in(anna, olga, group)
    said = await olga.engine.timeline.send_text(group, "before Ben")
    await anna.until(shows("before Ben"))
    await anna.engine.timeline.send_text(group, "I see")
    await olga.until(shows("I see"))
    await ben.engine.groups.join(await invited(olga, group, earlier=EarlierMessages.NONE))
    await ben.until(added(group))
    await olga.until(governed(lambda view: id_of(ben) in view.roles))
    page = await olga.engine.timeline.latest_page(group)
    delivery = next(one.delivery for one in page.messages if one.message_id == said)
    assert delivery is not None
    assert (len(delivery.held_by), delivery.of) == (1, 1)
    holders = await olga.engine.timeline.holders(group, said)
    assert [(one.name, one.certain) for one in holders] == [("Anna", True)]
    looked_at = await olga.engine.inspection.message(group, said)
    assert looked_at is not None
    assert looked_at.holders == holders
