"""Ask the validators of other people about the packages in ``dist``: each that is here.

One that is not here says so in a line, with the package that brings it; with ``CI`` set that is a
failure.  What we answer a validator back, with reasons: packaging/linux/lintian-overrides and
packaging/linux/rpmlint.toml.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scripts.linux_packages import APPLICATION_ID, DIST, LINUX, metainfo
from scripts.sandboxes import APP_RUN, MANIFEST

PICTURES_AT = "https://forge.example/owner/causerie/raw/main/docs/images"
"""So that the part with pictures is looked at, too; nothing is fetched."""


@dataclass(frozen=True, slots=True)
class Validator:
    command: tuple[str | Path, ...]
    looks_at: str
    """A pattern in ``dist``; nothing: the command names its file."""
    package: str
    """Debian's."""

    @property
    def name(self) -> str:
        return str(self.command[0])


def validators(described: Path) -> tuple[Validator, ...]:
    """``described``: the AppStream metadata as a package has them."""
    return (
        Validator(
            ("lintian", "--no-cfg", "--allow-root", "--fail-on", "error,warning"),
            "causerie_*.deb",
            "lintian",
        ),
        Validator(
            ("rpmlint", "--strict", "--config", LINUX / "rpmlint.toml"), "causerie-*.rpm", "rpmlint"
        ),
        Validator(("rpm", "--checksig", "--nosignature"), "causerie-*.rpm", "rpm"),
        # Not strict: Debian 12's does not know the tag that names the developer today, and says so.
        Validator(("appstreamcli", "validate", "--no-net", described), "", "appstream"),
        Validator(
            ("desktop-file-validate", LINUX / f"{APPLICATION_ID}.desktop"), "", "desktop-file-utils"
        ),
        Validator(("man", "--warnings", "-l", LINUX / "causerie.1"), "", "man-db"),
        Validator(("shellcheck", LINUX / "install.sh", APP_RUN), "", "shellcheck"),
        Validator(("flatpak-builder", "--show-manifest", MANIFEST), "", "flatpak-builder"),
    )


def judge(found: Iterable[Validator], dist: Path) -> tuple[list[str], list[str]]:
    """What failed and what did not run, in words."""
    failed, not_run = [], []
    for one in found:
        files = sorted(dist.glob(one.looks_at)) if one.looks_at else []
        if shutil.which(one.name) is None:
            not_run.append(f"not run: {one.name} is not here (Debian: {one.package})")
        elif one.looks_at and not files:
            not_run.append(f"not run: {one.name}: nothing in dist is {one.looks_at}")
        else:
            done = subprocess.run(
                [*one.command, *files],
                check=False,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C.UTF-8", "MANROFFOPT": "-ww", "MANPAGER": "cat"},
            )
            # groff warns on stderr and is content.
            is_well = not done.returncode and not (one.name == "man" and "warning" in done.stdout)
            print(f"{'ok' if is_well else 'FAILED':>6}  {one.name}", flush=True)
            if not is_well:
                print(done.stdout)
                failed.append(one.name)
    return failed, not_run


def main() -> int:
    described = DIST.parent / "build" / f"{APPLICATION_ID}.metainfo.xml"
    described.parent.mkdir(exist_ok=True)
    described.write_text(metainfo(PICTURES_AT), encoding="utf-8")
    failed, not_run = judge(validators(described), DIST)
    for line in not_run:
        print(line)
    print(f"validators: {len(failed)} failed, {len(not_run)} did not run")
    return 1 if failed or (not_run and os.environ.get("CI")) else 0


if __name__ == "__main__":
    sys.exit(main())
