"""A key of the current user's registry, for what starts with the session.  Windows only."""

import sys

if sys.platform == "win32":
    import winreg

    class CurrentUserRun:
        """``RunKey`` of ``chat_app/autostart.py``."""

        def __init__(self, path: str) -> None:
            self._path = path

        def read(self, name: str, /) -> str | None:
            try:
                with winreg.OpenKey(winreg.HKEY_CURRENT_USER, self._path) as key:
                    value, kind = winreg.QueryValueEx(key, name)
            except OSError:
                return None
            return value if kind == winreg.REG_SZ and isinstance(value, str) else None

        def write(self, name: str, value: str, /) -> None:
            with winreg.CreateKey(winreg.HKEY_CURRENT_USER, self._path) as key:
                winreg.SetValueEx(key, name, 0, winreg.REG_SZ, value)

        def remove(self, name: str, /) -> None:
            access = winreg.KEY_SET_VALUE
            try:
                with winreg.OpenKey(winreg.HKEY_CURRENT_USER, self._path, access=access) as key:
                    winreg.DeleteValue(key, name)
            except FileNotFoundError:
                pass
