"""A lively engine, and every sheet that the window opens on it.

It has a group that anybody with its link is in, one with roles, and people.
"""

from collections.abc import Callable

from msgspec.structs import replace

from engine.core.admin_log.acts import Role
from engine.core.contacts import ContactState
from engine.core.ids import ConversationId, UnixMs
from engine.events import ConversationView
from engine.governance_views import JoinState, JoinView
from tests.ui.driving import Stage
from tests.ui.scripted_engine import GOOD_LINK, START_MS, ScriptedEngine, member

WAITING = JoinView(
    conversation_id=ConversationId("ferry"),
    group_name="Night Ferry",
    inviter_name="Olga",
    asked_ms=UnixMs(START_MS),
    state=JoinState.ASKED,
)


def a_lively_engine() -> ScriptedEngine:
    """Groups, somebody to talk to, and several who ask."""
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge", others=("Maya", "Luc"))
    engine.receive(group, "Maya", "hello")
    governed = engine.add_group("Harbour Watch", others=("Olga", "Luc"))
    engine.governing.govern(governed, Olga=Role.ADMIN)
    engine.governing.ask(governed, "Nora", "Tom")
    engine.governing.wait(WAITING)
    engine.add_person("Ann")
    engine.add_person("Bob", ContactState.ASKING)
    return engine


def group_of(it: Stage) -> ConversationView:
    return next(view for view in it.engine.views.values() if view.contact is None)


def governed_of(it: Stage) -> ConversationView:
    return next(view for view in it.engine.views.values() if view.name == "Harbour Watch")


def pair_of(it: Stage) -> ConversationView:
    return next(view for view in it.engine.views.values() if view.contact is not None)


SHEETS: dict[str, Callable[[Stage], None]] = {
    "new group": lambda it: it.window.flows.new_group(),
    "join": lambda it: it.window.flows.join(),
    "join, with a link": lambda it: it.window.flows.show_invitation(GOOD_LINK),
    "invite": lambda it: it.window.flows.invite(group_of(it)),
    "invite, with roles": lambda it: it.window.flows.invite(governed_of(it)),
    "name, topic and picture": lambda it: it.window.governing.change(
        governed_of(it).conversation_id
    ),
    "waiting to be let in": lambda it: it.window.governing.show_waiting(WAITING.conversation_id),
    "leave": lambda it: it.window.flows.leave(group_of(it)),
    "network": lambda it: it.window.commands.network(),
    "stores": lambda it: it.window.flows.stores(),
    "how it works": lambda it: it.window.flows.how_it_works("0.1.0"),
    "quit": lambda it: it.window.flows.quit(2),
    "add a person": lambda it: it.window.people.add_person(),
    "ask a member": lambda it: it.window.people.ask_member(group_of(it), member("Maya")),
    "a member who cannot be asked": lambda it: it.window.people.ask_member(
        group_of(it), replace(member("Maya"), has_keys=False)
    ),
    "profile": lambda it: it.window.people.profile(),
    "rename": lambda it: it.window.people.rename(pair_of(it)),
    "safety number": lambda it: it.window.people.safety_number(pair_of(it)),
    "block": lambda it: it.window.people.block(pair_of(it)),
    "remove": lambda it: it.window.people.remove(pair_of(it)),
}
