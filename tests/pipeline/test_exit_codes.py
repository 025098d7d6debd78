"""The exit code of an audit of each case of ``trust_cases`` alone, as CI would see it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline import cli
from tests.pipeline.test_trust import write
from tests.pipeline.trust_cases import OF_THE_AUDIT, OTHER_KEYS, TOGETHER, Case


@pytest.mark.long
@pytest.mark.parametrize(
    "case", [*TOGETHER, *OF_THE_AUDIT, *OTHER_KEYS], ids=lambda case: case.name
)
def test_an_audit_ends_with_the_code_of_its_case(
    case: Case, spark: SparkSession, tmp_path: Path
) -> None:
    write(case, tmp_path / "logs")
    words = ["audit", str(tmp_path / "logs"), "--out", str(tmp_path / "out")]
    arguments = cli.parser().parse_args(words)
    assert arguments.command.run(arguments, spark) == case.code
