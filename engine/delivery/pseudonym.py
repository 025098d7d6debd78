"""Pseudonyms of participants and channels, stable within a test group and only there.

HMAC-SHA256 under a key that the members of a test group share.  Anyone who has logs of one group
can combine them.  Without the key, no one can identify anyone in them or compare them with another
group's logs.  Message ids are public on the wire and stay as they are; ``mid`` is a number for one
that is quick to compare and add up.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from hashlib import sha256
from typing import Final

from engine.core.errors import ConfigError
from engine.core.ids import ConversationId, MessageId, ParticipantId

KEY_BYTES: Final = 32
_DOMAIN: Final = b"causerie delivery log 1"
_PSEUDONYM_BYTES: Final = 8
_MID_BYTES: Final = 8
_REMEMBERED: Final = 65_536


class Pseudonyms:
    """Pseudonyms under one key, with a bounded cache."""

    def __init__(self, key: bytes) -> None:
        """Raises ConfigError unless ``key`` has 32 bytes."""
        if len(key) != KEY_BYTES:
            raise ConfigError(f"a key for delivery logs has {KEY_BYTES} bytes")
        self._key = key
        self.key_id = self._of(b"key", "")
        self._known = lru_cache(maxsize=_REMEMBERED)(self._of)

    def participant(self, participant_id: ParticipantId) -> str:
        return self._known(b"participant", participant_id)

    def channel(self, conversation_id: ConversationId) -> str:
        return self._known(b"channel", conversation_id)

    def content(
        self, conversation_id: ConversationId, message_id: MessageId, content: bytes
    ) -> str:
        """Digest of what a message says, to be compared and never to be guessed from.

        Who has no key learns nothing.  The key is the test group's, though, and a log is about all
        conversations of a profile, so the key alone must not do either: a sealed message's content
        holds a random nonce, without which no text can be tried.  Conversation and id are hashed
        too, so that the same words twice have two digests.
        """
        names = [each.encode("utf-8", "surrogatepass") for each in (conversation_id, message_id)]
        return self._digest(b"content", *names, content)

    def _of(self, what: bytes, name: str) -> str:
        return self._digest(what, name.encode("utf-8", "surrogatepass"))

    def _digest(self, *parts: bytes) -> str:
        tag = hmac.new(self._key, digestmod=sha256)
        for part in (_DOMAIN, *parts):
            tag.update(len(part).to_bytes(4, "big") + part)
        return tag.digest()[:_PSEUDONYM_BYTES].hex()


def mid_of(message_id: MessageId) -> int:
    """The first 8 bytes of sha256 of the id, big-endian, signed."""
    digest = sha256(message_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:_MID_BYTES], "big", signed=True)


def key_text(key: bytes) -> str:
    """The key as people pass it on: 43 characters of base64url."""
    return urlsafe_b64encode(key).decode("ascii").rstrip("=")


def parse_key(text: str) -> bytes:
    """Parse a key.  Raises ConfigError for text that ``key_text`` did not make."""
    try:
        key = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES or key_text(key) != text:
        raise ConfigError(
            "a key for delivery logs is 43 characters of A-Z a-z 0-9 - _, as another member of the"
            " test group was shown it"
        )
    return key
