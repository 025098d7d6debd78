"""Announcements of releases: the key, the signed announcement, and what a build is told of them.

``new-key FILE`` makes a key and prints its public half.  ``announce --key FILE --serial N`` prints
the signed announcement of this version, with the given sentences of news; it goes to the address of
``CAUSERIE_RELEASES_AT``.  A build that has this, ``CAUSERIE_RELEASES_PAGE`` and
``CAUSERIE_RELEASES_KEY`` (the public half, in hex) in its environment knows where to look; another
one never asks.  The private half belongs to no repository and to no build.
"""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from chat_app.update_notice import CHANNEL_FILE, parse_channel
from engine.core.releases import Release, ReleaseError
from engine.crypto.releases import announce
from scripts.release import ROOT, version

NAMES = ("CAUSERIE_RELEASES_AT", "CAUSERIE_RELEASES_PAGE", "CAUSERIE_RELEASES_KEY")


def channel_text(environment: Mapping[str, str]) -> str:
    """What the program will read; "" if nobody told.  Raises SystemExit if it is not right."""
    told = [environment.get(name, "") for name in NAMES]
    if not any(told):
        return ""
    text = "\n".join(told) + "\n"
    try:
        parse_channel(text)
    except ValueError as error:
        raise SystemExit(f"{', '.join(NAMES)}: {error}") from None
    return text


@contextlib.contextmanager
def told(root: Path, environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """The file is there while the program is built, and nowhere else: a clone never asks."""
    file = root / "assets" / CHANNEL_FILE.name
    text = channel_text(environment)
    if not text:
        file.unlink(missing_ok=True)
        yield
        return
    file.write_text(text, encoding="ascii")
    try:
        yield
    finally:
        file.unlink()


def new_key(file: Path) -> str:
    """Never over a key that is there."""
    key = Ed25519PrivateKey.generate()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as out:
        out.write(key.private_bytes_raw().hex() + "\n")
    return key.public_key().public_bytes_raw().hex()


def announcement(file: Path, serial: int, day: str, news: Sequence[str]) -> bytes:
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(file.read_text("ascii").strip()))
    release = Release(serial=serial, version=version(ROOT), day=day, news=tuple(news))
    return announce(release, key.sign)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts.release_channel", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("new-key", help="make a key").add_argument("file", type=Path)
    sign = commands.add_parser("announce", help="print the signed announcement of this version")
    sign.add_argument("--key", type=Path, required=True)
    sign.add_argument("--serial", type=int, required=True, help="one more than the last one's")
    sign.add_argument("--day", default=time.strftime("%Y-%m-%d"))
    sign.add_argument("news", nargs="*", help="what changed, a sentence each")
    asked = parser.parse_args(arguments)
    if asked.command == "new-key":
        print(new_key(asked.file))
        return 0
    try:
        sys.stdout.buffer.write(announcement(asked.key, asked.serial, asked.day, asked.news))
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
