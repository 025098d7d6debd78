"""``python -m benchmarks NAME [--quick] --json`` runs one benchmark; without NAME all of them.

Each writes ``build/bench/NAME.json`` and prints its table; the exit status is 1 if a bar was
missed, so that nobody has to read carefully.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    annotations,
    archive,
    backup,
    delivery,
    delivery_view,
    demo,
    e2e,
    envelope,
    files,
    floods,
    group_keys,
    history,
    member_floods,
    mvds,
    network,
    node,
    pair_e2e,
    pipeline,
    scale,
    sds,
    search,
    start,
    sweep,
    timeline,
    use,
)
from benchmarks.report import Report

BENCHMARKS: dict[str, Callable[[bool], Report]] = {
    "annotations": annotations.run,
    "archive": archive.run,
    "backup": backup.run,
    "delivery": delivery.run,
    "delivery_view": delivery_view.run,
    "demo": demo.run,
    "e2e": e2e.run,
    "envelope": envelope.run,
    "files": files.run,
    "floods": floods.run,
    "group_keys": group_keys.run,
    "pair_e2e": pair_e2e.run,
    "history": history.run,
    "member_floods": member_floods.run,
    "mvds": mvds.run,
    "network": network.run,
    "node": node.run,
    "pipeline": pipeline.run,
    "scale": scale.run,
    "sds": sds.run,
    "search": search.run,
    "start": start.run,
    "start_installed": start.run_installed,
    "sweep": sweep.run,
    "timeline": timeline.run,
    "use": use.run,
}
OUT = Path("build/bench")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", nargs="?", choices=sorted(BENCHMARKS), help="default: all")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, wider spread")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    asked = parser.parse_args()
    names = [asked.name] if asked.name else sorted(BENCHMARKS)
    missed = False
    for name in names:
        report = BENCHMARKS[name](asked.quick)
        print(report.as_json() if asked.json else report.as_table() + "\n", flush=True)
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / f"{name}.json").write_text(report.as_json() + "\n")
        missed = missed or any(figure.holds is False for figure in report.figures)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
