"""A governed group from its first day to the return of the removed: real engines, real nodes."""

from collections.abc import Callable

import pytest

from engine.core.admin_log.acts import Role
from engine.core.errors import CommandError
from engine.governance_views import EarlierMessages, GovernanceView, JoinState
from tests.security.stage import Stage, Victim, now


async def until(stage: Stage, who: Victim, wanted: Callable[[GovernanceView], bool]) -> None:
    def is_so() -> bool:
        view = who.engine.governing.view(stage.group)
        return view is not None and wanted(view)

    await stage.until(lambda: now(is_so()))


async def until_join(stage: Stage, who: Victim, state: JoinState) -> None:
    await stage.until(lambda: now([one.state for one in who.engine.governing.joins()] == [state]))


async def invitation(stage: Stage, by: Victim, *, needs_approval: bool = False) -> str:
    return await by.engine.governing.invite(
        stage.group,
        uses=1,
        days=7,
        needs_approval=needs_approval,
        earlier=EarlierMessages.ALL,
    )


async def test_invited_once_approved_promoted_removed_and_back(stage: Stage) -> None:
    olga, anna, ben = [await stage.victim(name) for name in ("Olga", "Anna", "Ben")]
    stage.group = await olga.engine.governing.create("Walks")
    await olga.say("first")
    once = await invitation(stage, olga)
    await anna.engine.groups.join(once)
    await until(stage, anna, lambda view: view.own_role is Role.MEMBER)
    await ben.engine.groups.join(once)
    await until_join(stage, ben, JoinState.SPENT)
    await ben.engine.groups.join(await invitation(stage, olga, needs_approval=True))
    await until_join(stage, ben, JoinState.WAITS)
    await olga.engine.governing.approve(stage.group, ben.participant_id)
    await until(stage, ben, lambda view: view.own_role is Role.MEMBER)
    for one in stage.victims:
        await one.say(f"by {one.name}")
    said = ["first", "by Olga", "by Anna", "by Ben"]
    await stage.heals(said)
    await olga.engine.governing.promote(stage.group, anna.participant_id)
    await until(stage, anna, lambda view: view.own_role is Role.ADMIN)
    await anna.engine.governing.remove(stage.group, ben.participant_id)
    await until(stage, ben, lambda view: view.own_role is Role.NOBODY)
    with pytest.raises(CommandError):
        await ben.say("not in")
    await olga.say("without Ben")
    await ben.engine.groups.join(await invitation(stage, anna))
    await until(stage, ben, lambda view: view.own_role is Role.MEMBER)
    await ben.say("back")
    await stage.heals([*said, "without Ben", "back"])
