"""The other programs that tests talk to: set each up, and say which cannot be had, and why.

Each is fetched or built by a module of its own, into a folder of its own below ``build``.  Other
implementations are needed by the tests that bear their names in ``tests/interop``.  Where one
cannot be had (without a network none can, unless it is there already) those tests do not run:
``make test`` says so in one line for each, and with ``CI`` set it fails.  Tests of tables, for
which there are jars and an object store, run anyhow, and fail where these are not there; they are
long, so only ``make test-long``, and ``--long`` here, set these up.
"""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from scripts import interop, interop_go, interop_python, object_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    name: str
    tests: tuple[str, ...] = ()
    """Files of its folder that are left out without it."""
    ensure: Callable[[], None]
    """Raises InteropUnavailable, OSError."""
    is_ready: Callable[[], bool]
    folder: str = "tests/interop"
    is_long: bool = False
    """Only long tests talk to it."""


PEERS = (
    Peer(
        name="js",
        tests=("test_js_*.py", "test_sds_js.py"),
        ensure=interop.ensure,
        is_ready=interop.is_ready,
    ),
    Peer(
        name="py-libp2p",
        tests=("test_py_libp2p.py",),
        ensure=interop_python.ENVIRONMENT.ensure,
        is_ready=interop_python.ENVIRONMENT.is_ready,
    ),
    Peer(
        name="go-waku",
        tests=("test_go_waku*.py",),
        ensure=interop_go.ensure,
        is_ready=interop_go.is_ready,
    ),
    Peer(
        name="jars of tables",
        ensure=object_store.ensure_jars,
        is_ready=object_store.have_jars,
        folder="tests/pipeline",
        is_long=True,
    ),
    Peer(
        name="object store",
        ensure=object_store.ENVIRONMENT.ensure,
        is_ready=object_store.ENVIRONMENT.is_ready,
        folder="tests/pipeline",
        is_long=True,
    ),
)


def wanted(*, is_long: bool) -> list[Peer]:
    """Those that the long tests, or all others, talk to."""
    return [peer for peer in PEERS if is_long or not peer.is_long]


def missing(peers: Sequence[Peer]) -> list[str]:
    """Set all up beside each other; a line for each that cannot be: what does not run, and why."""
    with ThreadPoolExecutor(max_workers=max(1, len(peers))) as pool:
        return [line for line in pool.map(_problem, peers) if line]


def _problem(peer: Peer) -> str:
    """Set it up; "" if that went well."""
    try:
        peer.ensure()
    except (interop.InteropUnavailable, OSError) as reason:
        return f"not run: {peer.folder}, {peer.name}: {reason}"
    return ""


def main() -> int:
    asked = wanted(is_long=sys.argv[1:] == ["--long"])
    lines = missing(asked)
    for line in lines:
        print(line, file=sys.stderr)
    if not lines:
        print(f"interop: ready: {', '.join(peer.name for peer in asked)}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
