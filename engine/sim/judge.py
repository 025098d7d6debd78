"""What a run proves: convergence, causality, and that "held" was never claimed falsely.

Of whole sessions also what is shown: texts, edits, retractions, reactions and quotes.

The judge sees only what participants showed and hold at the end. The rules are the specification's
(all nodes end with the same entries in the same order, dependencies before dependants) and the
promise that a certain holder really holds the message.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from engine.core.ids import MessageId, ParticipantId


class ShownFile(Struct, frozen=True, kw_only=True):
    name: str
    size: int
    root: bytes
    """What its chunks are found by."""


class ShownMessage(Struct, frozen=True, kw_only=True):
    """A text or a file as its row shows it, without what differs between members."""

    message_id: MessageId
    text: str
    is_edited: bool
    retracted: bool
    reactions: tuple[tuple[str, ParticipantId], ...]
    """Each emoji, without selectors, with who chose it; sorted."""
    quoted_id: MessageId | None
    quoted_text: str | None = None
    """None: it quotes nothing, or what it quotes is not here."""
    file: ShownFile | None = None


@dataclass(slots=True, kw_only=True)
class Observation:
    """One participant's run, recorded while it ran."""

    participant_id: ParticipantId
    log: list[MessageId] = field(default_factory=list)
    """In the log's final order."""
    deliveries: list[tuple[MessageId, tuple[MessageId, ...]]] = field(default_factory=list)
    """Every delivery in the order shown, with the message's causal history."""
    lost: set[MessageId] = field(default_factory=set)
    """Dependencies that it marked as lost."""
    sent: list[MessageId] = field(default_factory=list)
    accused: set[ParticipantId] = field(default_factory=set)
    """Members accused of telling different members different things."""
    certain_holders: dict[MessageId, set[ParticipantId]] = field(default_factory=dict)
    """For its own messages: the members it claims hold them for certain."""
    retransmissions: int = 0
    """Rebroadcasts and repairs that it sent."""
    shown: list[ShownMessage] = field(default_factory=list)
    """The texts of its timeline, in order; empty for a bare channel."""


class Verdict(Struct, frozen=True, kw_only=True):
    """Numbers of a whole run."""

    participants: int
    messages_sent: int
    messages_delivered: int
    """Deliveries to members other than the sender."""
    converged: bool
    causal_violations: int
    duplicate_deliveries: int
    held_by_all: int
    """Messages whose sender knows for certain that all other participants hold them."""
    false_certain_holders: int
    retransmissions: int
    shown_differently: int = 0
    """Participants that show anything else than the first."""


def judge(observations: Iterable[Observation]) -> Verdict:
    """Judge a run by what every participant saw."""
    seen = list(observations)
    logs = {item.participant_id: set(item.log) for item in seen}
    sent = {message_id for item in seen for message_id in item.sent}
    converged = all(item.log == seen[0].log for item in seen) and all(
        sent <= log for log in logs.values()
    )
    return Verdict(
        participants=len(seen),
        messages_sent=len(sent),
        messages_delivered=sum(len(logs[i.participant_id] & sent - set(i.sent)) for i in seen),
        converged=converged,
        causal_violations=sum(map(causal_violations, seen)),
        duplicate_deliveries=sum(
            len(item.deliveries) - len({message_id for message_id, _ in item.deliveries})
            for item in seen
        ),
        held_by_all=held_by_all(seen),
        false_certain_holders=sum(_false_holders(item, logs) for item in seen),
        retransmissions=sum(item.retransmissions for item in seen),
        shown_differently=sum(item.shown != seen[0].shown for item in seen),
    )


def causal_violations(observation: Observation) -> int:
    """The number of messages shown before a dependency (unless that one was lost)."""
    shown: set[MessageId] = set(observation.lost)
    violations = 0
    for message_id, history in observation.deliveries:
        violations += not shown.issuperset(history)
        shown.add(message_id)
    return violations


def held_by_all(seen: Sequence[Observation]) -> int:
    """The number of messages whose sender knows for certain that all others hold them."""
    everyone = frozenset(item.participant_id for item in seen)
    return sum(
        everyone - {item.participant_id} <= item.certain_holders.get(message_id, set())
        for item in seen
        for message_id in set(item.sent)
    )


def _false_holders(item: Observation, logs: Mapping[ParticipantId, set[MessageId]]) -> int:
    return sum(
        message_id not in logs.get(holder, ())
        for message_id, holders in item.certain_holders.items()
        for holder in holders
    )
