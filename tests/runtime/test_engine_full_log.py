"""A group whose admin log is too large to be given to anybody: all are told, and nothing is spent.

The bound that is reached here is made smaller; what reaches the real one is in ``test_passing_on``.
"""

import pytest

from engine.core.errors import CommandError, CommandRefusal
from engine.core.ids import ConversationId
from engine.governance_views import JoinState
from engine.runtime.governing import passing_on
from tests.runtime.conftest import MakePerson, Person
from tests.runtime.test_engine_governed import (
    added,
    governed,
    id_of,
    invited,
    join_is,
    let_in,
    shows,
    view_of,
)


def fill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing_on, "MAX_PASSED_ON", 1)


def places_taken(person: Person, group: ConversationId) -> list[int]:
    return [len(one.came) for one in view_of(person, group).invitations]


async def test_nobody_is_invited_and_it_is_said(
    person: MakePerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga, anna = await person("Olga"), await person("Anna")
    group = await olga.engine.governing.create("Walks")
    await let_in(anna, olga, group)
    before = view_of(olga, group)
    assert not before.is_full
    fill(monkeypatch)
    with pytest.raises(CommandError) as error:
        await invited(olga, group)
    assert error.value.refusal is CommandRefusal.NOBODY_MORE
    after = view_of(olga, group)
    assert after.is_full
    assert len(after.invitations) == len(before.invitations) == 1
    await olga.engine.timeline.send_text(group, "All else goes on.")
    await anna.until(shows("All else goes on."))
    monkeypatch.undo()
    await invited(olga, group)
    assert not view_of(olga, group).is_full


async def test_who_asks_is_told_and_takes_no_place(
    person: MakePerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga, anna = await person("Olga"), await person("Anna")
    group = await olga.engine.governing.create("Walks")
    link = await invited(olga, group)
    fill(monkeypatch)
    await anna.engine.groups.join(link)
    await olga.until(governed(lambda view: view.is_full))
    await anna.until(join_is(JoinState.FULL))
    assert places_taken(olga, group) == [0]
    assert id_of(anna) not in view_of(olga, group).roles
    monkeypatch.undo()
    await anna.engine.groups.join(link)
    await anna.until(added(group))
    assert not view_of(olga, group).is_full


async def test_who_waits_for_a_decision_goes_on_waiting(
    person: MakePerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga, anna = await person("Olga"), await person("Anna")
    group = await olga.engine.governing.create("Walks")
    await anna.engine.groups.join(await invited(olga, group, needs_approval=True))
    await olga.until(governed(lambda view: bool(view.asking)))
    fill(monkeypatch)
    with pytest.raises(CommandError) as error:
        await olga.engine.governing.approve(group, id_of(anna))
    assert error.value.refusal is CommandRefusal.NOBODY_MORE
    assert [one.participant_id for one in view_of(olga, group).asking] == [id_of(anna)]
    assert places_taken(olga, group) == [0]
    monkeypatch.undo()
    await olga.engine.governing.approve(group, id_of(anna))
    await anna.until(added(group))
