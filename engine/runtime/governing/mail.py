"""Sends what is said about joining a group: sealed and signed, to the other's inbox.

Nothing is acknowledged.  A Store that archives what it relays keeps it like any other message of an
inbox; where there is one, the two need not be online at the same time.
"""

from typing import Final

from engine.codec.joining import encode_joining
from engine.core.entropy import RandomBytes
from engine.core.joining import Joining
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.crypto.pair import JoiningPart, PairSeal, inbox_topic_of
from engine.runtime.runner_context import RunnerContext

NS_PER_MS: Final = 1_000_000


class JoiningMail:
    def __init__(
        self, identity: Identity, context: RunnerContext, random_bytes: RandomBytes
    ) -> None:
        self.identity = identity
        self.random_bytes = random_bytes
        self._context = context

    async def send(self, public_key: bytes, encryption_key: bytes, joining: Joining) -> None:
        """``encryption_key``: the other's, checked on import.  Raises ChatError."""
        clock_ms = self._context.clock.clock_ms()
        seal = PairSeal(
            self.identity, peer_public_key=public_key, peer_encryption_key=encryption_key
        )
        payload = seal.seal(JoiningPart(joining=encode_joining(joining)), signed_ms=clock_ms)
        await self._context.transport.publish(
            WakuMessage(
                payload=payload,
                content_topic=inbox_topic_of(public_key),
                timestamp_ns=clock_ms * NS_PER_MS,
            )
        )
