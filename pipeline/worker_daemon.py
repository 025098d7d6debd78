"""Spark's daemon that forks Python workers, but for what these say when nobody listens any more.

When a session ends Java closes its sockets, and a worker that waits for work tries to say that it
heard of none.  Over TCP that goes nowhere; at a socket with a path it is an error, of which Spark's
daemon would print a trace on the user's terminal.  Run by Spark as a module, see
``spark.python.daemon.module``.
"""

import socket

from pyspark import daemon

_GONE = 1
_spoken_to = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """As Spark's own: 0, or not 0 when this worker is done for good."""
    try:
        return _spoken_to(sock, authenticated)
    except BrokenPipeError:
        return _GONE


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
