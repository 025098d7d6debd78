"""The other implementations that tests talk to: set each up, and say which cannot be had, and why.

Each is fetched or built by a module of its own, into a folder of its own below ``build``, and is
needed by the tests that bear its name in ``tests/interop``.  Where one cannot be had (without a
network none can, unless it is there already) those tests do not run: ``make test`` says so in one
line for each, and with ``CI`` set it fails.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scripts import interop, interop_go, interop_python


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    name: str
    tests: tuple[str, ...]
    """Files of tests/interop that cannot run without it."""
    ensure: Callable[[], None]
    """Raises InteropUnavailable, OSError."""
    is_ready: Callable[[], bool]


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
        ensure=interop_python.ensure,
        is_ready=interop_python.is_ready,
    ),
    Peer(
        name="go-waku",
        tests=("test_go_waku*.py",),
        ensure=interop_go.ensure,
        is_ready=interop_go.is_ready,
    ),
)


def missing(peers: Sequence[Peer] = PEERS) -> list[str]:
    """Set all up; a line for each that cannot be: what does not run, and why."""
    lines: list[str] = []
    for peer in peers:
        try:
            peer.ensure()
        except (interop.InteropUnavailable, OSError) as reason:
            lines.append(f"not run: tests/interop, {peer.name}: {reason}")
    return lines


def main() -> int:
    lines = missing()
    for line in lines:
        print(line, file=sys.stderr)
    if not lines:
        print(f"interop: ready: {', '.join(peer.name for peer in PEERS)}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
