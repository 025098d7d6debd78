"""The chain of our own messages in one group: numbers, previous ids, and what said anew replaced.

A new instance begins when messages dated by our wrong clock used up the numbers of the old one, or
after a removal cut it off.
"""

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from engine.codec.content import encode_content
from engine.codec.tuples import tuple_bytes
from engine.core.content import INSTANCE_ID_BYTES, NONCE_BYTES, Body, Content
from engine.core.entropy import Entropy
from engine.core.ids import AuthorSequence, ConversationId, InstanceId, MessageId, UnixMs
from engine.core.ports import SaveOwnSequence
from engine.core.records import OwnSequence
from engine.session.rows import retargeted

_NEW_INSTANCE_DOMAIN: Final = "causerie/2/instance-after"


class OwnMessages:
    def __init__(
        self,
        conversation_id: ConversationId,
        newest: OwnSequence,
        said_again: Iterable[tuple[MessageId, MessageId]],
        entropy: Entropy,
    ) -> None:
        """``said_again``: messages dated by a wrong clock, and those that replace them."""
        self._conversation_id = conversation_id
        self._newest = newest
        self._said_again = dict(said_again)
        self._entropy = entropy

    def begin_if_cut(self, is_cut: Callable[[InstanceId], bool]) -> None:
        """Begin a new instance if what the present one says would be void."""
        if self._newest.previous_id and is_cut(self._newest.instance_id):
            self.begin_instance(self._newest.previous_id)

    def next_content(
        self, body: Body, sent_ms: UnixMs, replaces: MessageId | None
    ) -> tuple[bytes, AuthorSequence]:
        newest = self._newest
        author = AuthorSequence(instance_id=newest.instance_id, sequence=newest.sequence + 1)
        content = Content(
            author=author,
            previous_id=newest.previous_id or None,
            nonce=self._entropy.random_bytes(NONCE_BYTES),
            sent_ms=sent_ms,
            body=body,
            replaces=replaces,
        )
        return encode_content(content), author

    def said(
        self, message_id: MessageId, author: AuthorSequence, replaces: MessageId | None
    ) -> SaveOwnSequence:
        self._newest = replace(self._newest, sequence=author.sequence, previous_id=message_id)
        if replaces is not None:
            self._said_again[replaces] = message_id
        return SaveOwnSequence(conversation_id=self._conversation_id, own_sequence=self._newest)

    def to_say_again(self, body: Body) -> Body:
        """Speaking of the messages that replaced those of which it spoke."""
        return retargeted(body, self._said_again)

    def begin_instance(self, after: MessageId) -> None:
        old = self._newest
        digest = sha256(tuple_bytes(_NEW_INSTANCE_DOMAIN, old.instance_id, after)).digest()
        instance_id = InstanceId(digest[:INSTANCE_ID_BYTES])
        self._newest = replace(old, instance_id=instance_id, sequence=0, previous_id=MessageId(""))
