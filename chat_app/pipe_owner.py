"""Who answers at a named pipe of Windows: only a process of this user may hear a link.

Names of pipes are shared by everybody on a machine, so another user may have made ours before us.
The owner is found by the process at the pipe's other end and the user of its token.
"""

import sys
from typing import Final, Protocol

_QUERY_LIMITED: Final = 0x1000
_TOKEN_QUERY: Final = 0x0008
_TOKEN_USER: Final = 1
_LARGEST_TOKEN: Final = 4096


class ProcessUsers(Protocol):
    """What Windows says; None where it does not tell."""

    def server_of(self, pipe: int) -> int | None:
        """The process that made the pipe to which ``pipe`` is a handle."""

    def user_of(self, process_id: int) -> bytes | None:
        """Its user's security identifier."""

    def own_user(self) -> bytes | None: ...


def is_own_pipe(pipe: int, users: ProcessUsers) -> bool:
    """Whether this user's process made it; what cannot be told is nobody's."""
    server = users.server_of(pipe)
    user = None if server is None else users.user_of(server)
    return user is not None and user == users.own_user()


if sys.platform == "win32":
    import ctypes
    import os
    from ctypes import wintypes

    class WindowsUsers:
        def __init__(self) -> None:
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            self._security = ctypes.WinDLL("advapi32", use_last_error=True)
            self._kernel.OpenProcess.restype = wintypes.HANDLE
            self._kernel.CloseHandle.argtypes = (wintypes.HANDLE,)

        def server_of(self, pipe: int) -> int | None:
            found = wintypes.ULONG()
            ask = self._kernel.GetNamedPipeServerProcessId
            told = ask(wintypes.HANDLE(pipe), ctypes.byref(found))
            return found.value if told else None

        def own_user(self) -> bytes | None:
            return self.user_of(os.getpid())

        def user_of(self, process_id: int) -> bytes | None:
            process = self._kernel.OpenProcess(_QUERY_LIMITED, False, process_id)
            if not process:
                return None
            token = wintypes.HANDLE()
            try:
                opened = self._security.OpenProcessToken(
                    wintypes.HANDLE(process), _TOKEN_QUERY, ctypes.byref(token)
                )
                return self._sid_of(token) if opened else None
            finally:
                if token:
                    self._kernel.CloseHandle(token)
                self._kernel.CloseHandle(process)

        def _sid_of(self, token: wintypes.HANDLE) -> bytes | None:
            """TOKEN_USER begins with a pointer to the identifier, which lies in the same buffer."""
            buffer, size = ctypes.create_string_buffer(_LARGEST_TOKEN), wintypes.DWORD()
            ask = self._security.GetTokenInformation
            if not ask(token, _TOKEN_USER, buffer, _LARGEST_TOKEN, ctypes.byref(size)):
                return None
            sid = ctypes.c_void_p.from_buffer(buffer).value
            self._security.GetLengthSid.argtypes = (ctypes.c_void_p,)
            return None if sid is None else ctypes.string_at(sid, self._security.GetLengthSid(sid))
