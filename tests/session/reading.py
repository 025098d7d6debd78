"""What somebody who has some of a group's keys can read of what was sent."""

from collections.abc import Iterable

from engine.codec.sds import decode_message
from engine.core.content import Governing
from engine.core.errors import RemoteProtocolError
from engine.crypto.sealed import SealedGroup
from engine.session.group.opening import checked_content


def say_nothing(
    group_id: bytes, keys: tuple[bytes, ...], payloads: Iterable[bytes], since_ms: int = 0
) -> bool:
    """Whether these keys open only what makes a fresh one known, and what was said before."""
    sealed = SealedGroup(group_id=group_id, epoch_keys=keys)
    for payload in payloads:
        try:
            opened = sealed.open(payload)
        except RemoteProtocolError:
            continue
        content = checked_content(group_id, decode_message(opened.sds_bytes))
        is_governing = content is not None and isinstance(content.body, Governing)
        if not is_governing and opened.signed_ms >= since_ms:
            return False
    return True
