"""The scripted engine's fault bench is the real one; only nothing is sent through it."""

from collections.abc import Collection
from functools import cached_property

from engine.core.counters import Counters
from engine.core.ids import ConversationId, UnixMs
from engine.events import ConversationView, EngineEvent
from engine.runtime.fault_bench import FaultBench
from engine.runtime.own_clock import OwnClock


class ScriptedFaults:
    views: dict[ConversationId, ConversationView]
    steady_ms = 0

    @cached_property
    def peers_cut_off(self) -> list[Collection[str]]:
        """What the network was asked for, one after the other."""
        return []

    def tell(self, event: EngineEvent) -> None:
        raise NotImplementedError

    @cached_property
    def bench(self) -> FaultBench:
        clock = OwnClock(lambda: UnixMs(self.steady_ms), lambda: self.steady_ms)
        return FaultBench(
            clock,
            counters=Counters(),
            publish=self.tell,
            knows=lambda conversation_id: conversation_id in self.views,
            knows_member=lambda conversation_id, participant_id: any(
                member.participant_id == participant_id
                for member in self.views[conversation_id].members
            ),
            cut_off=self.peers_cut_off.append,
            judge_peer_copies_by=lambda _judge: None,
            random_unit=lambda: 0.5,
        )

    @property
    def faults(self) -> FaultBench:
        return self.bench
