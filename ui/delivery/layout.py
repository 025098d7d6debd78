"""Where the messages of a delivery view stand in its causal graph: a column and a lane for each.

Columns follow the log: messages of one Lamport timestamp share one, a missing message has one of
its own.  Lanes are senders, ours last; what is not here stands in a lane below them.  An edge leads
to each message that is named and does not follow from another named one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.core.ids import MessageId, ParticipantId
from engine.delivery_views import DeliveryMessage
from engine.events import ConversationView
from ui.delivery.loaded import ABSENT
from ui.foreign_text import one_line
from ui.translate import tr

MOST_LANES: Final = 24
"""Of senders; the others share the last of them."""
_NAME: Final = 40
_OTHERS: Final = ParticipantId("")


class Lane(NamedTuple):
    sender_id: ParticipantId
    name: str
    is_own: bool
    known_as: str = ""
    """For the initial on the avatar, if that is not the name that is shown."""


class GraphLayout:
    """Updated from the first message that changed; what stands before it keeps its place."""

    def __init__(self) -> None:
        self.messages: Sequence[DeliveryMessage] = ()
        self.columns: list[int] = []
        """Of each message; they ascend."""
        self.lanes: list[Lane] = []
        self.has_absent = False
        self.index: dict[MessageId, int] = {}
        self._lane_of: dict[ParticipantId | None, int] = {}
        self._parents: dict[MessageId, tuple[MessageId, ...]] = {}
        self._children: dict[MessageId, list[int]] = {}

    @property
    def column_count(self) -> int:
        return self.columns[-1] + 1 if self.columns else 0

    @property
    def lane_count(self) -> int:
        return len(self.lanes) + self.has_absent

    def lay_out(
        self,
        messages: Sequence[DeliveryMessage],
        changed: int,
        conversation: ConversationView | None,
    ) -> None:
        """``changed``: the index of the first message that is not as it was."""
        self.messages = messages
        changed = min(changed, len(self.columns))
        del self.columns[changed:]
        if not changed:
            self.index.clear()
            self._parents.clear()
        self._find_lanes(conversation)
        self._find_columns(changed)
        self.index.update((messages[at].message_id, at) for at in range(changed, len(messages)))
        if len(self.index) > len(messages):
            self.index = {each.message_id: at for at, each in enumerate(messages)}

    def lane(self, at: int) -> int:
        message = self.messages[at]
        if message.mark in ABSENT:
            return len(self.lanes)
        return self._lane_of.get(message.sender_id, len(self.lanes) - 1)

    def between(self, first: float, last: float) -> range:
        """The messages in these columns."""
        return range(bisect_left(self.columns, first), bisect_right(self.columns, last))

    def parents(self, at: int) -> tuple[MessageId, ...]:
        """What it names that does not follow from something else that it names."""
        message = self.messages[at]
        known = self._parents.get(message.message_id)
        if known is None:
            named = [each for each in message.names if each in self.index]
            follows: set[MessageId] = set()
            for each in named:
                follows.update(self.messages[self.index[each]].names)
            known = tuple(each for each in named if each not in follows)
            self._parents[message.message_id] = known
        return known

    def _find_columns(self, begin: int) -> None:
        column = self.columns[begin - 1] if begin else -1
        before = self.messages[begin - 1].lamport_timestamp if begin else None
        taken: set[int] = set()
        for at in range(begin, len(self.messages)):
            message = self.messages[at]
            lane = self.lane(at)
            lamport = message.lamport_timestamp
            if lamport is None or lamport != before or lane in taken:
                column += 1
                taken = set()
            taken.add(lane)
            before = lamport
            self.columns.append(column)

    def _find_lanes(self, conversation: ConversationView | None) -> None:
        senders: dict[ParticipantId, DeliveryMessage] = {}
        own: DeliveryMessage | None = None
        self.has_absent = False
        for message in self.messages:
            if message.mark in ABSENT:
                self.has_absent = True
            elif message.is_own:
                own = message
            elif message.sender_id is not None:
                senders[message.sender_id] = message
        members = () if conversation is None else conversation.members
        order = {each.participant_id: place for place, each in enumerate(members)}
        known = sorted(senders, key=lambda who: order.get(who, len(order)))
        lanes = [Lane(who, one_line(senders[who].sender_name, _NAME), False) for who in known]
        self._lane_of = {lane.sender_id: at for at, lane in enumerate(lanes)}
        if len(lanes) > MOST_LANES:
            more = len(lanes) - MOST_LANES + 1
            lanes = lanes[: MOST_LANES - 1]
            lanes.append(Lane(_OTHERS, tr("%n others", "%n other", more), False))
            self._lane_of = {who: min(at, MOST_LANES - 1) for who, at in self._lane_of.items()}
        if own is not None and own.sender_id is not None:
            self._lane_of[own.sender_id] = len(lanes)
            lanes.append(Lane(own.sender_id, tr("You"), True, one_line(own.sender_name, _NAME)))
        self.lanes = lanes
