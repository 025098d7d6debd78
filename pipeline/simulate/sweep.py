"""Many runs on Spark, row for row the same as one after another.

The parameters are the rows, a task gets those that it is dealt, each about two seconds of work or
more, and figures come back as Arrow.  A run that cannot be made raises in its task and
names itself; nothing is left out silently.  With ``logs`` every run also writes what its
participants would have recorded, into a directory that all workers share; with ``kept`` it leaves
its row there as soon as it is made.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.core.errors import ConfigError
from pipeline.simulate.case import Case, Outcome, Scalar, ddl, deal, names, values
from pipeline.simulate.kept import Kept
from pipeline.simulate.mvds_run import run_mvds
from pipeline.simulate.sds_run import run_sds

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

TASK_S: Final = 2.0
"""Work in a task, at least, if there is so much."""
MOST_TASKS_PER_CORE: Final = 64
MOST_TASKS: Final = 4_096
_HAND: Final = "hand"


def run_case(case: Case, logs: Path | None = None) -> Outcome:
    """Raises ConfigError that names the run."""
    run = {"sds": run_sds, "mvds": run_mvds}.get(case.protocol)
    if run is None:
        raise ConfigError(f"{case.run}: protocol is sds or mvds, not {case.protocol!r}")
    try:
        case.check()
        if logs is None:
            return run(case)
        return _recorded(run, case, logs)
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"{case.run}: {error}") from error


def _recorded(run: Callable[[Case, Path | None], Outcome], case: Case, logs: Path) -> Outcome:
    """A log is whole or not there; a task that is tried again finds what it would write."""
    target = logs / case.run
    logs.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=".run-", dir=logs))
    try:
        outcome = run(case, place)
        if not target.exists():
            place.chmod(0o755)
            place.rename(target)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return outcome


def tasks_for(cases: Sequence[Case], cores: int) -> int:
    """As many as there are pieces of ``TASK_S``: then a core that is done early takes another."""
    work_s = sum(case.work_s for case in cases)
    pieces = min(len(cases), int(work_s / TASK_S), MOST_TASKS_PER_CORE * cores, MOST_TASKS)
    return max(1, pieces)


def sweep(
    spark: "SparkSession",
    cases: Sequence[Case],
    *,
    tasks: int,
    logs: Path | None = None,
    kept: Kept | None = None,
) -> "DataFrame":
    """One row of ``Outcome`` for each case, with the case's columns before it."""
    rows = [(*values(case), hand) for case, hand in zip(cases, deal(cases, tasks), strict=True)]
    parameters = spark.createDataFrame(rows, f"{ddl(Case)}, {_HAND} int")
    dealt = parameters.repartitionById(tasks, _HAND).drop(_HAND)
    place = None if logs is None else str(logs)
    return dealt.mapInArrow(partial(_run_batches, logs=place, kept=kept), SCHEMA)


OUTCOME_ONLY: Final = [name for name in names(Outcome) if name != "messages"]
"""``messages`` of a case is what was asked for; ``said`` is how many there were."""
SCHEMA: Final = f"{ddl(Case)}, said bigint, " + ", ".join(
    column for column in ddl(Outcome).split(", ") if not column.startswith("messages ")
)


COLUMNS: Final = [*names(Case), "said", *OUTCOME_ONLY]


def row_of(case: Case, outcome: Outcome) -> tuple[Scalar, ...]:
    """As ``sweep`` gives it."""
    rest = (getattr(outcome, name) for name in OUTCOME_ONLY)
    return (*values(case), outcome.messages, *rest)


def _run_batches(
    batches: Iterator["pa.RecordBatch"], logs: str | None, kept: Kept | None
) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa  # noqa: PLC0415 - of the workers alone

    place = None if logs is None else Path(logs)
    for batch in batches:
        for parameters in batch.to_pylist():
            case = Case(**parameters)
            row = row_of(case, run_case(case, place))
            if kept is not None:
                kept.keep(case.run, row)
            arrays = [pa.array([value], type=_arrow(value)) for value in row]
            yield pa.RecordBatch.from_arrays(arrays, names=COLUMNS)


def _arrow(value: object) -> "pa.DataType":
    import pyarrow as pa  # noqa: PLC0415 - of the workers alone

    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64()
    return pa.string() if isinstance(value, str) else pa.float64()
