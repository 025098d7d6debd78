"""``causerie demo --headless``: people talk over a bad network, on virtual time, without a display.

The real sessions (seals, signatures, membership, SDS) on the deterministic simulator; every single
transmission, repairs included, is put to the faults.  The same seed gives the same output bit for
bit; the seconds that it reports are virtual ones.  What each of them would have recorded of its
deliveries can be written as delivery logs, for ``causerie-pipeline``.
"""

import json
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from engine.core.content import Text
from engine.core.faults import FaultSpec, SeededRandom
from engine.core.ids import UnixMs
from engine.sim.judge import Verdict, held_by_all, judge
from engine.sim.network import SimNetwork
from engine.sim.recording import SIM_KEY
from engine.sim.session_participant import SessionParticipant

START_MS = UnixMs(1_800_000_000_000)
JOINING_MS = 5_000
PAUSE_MS = (20, 600)
"""Between two messages of the whole group."""
LONGEST_SILENCE_MS = 2 * 3_600_000
"""Virtual time after the last message in which everything must have arrived."""
DEFAULT_PARTICIPANTS = 5
DEFAULT_LOGS = Path("causerie-demo-logs")
NAMES = ("Ines", "Maya", "Jonas", "Priya", "Luc", "Tomas", "Nell", "Omar")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSpec:
    participants: int | None = None
    messages: int = 200
    loss: float = 0.2
    seed: int = 1
    logs: Path | None = None
    """Where to write everybody's delivery log."""
    key: bytes = SIM_KEY
    """Of the pseudonyms in them."""

    @property
    def run(self) -> str:
        """The same for the same conversation, so that its logs are known to be the same."""
        return f"demo/{self.people}/{self.messages}/{self.loss}/{self.seed}"

    @property
    def people(self) -> int:
        return self.participants or DEFAULT_PARTICIPANTS


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """What is printed."""

    participants: int
    messages_sent: int
    messages_delivered: int
    converged: bool
    causal_violations: int
    held_by_all: int
    retransmissions: int
    seconds: float
    """Virtual seconds until everything had arrived everywhere."""


def run_headless(spec: DemoSpec, *, as_json: bool) -> int:
    """Print the result; 1 unless it converged.  Raises ConfigError, StorageError."""
    result = play(spec)
    if spec.logs is not None:
        sys.stderr.write(f"causerie: deliveries are recorded in {spec.logs}\n")
    if as_json:
        text = json.dumps(asdict(result))
    else:
        text = "\n".join(f"{k.replace('_', ' '):<20} {v}" for k, v in asdict(result).items())
    sys.stdout.write(text + "\n")
    return 0 if result.converged else 1


def play(spec: DemoSpec) -> DemoResult:
    """Run the whole conversation.  Raises ConfigError, StorageError."""
    network = SimNetwork(
        FaultSpec(loss=spec.loss, delay_ms=(20, 250), dup=0.02, reorder=0.05, seed=spec.seed),
        start_ms=START_MS,
    )
    people = [
        SessionParticipant(_name(i), seed=spec.seed, now_ms=START_MS) for i in range(spec.people)
    ]
    if spec.logs is not None:
        for person in people:
            person.record(spec.run, key=spec.key, now_ms=START_MS)
    _gather(network, people)
    last_ms = _plan_talk(network, people, spec)
    network.run_until(UnixMs(last_ms + 1))

    def verdict() -> Verdict:
        return judge(person.observation() for person in people)

    def settled() -> bool:
        """Asked every virtual second; logs and timelines are read only if it may be so."""
        held = held_by_all([person.seen for person in people])
        return held == spec.messages and verdict().converged

    network.run_until(UnixMs(last_ms + LONGEST_SILENCE_MS), stop=settled)
    if spec.logs is not None:
        _write_logs(people, spec.logs, network.now_ms)
    return _result(verdict(), spec, network.now_ms)


def _write_logs(people: list[SessionParticipant], place: Path, now_ms: UnixMs) -> None:
    """Raises StorageError."""
    for person in people:
        person.finish_recording(now_ms=now_ms)
        if person.recording is not None:
            person.recording.write(place)


def _name(index: int) -> str:
    return NAMES[index] if index < len(NAMES) else f"{NAMES[index % len(NAMES)]} {index}"


def _gather(network: SimNetwork, people: list[SessionParticipant]) -> None:
    """The first one makes the group, the others join it by its link."""
    first, *others = people
    opening = first.create_group("Tide Gauge", now_ms=START_MS)
    link = first.invite_link()
    network.add(first.name, first)
    for person in others:
        joining = person.join_group(link, now_ms=START_MS)
        network.add(person.name, person)
        network.broadcast(person.name, joining)
    network.broadcast(first.name, opening)


def _plan_talk(network: SimNetwork, people: list[SessionParticipant], spec: DemoSpec) -> UnixMs:
    """Who says what when; returns the time of the last message."""
    random = SeededRandom(spec.seed, "talk")
    at_ms = START_MS + JOINING_MS
    for number in range(spec.messages):
        at_ms += random.between(*PAUSE_MS)
        speaker = people[random.between(0, len(people) - 1)]
        network.at(UnixMs(at_ms), partial(_speak, speaker, f"{speaker.name}, number {number + 1}"))
    return UnixMs(at_ms)


def _speak(speaker: SessionParticipant, text: str, network: SimNetwork) -> None:
    network.broadcast(speaker.name, speaker.say(Text(text=text), now_ms=network.now_ms))


def _result(verdict: Verdict, spec: DemoSpec, now_ms: UnixMs) -> DemoResult:
    return DemoResult(
        participants=verdict.participants,
        messages_sent=verdict.messages_sent,
        messages_delivered=verdict.messages_delivered,
        converged=verdict.converged and verdict.messages_sent == spec.messages,
        causal_violations=verdict.causal_violations,
        held_by_all=verdict.held_by_all,
        retransmissions=verdict.retransmissions,
        seconds=(now_ms - START_MS) / 1000,
    )
