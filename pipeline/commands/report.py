"""``report``: audit and figures as one page, Parquet and CSV; or two inputs against each other."""

import argparse
import csv
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.commands import complain, ingest, outcome, say
from pipeline.commands.notices import notices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.lake import Lake
    from pipeline.metrics.compute import Silver
    from pipeline.report.content import Content
    from pipeline.report.tables import Written
    from pipeline.summary import Summary

NAME: Final = "report"
HELP: Final = "figures and verdicts as one HTML page, Parquet and CSV"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", nargs="*", type=Path, help="delivery logs, exports, directories")
    parser.add_argument(
        "--compare", nargs=2, type=Path, metavar=("A", "B"), help="two inputs against each other"
    )
    outcome.add_arguments(parser)


def refused(arguments: argparse.Namespace) -> int | None:
    """2 if nothing is named, or there is nothing to read and there never was."""
    if arguments.compare:
        return (
            2
            if any(ingest.is_nothing([place], lake) for place, lake in _sides(arguments))
            else None
        )
    if not arguments.inputs:
        complain("report: name the logs, or --compare A B")
        return 2
    if ingest.is_nothing(arguments.inputs, ingest.lake_of(arguments)):
        return outcome.nothing(arguments, NAME)
    return None


def _sides(arguments: argparse.Namespace) -> "list[tuple[Path, Lake]]":
    """What is compared, and where the tables of it are."""
    from pipeline.lake import Lake  # noqa: PLC0415 - loads Spark

    names = ("a", "b")
    return [
        (place, Lake(Path(arguments.out) / name))
        for name, place in zip(names, arguments.compare, strict=True)
    ]


def run(arguments: argparse.Namespace, spark: "SparkSession") -> int:
    """As ``audit``; of a comparison 0, or 2 if there was nothing to compare."""
    out = Path(arguments.out)
    if arguments.compare:
        return _compare(spark, arguments, out)
    return _report(spark, arguments, out)


def _report(spark: "SparkSession", arguments: argparse.Namespace, out: Path) -> int:
    from pipeline.audit import audit  # noqa: PLC0415 - loads Spark
    from pipeline.beside import beside  # noqa: PLC0415 - loads Spark
    from pipeline.report.build import write_page  # noqa: PLC0415 - loads Spark
    from pipeline.report.tables import TABLES, write_tables  # noqa: PLC0415 - loads Spark
    from pipeline.trust import Observed, gated  # noqa: PLC0415 - loads Spark

    lake, path = ingest.lake_of(arguments), out / "report.html"
    prepared = ingest.read(spark, arguments.inputs, lake, say=outcome.speaker(arguments))
    if prepared is None:
        return outcome.nothing(arguments, NAME)
    # Of its steps there is one set; and the next writer would remove what is told of here.
    with lake.run(spark), beside(spark) as ask:
        judged = audit(lake.audited(spark), lake.steps, grace_ms=max(arguments.grace_ms, 0))
        verdicts, witnesses = gated(judged, Observed.of(spark, lake), ask)
        audited = {"verdicts": verdicts.frame, "witnesses": witnesses.frame}
        written = write_tables(spark, _silver(spark, lake), out / TABLES, audited)
        found = outcome.summarised(
            NAME,
            spark,
            lake,
            prepared,
            ask,
            notices=notices(spark, lake, verdicts, ask),
            verdicts=verdicts,
            witnesses=witnesses,
        )
        write_page(_content(spark, lake, written, found, out), path)
    return outcome.hand_out(found, arguments, page=path)


def _content(
    spark: "SparkSession", lake: "Lake", written: "Written", found: "Summary", out: Path
) -> "Content":
    from pipeline.report.build import content_of, with_trend  # noqa: PLC0415 - loads Spark
    from pipeline.report.observed import observed  # noqa: PLC0415 - loads Spark
    from pipeline.report.traces import traces, worth_seeing  # noqa: PLC0415 - loads Spark

    event, member = lake.silver(spark, "event"), lake.silver(spark, "member")
    coverage = lake.silver(spark, "coverage")
    chosen = worth_seeing(written.figures["messages"], found.stories)
    now_ms = time.time_ns() // 1_000_000
    content = content_of(written, found, lake.silver(spark, "quarantine"), now_ms=now_ms)
    content = replace(
        content,
        observed=observed(coverage, lake.silver(spark, "stay"), lake.silver(spark, "log")),
        members=coverage.count(),
        seen=coverage.where("has_log").count(),
        traces=traces(event, member, written.figures["clock"], chosen),
    )
    return with_trend(content, out, now_ms=now_ms)


def _compare(spark: "SparkSession", arguments: argparse.Namespace, out: Path) -> int:
    from pipeline.report.build import (  # noqa: PLC0415 - loads Spark
        comparison_page,
        comparison_rows,
        sample_of,
    )
    from pipeline.report.compare import compare  # noqa: PLC0415 - loads numpy
    from pipeline.report.live import write_whole  # noqa: PLC0415 - loads Spark
    from pipeline.report.tables import TABLES, write_tables  # noqa: PLC0415 - loads Spark

    samples, is_whole = [], True
    for place, lake in _sides(arguments):
        prepared = ingest.read(spark, [place], lake)
        if prepared is None:
            return 2
        is_whole &= not prepared.quarantined
        with lake.run(spark):  # The next writer would remove what is read here.
            written = write_tables(spark, _silver(spark, lake), Path(lake.root) / TABLES)
        samples.append(sample_of(str(place), written.figures["histogram"]))
    found = compare(*samples)
    write_whole(out / "compare.html", comparison_page(samples[0].name, samples[1].name, found))
    with (out / "compare.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(comparison_rows(found))
    for one in found:
        if one.is_clear:
            say(f"{one.figure}: {one.a:g} and {one.b:g}, {one.low:g} to {one.high:g} {one.unit}")
    say(f"{sum(one.is_clear for one in found)} of {len(found)} differ: {out / 'compare.html'}")
    return 0 if is_whole else 3


def _silver(spark: "SparkSession", lake: "Lake") -> "Silver":
    from pipeline.metrics.compute import Silver  # noqa: PLC0415 - loads Spark

    return Silver(
        event=lake.silver(spark, "event"),
        message=lake.silver(spark, "message"),
        member=lake.silver(spark, "member"),
        log=lake.silver(spark, "log"),
    )
