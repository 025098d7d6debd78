"""One seed's whole trial: hazards for a group of eight, and what must still hold.

Loss up to one half, duplicates, reordering, partitions and crashes all follow from the seed, and so
does the outcome: ``python -m engine.sim.trial 17`` repeats a failed test's seed.
"""

import sys

from msgspec import Struct

from engine.core.ids import UnixMs
from engine.sim.judge import Verdict
from engine.sim.world import random_world

MEMBERS = 8
MESSAGES = 3_000
CRASHES = 24
PARTITIONS = 16
HEALING_MS = 6 * 3_600_000
"""Virtual time after the last crash and partition; losses continue meanwhile."""


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of a trial; ``problems`` is empty if all held."""

    seed: int
    loss: float
    crashes: int
    cut_off: int
    healed_after_ms: int
    verdict: Verdict
    problems: tuple[str, ...]


def trial(seed: int, *, members: int = MEMBERS, messages: int = MESSAGES) -> Outcome:
    """Run a whole trial; the same seed gives the same outcome."""
    world = random_world(seed, size=members)
    network = world.network
    end_ms = world.talk(messages)
    world.befall(end_ms, crashes=CRASHES, partitions=PARTITIONS)
    network.run_until(end_ms)
    healed = network.run_until(UnixMs(end_ms + HEALING_MS), stop=world.all_held)
    verdict = world.verdict()
    expected = {
        "everybody holds everything and every sender knows it": (healed, True),
        "logs identical": (verdict.converged, True),
        "messages sent": (verdict.messages_sent, messages),
        "messages delivered": (verdict.messages_delivered, messages * (members - 1)),
        "causal violations": (verdict.causal_violations, 0),
        "duplicate deliveries": (verdict.duplicate_deliveries, 0),
        "false certain holders at the end": (verdict.false_certain_holders, 0),
        "false certain holders when named": (world.false_claims, 0),
        "refused messages": (network.traffic.refused, {}),
    }
    return Outcome(
        seed=seed,
        loss=world.loss,
        crashes=world.network.crashes,
        cut_off=network.traffic.cut_off,
        healed_after_ms=network.now_ms - end_ms,
        verdict=verdict,
        problems=tuple(
            f"seed {seed}: {what}: {found}, not {wanted}"
            for what, (found, wanted) in expected.items()
            if found != wanted
        ),
    )


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(trial(int(argument)))  # noqa: T201 - that is what it is started for
