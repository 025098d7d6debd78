"""What a group's session starts from, and the SDS channel that it makes of it.

That is a new group, or the saved state of one.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.codec.message_id import hash64, message_id_in
from engine.core.counters import Counters
from engine.core.entropy import RandomUnit
from engine.core.governed import GovernedState
from engine.core.ids import ChannelId, ParticipantId, UnixMs
from engine.core.invite import group_id_of
from engine.core.records import GroupRecord, MemberRecord, OwnSequence
from engine.core.sds.channel import SdsChannel
from engine.core.sds.config import SdsConfig
from engine.core.sds.vocabulary import ChannelState, Sign
from engine.crypto.identity import Identity

CHANNEL_ID: Final = ChannelId("0")
"""The specification's id for a group without channels."""


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


def channel_of(  # noqa: PLR0913 - everything that is injected
    seed: SavedGroup,
    config: SdsConfig,
    *,
    sign: Sign,
    members: frozenset[ParticipantId],
    random_unit: RandomUnit,
    counters: Counters,
    online: bool,
    now_ms: UnixMs,
    clock_offset_ms: int,
) -> SdsChannel:
    """The group's only channel, as it was saved."""
    return SdsChannel(
        CHANNEL_ID,
        seed.identity.participant_id,
        config=config,
        message_id_of=message_id_in(group_id_of(seed.group.conversation_id)),
        sign=sign,
        random_unit=random_unit,
        hash64=hash64,
        state=seed.state,
        members=members,
        online=online,
        now_ms=now_ms,
        clock_offset_ms=clock_offset_ms,
        counters=counters,
    )
