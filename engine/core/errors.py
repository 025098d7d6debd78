"""Every error that the engine lets out.  Nothing else may escape it but a bug.

Errors are split by who is to blame, because that decides what happens next: a peer's fault is
dropped and counted, ours is raised, the environment's is shown with an action.
"""


class ChatError(Exception):
    """Base of all errors that this application raises on purpose."""


class ProtocolError(ChatError):
    """A rule of a protocol was broken; catch a subclass to learn by whom."""


class LocalProtocolError(ProtocolError):
    """Our own caller asked for something that the protocol forbids: a bug here."""


class RemoteProtocolError(ProtocolError):
    """A peer sent something that the protocol forbids: drop it, count it, go on.

    ``reason`` is a short stable identifier, used as the counter's name: ``"lamport_too_large"``.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class CryptoError(RemoteProtocolError):
    """A seal, signature or key did not check out: somebody else's bytes, never trusted."""


class StorageError(ChatError):
    """The local database refused: disk full, locked, corrupt, unwritable."""


class TransportError(ChatError):
    """The network could not do it now: nobody reachable, connection lost, port taken."""


class ConfigError(ChatError):
    """The user's settings or arguments; the text names file, key and what is allowed."""


class InviteError(ChatError):
    """An invitation link that cannot be used; the text is for the user."""


class OwnWords(str):
    """A sentence of ours that may be logged: never with a word that a person or a peer wrote."""

    __slots__ = ()
