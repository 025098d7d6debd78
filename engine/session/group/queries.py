"""What others ask of a group's session, and nothing that changes it."""

from collections.abc import Mapping

from engine.core.counters import Counters
from engine.core.governed import GroupGovernance
from engine.core.ids import ContentTopic, MessageId, ParticipantId, UnixMs
from engine.core.membership.members import Membership
from engine.core.records import GroupRecord, MemberRecord
from engine.core.sds.channel import SdsChannel
from engine.core.sds.floods import SetAsideOf
from engine.core.sds.forks import Fork
from engine.core.sds.vocabulary import Buffers
from engine.events import GapView
from engine.session.clock import SessionClock
from engine.session.group.governed import GovernedPart
from engine.session.group.people import GroupPeople
from engine.session.group.projector import GroupProjector
from engine.session.group.whole_files import WholeFiles
from engine.session.group.wire import GroupWire
from engine.session.showing_aside import ShowingAside
from engine.session.transitions import HeldAside
from engine.session.typing_board import TypingBoard


class GroupQueries:
    governed: GovernedPart | None
    """None for a group that anyone with the link is in."""
    _group: GroupRecord
    _counters: Counters
    _clock: SessionClock
    _wire: GroupWire
    _people: GroupPeople
    _files: WholeFiles
    _typing: TypingBoard
    _heard: dict[ParticipantId, UnixMs]
    _projector: GroupProjector
    _channel: SdsChannel
    _aside: ShowingAside

    @property
    def oldest_ms(self) -> UnixMs | None:
        """Approximate, because a Lamport timestamp is about the time in milliseconds."""
        lamport = self._channel.oldest_lamport()
        return None if lamport is None else UnixMs(lamport)

    @property
    def content_topic(self) -> ContentTopic:
        return self._wire.content_topic

    @property
    def record(self) -> GroupRecord:
        return self._group if self.governed is None else self.governed.record

    @property
    def membership(self) -> Membership:
        return self._people.membership

    def members(self) -> dict[ParticipantId, MemberRecord]:
        return self._people.everyone()

    def governance(self) -> GroupGovernance | None:
        """None for a group that anyone with the link is in."""
        return self.governed.now() if self.governed else None

    @property
    def other_is_here(self) -> bool:
        return False

    def next_deadline(self) -> UnixMs | None:
        deadlines = (
            self._channel.next_deadline(),
            self._typing.next_deadline(),
            self._people.tell_name_ms(),
            self._aside.next_deadline(),
            self._files.repeat_at_ms if self._channel.is_online else None,
            None if self.governed is None else self.governed.next_deadline(self._clock.offset_ms),
        )
        return min((d for d in deadlines if d is not None), default=None)

    def gap(self) -> GapView | None:
        return self._projector.gaps.gap(self._channel.gaps())

    def held_aside(self) -> HeldAside:
        return self._projector.held_aside()

    def set_aside(self) -> tuple[SetAsideOf, ...]:
        return self._channel.set_aside()

    def forks(self) -> tuple[Fork, ...]:
        return self._channel.forks()

    def claimed_by(self, message_id: MessageId) -> frozenset[ParticipantId]:
        return self._channel.claimed_by(message_id)

    def heard(self) -> Mapping[ParticipantId, UnixMs]:
        return self._heard

    def buffers(self) -> Buffers:
        return self._channel.buffers()

    def counted(self) -> Mapping[str, int]:
        return self._counters.snapshot()

    def typing_now(self) -> tuple[ParticipantId, ...]:
        return self._typing.now()

    @property
    def channel(self) -> SdsChannel:
        """For inspection by tests and the simulator's checks."""
        return self._channel

    def has_logged(self, message_id: MessageId) -> bool:
        return self._channel.has_logged(message_id)
