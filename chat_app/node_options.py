"""The options of ``causerie node`` besides profile, port and address."""

import argparse
from typing import Final

from msgspec import Struct

from engine.core.errors import ConfigError

SERVICES: Final = ("filter", "lightpush", "store", "blobs")
MAX_PORT: Final = 65_535
_MAX_DAYS: Final = 3_650
_MAX_MIB: Final = 1024 * 1024


class NodeOptions(Struct, frozen=True, kw_only=True):
    """``archive_days`` and ``archive_mib`` 0: without this limit."""

    services: frozenset[str] = frozenset(SERVICES)
    websocket_port: int | None = None
    metrics_port: int | None = None
    archive_days: int = 30
    archive_mib: int = 1024


def add_node_options(parser: argparse.ArgumentParser) -> None:
    defaults = NodeOptions()
    parser.add_argument(
        "--services",
        type=_services,
        default=defaults.services,
        metavar="LIST",
        help=f"what to do for others besides relaying: {','.join(SERVICES)} (default: all), none",
    )
    parser.add_argument(
        "--ws-port", type=_port, metavar="N", help="also listen for WebSocket; 0: any free port"
    )
    parser.add_argument(
        "--metrics-port",
        type=_port,
        metavar="N",
        help="Prometheus metrics on 127.0.0.1; 0: any free port (default: none)",
    )
    parser.add_argument(
        "--archive-days",
        type=_Whole(_MAX_DAYS),
        default=defaults.archive_days,
        metavar="N",
        help=f"keep messages so long; 0: for ever (default: {defaults.archive_days})",
    )
    parser.add_argument(
        "--archive-mib",
        type=_Whole(_MAX_MIB),
        default=defaults.archive_mib,
        metavar="N",
        help=f"keep so much; 0: without limit (default: {defaults.archive_mib})",
    )


def node_options(asked: argparse.Namespace) -> NodeOptions:
    """Raises ConfigError for options that do not go together."""
    options = NodeOptions(
        services=asked.services,
        websocket_port=asked.ws_port,
        metrics_port=asked.metrics_port,
        archive_days=asked.archive_days,
        archive_mib=asked.archive_mib,
    )
    ports = [port for port in (options.websocket_port, options.metrics_port) if port]
    if len(set(ports)) < len(ports):
        raise ConfigError(f"--metrics-port {ports[0]}: --ws-port is the same")
    return options


def _services(text: str) -> frozenset[str]:
    if text == "none":
        return frozenset()
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in SERVICES:
            allowed = f"allowed are {', '.join(SERVICES)}, joined by commas, or none"
            raise argparse.ArgumentTypeError(f"{name[:60]!r}: {allowed}")
    return frozenset(names)


class _Whole:
    """An argparse type: a whole number from 0."""

    def __init__(self, highest: int) -> None:
        self._highest = highest

    def __call__(self, text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) <= len(str(self._highest)):
            number = int(text)
            if number <= self._highest:
                return number
        allowed = f"allowed is a whole number from 0 to {self._highest}"
        raise argparse.ArgumentTypeError(f"{text[:60]!r}: {allowed}")


_port = _Whole(MAX_PORT)
