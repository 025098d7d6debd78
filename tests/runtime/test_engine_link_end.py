"""The first removal in a group that anyone with the link is in, as the window meets it."""

import pytest

from engine.core.admin_log.acts import Role
from engine.core.errors import CommandError, CommandRefusal
from engine.governance_views import DeedKind
from tests.runtime.conftest import MakePerson
from tests.runtime.test_engine_governed import (
    governed,
    id_of,
    let_in,
    shows,
    texts,
    view_of,
)


async def test_a_link_ends_people_are_invited_and_all_of_it_lasts(person: MakePerson) -> None:
    olga, anna, ben = await person("Olga"), await person("Anna"), await person("Ben")
    cem, dora = await person("Cem"), await person("Dora")
    group = await olga.engine.groups.create("Walks")
    link = await olga.engine.groups.make_invite_link(group)
    for one in (anna, ben):
        await one.engine.groups.join(link)
        await one.engine.timeline.send_text(group, f"I am {id_of(one)}")
        await olga.until(shows(f"I am {id_of(one)}"))
    assert olga.engine.governing.view(group) is None
    with pytest.raises(CommandError) as refusal:
        await anna.engine.governing.remove(group, id_of(ben))
    assert refusal.value.refusal is CommandRefusal.NOT_GOVERNED
    await olga.engine.governing.remove(group, id_of(ben))
    assert view_of(olga, group).own_role is Role.OWNER
    await anna.until(governed(lambda view: view.roles.keys() == {id_of(olga), id_of(anna)}))
    await ben.until(governed(lambda view: view.removed_by_name == "Olga"))
    await anna.engine.timeline.send_text(group, "we two")
    await olga.until(shows("we two"))
    await let_in(dora, olga, group)
    await dora.engine.timeline.send_text(group, "hello")
    await anna.until(shows("hello"))
    await cem.engine.groups.join(link)
    assert not cem.engine.groups.preview_invite(link).is_over, "before one hears of it"
    await cem.until(governed(lambda view: view.is_link_over))
    for one in (ben, cem):
        assert one.engine.groups.preview_invite(link).is_over
    assert not anna.engine.groups.preview_invite(link).is_over, "she is in it"
    assert "we two" not in await texts(cem, group)
    await let_in(cem, olga, group)
    for one in (olga, anna, cem, dora):
        await one.restart()
    await cem.engine.timeline.send_text(group, "by an invitation")
    for one in (olga, anna, dora):
        await one.until(shows("by an invitation"))
        assert view_of(one, group).roles.keys() == {*map(id_of, (olga, anna, cem, dora))}
    page = await anna.engine.timeline.latest_page(group)
    deeds = [one.deed.kind for one in page.messages if one.deed]
    assert deeds[:2] == [DeedKind.LINK_ENDED, DeedKind.REMOVED]
    assert "we two" not in await texts(ben, group)
