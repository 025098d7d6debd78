"""The jars that tables behind a URL, or in Delta's format, need beside Spark's own.

``jars.txt`` pins each by version and SHA-256, in this one place.  They are fetched once, by the Ivy
that comes with Spark, from wherever it is told to look (its own default, or the settings file that
``CAUSERIE_IVY_SETTINGS`` names), and are kept in the user's cache under their hash; one whose hash
is another is refused.  A cluster's workers get them from the driver.  Under ``spark-submit`` and
with Spark Connect it is the owner of the cluster who adds them.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

import platformdirs
import pyspark

from pipeline.java import JavaMissing, java_home
from pipeline.tables import LakeError

DELTA: Final = "delta"
S3A: Final = "s3a"
LIST: Final = Path(__file__).with_name("jars.txt")
SETTINGS: Final = "CAUSERIE_IVY_SETTINGS"
TIMEOUT_S: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    what_for: str
    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"


def pinned() -> list[Jar]:
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return [
        Jar(
            what_for=words[0],
            organisation=words[1],
            name=words[2],
            version=words[3],
            sha256=words[4],
        )
        for line in lines
        if (words := line.split()) and not line.startswith("#")
    ]


def cache() -> Path:
    return platformdirs.user_cache_path("causerie") / "jars"


def have(jars: Iterable[Jar]) -> bool:
    return all(path_of(jar).is_file() for jar in jars)


def path_of(jar: Jar) -> Path:
    return cache() / jar.sha256[:16] / jar.file


def ensure(what_for: Sequence[str]) -> list[Path]:
    """Their paths, after fetching those that are not there.  Raises LakeError, JavaMissing."""
    wanted = [jar for jar in pinned() if jar.what_for in what_for]
    lacking = [jar for jar in wanted if not have([jar])]
    if lacking:
        _fetch(lacking)
    return [path_of(jar) for jar in wanted]


def main() -> int:
    """Fetch all of them; with ``--have`` only say whether they are there: 0, else 1."""
    if sys.argv[1:] == ["--have"]:
        return int(not have(pinned()))
    try:
        ensure([DELTA, S3A])
    except (JavaMissing, LakeError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _fetch(jars: Sequence[Jar]) -> None:
    sys.stderr.write(f"fetching {len(jars)} jars for tables (once)\n")
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache()) as made:
        place = Path(made)
        told = _run_ivy(jars, place)
        for jar in jars:
            found = place / jar.file
            if not found.is_file():
                raise LakeError(
                    f"{jar.file} cannot be had: {told or 'there is no network, or no such file'}"
                )
            if hashlib.sha256(found.read_bytes()).hexdigest() != jar.sha256:
                raise LakeError(f"{jar.file}, as it was fetched, is not the one that is pinned")
            path_of(jar).parent.mkdir(exist_ok=True)
            found.replace(path_of(jar))


def _run_ivy(jars: Sequence[Jar], place: Path) -> str:
    """What it says is wrong, in a line."""
    module = place / "ivy.xml"
    module.write_text(_module(jars), encoding="utf-8")
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    java = java_home(os.environ) / "bin" / "java"
    command: list[str | Path] = [
        java,
        "-jar",
        ivy,
        "-ivy",
        module,
        "-cache",
        place / "cache",
        "-types",
        "jar",
    ]
    command += ["-retrieve", f"{place}/[artifact]-[revision].[ext]", "-warn"]
    if settings := os.environ.get(SETTINGS):
        command += ["-settings", settings]
    try:
        done = subprocess.run(  # noqa: S603 -- the Java that runs Spark, and Spark's own Ivy
            command,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = [line.strip() for line in done.stdout.splitlines()]
    return next((line for line in lines if "unresolved" in line or "Exception" in line), "")


def _module(jars: Sequence[Jar]) -> str:
    """Exactly these, without what they name themselves."""
    each = (
        f"<dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.name)}"
        f' rev={quoteattr(jar.version)} transitive="false" conf="*->default"/>'
        for jar in jars
    )
    head = '<ivy-module version="2.0"><info organisation="causerie" module="tables"/>'
    return f"{head}<dependencies>{''.join(each)}</dependencies></ivy-module>"


def session_options(root: str, kind: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """What Spark must be told for such tables; nothing for Parquet in a directory.

    Raises LakeError, JavaMissing.
    """
    from pipeline.tables.delta import OPTIONS  # noqa: PLC0415 - loads Spark

    is_s3 = root.startswith("s3a://")
    is_url = "://" in root and not root.startswith("file://")
    if kind != DELTA and not is_url:
        return {}
    options = dict(OPTIONS)
    if "PYSPARK_GATEWAY_PORT" not in environment:
        paths = ensure([DELTA, *([S3A] if is_s3 else [])])
        options["spark.jars"] = ",".join(path.as_uri() for path in paths)
    if is_s3:
        options |= _of_s3(environment)
    return options


def _of_s3(environment: Mapping[str, str]) -> dict[str, str]:
    """Give up soon; and where S3 is, in the words of AWS's own programs.

    Keys are not among it: Hadoop takes them from the environment, so no list of options has them.
    """
    options = {
        "spark.hadoop.fs.s3a.attempts.maximum": "2",
        "spark.hadoop.fs.s3a.retry.limit": "2",
        "spark.hadoop.fs.s3a.connection.establish.timeout": "5s",
    }
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if endpoint:
        options["spark.hadoop.fs.s3a.endpoint"] = endpoint
        options["spark.hadoop.fs.s3a.path.style.access"] = "true"
        options["spark.hadoop.fs.s3a.connection.ssl.enabled"] = str(
            endpoint.startswith("https:")
        ).lower()
    if region := environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION"):
        options["spark.hadoop.fs.s3a.endpoint.region"] = region
    return options


if __name__ == "__main__":
    sys.exit(main())
