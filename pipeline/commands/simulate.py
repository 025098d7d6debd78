"""``simulate``: a sweep of the simulator over a grid of parameters, or the shipped study.

Runs that are finished are kept until the whole sweep is: the same command goes on after a kill.
"""

import argparse
import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import Field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.core.errors import ConfigError
from pipeline.commands import complain, say, tell
from pipeline.paths import to_read
from pipeline.simulate.case import BOTH, Case, Scalar
from pipeline.simulate.kept import kept_below, told
from pipeline.simulate.plots import draw, write_csv, write_figures
from pipeline.simulate.study import study
from pipeline.simulate.sweep import COLUMNS, SCHEMA, sweep, tasks_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "simulate"
HELP: Final = "sweep SDS and MVDS over parameters with the simulator"
_MOST_RUNS: Final = 100_000
_KINDS: Final = {"str": str, "int": int, "float": float}
_FIELDS: Final = {field.name: field for field in fields(Case) if field.name != "seed"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--study", action="store_true", help="the shipped study, with its plots")
    parser.add_argument(
        "--large", action="store_true", help="with --study: groups of 256, 512 and 1 000 as well"
    )
    parser.add_argument("--seeds", type=int, default=3, help="seeds 1 to this (default 3)")
    parser.add_argument(
        "--record", type=Path, help="write the participants' delivery logs below this directory"
    )
    own = parser.add_argument_group(
        "parameters", "each takes one value or several; every combination is run with every seed"
    )
    own.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="NAME=A,B,…",
        help="the same for a parameter by its name, may be given again",
    )
    for field in _FIELDS.values():
        own.add_argument(
            f"--{field.name.replace('_', '-')}",
            dest="vary",
            action="append",
            type=partial(_named, field.name),
            metavar="A,B,…",
            help=_told(field),
        )


def _named(name: str, listed: str) -> str:
    return f"{name}={listed}"


def _told(field: "Field[object]") -> str:
    of = "" if field.metadata["of"] == BOTH else f"{field.metadata['of']}: "
    return f"{of}{field.metadata['means']} (default {field.default})"


def refused(arguments: argparse.Namespace) -> None:
    """Raises ConfigError for parameters that there are not."""
    _cases(arguments)


def _cases(arguments: argparse.Namespace) -> list[Case]:
    if arguments.study and arguments.vary:
        raise ConfigError("simulate: --study has its own parameters; leave those out or --study")
    if arguments.study:
        return study(arguments.seeds, large=arguments.large)
    return grid(arguments.vary, arguments.seeds)


def run(arguments: argparse.Namespace, spark: "SparkSession") -> int:
    """0, whatever the simulated groups came to."""
    cases = _cases(arguments)
    out = Path(arguments.out)
    began = time.monotonic()
    rows = [row.asDict() for row in _made(arguments, spark, cases, out).toLocalIterator()]
    order = {case.run: number for number, case in enumerate(cases)}
    rows.sort(key=lambda row: order[row["run"]])
    write_csv(rows, out / "runs.csv")
    if arguments.study:
        drawn = draw(rows, out)
        write_figures(drawn, rows, out / "figures.md")
    lost = sum(not row["converged"] for row in rows)
    kept_below(out).remove()
    if lost:
        complain(f"{lost} of {len(rows)} runs ended before everybody had everything")
    say(f"{len(rows)} runs in {time.monotonic() - began:.0f} s: {out / 'runs.csv'}")
    return 0


def _made(
    arguments: argparse.Namespace, spark: "SparkSession", cases: Sequence[Case], out: Path
) -> "DataFrame":
    """Rows of all cases, written below ``out``; those that are there from before are not run."""
    kept = kept_below(out)
    kept.open()
    logs: Path | None = arguments.record
    done: list[tuple[Scalar, ...]] = []
    left: list[Case] = []
    for case in cases:
        is_recorded = logs is None or (logs / case.run).is_dir()
        row = kept.row(case, len(COLUMNS)) if is_recorded else None
        if row is None:
            left.append(case)
        else:
            done.append(row)
    if done:
        say(f"{len(done)} runs are there from before")
    tasks = tasks_for(left, _cores(spark))
    say(f"{len(left)} runs in {tasks} tasks")
    found = sweep(spark, left, tasks=tasks, logs=logs, kept=kept)
    found = found.unionByName(spark.createDataFrame(done, SCHEMA))
    with told(kept, len(cases), tell):
        found.write.mode("overwrite").parquet(str(out / "runs"))
    return spark.read.parquet(to_read(out / "runs"))


def grid(varied: Sequence[str], seeds: int) -> list[Case]:
    """Every combination with every seed.  Raises ConfigError."""
    if seeds < 1:
        raise ConfigError("simulate: --seeds is 1 or more")
    values: dict[str, list[object]] = {}
    for text in varied:
        name, _, listed = (part.strip() for part in text.partition("="))
        if name in values:
            raise ConfigError(f"simulate: {name} is given twice")
        values[name] = [_value(name, one.strip()) for one in listed.split(",")]
    runs = seeds * math.prod(map(len, values.values()))
    if runs > _MOST_RUNS:
        raise ConfigError(f"simulate: {runs} runs are more than {_MOST_RUNS}")
    names = list(values)
    combined = itertools.product(*values.values())
    return [
        replace(Case(), **dict(zip(names, one, strict=True)), seed=seed)  # type: ignore[arg-type]
        for one in combined
        for seed in range(1, seeds + 1)
    ]


def _value(name: str, text: str) -> object:
    field = _FIELDS.get(name)
    if field is None:
        raise ConfigError(f"simulate: no parameter {name!r}; there are {', '.join(_FIELDS)}")
    kind = str(getattr(field.type, "__name__", field.type))
    try:
        if kind == "bool":
            return {"true": True, "false": False}[text.lower()]
        return _KINDS[kind](text)
    except (ValueError, KeyError) as error:
        raise ConfigError(f"simulate: {name}={text!r} is not of the kind {kind}") from error


def _cores(spark: "SparkSession") -> int:
    """As Spark was told; over Spark Connect it is asked for what a server tells everybody."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001 - Spark Connect knows no context, and says so in several ways
        return int(spark.conf.get("spark.sql.leafNodeDefaultParallelism", "8") or "8")
