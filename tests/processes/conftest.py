"""Real application processes for tests: started, commanded, killed, started again."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.network.discovery.multicast import multicast_problem
from tests.patience import PATIENCE_S
from tests.processes.participant import SENT

PROBLEM = "" if os.environ.get("CI") else multicast_problem()
collect_ignore = ["test_two_processes_discover.py"] if PROBLEM else []
ROOT = Path(__file__).resolve().parents[2]
Line = dict[str, Any]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if PROBLEM:
        terminalreporter.write_line(f"not run: two processes that discover each other: {PROBLEM}")


class AppProcess:
    """One ``participant.py`` process of one profile."""

    def __init__(
        self,
        directory: Path,
        name: str,
        faults: str = "",
        discover_on: str = "",
        delivery_key: str = "",
    ) -> None:
        """``delivery_key``: records deliveries under it."""
        self.directory, self.name = directory, name
        self._delivery_key = delivery_key
        self._faults, self._discover_on = faults, discover_on
        self.heard: list[Line] = []
        self.start()

    def start(self) -> Line:
        self._process = subprocess.Popen(
            [
                sys.executable,
                str(Path(__file__).with_name("participant.py")),
                str(self.directory),
                self.name,
                self._faults,
                self._discover_on,
                self._delivery_key,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(self.directory)},
            text=True,
        )
        self._lines: queue.Queue[Line | None] = queue.Queue()
        output = self._process.stdout
        assert output is not None
        threading.Thread(target=self._read, args=(output, self._lines), daemon=True).start()
        return self.wait(lambda line: line.get("answer") == "ready")

    @staticmethod
    def _read(output: IO[str], lines: "queue.Queue[Line | None]") -> None:
        for line in output:
            lines.put(json.loads(line))
        lines.put(None)
        output.close()

    def tell(self, **command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def ask(self, answer: str, **command: str) -> Line:
        self.tell(**command)
        return self.wait(lambda line: line.get("answer") == answer)

    def wait(self, wanted: Callable[[Line], bool]) -> Line:
        """The next line that is wanted; fails after a minute or when the process is gone."""
        while True:
            line = self._lines.get(timeout=PATIENCE_S)
            assert line is not None, f"{self.name} ended while something was awaited"
            self.heard.append(line)
            if wanted(line):
                return line

    def until_killed(self, *, within_s: float) -> list[Line]:
        """What it says until it is killed after so long."""
        killer = threading.Timer(within_s, self._process.kill)
        killer.start()
        self._process.wait()
        killer.join()
        return self.kill()

    def kill(self) -> list[Line]:
        """``kill -9``; returns everything that it had said before it died."""
        self._process.kill()
        self._process.wait()
        said = []
        while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
            said.append(line)
        self._close_input()
        self.heard += said
        return said

    def sent(self) -> list[bytes]:
        """Every payload that it ever handed to the network."""
        notes = (self.directory / SENT).read_bytes()
        return [bytes.fromhex(line.decode()) for line in notes.splitlines()]

    def suspend(self) -> None:
        """It runs no more until ``resume``; its sockets stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """Ask it to end and wait; returns the exit status."""
        self._close_input()
        status = self._process.wait(timeout=PATIENCE_S)
        while self._lines.get(timeout=PATIENCE_S) is not None:
            pass
        return status

    def _close_input(self) -> None:
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None


@pytest.fixture
def start_app(tmp_path: Path) -> Iterator[Callable[..., AppProcess]]:
    """Start an application process for a name; whatever still runs at the end is stopped."""
    started: list[AppProcess] = []

    def start(
        name: str, faults: str = "", discover_on: str = "", delivery_key: str = ""
    ) -> AppProcess:
        app = AppProcess(tmp_path / name, name, faults, discover_on, delivery_key)
        started.append(app)
        return app

    yield start
    for app in started:
        if app.is_running:
            app.kill()
