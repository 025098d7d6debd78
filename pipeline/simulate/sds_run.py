"""A group on a bad network as one row of figures: SDS, by the simulator's own world.

The channels, the codec and the network are those that tests use; here a group is made of a
``Case``, and times are noted as they pass.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.core.faults import FaultSpec
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import Input
from engine.core.sds.vocabulary import HeldByChanged, MessageDelivered
from engine.sim.back_off import with_resend
from engine.sim.channel_participant import ChannelParticipant
from engine.sim.judge import Verdict
from engine.sim.network import Outgoing, SimNetwork
from engine.sim.open_participant import OpenParticipant
from engine.sim.world import START_MS, World
from pipeline.simulate.case import NEVER_MS, Case, Outcome, share_ms

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL_GROUP: Final = 16
_REPEATED: Final = "retransmission"


class Member(ChannelParticipant):
    """Notes when it was shown what, and when it learnt who holds its messages."""

    header_bytes = 24
    """Author's instance and number, before the text."""
    is_sure = True

    def __init__(
        self,
        participant_id: ParticipantId,
        *,
        members: frozenset[ParticipantId],
        config: SdsConfig,
        seed: int,
        now_ms: UnixMs,
    ) -> None:
        self.size_bytes = 0
        self.sent_ms: dict[MessageId, int] = {}
        self.delivered_ms: dict[MessageId, int] = {}
        self.acked_ms: dict[tuple[MessageId, str], int] = {}
        self.maybe_ms: dict[tuple[MessageId, str], int] = {}
        self.holds: Callable[[MessageId, str], bool] = lambda _message_id, _name: True
        self.false_maybe = 0
        super().__init__(participant_id, members=members, config=config, seed=seed, now_ms=now_ms)

    def send(self, text: str, *, now_ms: UnixMs) -> list[Outgoing]:
        return super().send(text.ljust(self.size_bytes, "."), now_ms=now_ms)

    def handle(self, input_: Input, *, now_ms: UnixMs) -> list[Outgoing]:
        outgoing = super().handle(input_, now_ms=now_ms)
        for event in self.events:
            if isinstance(event, MessageDelivered):
                noted = self.sent_ms if event.is_own else self.delivered_ms
                noted.setdefault(event.message.message_id, now_ms)
            elif isinstance(event, HeldByChanged):
                for entry in event.certain:
                    self.acked_ms.setdefault((event.message_id, entry.participant_id), now_ms)
                for entry in event.maybe:
                    self._note_maybe(event.message_id, entry.participant_id, now_ms)
        return outgoing

    @property
    def known(self) -> int:
        """(message, other member) of which it knows, in a sealed channel for certain."""
        return len(self.acked_ms) if self.is_sure else len(self.acked_ms.keys() | self.maybe_ms)

    def _note_maybe(self, message_id: MessageId, name: str, now_ms: UnixMs) -> None:
        """Who held it when the filter was sent holds it now."""
        if (message_id, name) not in self.maybe_ms:
            self.maybe_ms[message_id, name] = now_ms
            self.false_maybe += not self.holds(message_id, name)


class OpenMember(Member, OpenParticipant):
    """Of an open channel: no holdings, nobody's word is proved."""

    header_bytes = 0
    is_sure = False


@dataclass
class Group(World):
    """A world that is made of a case."""

    case: Case = field(default_factory=Case)
    members: dict[str, Member] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        case = self.case
        spec = FaultSpec(
            loss=case.loss,
            delay_ms=(case.latency_ms, case.latency_ms + case.jitter_ms),
            dup=case.duplication,
            reorder=case.reorder,
            seed=case.seed,
        )
        self.network = SimNetwork(spec, start_ms=START_MS)
        names = [ParticipantId(f"member-{number}") for number in range(self.size)]
        everyone, config = frozenset(names), config_of(case)
        kind = Member if case.sealed else OpenMember
        for name in names:
            member = kind(name, members=everyone, config=config, seed=case.seed, now_ms=START_MS)
            member.size_bytes = case.size_bytes
            member.on_certain_holders = self._check_claim
            member.holds = self._holds
            self.members[name] = member
            self.network.add(name, member)
        self.people = {**self.members}

    def _holds(self, message_id: MessageId, name: str) -> bool:
        """In its log, or waiting for what it depends on: a filter says either."""
        store = self.members[name].store
        return message_id in store or any(
            entry.message.message_id == message_id for entry in store.state().incoming
        )

    def is_over(self) -> bool:
        """Everybody holds everything, and every sender knows it."""
        wanted = self.messages * (self.size - 1)
        return (
            sum(len(one.delivered_ms) for one in self.members.values()) == wanted
            and sum(one.known for one in self.members.values()) == wanted
        )


def config_of(case: Case) -> SdsConfig:
    """What the case leaves open is as the config has it, ours or ``reference``."""
    if case.config == "reference":
        base = SdsConfig.js_defaults()
    else:
        small = case.members <= SMALL_GROUP and case.prompt
        base = SdsConfig.for_small_group() if small else SdsConfig()
        base = base if case.prompt else replace(base, prompt_sync_ms=None)
    first_ms, longest_ms = base.resend_unacknowledged_ms
    if case.back_off_first_ms or case.back_off_longest_ms:
        first_ms = case.back_off_first_ms or min(first_ms, case.back_off_longest_ms)
        longest_ms = case.back_off_longest_ms or max(first_ms, longest_ms)
        base = with_resend(base, first_ms, longest_ms)
    return replace(
        base,
        causal_history_size=case.history or base.causal_history_size,
        bloom_capacity=case.bloom_capacity or base.bloom_capacity,
        sync_interval_ms=case.sync_interval_ms or base.sync_interval_ms,
    )


def run_sds(case: Case, logs: Path | None = None) -> Outcome:
    """Raises ConfigError for what no network does; ``logs``: where what happened is recorded."""
    group = Group(seed=case.seed, size=case.members, loss=case.loss, case=case)
    if logs is not None:
        for member in group.members.values():
            member.record(case.run, now_ms=START_MS)
    end_ms = group.talk(case.messages, gap_ms=case.gap_ms)
    last_ms = UnixMs(end_ms + case.heal_ms)
    group.befall(end_ms, crashes=case.crashes, partitions=case.partitions)
    group.come_and_go(last_ms, offline=case.offline, session_ms=case.session_ms)
    group.network.run_until(end_ms)
    group.network.run_until(last_ms, stop=group.is_over)
    if logs is not None:
        for member in group.members.values():
            member.finish_recording(START_MS, now_ms=group.network.now_ms)
            if member.recording is not None:
                member.recording.write(logs)
    return outcome_of(group, group.network.now_ms - end_ms)


def outcome_of(group: Group, virtual_ms: int) -> Outcome:
    case, members, verdict = group.case, list(group.members.values()), group.verdict()
    sent_ms = {item: at_ms for one in members for item, at_ms in one.sent_ms.items()}
    delays = _delays(group, sent_ms)
    acks = _ack_delays(members, [one.acked_ms for one in members])
    known = _ack_delays(members, [one.maybe_ms | one.acked_ms for one in members])
    sends: dict[str, int] = {}
    for one in members:
        for name, count in one.sends.items():
            sends[name] = sends.get(name, 0) + count
    said, traffic = max(group.messages, 1), group.network.traffic
    content = group.messages * (case.size_bytes + members[0].header_bytes)
    copies = sends.get("content", 0) + sends.get(_REPEATED, 0) + sends.get("repair", 0)
    expected = group.messages * (case.members - 1)
    return Outcome(
        run=case.run,
        messages=group.messages,
        expected=expected,
        delivered=sum(delay < NEVER_MS for delay in delays),
        delivered_share=sum(delay < NEVER_MS for delay in delays) / max(expected, 1),
        delivery_p50_ms=share_ms(delays, 0.5),
        delivery_p95_ms=share_ms(delays, 0.95),
        delivery_p99_ms=share_ms(delays, 0.99),
        acked_share=sum(delay < NEVER_MS for delay in acks) / max(expected, 1),
        ack_p50_ms=share_ms(acks, 0.5),
        ack_p95_ms=share_ms(acks, 0.95),
        known_p95_ms=share_ms(known, 0.95),
        held_by_all_share=verdict.held_by_all / said,
        content_bytes=content,
        wire_bytes=traffic.broadcast_bytes,
        bytes_per_message=traffic.broadcast_bytes / said,
        overhead=traffic.broadcast_bytes / max(content, 1) - 1,
        copies_per_message=copies / said,
        syncs_per_message=sends.get("sync", 0) / said,
        repairs=sends.get("repair", 0),
        retransmissions=sends.get(_REPEATED, 0),
        false_acks=_false_acks(group, verdict),
        maybe_acks=sum(len(one.maybe_ms) for one in members),
        false_maybe_acks=sum(one.false_maybe for one in members),
        converged=verdict.converged,
        causal_violations=verdict.causal_violations,
        virtual_ms=virtual_ms,
    )


def _delays(group: Group, sent_ms: dict[MessageId, int]) -> list[float]:
    """Of every message to every other member, in ms; ``NEVER_MS`` if it did not come."""
    return [
        member.delivered_ms[message_id] - at_ms if message_id in member.delivered_ms else NEVER_MS
        for member in group.members.values()
        for message_id, at_ms in sent_ms.items()
        if message_id not in member.sent_ms
    ]


def _ack_delays(
    members: list[Member], noted: list[dict[tuple[MessageId, str], int]]
) -> list[float]:
    names = [one.participant_id for one in members]
    return [
        when.get((message_id, other), NEVER_MS) - at_ms
        for one, when in zip(members, noted, strict=True)
        for message_id, at_ms in one.sent_ms.items()
        for other in names
        if other != one.participant_id
    ]


def _false_acks(group: Group, verdict: Verdict) -> int:
    return group.false_claims + verdict.false_certain_holders
