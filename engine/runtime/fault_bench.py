"""Makes the network of this device bad on purpose.  Implements ``engine.fault_views.Faults``.

Each copy that a conversation sends or receives passes here, once, while any fault is on; while none
is, a runner sees ``is_on`` False and goes on.  The transport shows messages to single peers, and
from them, while something is done to a peer.  ``engine.core.fault_bench`` decides; this module has
the clock, the timer, the counters and the delivery log.

A copy that is lost here was never with the network, so nobody is told that it was sent.  SDS and
MVDS send it again, as after any loss.  Files apart from their messages and Stores are cut off only
where everything is.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from enum import StrEnum
from typing import Final

from msgspec import Struct

from engine.core.counters import Counters
from engine.core.errors import CommandError, CommandRefusal, InputError, InputFlaw
from engine.core.fault_bench import (
    EVERYTHING,
    Course,
    Fate,
    FaultLink,
    FaultRule,
    FaultTarget,
    Offered,
    Phase,
    Preset,
    WaitingRoom,
    phases_of,
)
from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.records import GroupRecord
from engine.events import EngineEvent
from engine.fault_views import CutOffView, FaultsChanged, FaultsView, FaultView
from engine.network.libp2p.ports import JudgeCopy, PeerCopy
from engine.network.waku.peer_copies import hash_of
from engine.runtime.own_clock import OwnClock
from engine.runtime.recorded_queries import Recording, which_is
from engine.session.contract import ConversationRecord
from engine.session.group.opening import carrier_of

MAX_FAULTS: Final = 64
MAX_CUT_OFF: Final = 64
MAX_PEER_ID: Final = 128
MAX_SKEW_MS: Final = 24 * 3_600_000
_LONGEST_WAIT_S: Final = 60.0


class Direction(StrEnum):
    OUT = "out"
    IN = "in"


class PassingCopy(Struct, frozen=True, kw_only=True):
    """``go_on`` does with it what would be done with it without the bench."""

    direction: Direction
    payload: bytes
    go_on: Callable[[], object]
    waku_hash: WakuHash | None = None
    message_id: MessageId | None = None
    doubles: bool = True
    """Whether there is any use in a second one."""

    @property
    def size(self) -> int:
        return len(self.payload)


class _Wish(Struct, frozen=True):
    course: Course
    preset: Preset | None


class FaultBench:
    def __init__(  # noqa: PLR0913 - keyword-only: what it acts on
        self,
        clock: OwnClock,
        *,
        counters: Counters,
        publish: Callable[[EngineEvent], None],
        knows: Callable[[ConversationId], bool],
        knows_member: Callable[[ConversationId, ParticipantId], bool],
        cut_off: Callable[[Collection[str]], None],
        judge_peer_copies_by: Callable[[JudgeCopy | None], None],
        random_unit: Callable[[], float],
        recording: Recording | None = None,
    ) -> None:
        """``knows``: whether there is this conversation.

        ``knows_member``: whether it is a group with that member.  ``cut_off``: have no connection
        with these peers, and with all others.  ``judge_peer_copies_by``: ask this about each
        message to a peer, or from it; None: no longer.
        """
        self._clock = clock
        self._counters = counters
        self._publish = publish
        self._knows = knows
        self._knows_member = knows_member
        self._apply_cut_off = cut_off
        self._judge_peer_copies_by = judge_peer_copies_by
        self._judges_peers = False
        self._random_unit = random_unit
        self._recording = recording or Recording()
        self._wishes: dict[FaultTarget, _Wish] = {}
        self._cut_off: dict[str, UnixMs | None] = {}
        """Peers, and until when."""
        self._links: dict[tuple[FaultTarget, Direction], FaultLink[Callable[[], object]]] = {}
        self._room = WaitingRoom()
        self._told: dict[FaultTarget, FaultRule | None] = {}
        """What listeners know of."""
        self._counts: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self.is_on = False
        """Whether copies are to be shown to ``lets_pass``."""
        self.changed: Callable[[], None] = lambda: None
        """Called when faults begin, change or end."""

    # --- what the user asks for ---------------------------------------------------------------

    def set(self, target: FaultTarget, rule: FaultRule) -> None:
        self._wish(target, (Phase(rule=rule),), None)

    def start(self, target: FaultTarget, preset: Preset) -> None:
        seed = int(self._random_unit() * 2**31)
        self._wish(target, phases_of(preset, seed=seed), preset)

    def _wish(self, target: FaultTarget, phases: tuple[Phase, ...], preset: Preset | None) -> None:
        self._require(target)
        if target not in self._wishes and len(self._wishes) >= MAX_FAULTS:
            raise CommandError(CommandRefusal.TOO_MANY_FAULTS)
        self._count_anew()
        course = Course(phases, began_ms=self._clock.steady_ms())
        self._wishes[target] = _Wish(course, preset)
        self._note("begun")
        self._look(told=True)

    def _require(self, target: FaultTarget) -> None:
        """Raises CommandError or InputError for what is not there."""
        conversation_id, participant_id = target.conversation_id, target.participant_id
        if target.peer_id is not None:
            self._require_peer(target.peer_id)
        if conversation_id is not None and not self._knows(conversation_id):
            raise CommandError(CommandRefusal.NO_CONVERSATION)
        if participant_id is not None and (
            conversation_id is None or not self._knows_member(conversation_id, participant_id)
        ):
            raise CommandError(CommandRefusal.NO_MEMBER)

    @staticmethod
    def _require_peer(peer_id: str) -> None:
        if not 0 < len(peer_id) <= MAX_PEER_ID:
            raise InputError(InputFlaw.PEER, given=len(peer_id), limit=MAX_PEER_ID)

    def _count_anew(self) -> None:
        if not (self._wishes or self._cut_off or self._clock.skew_ms):
            self._counts.clear()

    def stop(self, target: FaultTarget) -> None:
        if self._wishes.pop(target, None) is not None:
            self._note("ended")
            self._look(told=True)

    def cut_off(self, peer_id: str, for_ms: int | None = None) -> None:
        self._require_peer(peer_id)
        if peer_id not in self._cut_off and len(self._cut_off) >= MAX_CUT_OFF:
            raise CommandError(CommandRefusal.TOO_MANY_FAULTS)
        self._count_anew()
        until_ms = None if for_ms is None else UnixMs(self._clock.steady_ms() + for_ms)
        self._cut_off[peer_id] = until_ms
        self._counters.add("faults.cut_off")
        self._note("peer_cut_off")
        self._apply_cut_off(tuple(self._cut_off))
        self._look(told=True)

    def let_back(self, peer_id: str) -> None:
        if peer_id in self._cut_off:
            del self._cut_off[peer_id]
            self._note("peer_let_back")
            self._apply_cut_off(tuple(self._cut_off))
            self._look(told=True)

    def skew(self, skew_ms: int) -> None:
        if abs(skew_ms) > MAX_SKEW_MS:
            raise InputError(InputFlaw.OFFSET, given=skew_ms)
        if skew_ms != self._clock.skew_ms:
            self._clock.skew_ms = skew_ms
            self._note_skew()
            self._look(told=True)

    def stop_all(self) -> None:
        if self._wishes:
            self._wishes.clear()
            self._note("ended")
        for peer_id in tuple(self._cut_off):
            self.let_back(peer_id)
        self.skew(0)
        self._look(told=True)

    def view(self) -> FaultsView:
        self._look()
        now_ms = self._clock.steady_ms()
        found = [(key, wish, wish.course.rule(now_ms)) for key, wish in self._wishes.items()]
        return FaultsView(
            cut_off=tuple(
                CutOffView(peer_id=peer_id, ends_ms=until_ms)
                for peer_id, until_ms in self._cut_off.items()
            ),
            faults=tuple(
                FaultView(
                    target=key,
                    rule=rule,
                    preset=wish.preset,
                    ends_ms=None if (end := wish.course.ends_ms) is None else UnixMs(end),
                )
                for key, wish, rule in found
                if rule is not None
            ),
            skew_ms=self._clock.skew_ms,
            counts=dict(sorted(self._counts.items())),
            waiting=self._room.copies,
            waiting_bytes=self._room.waiting_bytes,
            now_ms=now_ms,
        )

    @property
    def cuts_off_everything(self) -> bool:
        """Whether Stores and files are out of reach, too."""
        wish = self._wishes.get(EVERYTHING)
        rule = None if wish is None else wish.course.rule(self._clock.steady_ms())
        return rule is not None and rule.cuts_off

    # --- copies -------------------------------------------------------------------------------

    def lets_pass(self, record: ConversationRecord, copy: PassingCopy) -> bool:
        """Whether the copy goes on now.  If not, it is lost, or goes on by itself later."""
        self._look()
        target = self._target_of(record, copy)
        offered = self._offer(target, copy)
        for fate in offered.fates:
            self._record(record, copy, fate, offered.delay_ms)
        return offered.now > 0

    def lets_pass_peer(self, peer_copy: PeerCopy) -> bool:
        """The same of a message to one peer, or from it."""
        self._look()
        copy = PassingCopy(
            direction=Direction.OUT if peer_copy.is_out else Direction.IN,
            payload=peer_copy.data,
            go_on=peer_copy.go_on,
            doubles=peer_copy.doubles,
        )
        offered = self._offer(FaultTarget(peer_id=peer_copy.peer_id), copy)
        for fate in offered.fates:
            self._record_peer(peer_copy, f"peer_{fate}_{copy.direction}", fate, offered.delay_ms)
        return offered.now > 0

    def _offer(self, target: FaultTarget, copy: PassingCopy) -> Offered:
        now_ms = self._clock.steady_ms()
        rule = self._rule_of(target, now_ms)
        if rule is None:
            return Offered(1)
        key = target, copy.direction
        link = self._links.get(key)
        if link is None:
            named = (target.conversation_id, target.participant_id, target.peer_id, copy.direction)
            stream = "/".join(each for each in named if each is not None)
            link = self._links[key] = FaultLink(rule, stream, self._room)
        link.change(rule, now_ms)
        offered = link.offer(
            copy.go_on, copy.size, now_ms=now_ms, max_copies=2 if copy.doubles else 1
        )
        for fate in offered.fates:
            self._counts[f"{fate}_{copy.direction}"] += 1
            self._counters.add(f"faults.{fate}")
        for _ in range(offered.now - 1):
            copy.go_on()
        self._arm()
        return offered

    def _target_of(self, record: ConversationRecord, copy: PassingCopy) -> FaultTarget:
        """The conversation, or the member who sent the copy if they have a fault of their own."""
        whole = FaultTarget(conversation_id=record.conversation_id)
        members = {
            target.participant_id
            for target in self._wishes
            if target.conversation_id == record.conversation_id and target.participant_id
        }
        if not members or copy.direction is Direction.OUT or not isinstance(record, GroupRecord):
            return whole
        carrier_id = carrier_of(record, copy.payload)
        if carrier_id not in members:
            return whole
        return FaultTarget(conversation_id=record.conversation_id, participant_id=carrier_id)

    def send(self, sending: Coroutine[object, object, None]) -> None:
        """Run what hands a copy that waited to the network."""
        task = asyncio.get_running_loop().create_task(sending, name="delayed on purpose")
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def stop_bench(self) -> None:
        """The engine ends; what waits is lost, and sent again after the next start."""
        self._wishes.clear()
        self.is_on = False
        self._clock.skew_ms = 0
        if self._timer is not None:
            self._timer.cancel()
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    # --- time ---------------------------------------------------------------------------------

    def _rule_of(self, target: FaultTarget, now_ms: int) -> FaultRule | None:
        wish = self._wishes.get(target)
        if wish is None and target.participant_id is None and target.peer_id is None:
            wish = self._wishes.get(EVERYTHING)
        return None if wish is None else wish.course.rule(now_ms)

    def _look(self, *, told: bool = False) -> None:
        """End what is over, and pass on what is due.  ``told``: listeners are told in any case."""
        now_ms = self._clock.steady_ms()
        for key, wish in list(self._wishes.items()):
            conversation_id = key.conversation_id
            is_gone = conversation_id is not None and not self._knows(conversation_id)
            if is_gone or wish.course.rule(now_ms) is None:
                del self._wishes[key]
                self._note("ended")
        for peer_id, until_ms in list(self._cut_off.items()):
            if until_ms is not None and until_ms <= now_ms:
                self.let_back(peer_id)
        self._listen()
        due = self._take_due(now_ms)
        self._arm()
        rules = {key: self._rule_of(key, now_ms) for key in self._wishes}
        if told or rules != self._told:
            self._told = rules
            self.changed()
            self._publish(FaultsChanged(faults=self.view()))
        for go_on in due:
            go_on()  # What goes on to other peers is shown here again, before this is over.

    def _take_due(self, now_ms: int) -> list[Callable[[], object]]:
        found: list[Callable[[], object]] = []
        for (target, direction), link in list(self._links.items()):
            rule = self._rule_of(target, now_ms)
            if rule is None:
                del self._links[target, direction]
                found += link.drain()
            else:
                link.change(rule, now_ms)
                found += link.due(now_ms)
        return found

    def _listen(self) -> None:
        """Be shown what something is done to, and nothing else."""
        of_peers = any(target.peer_id is not None for target in self._wishes)
        self.is_on = any(target.peer_id is None for target in self._wishes)
        if of_peers != self._judges_peers:
            self._judges_peers = of_peers
            self._judge_peer_copies_by(self.lets_pass_peer if of_peers else None)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now_ms = self._clock.steady_ms()
        times = [link.next_due_ms() for link in self._links.values()]
        times += self._cut_off.values()
        times += [wish.course.next_change_ms(now_ms) for wish in self._wishes.values()]
        due = min((each for each in times if each is not None), default=None)
        if due is not None:
            wait_s = min(max(due - now_ms, 1) / 1_000, _LONGEST_WAIT_S)
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._look)

    # --- the delivery log ---------------------------------------------------------------------

    def recording_changed(self) -> None:
        """A log that begins while faults are on says so first."""
        if self._wishes:
            self._note("begun")
        if self._cut_off:
            self._note("peer_cut_off")
        if self._clock.skew_ms:
            self._note_skew()

    def _note_skew(self) -> None:
        skew_ms = self._clock.skew_ms
        self._note("clock_ahead" if skew_ms > 0 else "clock_back", abs(skew_ms))

    def _note(self, what: str, amount: int | None = None) -> None:
        recorder = self._recording.recorder
        if recorder is not None:
            recorder.fault(what, amount=amount)

    def _record(
        self, record: ConversationRecord, copy: PassingCopy, fate: Fate, delay_ms: int
    ) -> None:
        recorder = self._recording.recorder
        if recorder is not None:
            recorder.fault(
                f"{fate}_{copy.direction}",
                which=which_is(record),
                message_id=copy.message_id,
                waku_hash=copy.waku_hash,
                wire_bytes=copy.size,
                amount=delay_ms if fate is Fate.DELAYED else None,
            )

    def _record_peer(self, copy: PeerCopy, what: str, fate: Fate, delay_ms: int) -> None:
        """Without the peer, whom nothing in the log names."""
        recorder = self._recording.recorder
        if recorder is not None:
            recorder.fault(
                what,
                waku_hash=hash_of(copy),
                wire_bytes=len(copy.data),
                amount=delay_ms if fate is Fate.DELAYED else None,
            )
