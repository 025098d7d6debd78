"""Write packaging/linux/causerie.1 from the program's own command line (``make docs``).

Options and commands come from argparse, so the page cannot say anything that the program does not
know.  What argparse has no words for, files and exit statuses, stands here.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from chat_app.__main__ import EXIT_BAD_INPUT, command_line

PAGE = Path(__file__).resolve().parent.parent / "packaging" / "linux" / "causerie.1"

DESCRIPTION = """\
Causerie is a group chat without accounts and without a server to trust. Everyone ends up with the
same conversation in the same order, and every message shows who holds it.

Without a command it opens the window. If the window of that profile is open already, it comes to
the front, and a LINK (an invitation or a person's, beginning with causerie:) is shown there.
"""

FILES = {
    "~/.local/share/causerie/profiles/NAME": "messages, keys and logs of a profile",
    "~/.config/causerie/profiles/NAME/settings.toml": "its settings, each with an explanation",
    "/usr/lib/systemd/system/causerie-node.service": "the node as a service; not enabled",
}

EXIT_STATUSES = {
    "0": "It did what was asked.",
    "1": "It ran, and what it found or tried is not well; the output says what.",
    str(EXIT_BAD_INPUT): "Arguments, settings, profile or port are wrong; one line says which.",
    "130": "It was interrupted.",
}


def escaped(text: str) -> str:
    r"""As roff reads it: ``\`` and ``-`` have a meaning there, and so has a dot in front."""
    plain = (
        text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("~", "\\(ti")
    )
    return "\n".join("\\&" + line if line.startswith(".") else line for line in plain.split("\n"))


def _value_of(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return f"[{name}]" if action.nargs == "?" else name


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:  # noqa: SLF001 -- argparse lists its options nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 -- as above
            continue
        if action.help == argparse.SUPPRESS:
            continue
        value = _value_of(action)
        names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in action.option_strings)
        shown = f"{names} \\fI{escaped(value)}\\fR" if names else f"\\fI{escaped(value)}\\fR"
        yield f".TP\n{shown if value else names}"
        if action.help:
            yield escaped(action.help)


def _commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:  # noqa: SLF001 -- as above
        if not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 -- as above
            continue
        for choice in action._choices_actions:  # noqa: SLF001 -- only those that help tells of
            yield f".SS causerie {escaped(choice.dest)}"
            yield escaped((choice.help or "").capitalize() + ".")
            yield from _options(action.choices[choice.dest])


def page() -> str:
    parser = command_line()
    lines = [
        '.TH CAUSERIE 1 "" "Causerie" "User Commands"',
        ".SH NAME",
        "causerie \\- group chat in which nothing gets lost",
        ".SH SYNOPSIS",
        ".B causerie",
        "[\\fIOPTIONS\\fR] [\\fILINK\\fR | \\fICOMMAND\\fR ...]",
        ".SH DESCRIPTION",
        escaped(DESCRIPTION.strip()).replace("\n\n", "\n.PP\n"),
        ".SH OPTIONS",
        *_options(parser),
        ".SH COMMANDS",
        *_commands(parser),
        ".SH FILES",
        *(f".TP\n.I {escaped(name)}\n{escaped(text)}" for name, text in FILES.items()),
        ".SH EXIT STATUS",
        *(f".TP\n.B {code}\n{escaped(text)}" for code, text in EXIT_STATUSES.items()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
