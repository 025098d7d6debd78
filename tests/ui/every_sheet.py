"""A lively engine, and every sheet that the window opens on it."""

from collections.abc import Callable

from engine.core.contacts import ContactState
from engine.events import ConversationView
from tests.ui.driving import Stage
from tests.ui.scripted_engine import GOOD_LINK, ScriptedEngine


def a_lively_engine() -> ScriptedEngine:
    """A group with a message, somebody to talk to, and somebody who asks."""
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge", others=("Maya", "Luc"))
    engine.receive(group, "Maya", "hello")
    engine.add_person("Ann")
    engine.add_person("Bob", ContactState.ASKING)
    return engine


def group_of(it: Stage) -> ConversationView:
    return next(view for view in it.engine.views.values() if view.contact is None)


def pair_of(it: Stage) -> ConversationView:
    return next(view for view in it.engine.views.values() if view.contact is not None)


SHEETS: dict[str, Callable[[Stage], None]] = {
    "new group": lambda it: it.window.flows.new_group(),
    "join": lambda it: it.window.flows.join(),
    "join, with a link": lambda it: it.window.flows.show_invitation(GOOD_LINK),
    "invite": lambda it: it.window.flows.invite(group_of(it)),
    "leave": lambda it: it.window.flows.leave(group_of(it)),
    "network": lambda it: it.window.commands.network(),
    "stores": lambda it: it.window.flows.stores(),
    "how it works": lambda it: it.window.flows.how_it_works("0.1.0"),
    "quit": lambda it: it.window.flows.quit(2),
    "add a person": lambda it: it.window.people.add_person(),
    "profile": lambda it: it.window.people.profile(),
    "rename": lambda it: it.window.people.rename(pair_of(it)),
    "safety number": lambda it: it.window.people.safety_number(pair_of(it)),
    "block": lambda it: it.window.people.block(pair_of(it)),
    "remove": lambda it: it.window.people.remove(pair_of(it)),
}
