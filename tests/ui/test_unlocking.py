"""The window before a profile that only its passphrase opens; behind it is the real header."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from chat_app.interrupts import Interrupts
from chat_app.passphrase_options import PassphraseSource
from chat_app.unlocking import ForgottenError, Unlocked, Unlocking, unlocked
from engine.core.errors import StorageError, StorageFault
from engine.persistence.errors import PassphraseNeededError
from engine.persistence.key import KeyPlace
from engine.persistence.key_changes import set_passphrase
from engine.persistence.profile_directory import ProfileDirectory
from tests.persistence.backup_examples import CHEAP, WORDS, key_of, make_profile
from tests.ui.driving import play, until
from ui.settings import UiSettings
from ui.tasks import Tasks
from ui.unlock_form import UnlockForm
from ui.unlocking import UnlockWindow

pytestmark = pytest.mark.usefixtures("qapp")
REPOSITORY = Path(__file__).parents[2]
Key = Qt.Key


@pytest.fixture
def ines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProfileDirectory:
    monkeypatch.setenv("CAUSERIE_KEY_FILE", "1")
    made = make_profile(tmp_path / "ines")
    set_passphrase(made, key_of(made), WORDS, alone=True, cost=CHEAP)
    return made


def wanted(
    directory: ProfileDirectory, *, file: Path | None = None, can_ask: bool = True
) -> Unlocking:
    return Unlocking(
        directory=directory,
        profile="ines",
        force_key_file=True,
        source=PassphraseSource(file=file),
        can_ask=can_ask,
    )


def shown() -> list[UnlockWindow]:
    found = QApplication.topLevelWidgets()
    return [each for each in found if isinstance(each, UnlockWindow) and each.isVisible()]


def opening(
    directory: ProfileDirectory, act: Callable[[UnlockWindow], object]
) -> list[Unlocked | None]:
    """What comes of it; ``act`` is what somebody does who sees the window."""
    got: list[Unlocked | None] = []

    async def scenario() -> None:
        with Interrupts() as interrupts:
            task = asyncio.create_task(unlocked(wanted(directory), UiSettings(), interrupts))
            await until(lambda: bool(shown()))
            done = act(shown()[0])
            if asyncio.iscoroutine(done):
                await done
            got.append(await task)
        assert shown() == []

    play(scenario)
    return got


async def second_start(place: Path, link: str) -> bool:
    """A process of its own: Qt's waiting would keep this one's loop from answering."""
    program = (
        "import sys; from pathlib import Path; from chat_app.one_instance import *;"
        " sys.exit(0 if hand_over(Path(sys.argv[1]), sys.argv[2]) is HandOver.TAKEN else 1)"
    )
    command = [sys.executable, "-c", program, str(place), link]
    done = await asyncio.to_thread(subprocess.run, command, cwd=REPOSITORY, check=False)
    return done.returncode == 0


def type_words(field: QLineEdit, words: str) -> None:
    field.selectAll()
    QTest.keyClicks(field, words)
    QTest.keyClick(field, Key.Key_Return)


def test_the_right_one_opens_and_a_wrong_one_is_said(ines: ProfileDirectory) -> None:
    async def act(window: UnlockWindow) -> None:
        form = window.form
        assert window.focusWidget() is form.passphrase
        assert form.passphrase.echoMode() is QLineEdit.EchoMode.Password
        assert form.passphrase.accessibleName() == "Passphrase"
        assert not form.confirm.isEnabled(), "nothing was written yet"
        type_words(form.passphrase, "not this one")
        assert form.passphrase.isReadOnly(), "it is being tried, and the window goes on"
        await until(form.problem.isVisible)
        assert form.problem.text() == "This is not the passphrase."
        assert form.passphrase.selectionLength() == len("not this one")
        type_words(form.passphrase, WORDS)

    (got,) = opening(ines, act)
    assert got is not None
    assert got.key.place is KeyPlace.PASSPHRASE
    assert not ines.unlock_attempts.exists()


def test_after_three_wrong_ones_it_says_how_long_to_wait(ines: ProfileDirectory) -> None:
    async def act(window: UnlockWindow) -> None:
        form = window.form
        for number in range(3):
            type_words(form.passphrase, f"not this one {number}")
            await until(lambda: form.confirm.text() == "Unlock")
        assert form.problem.text() in {
            "This was not the passphrase. Try again in 2 seconds.",
            "This was not the passphrase. Try again in 1 second.",
        }
        assert form.passphrase.isReadOnly()
        assert not form.confirm.isEnabled()
        await until(lambda: not form.passphrase.isReadOnly())
        assert not form.problem.text()
        type_words(form.passphrase, WORDS)

    (got,) = opening(ines, act)
    assert got is not None


def test_closing_it_opens_nothing(ines: ProfileDirectory) -> None:
    assert opening(ines, lambda window: window.close()) == [None]
    assert opening(ines, lambda window: QTest.keyClick(window, Key.Key_Escape)) == [None]


def test_whoever_forgot_it_is_led_to_a_backup(ines: ProfileDirectory) -> None:
    async def scenario() -> None:
        with Interrupts() as interrupts:
            task = asyncio.create_task(unlocked(wanted(ines), UiSettings(), interrupts))
            await until(lambda: bool(shown()))
            shown()[0].restore.click()
            with pytest.raises(ForgottenError):
                await task

    play(scenario)


def test_a_later_start_brings_it_to_the_front_and_its_link_waits(ines: ProfileDirectory) -> None:
    async def act(window: UnlockWindow) -> None:
        for number in range(5):
            assert await second_start(ines.path, f"causerie:contact/{number}")
        type_words(window.form.passphrase, WORDS)

    (got,) = opening(ines, act)
    assert got is not None
    assert got.links == tuple(f"causerie:contact/{number}" for number in range(4))


def test_a_file_opens_it_without_a_window(ines: ProfileDirectory, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text(f"{WORDS}\n")

    async def scenario() -> None:
        with Interrupts() as interrupts:
            got = await unlocked(wanted(ines, file=words), UiSettings(), interrupts)
            assert got is not None
            with pytest.raises(PassphraseNeededError):
                await unlocked(wanted(ines, can_ask=False), UiSettings(), interrupts)

    play(scenario)


def test_what_else_is_wrong_is_said_and_nothing_is_asked(ines: ProfileDirectory) -> None:
    ines.key_header.write_bytes(b"?")
    ines.key_header_copy.write_bytes(b"?")

    async def scenario() -> None:
        with Interrupts() as interrupts:
            with pytest.raises(StorageError) as refused:
                await unlocked(wanted(ines), UiSettings(), interrupts)
            assert refused.value.fault is StorageFault.KEYS_FOREIGN
            assert shown() == []

    play(scenario)


def test_caps_lock_is_told_by_what_is_typed(ines: ProfileDirectory) -> None:
    del ines

    class NoPort:
        def wait_ms(self) -> int:
            return 0

        async def try_passphrase(self, passphrase: str) -> None:
            raise AssertionError(passphrase)

    form = UnlockForm(NoPort(), Tasks(), title="t", words="w")
    form.show()
    for text, modifiers, is_on in (
        ("A", Qt.KeyboardModifier.NoModifier, True),
        ("1", Qt.KeyboardModifier.NoModifier, True),
        ("a", Qt.KeyboardModifier.NoModifier, False),
        ("É", Qt.KeyboardModifier.NoModifier, True),
        ("b", Qt.KeyboardModifier.ShiftModifier, True),
        ("B", Qt.KeyboardModifier.ShiftModifier, False),
        ("字", Qt.KeyboardModifier.NoModifier, False),
    ):
        QTest.sendKeyEvent(QTest.KeyAction.Press, form.passphrase, Key.Key_A, text, modifiers)
        assert form.caps_lock.isVisible() is is_on, text
    form.deleteLater()
