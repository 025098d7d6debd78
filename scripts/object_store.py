"""An S3 on this machine, for tests of tables behind a URL, in ``build/object-store``.

It is moto's server, in an environment of its own: its clients take an older package than the
application's lock has.  ``tests/pipeline/s3/requirements.txt`` pins all of it with hashes (`make
lock` makes it of ``requirements.in``).

``jars`` fetches what Spark needs for such tables, which are pinned in ``pipeline/tables/jars.txt``.
"""

import subprocess
import sys

from scripts.python_environment import ROOT, PythonEnvironment, must_run

LOCK = ROOT / "tests" / "pipeline" / "s3" / "requirements.txt"
ENVIRONMENT = PythonEnvironment(place=ROOT / "build" / "object-store", locks=(LOCK,))
JARS = ("-m", "pipeline.tables.jars")


def have_jars() -> bool:
    return subprocess.run([sys.executable, *JARS, "--have"], cwd=ROOT, check=False).returncode == 0


def ensure_jars() -> None:
    """Fetch them unless they are there: InteropUnavailable."""
    must_run(sys.executable, *JARS)
