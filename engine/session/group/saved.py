"""What a group's session starts from: a new group, or the saved state of one."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from engine.core.governed import GovernedState
from engine.core.records import GroupRecord, MemberRecord, OwnSequence
from engine.core.sds.vocabulary import ChannelState
from engine.crypto.identity import Identity


class SavedGroup(Struct, frozen=True, kw_only=True):
    group: GroupRecord
    identity: Identity
    members: Sequence[MemberRecord]
    state: ChannelState
    own_sequence: OwnSequence
    own_name: Callable[[], str]
    """Our current name; the group learns it."""
    governed: GovernedState | None = None
    """Of a governed group."""
    let_go: str = ""
    """What ``WholeFiles`` saved."""
