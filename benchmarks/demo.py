"""The whole stack without sockets and disk: the headless demo's conversation, in real seconds.

Sealed sessions of five people, 500 messages, 30 % of all transmissions lost: CPU time, and the
traffic it takes until everybody is known to hold everything.
"""

import time

from benchmarks.report import Figure, Report, figure_of
from chat_app.demo_headless import DemoSpec, play

SPEC = DemoSpec(participants=5, messages=500, loss=0.3, seed=1)
SEEDS = 3


def run(quick: bool) -> Report:
    report = Report(name="demo")
    cpu_s, retransmissions, violations, unheld = [], [], 0, 0
    for seed in range(1, (1 if quick else SEEDS) + 1):
        began = time.process_time()
        result = play(
            DemoSpec(participants=SPEC.people, messages=SPEC.messages, loss=SPEC.loss, seed=seed)
        )
        cpu_s.append(time.process_time() - began)
        retransmissions.append(result.retransmissions / SPEC.messages)
        violations += result.causal_violations + (not result.converged)
        unheld += SPEC.messages - result.held_by_all
    report.figures += [
        figure_of("CPU, 5 people, 500 messages, 30 % loss", cpu_s, "s"),
        figure_of("retransmissions and repairs per message", retransmissions, "copies"),
        Figure(
            figure="runs that diverged, and causal violations",
            value=violations,
            unit="",
            spread=(violations, violations),
            bar=0,
        ),
        Figure(
            figure="messages not known to be held by all",
            value=unheld,
            unit="",
            spread=(unheld, unheld),
            bar=0,
        ),
    ]
    return report
