"""The systemd service of the node: a hardened unit that starts what the program really has."""

import argparse
import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chat_app.node_options import add_node_options, node_options
from scripts.package import NODE_SERVICE, ROOT

OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
PROGRAM = "/usr/bin/causerie"
HIGHEST_EXPOSURE = 1.5


class Unit(configparser.RawConfigParser):
    """Good enough while no key but SystemCallFilter comes twice: the last one counts."""

    def __init__(self) -> None:
        super().__init__(strict=False, comment_prefixes=("#", ";"), interpolation=None)
        self.read_string(NODE_SERVICE.read_text(encoding="utf-8"))

    def optionxform(self, optionstr: str) -> str:
        return optionstr


UNIT = Unit()
SERVICE = UNIT["Service"]


def started() -> list[str]:
    """The command line after ``causerie node``, with its variables put in."""
    (assignment,) = shlex.split(SERVICE["Environment"])
    name, _, options = assignment.partition("=")
    assert name == "NODE_OPTIONS"
    program, *words = SERVICE["ExecStart"].split()
    assert (program, words[0]) == (PROGRAM, "node")
    line = (
        " ".join(words[1:])
        .replace("${STATE_DIRECTORY}", "/state")
        .replace("$NODE_OPTIONS", options)
    )
    assert "$" not in line
    return line.split()


def test_what_the_service_starts_is_what_the_program_has() -> None:
    help_text = subprocess.run(
        [sys.executable, "-m", "chat_app", "node", "--help"],
        cwd=ROOT,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    ).stdout
    words = started()
    for option in (word for word in words if word.startswith("--")):
        assert re.search(rf"{option}\b", help_text), option
    assert words[words.index("--profile-dir") + 1] == "/state"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("DynamicUser", "yes"),
        ("StateDirectory", "causerie-node"),
        ("StateDirectoryMode", "0700"),
        ("Restart", "on-failure"),
        ("KillSignal", "SIGTERM"),
        ("NoNewPrivileges", "yes"),
        ("CapabilityBoundingSet", ""),
        ("ProtectSystem", "strict"),
        ("ProtectHome", "yes"),
        ("PrivateDevices", "yes"),
        ("PrivateTmp", "yes"),
        ("MemoryDenyWriteExecute", "yes"),
        ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX AF_NETLINK"),
        ("SystemCallArchitectures", "native"),
    ],
)
def test_the_service_may_do_little(key: str, value: str) -> None:
    assert SERVICE[key] == value


def test_system_calls_are_a_list_of_what_is_allowed_less_what_is_not() -> None:
    filters = re.findall(
        r"^SystemCallFilter=(.*)$", NODE_SERVICE.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert filters == ["@system-service", "~@privileged @resources"]


def test_the_page_for_operators_names_the_ports_and_options_of_the_service() -> None:
    words = started()
    for option in ("--port", "--ws-port", "--metrics-port"):
        port = words[words.index(option) + 1]
        assert re.search(rf"^\| {port}/tcp \|.*`{option}` \|$", OPERATIONS, flags=re.MULTILINE)


def test_no_port_of_the_service_is_there_twice() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile-dir")
    parser.add_argument("--listen")
    parser.add_argument("--port", type=int)
    add_node_options(parser)
    asked = parser.parse_args(started())
    options = node_options(asked)
    assert len({asked.port, options.websocket_port, options.metrics_port}) == 3


@pytest.mark.long
def test_systemd_finds_nothing_wrong_with_it(tmp_path: Path) -> None:
    """Needs ``systemd-analyze``; the program need not be installed."""
    analyze = shutil.which("systemd-analyze")
    assert analyze is not None, "systemd-analyze is not here"
    unit = tmp_path / NODE_SERVICE.name
    text = NODE_SERVICE.read_text(encoding="utf-8")
    unit.write_text(text.replace(PROGRAM, sys.executable), encoding="utf-8")

    def analysed(*words: str) -> str:
        done = subprocess.run(
            [analyze, "--no-pager", *words, str(unit)],
            check=False,
            text=True,
            capture_output=True,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    analysed("verify")
    exposure = re.search(r"exposure level.*: ([\d.]+)", analysed("security", "--offline=true"))
    assert exposure is not None
    assert float(exposure[1]) <= HIGHEST_EXPOSURE
