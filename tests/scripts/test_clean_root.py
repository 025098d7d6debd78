"""The .deb on a bare Debian: installed, started, joined by links, upgraded, removed.

The system is made by debootstrap and has nothing but what apt brings for the package.  It shares
the screen and the buses of a test's own desktop (``tests/screen_reader``), over which a screen
reader says what the window shows.  The other person is a second instance, from this source.
"""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest

from scripts.linux_packages import BUILD, DIST
from scripts.release import version
from tests.patience import PATIENCE_S
from tests.processes.conftest import AppProcess
from tests.processes.test_two_processes import held, shown
from tests.processes.test_two_processes_one_to_one import contact_is
from tests.screen_reader.desk import Desk, desk
from tests.screen_reader.person import Person
from tests.screen_reader.reader import ScreenReader, Thing, screen_reader, until

pytestmark = pytest.mark.long
SUITE = "bookworm"
SOURCES = Path("/etc/apt")
INSTALLED = ("env", "HOME=/root", "CAUSERIE_KEY_FILE=1", "QT_ACCESSIBILITY=1", "causerie")
"""As ``causerie`` is started in the bare system, from a terminal."""
PROFILE = ("--profile-dir", "/root/Bob")
BEFORE = "0.1.9"


def mirror() -> str:
    """Where this machine gets Debian from."""
    lists = [SOURCES / "sources.list", *sorted((SOURCES / "sources.list.d").glob("*"))]
    texts = [path.read_text(encoding="utf-8") for path in lists if path.is_file()]
    lines = [line for line in "\n".join(texts).splitlines() if not line.lstrip().startswith("#")]
    words = " ".join(lines).split()
    return next(word for word in words if word.startswith("http") and "security" not in word)


class BareDebian:
    """A system below a directory; ``apt`` there works as it does here."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._mounted: list[Path] = []

    def make(self) -> None:
        must("debootstrap", "--variant=minbase", SUITE, self.root, mirror())
        for place in (SOURCES / "apt.conf.d", SOURCES / "sources.list.d"):
            shutil.copytree(place, self.root / place.relative_to("/"), dirs_exist_ok=True)
        shutil.copy("/etc/resolv.conf", self.root / "etc" / "resolv.conf")

    def show(self, place: Path) -> None:
        """The same directory at the same place in there."""
        target = self.root / place.relative_to("/")
        target.mkdir(parents=True, exist_ok=True)
        must("mount", "--bind", place, target)
        self._mounted.append(target)

    def mount_proc(self) -> None:
        """A new one; debootstrap makes the few devices that are needed."""
        must("mount", "-t", "proc", "proc", self.root / "proc")
        self._mounted.append(self.root / "proc")

    def run(self, *words: str | Path, surroundings: Mapping[str, str] = os.environ) -> str:
        environment = {**surroundings, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            ["chroot", self.root, *words],  # noqa: S607 -- of the system
            env=environment,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def install(self, package: Path) -> None:
        shutil.copy(package, self.root / "root")
        self.run(
            "apt-get", "install", "-q", "-y", "--no-install-recommends", f"/root/{package.name}"
        )

    def clear(self) -> None:
        for target in reversed(self._mounted):
            must("umount", "--lazy", target)


def must(*words: str | Path) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def as_version(package: Path, number: str) -> Path:
    """The same package under an earlier number, with a file that the present one lacks."""
    tree = BUILD / "before"
    shutil.rmtree(tree, ignore_errors=True)
    must("dpkg-deb", "-R", package, tree)
    control = tree / "DEBIAN" / "control"
    text = control.read_text(encoding="utf-8")
    control.write_text(text.replace(f"Version: {version()}", f"Version: {number}"), "utf-8")
    (tree / "usr" / "lib" / "causerie" / "gone-later").write_text("old", encoding="utf-8")
    made = BUILD / f"causerie_{number}.deb"
    must("dpkg-deb", "--root-owner-group", "-Zxz", "-z0", "--build", tree, made)
    shutil.rmtree(tree)
    return made


@pytest.fixture
def system(tmp_path: Path) -> Iterator[BareDebian]:
    """Needs root, and a network as apt does."""
    made = BareDebian(tmp_path / "debian")
    made.make()
    try:
        made.mount_proc()
        made.run("apt-get", "update", "-q")
        made.run("apt-get", "install", "-q", "-y", "--no-install-recommends", "fonts-dejavu-core")
        yield made
    finally:
        made.clear()


@pytest.fixture
async def at(system: BareDebian, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    place = tmp_path_factory.mktemp("d")
    place.chmod(0o700)
    system.show(place)
    async with desk(place) as made:
        yield made


@pytest.fixture
async def reader(at: Desk) -> AsyncIterator[ScreenReader]:
    async with screen_reader(at.bus) as made:
        yield made


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[AppProcess]:
    process = AppProcess(tmp_path / "alice", "Alice")
    yield process
    if process.is_running:
        process.stop()


async def started(at: Desk, reader: ScreenReader, system: BareDebian) -> Person:
    """The installed program's window, once a screen reader sees it, and it has the keys."""
    there = {*await reader.programs()}
    process = await at.start("chroot", str(system.root), *INSTALLED, *PROFILE)

    async def look() -> Thing | None:
        return next(iter({*await reader.programs()} - there), None)

    person = Person(at, reader, process, await until(look))
    await at.give_keys_to(process)
    return person


def hand_over(link: str, bob: Person, system: BareDebian) -> None:
    """From a terminal of that desktop: it hands the link to the window, and ends."""
    system.run(*INSTALLED, *PROFILE, link, surroundings=bob.desk.environment)


async def let_in_by_a_link(alice: AppProcess, bob: Person, system: BareDebian) -> str:
    """A group that Alice governs; both write in it."""
    group = str(alice.ask("governed", do="govern", name="Tide")["group"])
    invited = alice.ask("invited", do="invite", group=group, uses="1")
    hand_over(invited["link"], bob, system)
    await bob.reader.until_shown(bob.program, "Invitation to Tide. From Alice.", "panel")
    await bob.press_until("Tab", "Ask to join Tide", "push button")
    await bob.press("Return")
    await bob.reader.until_focus("Message to Tide", "text")
    await bob.desk.type("hello Alice")
    await bob.press("Return")
    alice.wait(shown("hello Alice"))
    alice.ask("saved", do="say", group=group, text="hello Bob")
    assert alice.wait(held("hello Bob"))["held"] == 1
    return group


async def asked_by_a_link(alice: AppProcess, bob: Person, system: BareDebian) -> str:
    """One to one; what the two write is forward secret."""
    hand_over(alice.ask("link", do="link")["link"], bob, system)
    await bob.reader.until_shown(bob.program, "Add a person", "dialog")
    await bob.desk.give_keys_to(bob.process)
    await bob.press_until("Tab", "Ask Alice", "push button")
    await bob.press("Return")
    pair = str(alice.wait(contact_is("asking"))["group"])
    alice.ask("accepted", do="accept", group=pair)
    await bob.reader.until_shown(bob.program, "Message to Alice", "text")
    alice.ask("saved", do="say", group=pair, text="between the two of us")
    assert alice.wait(held("between the two of us"))["held"] == 1
    await bob.press_until("F6", "Message to Alice", "text")
    await bob.desk.type("and nobody else")
    await bob.press("Return")
    alice.wait(shown("and nobody else"))
    await bob.press("alt+Return")
    await bob.reader.until_shown(bob.program, "Forward secret since .*", "label")
    return pair


async def test_installed_joined_by_a_link_upgraded_and_removed(
    system: BareDebian, at: Desk, reader: ScreenReader, alice: AppProcess
) -> None:
    (package,) = DIST.glob(f"causerie_{version()}_*.deb")
    system.install(as_version(package, BEFORE))
    assert "gone-later" in system.run("ls", "/usr/lib/causerie")

    bob = await started(at, reader, system)
    await reader.until_focus("Name", "text")
    await at.type("Bob")
    await bob.press("Return")
    await reader.until_focus("Next", "push button")
    await bob.press("Return")
    await reader.until_focus("Join with an invitation", "push button")

    group = await let_in_by_a_link(alice, bob, system)
    pair = await asked_by_a_link(alice, bob, system)
    bob.process.terminate()
    bob.process.wait(PATIENCE_S)

    system.install(package)
    assert "gone-later" not in system.run("ls", "/usr/lib/causerie")
    assert system.run(*INSTALLED, "--version").split()[-1] == version()
    await started(at, reader, system)
    for conversation in (group, pair):
        alice.ask("saved", do="say", group=conversation, text=f"after the upgrade, {conversation}")
        assert alice.wait(held(f"after the upgrade, {conversation}"))["held"] == 1

    profile = system.run("ls", "/root/Bob")
    system.run("apt-get", "purge", "-q", "-y", "causerie")
    left = system.run("find", "/usr", "/etc", "/var/lib/systemd", "-iname", "*causerie*")
    assert left.split() == []
    assert set(profile.split()) <= set(system.run("ls", "/root/Bob").split())
