"""The command line: ``causerie`` opens the window; ``demo``, ``doctor`` and ``node`` need none.

Whatever is wrong with arguments, settings, profile or port is one line on stderr that names it and
what is allowed, and exit status 2.  Qt is imported only by those commands that show something.
"""

import argparse
import difflib
import ipaddress
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from chat_app.delivery_options import add_export_commands, add_record_options
from chat_app.node_options import add_node_options
from chat_app.passphrase_options import add_passphrase_options, passphrase_source
from chat_app.version import version
from engine.core.errors import ChatError, ConfigError
from engine.core.faults import FaultSpec, parse_fault_spec
from engine.core.invite import MAX_LINK_CHARACTERS
from engine.core.links import OWN_SCHEME

EXIT_BAD_INPUT = 2
MAX_PORT = 65_535


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        parser = command_line()
        given, link = _without_link(given)
        _refuse_unknown_options(parser, given)
        asked = parser.parse_args(given)
        if link and asked.command is not None:
            raise ConfigError(f"{asked.command}: opens no link; only the window does")
        _refuse_recording(asked)
        return _dispatch(asked, link)
    except ChatError as error:
        print(f"causerie: {error}", file=sys.stderr)  # noqa: T201 - a command line's answer
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return 130


def _without_link(given: Sequence[str]) -> tuple[list[str], str]:
    """What was given but for the link, which a desktop adds.  Raises ConfigError."""
    links = [word for word in given if word.startswith(OWN_SCHEME)]
    if len(links) > 1:
        raise ConfigError("give one link at a time")
    # One character more than is allowed tells the window that it is too long.
    link = links[0][: MAX_LINK_CHARACTERS + 1] if links else ""
    return [word for word in given if not word.startswith(OWN_SCHEME)], link


def _refuse_recording(asked: argparse.Namespace) -> None:
    """Rather than not doing it in silence."""
    is_asked = asked.record_delivery is not None or asked.record_delivery_key is not None
    records = asked.command is None or (asked.command == "demo" and asked.headless)
    if is_asked and not records:
        hint = "; say --headless as well" if asked.command == "demo" else ""
        raise ConfigError(f"--record-delivery: {asked.command} records nothing{hint}")


def _dispatch(  # noqa: C901, PLR0911 - a table of commands
    asked: argparse.Namespace, link: str
) -> int:
    """Import late: a window takes Qt, the headless commands should not wait for it."""
    # ruff: noqa: PLC0415
    from chat_app.paths import profile_paths

    match asked.command:
        case "demo":
            return _demo(asked)
        case "doctor":
            return _doctor(asked)
        case "watch":
            from chat_app.watch import watch

            return watch(profile_paths(asked.profile, asked.profile_dir), as_json=asked.json)
        case "backup":
            from chat_app.backing_up import back_up

            return back_up(asked)
        case "erase":
            from chat_app.erasing import erase_command

            return erase_command(asked)
        case "restore":
            from chat_app.restoring import restore

            return restore(asked)
        case "salvage":
            from chat_app.salvaging import salvage_command

            return salvage_command(asked)
        case "export-log":
            from chat_app.export_log import export_log

            return export_log(asked)
        case "export-store":
            from chat_app.export_store import export_store

            return export_store(asked)
        case "node":
            return _node(asked)
        case "open-history":
            from engine.runtime.history.opening_process import serve as open_pages

            open_pages(sys.stdin.buffer, sys.stdout.buffer)
            return 0
        case _:
            return _window(asked, link)


def _doctor(asked: argparse.Namespace) -> int:
    from chat_app.doctor import examine
    from chat_app.paths import profile_paths

    return examine(
        profile_paths(asked.profile, asked.profile_dir),
        as_json=asked.json,
        passphrase=passphrase_source(asked),
    )


def _node(asked: argparse.Namespace) -> int:
    from chat_app.node import serve
    from chat_app.node_options import node_options
    from chat_app.paths import profile_paths

    profile = asked.profile
    if asked.profile_dir is None:
        profile = profile or "node"
    return serve(
        profile_paths(profile, asked.profile_dir),
        port=asked.port,
        listen=asked.listen,
        options=node_options(asked),
    )


def _window(asked: argparse.Namespace, link: str) -> int:
    from chat_app.unread_sources import leave_sources_unread

    leave_sources_unread()
    from chat_app.autostart import start_command
    from chat_app.delivery_recording import RecordOptions
    from chat_app.paths import profile_paths
    from chat_app.starting import open_window
    from chat_app.window import WindowOptions

    return open_window(
        profile_paths(asked.profile, asked.profile_dir),
        WindowOptions(
            link=link,
            minimised=asked.minimised,
            start_command=start_command(asked.profile, asked.profile_dir),
            port=asked.port,
            faults=asked.faults,
            record=RecordOptions(
                wanted=asked.record_delivery is not None,
                directory=asked.record_delivery or None,
                key=asked.record_delivery_key,
            ),
            measure_start_ns=asked.measure_start_ns,
            passphrase=passphrase_source(asked),
        ),
    )


def _demo(asked: argparse.Namespace) -> int:
    if asked.headless:
        from chat_app.demo_headless import DEFAULT_LOGS, DemoSpec, run_headless
        from engine.delivery.pseudonym import parse_key
        from engine.sim.recording import SIM_KEY

        key_text: str | None = asked.record_delivery_key
        is_recorded = asked.record_delivery is not None or key_text is not None
        spec = DemoSpec(
            participants=asked.participants,
            messages=asked.messages,
            loss=asked.loss,
            seed=asked.seed,
            logs=(asked.record_delivery or DEFAULT_LOGS) if is_recorded else None,
            key=SIM_KEY if key_text is None else parse_key(key_text),
        )
        return run_headless(spec, as_json=asked.json)
    if asked.json:
        raise ConfigError("--json: only together with --headless")
    from chat_app.unread_sources import leave_sources_unread

    leave_sources_unread()
    from chat_app.demo_window import show_demo

    return show_demo(participants=asked.participants, loss=asked.loss, seed=asked.seed)


# --- arguments ----------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Complains like the rest of the program: one line, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message.removeprefix('argument ')} (see {self.prog} --help)")


class _SayVersion(argparse.Action):
    """Not argparse's own, which wants to know it at every start."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        del namespace, values, option_string
        print(f"{parser.prog} {version()}")  # noqa: T201 - what was asked for
        parser.exit()


def _refuse_unknown_options(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """Else argparse would take what follows such an option for a command, and complain of that."""
    options = dict(_options(parser))
    fitting = dict(_options(parser, of=given))
    shown = sorted(name for name, is_shown in fitting.items() if is_shown)
    for word in given:
        if word == "--":
            return
        name = word.partition("=")[0]
        if name.startswith("--") and name not in options:
            near = difflib.get_close_matches(name, shown, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(shown)}"
            raise ConfigError(f"{name[:60]!r}: unknown option; {hint}")


def _options(
    parser: argparse.ArgumentParser, of: Sequence[str] | None = None
) -> Iterator[tuple[str, bool]]:
    """Long names of the parser and its commands, and whether help tells of them.

    ``of``: only of commands that are named among these words.
    """
    for action in parser._actions:  # noqa: SLF001 - argparse lists its options nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            for name, command in action.choices.items():
                if of is None or name in of:
                    yield from _options(command)
        for name in action.option_strings:
            if name.startswith("--"):
                yield name, action.help != argparse.SUPPRESS


def command_line() -> _Parser:
    parser = _Parser(
        prog="causerie",
        allow_abbrev=False,
        usage="causerie [OPTIONS] [LINK | COMMAND ...]",
        description="Group chat in which nothing gets lost and every message shows who holds it."
        " A LINK (causerie:…) of a person or an invitation is shown in the window.",
    )
    _add_window_options(parser)
    _add_commands(parser.add_subparsers(dest="command", metavar="COMMAND"))
    return parser


def _add_window_options(parser: _Parser) -> None:
    parser.add_argument(
        "--version",
        action=_SayVersion,
        nargs=0,
        dest=argparse.SUPPRESS,
        default=argparse.SUPPRESS,
        help="show program's version number and exit",
    )
    _add_profile(parser)
    add_passphrase_options(parser, default=None)
    _add_port(parser)
    parser.add_argument(
        "--minimised",
        action="store_true",
        help="start in the tray, or in the task bar where there is none",
    )
    parser.add_argument(
        "--faults",
        type=_faults,
        metavar="SPEC",
        help="disturb what arrives, e.g. loss=0.3,delay=50..400ms,dup=0.05,reorder=0.1,seed=7",
    )
    add_record_options(parser)
    parser.add_argument("--measure-start-ns", type=int, help=argparse.SUPPRESS)
    parser.set_defaults(profile=None, profile_dir=None, port=None)


def _add_commands(commands: "argparse._SubParsersAction[_Parser]") -> None:
    _add_demo(commands)
    doctor = commands.add_parser("doctor", help="how this profile is, on a page")
    _add_profile(doctor)
    add_passphrase_options(doctor, default=argparse.SUPPRESS)
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    watch = commands.add_parser("watch", help="how delivery goes in a profile that is open")
    _add_profile(watch)
    watch.add_argument("--json", action="store_true", help="print one JSON object per line")
    _add_node(commands)
    add_export_commands(commands, _add_profile)
    commands.add_parser("open-history")  # Without help: the window starts it for itself.
    _add_backup(commands)
    erase = commands.add_parser("erase", help="erase this profile; its name is asked for")
    _add_profile(erase)
    salvage = commands.add_parser("salvage", help="put what can be read of a damaged profile right")
    _add_profile(salvage)
    add_passphrase_options(salvage, default=argparse.SUPPRESS)


def _add_node(commands: "argparse._SubParsersAction[_Parser]") -> None:
    node = commands.add_parser("node", help="run the node alone, until interrupted")
    _add_profile(node)
    _add_port(node)
    node.add_argument(
        "--listen", type=_host, metavar="HOST", help="address to listen on (default: settings)"
    )
    add_node_options(node)


def _add_backup(commands: "argparse._SubParsersAction[_Parser]") -> None:
    for name, does in (
        ("backup", "write this profile into one encrypted file"),
        ("restore", "make a profile of such a file, where there is none"),
    ):
        command = commands.add_parser(name, help=does)
        _add_profile(command)
        if name == "backup":
            add_passphrase_options(command, default=argparse.SUPPRESS)
        command.add_argument("file", type=_path, metavar="FILE")
        command.add_argument(
            "--passphrase-file",
            type=_path,
            metavar="FILE",
            help="its first line is the passphrase (default: asked for, or standard input)",
        )


def _add_profile(parser: argparse.ArgumentParser) -> None:
    """Without defaults of their own: a command's must not undo what was said before it."""
    parser.add_argument(
        "--profile",
        default=argparse.SUPPRESS,
        metavar="NAME",
        help="which profile (default: default)",
    )
    parser.add_argument(
        "--profile-dir",
        type=_path,
        default=argparse.SUPPRESS,
        metavar="DIR",
        help="keep the whole profile in this directory",
    )


def _add_port(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=_port,
        default=argparse.SUPPRESS,
        metavar="N",
        help="TCP port to listen on (default: settings)",
    )


def _add_demo(commands: "argparse._SubParsersAction[_Parser]") -> None:
    demo = commands.add_parser("demo", help="people in one process talk to each other")
    demo.add_argument("--headless", action="store_true", help="no window, virtual time")
    add_record_options(
        demo, default=argparse.SUPPRESS, where="with --headless: in ./causerie-demo-logs"
    )
    demo.add_argument("--json", action="store_true", help="with --headless: one JSON object")
    demo.add_argument("--participants", type=_between(2, 64), metavar="N")
    demo.add_argument("--messages", type=_between(1, 100_000), default=200, metavar="N")
    demo.add_argument("--loss", type=_share, default=0.2, metavar="P", help="0 to 0.9")
    demo.add_argument("--seed", type=_between(0, 2**63 - 1), default=1, metavar="S")


def _faults(text: str) -> FaultSpec:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; say for example loss=0.3,delay=50..400ms")
    try:
        return parse_fault_spec(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("faults: ")) from error


def _path(text: str) -> Path:
    """Empty would be the current directory, and is a variable that was not set."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r}: a directory's or file's path is needed")
    return Path(text)


def _host(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: allowed is an IPv4 or IPv6 address, such as 127.0.0.1"
        ) from None


def _port(text: str) -> int:
    return _between(0, MAX_PORT)(text)


class _between:  # noqa: N801 - reads as the argparse type that it is
    """An argparse type: a whole number from ``lowest`` to ``highest``."""

    def __init__(self, lowest: int, highest: int) -> None:
        self._lowest, self._highest = lowest, highest

    def __call__(self, text: str) -> int:
        allowed = f"allowed is a whole number from {self._lowest} to {self._highest}"
        if not (text.isascii() and text.isdigit()) or len(text) > 20:  # noqa: PLR2004 - longer than any allowed number
            raise argparse.ArgumentTypeError(f"{text!r}: {allowed}")
        number = int(text)
        if not self._lowest <= number <= self._highest:
            raise argparse.ArgumentTypeError(f"{number}: {allowed}")
        return number


def _share(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 0.9:  # noqa: PLR2004 - beyond this nothing converges in sensible time
        raise argparse.ArgumentTypeError(f"{text!r}: allowed is a number from 0 to 0.9")
    return number


if __name__ == "__main__":
    sys.exit(main())
