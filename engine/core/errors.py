"""Every error that the engine raises on purpose; any other one is a bug.

Errors are split by who is to blame, because that decides what happens next.  A peer's fault is
dropped and counted, ours is raised, the environment's is shown with an action.
"""


class ChatError(Exception):
    """Base of all errors that this application raises on purpose."""


class ProtocolError(ChatError):
    """A protocol rule was broken; the subclass says by whom."""


class LocalProtocolError(ProtocolError):
    """Our own caller asked for something that the protocol forbids."""


class RemoteProtocolError(ProtocolError):
    """A peer sent something that the protocol forbids: drop it, count it, continue.

    ``reason`` is a short stable identifier, used as the counter's name: ``"lamport_too_large"``.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class CryptoError(RemoteProtocolError):
    """A seal, signature or key failed its check: a peer's bytes, never trusted."""


class StorageError(ChatError):
    """The local database refused: disk full, locked, corrupt, unwritable."""


class TransportError(ChatError):
    """The network failed for now: no peer reachable, connection lost, port taken."""


class ConfigError(ChatError):
    """The user's settings or arguments; the text names file, key and what is allowed."""


class InviteError(ChatError):
    """An invitation link that cannot be used; the text is for the user."""


class OwnWords(str):
    """Our own text, which may be logged: it contains nothing that a person or peer wrote."""

    __slots__ = ()
