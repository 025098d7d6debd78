"""From Enter in one process to painted in another, one to one: ``e2e`` over MVDS.

The same two windows, disks and nodes; a contact link and a request instead of an invitation.
"""

from benchmarks.e2e import measure
from benchmarks.report import Report

P50_BAR_MS = 50.0


def run(quick: bool) -> Report:
    return measure("pair_e2e", "contact", quick=quick, bars_ms=(P50_BAR_MS, None))
