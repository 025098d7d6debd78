"""Why a dial failed, for a sentence that names the address itself."""

from engine.core.errors import ChatError


def dial_reason(multiaddr: str, error: ChatError) -> str:
    reason = str(error)
    for prefix in (f"cannot connect to {multiaddr}: ", f"{multiaddr}: "):
        reason = reason.removeprefix(prefix)
    return reason
