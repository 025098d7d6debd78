"""What only Windows or macOS runs, against fakes of their interfaces: neither system was there.

A fake refuses what the real one refuses, as far as its documentation says; what it does not say is
not tested.  docs/packages.md lists what was never run.
"""

import ctypes
import errno
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Self

import platformdirs
import pytest
from platformdirs.macos import MacOS
from platformdirs.windows import Windows

from chat_app.autostart import RUN_KEY, RunValue
from chat_app.paths import profile_paths
from engine.core.errors import SettingsUnwritableError
from engine.persistence.errors import ProfileInUseError
from engine.persistence.profile_directory import open_profile_directory

Load = Callable[..., ModuleType]
LOCAL, ROAMING = "/place/of/ines/AppData/Local", "/place/of/ines/AppData/Roaming"


@pytest.fixture
def on_windows(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Reads a module of ours as Windows would: with its branch, and fakes for what it imports."""

    def load(name: str, **fakes: ModuleType | SimpleNamespace) -> ModuleType:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        with monkeypatch.context() as then:
            then.setattr(sys, "platform", "win32")
            for fake, content in fakes.items():
                then.setitem(sys.modules, fake, content)
            spec.loader.exec_module(module)
        return module

    return load


# --- the registry -------------------------------------------------------------------------------


class Winreg(SimpleNamespace):
    """As winreg's documentation has it: OSError where something is not there or not allowed."""

    HKEY_CURRENT_USER, REG_SZ, REG_DWORD = object(), 1, 4
    KEY_READ, KEY_SET_VALUE, KEY_WRITE = 0x20019, 0x0002, 0x20006

    def __init__(self, *paths: str, refuses: bool = False) -> None:
        super().__init__()
        self.keys: dict[str, dict[str, tuple[object, int]]] = {path: {} for path in paths}
        self.open_handles = 0
        self.refuses = refuses

    def OpenKey(  # noqa: N802 - winreg's name
        self, root: object, path: str, reserved: int = 0, access: int = KEY_READ
    ) -> "Handle":
        assert (root, reserved) == (self.HKEY_CURRENT_USER, 0)
        if path not in self.keys:
            raise FileNotFoundError(2, "The system cannot find the file specified")
        if self.refuses and access != self.KEY_READ:
            raise PermissionError(13, "Access is denied")
        return Handle(self, path, access)

    def CreateKey(self, root: object, path: str) -> "Handle":  # noqa: N802 - likewise
        self.keys.setdefault(path, {})
        return self.OpenKey(root, path, access=self.KEY_WRITE)

    def QueryValueEx(self, key: "Handle", name: str) -> tuple[object, int]:  # noqa: N802
        return key.values(reading=True)[name]

    def SetValueEx(  # noqa: N802
        self, key: "Handle", name: str, reserved: int, kind: int, value: object
    ) -> None:
        assert reserved == 0
        key.values(reading=False)[name] = (value, kind)

    def DeleteValue(self, key: "Handle", name: str) -> None:  # noqa: N802
        del key.values(reading=False)[name]


class Values(dict[str, tuple[object, int]]):
    def __missing__(self, name: str) -> tuple[object, int]:
        raise FileNotFoundError(2, "The system cannot find the file specified")

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise FileNotFoundError(2, "The system cannot find the file specified")
        super().__delitem__(name)


class Handle:
    def __init__(self, registry: Winreg, path: str, access: int) -> None:
        self._registry, self._path, self._access = registry, path, access

    def __enter__(self) -> Self:
        self._registry.open_handles += 1
        return self

    def __exit__(self, *error: object) -> None:
        self._registry.open_handles -= 1

    def values(self, *, reading: bool) -> dict[str, tuple[object, int]]:
        """The access that was asked for has to allow it."""
        wanted = Winreg.KEY_READ & ~Winreg.KEY_SET_VALUE if reading else Winreg.KEY_SET_VALUE
        if not self._access & wanted:
            raise PermissionError(13, "Access is denied")
        values = Values(self._registry.keys[self._path])
        self._registry.keys[self._path] = values
        return values


def start_value(registry: Winreg, load: Load) -> RunValue:
    module = load("chat_app.windows_registry", winreg=registry)
    return RunValue(module.CurrentUserRun(RUN_KEY), ("C:\\Program Files\\c.exe", "--minimised"))


def test_the_start_with_the_session_is_one_text_in_the_users_registry(on_windows: Load) -> None:
    registry = Winreg(RUN_KEY)
    start = start_value(registry, on_windows)
    assert not start.is_on()
    start.switch(on=True)
    assert start.is_on()
    written = '"C:\\Program Files\\c.exe" --minimised'
    assert registry.keys == {RUN_KEY: {"chat.causerie.Causerie": (written, Winreg.REG_SZ)}}
    start.switch(on=False)
    assert not start.is_on()
    start.switch(on=False)
    assert registry.keys == {RUN_KEY: {}}
    assert registry.open_handles == 0


def test_a_registry_without_the_key_is_off_and_gets_one(on_windows: Load) -> None:
    registry = Winreg()
    start = start_value(registry, on_windows)
    start.switch(on=False)
    assert registry.keys == {}
    start.switch(on=True)
    assert start.is_on()


def test_a_value_that_is_no_text_does_not_count(on_windows: Load) -> None:
    registry = Winreg(RUN_KEY)
    registry.keys[RUN_KEY]["chat.causerie.Causerie"] = (1, Winreg.REG_DWORD)
    assert not start_value(registry, on_windows).is_on()


@pytest.mark.parametrize("on", [True, False])
def test_a_registry_that_refuses_is_told_with_its_reason(on_windows: Load, *, on: bool) -> None:
    start = start_value(Winreg(RUN_KEY, refuses=True), on_windows)
    with pytest.raises(SettingsUnwritableError, match="Access is denied"):
        start.switch(on=on)


# --- locks --------------------------------------------------------------------------------------


class Msvcrt(SimpleNamespace):
    """``locking``: bytes from the place in the file on, mandatory, and gone with the descriptor."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[tuple[int, int], int] = {}

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        assert (mode, count) == (self.LK_NBLCK, 1)
        inode = os.fstat(descriptor).st_ino
        place = (inode, os.lseek(descriptor, 0, os.SEEK_CUR))
        if place in self.held:
            raise PermissionError(errno.EACCES, "Permission denied")
        self.held[place] = descriptor

    def forget(self, descriptor: int) -> None:
        self.held = {place: held for place, held in self.held.items() if held != descriptor}


def test_the_lock_of_windows_leaves_the_process_id_readable(
    on_windows: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks are mandatory there: a locked byte cannot be read by whoever asks who holds it."""
    fake, close = Msvcrt(), os.close

    def closing(descriptor: int) -> None:
        fake.forget(descriptor)
        close(descriptor)

    monkeypatch.setattr(os, "close", closing)
    lock = on_windows("engine.persistence.lock", msvcrt=fake)
    directory = open_profile_directory(tmp_path / "ines")
    held = lock.ProfileLock(directory)
    ((_, place),) = fake.held
    assert place > directory.lock_file.stat().st_size
    assert lock.is_held(directory)
    with pytest.raises(ProfileInUseError, match=str(os.getpid())):
        lock.ProfileLock(directory)
    held.release()
    assert not lock.is_held(directory)
    with lock.ProfileLock(directory):
        assert lock.is_held(directory)


# --- the owner of a pipe ------------------------------------------------------------------------


class Kernel(SimpleNamespace):
    """kernel32 and advapi32 in one; counts what is opened and closed."""

    def __init__(self, users: dict[int, bytes], *, server: int = 0, token: bool = True) -> None:
        super().__init__()
        self._users, self._server, self._token = users, server, token
        self._sids: list[ctypes.Array[ctypes.c_char]] = []
        self.opened: list[int] = []
        self.OpenProcess = self._function(self._open)
        self.CloseHandle = self._function(lambda handle: self.opened.remove(_number(handle)))
        self.GetLengthSid = self._function(lambda _sid: len(self._sids[-1].raw))

    @staticmethod
    def _function(does: Callable[..., object]) -> Callable[..., object]:
        """Which takes ``restype`` and ``argtypes``, as one of ctypes does."""

        def call(*given: object) -> object:
            return does(*given)

        return call

    def _open(self, access: int, inherits: object, process: int) -> int:
        assert (access, inherits) == (0x1000, False)
        if process not in self._users:
            return 0
        self.opened.append(process)
        return process

    def GetNamedPipeServerProcessId(self, pipe: object, found: object) -> int:  # noqa: N802
        assert _number(pipe) == 7
        _write(found, ctypes.c_ulong, self._server)
        return int(bool(self._server))

    def OpenProcessToken(self, process: object, access: int, found: object) -> int:  # noqa: N802
        assert access == 0x0008
        if not self._token:
            return 0
        _write(found, ctypes.c_ulong, 1000 + _number(process))
        self.opened.append(1000 + _number(process))
        return 1

    def GetTokenInformation(  # noqa: N802
        self, token: object, kind: int, buffer: ctypes.Array[ctypes.c_char], size: int, _: object
    ) -> int:
        """TOKEN_USER: a pointer to the identifier."""
        assert (kind, size) == (1, len(buffer))
        sid = ctypes.create_string_buffer(self._users[_number(token) - 1000], 4)
        self._sids.append(sid)
        pointer = ctypes.c_void_p(ctypes.addressof(sid))
        ctypes.memmove(buffer, ctypes.byref(pointer), ctypes.sizeof(pointer))
        return 1


def _number(handle: object) -> int:
    value = getattr(handle, "value", handle)
    return value if isinstance(value, int) else 0


def _write(reference: object, kind: type[ctypes.c_ulong | ctypes.c_int], value: int) -> None:
    """Into what ``byref`` refers to."""
    ctypes.cast(reference, ctypes.POINTER(kind)).contents.value = value  # type: ignore[arg-type]


@pytest.fixture
def pipe(on_windows: Load, monkeypatch: pytest.MonkeyPatch) -> Callable[[Kernel], bool]:
    """Whether the pipe 7 is ours, by what this kernel says."""

    def is_ours(kernel: Kernel) -> bool:
        monkeypatch.setattr(ctypes, "WinDLL", lambda *_a, **_k: kernel, raising=False)
        module = on_windows("chat_app.pipe_owner")
        found: bool = module.is_own_pipe(7, module.WindowsUsers())
        assert kernel.opened == [], "every handle is closed"
        return found

    return is_ours


def test_a_link_is_told_to_a_pipe_of_this_user_only(pipe: Callable[[Kernel], bool]) -> None:
    me = os.getpid()
    assert pipe(Kernel({me: b"INES", 99: b"INES"}, server=99))
    assert not pipe(Kernel({me: b"INES", 99: b"LUC."}, server=99))


def test_what_windows_does_not_tell_is_nobodys_pipe(pipe: Callable[[Kernel], bool]) -> None:
    me = os.getpid()
    assert not pipe(Kernel({me: b"INES"}))
    assert not pipe(Kernel({me: b"INES"}, server=99))
    assert not pipe(Kernel({me: b"INES", 99: b"INES"}, server=99, token=False))


# --- movements ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("says", "answers", "moves"), [(1, 1, True), (0, 1, False), (0, 0, True)])
async def test_windows_is_asked_whether_it_wants_movements(
    on_windows: Load, monkeypatch: pytest.MonkeyPatch, says: int, answers: int, *, moves: bool
) -> None:
    def parameters(action: int, number: int, found: object, flags: int) -> int:
        assert (action, number, flags) == (0x1042, 0, 0)
        if answers:
            _write(found, ctypes.c_int, says)
        return answers

    user32 = SimpleNamespace(SystemParametersInfoW=parameters)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(user32=user32), raising=False)
    module = on_windows("chat_app.motion")
    allowed: list[bool] = []
    monkeypatch.setattr(module, "allow_motion", allowed.append)
    monkeypatch.setattr(sys, "platform", "win32")
    await module.begin_motion("system", "")
    assert allowed == [moves]


# --- places -------------------------------------------------------------------------------------


def places(monkeypatch: pytest.MonkeyPatch, system: type[Windows | MacOS]) -> tuple[str, str]:
    """Of the default profile: its directory, and that of its settings."""
    folders = {"CSIDL_LOCAL_APPDATA": LOCAL, "CSIDL_APPDATA": ROAMING}
    monkeypatch.setattr("platformdirs.windows.get_win_folder", folders.__getitem__)
    monkeypatch.setenv("HOME", "/place/of/ines")
    for name in ("user_data_path", "user_config_path"):
        monkeypatch.setattr(
            platformdirs,
            name,
            lambda app, *, appauthor, name=name: getattr(system(app, appauthor=appauthor), name),
        )
    paths = profile_paths()
    return str(paths.directory), str(paths.settings_directory)


def test_on_windows_a_profile_stays_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never in the part that roams: a key would follow its user to other machines."""
    assert places(monkeypatch, Windows) == (f"{LOCAL}/causerie/profiles/default",) * 2


def test_on_macos_a_profile_is_where_the_readme_says(monkeypatch: pytest.MonkeyPatch) -> None:
    where = "/place/of/ines/Library/Application Support/causerie/profiles/default"
    assert places(monkeypatch, MacOS) == (where, where)
