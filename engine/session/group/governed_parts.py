"""Whether a group is governed when its session begins, and what the session has of that then."""

from engine.core.admin_log.acts import EntryId
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.sds.channel import SdsChannel
from engine.session.group.governance import Governance
from engine.session.group.governed import GovernedPart
from engine.session.group.people import GroupPeople
from engine.session.group.saved import SavedGroup
from engine.session.group.wire import GroupWire


def governance_of(seed: SavedGroup) -> Governance | None:
    """None for a group that anyone with the link is in."""
    first, state = seed.group.first_entry, seed.governed
    if first is None or state is None:
        return None
    return Governance(seed.group.conversation_id, EntryId(first), state.entries, seed.identity)


def governed_part(  # noqa: PLR0913 - everything that is injected
    governance: Governance | None,
    seed: SavedGroup,
    people: GroupPeople,
    channel: SdsChannel,
    wire: GroupWire,
    *,
    entropy: Entropy,
    counters: Counters,
) -> GovernedPart | None:
    """None for a group that anyone with the link is in."""
    if governance is None:
        return None
    return GovernedPart(
        governance,
        people,
        channel,
        seed=seed,
        entropy=entropy,
        counters=counters,
        wire=wire,
    )
