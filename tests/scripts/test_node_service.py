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

from chat_app.node import open_files
from chat_app.node_options import NodeOptions, add_node_options, node_options
from chat_app.settings import DEFAULTS
from chat_app.settings_reading import parse_settings
from engine.network.libp2p.limits import limits_for
from scripts.linux_packages import NODE_SERVICE, ROOT

OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
PROGRAM = "/usr/bin/causerie"
HIGHEST_EXPOSURE = 1.5


class Unit(configparser.RawConfigParser):
    """Good enough while no key but SystemCallFilter comes twice: the last one counts."""

    def __init__(self, text: str) -> None:
        super().__init__(strict=False, comment_prefixes=("#", ";"), interpolation=None)
        self.read_string(text)

    def optionxform(self, optionstr: str) -> str:
        return optionstr


UNIT = Unit(NODE_SERVICE.read_text(encoding="utf-8"))
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


def parsed(words: list[str]) -> tuple[int, NodeOptions]:
    """The port and the other options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile-dir")
    parser.add_argument("--listen")
    parser.add_argument("--port", type=int)
    add_node_options(parser)
    asked = parser.parse_args(words)
    return asked.port, node_options(asked)


def test_no_port_of_the_service_is_there_twice() -> None:
    port, options = parsed(started())
    assert len({port, options.websocket_port, options.metrics_port}) == 3


# --- what the page for operators says to write --------------------------------------------------


def blocks(language: str, heading: str) -> list[str]:
    """The code blocks of a section of the page."""
    _, found, rest = OPERATIONS.partition(f"\n{heading}\n")
    assert found
    section = re.split(r"^#{2,3} ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)


THOUSAND = "### A node for a thousand"


def test_settings_for_a_thousand_and_for_several_nodes_are_allowed() -> None:
    one, several = (
        parse_settings(text, Path("settings.toml")) for text in blocks("toml", THOUSAND)
    )
    assert several.network.peers
    for settings in (one, several):
        assert settings.node.devices >= 1_000
        assert settings.node.subscribers >= 1_000


def test_the_service_for_a_thousand_may_open_enough_files_and_knows_its_options() -> None:
    (text,) = blocks("ini", THOUSAND)
    override = Unit(text)["Service"]
    settings = parse_settings(blocks("toml", THOUSAND)[0], Path("settings.toml"))
    needed = open_files(limits_for(settings.node.devices))
    assert f"needs {needed // 1_000} {needed % 1_000:03}" in OPERATIONS
    assert needed <= int(override["LimitNOFILE"]) <= int(SERVICE["LimitNOFILE"])
    (assignment,) = shlex.split(override["Environment"])
    port, options = parsed(assignment.removeprefix("NODE_OPTIONS=").split())
    assert port == 60_000
    assert options.archive_mib > NodeOptions().archive_mib


def test_the_file_for_nwaku_names_each_option_once_and_each_shard() -> None:
    """No YAML parser is among our packages; its form is plain enough to be held by a pattern."""
    text = blocks("yaml", "## More than one machine: nwaku with PostgreSQL")[0]
    assert "\t" not in text
    command = text.partition("    command:\n")[2].partition("\nvolumes:")[0]
    lines = [line.partition(" #")[0].rstrip() for line in command.splitlines()]
    options = [line for line in lines if line.strip()]
    names: list[str] = []
    for line in options:
        found = re.fullmatch(r" {6}- --([a-z0-9-]+)=\S+", line)
        assert found, line
        names.append(found[1])
    shards = DEFAULTS.network.shards
    assert names.count("shard") == shards
    assert f"--cluster-id={DEFAULTS.network.cluster}" in command
    assert f"--num-shards-in-network={shards}" in command
    others = [name for name in names if name != "shard"]
    assert len(others) == len(set(others))


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
