"""A member by invitation who means harm: makes every byte by hand, from what the link says.

Uses the codec and the crypto to make bytes, and no session, channel or engine: whatever the
protocol lets somebody sign and seal can be signed and sealed here.
"""

import os
from collections.abc import Sequence

from msgspec.structs import replace

from engine.codec.content import encode_content
from engine.codec.envelope import decode_envelope
from engine.codec.message_id import message_id_in
from engine.codec.padding import pad
from engine.codec.sds import decode_message, encode_message
from engine.core.content import NONCE_BYTES, Body, Content, Leave, Text
from engine.core.ids import (
    AuthorSequence,
    ChannelId,
    InstanceId,
    MessageId,
    ParticipantId,
    UnixMs,
)
from engine.core.sds.vocabulary import Claim, HistoryEntry, Message
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.crypto.join import build_join
from engine.crypto.links import parse_invite
from engine.crypto.sealed import Opened, SealedGroup
from tests.forging import seal_padded, seal_under, signed_message
from tests.security.stage import Relay, Stage

CHANNEL = ChannelId("0")


class Mallory:
    """Has the group's key, an identity that cost nothing, and a node."""

    def __init__(  # noqa: PLR0913, PLR0917 - see ``joined``
        self, stage: Stage, link: str, relay: Relay, name: str, identity: Identity, ahead_ms: int
    ) -> None:
        invite = parse_invite(link)
        self.relay = relay
        self.identity = identity
        self.me = self.identity.participant_id
        self.group_id = invite.group_id
        self.sealed = SealedGroup(group_id=invite.group_id, epoch_keys=(invite.epoch_key,))
        self.instance = InstanceId(os.urandom(16))
        self.sequence = 0
        self.previous: MessageId | None = None
        self._stage, self._ahead_ms = stage, ahead_ms
        self.join = build_join(
            self.identity, group_id=self.group_id, name=name, joined_ms=self.clock_ms()
        )

    @classmethod
    async def joined(
        cls,
        stage: Stage,
        relay: Relay,
        name: str = "Mallory",
        *,
        identity: Identity | None = None,
        ahead_ms: int = 0,
    ) -> "Mallory":
        somebody = identity or Identity.generate(os.urandom)
        made = cls(stage, await stage.link(), relay, name, somebody, ahead_ms)
        await made.say(made.join)
        return made

    def clock_ms(self) -> UnixMs:
        return UnixMs(self._stage.now_ms() + self._ahead_ms)

    # --- making bytes ---------------------------------------------------------------------------

    def message(
        self,
        body: Body | str,
        *,
        history: Sequence[HistoryEntry] = (),
        lamport: int | None = None,
        **changes: object,
    ) -> Message:
        """The next of the chain of our own; ``changes`` are fields of the message."""
        author = AuthorSequence(instance_id=self.instance, sequence=self.sequence + 1)
        content = encode_content(
            Content(
                author=author,
                previous_id=self.previous,
                nonce=os.urandom(NONCE_BYTES),
                sent_ms=self.clock_ms(),
                body=Text(text=body) if isinstance(body, str) else body,
            )
        )
        return self.with_content(content, history=history, lamport=lamport, **changes)

    def with_content(
        self,
        content: bytes,
        *,
        history: Sequence[HistoryEntry] = (),
        lamport: int | None = None,
        **changes: object,
    ) -> Message:
        at = self.clock_ms() if lamport is None else lamport
        ids = [entry.message_id for entry in history]
        message = Message(
            sender_id=self.me,
            message_id=message_id_in(self.group_id)(self.me, CHANNEL, at, ids, content),
            channel_id=CHANNEL,
            lamport_timestamp=at,
            causal_history=tuple(history),
            content=content,
        )
        return replace(message, **changes)

    def replacing(self, old: Message, text: str, *, lamport: int) -> Message:
        """Says again, in another instance, what our clock is said to have dated wrong."""
        content = Content(
            author=AuthorSequence(instance_id=InstanceId(os.urandom(16)), sequence=1),
            previous_id=None,
            nonce=os.urandom(NONCE_BYTES),
            sent_ms=self.clock_ms(),
            body=Text(text=text),
            replaces=old.message_id,
        )
        return self.with_content(encode_content(content), lamport=lamport)

    def with_unreadable_content(self, content: bytes) -> Message:
        """Nobody can name it, so it bears some id."""
        some = self.message("some")
        return replace(some, content=content)

    def sync(self, *, history: Sequence[HistoryEntry] = (), **changes: object) -> Message:
        at = self.clock_ms()
        message = Message(
            sender_id=self.me,
            message_id=MessageId(f"sync-{at}"),
            channel_id=CHANNEL,
            lamport_timestamp=at,
            causal_history=tuple(history),
        )
        return replace(message, **changes)

    def advance(self, message: Message) -> None:
        """The next one follows this."""
        self.sequence += 1
        self.previous = message.message_id

    def sign(self, message: Message | bytes, claim: Claim | None = None) -> bytes:
        sds_bytes = message if isinstance(message, bytes) else encode_message(message)
        return self.sealed.sign(self.identity, sds_bytes, claim, self.clock_ms())

    def seal(self, signed_part: bytes) -> bytes:
        return self.sealed.seal(
            signed_part, random_bytes=os.urandom, statements=(self.join.statement,)
        )

    def payload(self, message: Message, claim: Claim | None = None) -> bytes:
        return self.seal(self.sign(message, claim))

    def seal_plaintext(self, plaintext: bytes) -> bytes:
        """Any bytes, under the seal of the group."""
        return seal_padded(self.sealed, pad(plaintext))

    def seal_padded(self, padded: bytes) -> bytes:
        """Any bytes, with padding of one's own."""
        return seal_padded(self.sealed, padded)

    def seal_under(self, header: bytes, plaintext: bytes) -> bytes:
        """Under a header that somebody else made: its salt gives the key to any member."""
        return seal_under(self.sealed, header, pad(plaintext))

    @staticmethod
    def header_of(payload: bytes) -> bytes:
        return decode_envelope(payload)[0]

    def sign_with_claims(self, message: Message, claims: bytes) -> bytes:
        """Claims that no version of ours makes, under our own signature."""
        return signed_message(
            self.sealed,
            self.identity,
            encode_message(message),
            claim=claims,
            signed_ms=self.clock_ms(),
        )

    # --- saying and hearing ---------------------------------------------------------------------

    async def say(self, body: Body | str, **changes: object) -> Message:
        message = self.message(body, **changes)  # type: ignore[arg-type]
        self.advance(message)
        await self.relay.publish(self.payload(message))
        return message

    async def leave(self) -> None:
        await self.say(Leave())

    def heard_of(self, who: ParticipantId) -> list[tuple[WakuMessage, Opened]]:
        """What they said, as it was heard, and opened."""
        heard = [(message, self.sealed.open(message.payload)) for message in self.relay.heard]
        return [
            (message, opened)
            for message, opened in heard
            if opened.sender_id == who and decode_message(opened.sds_bytes).content
        ]


def naming(*ids: MessageId) -> tuple[HistoryEntry, ...]:
    return tuple(HistoryEntry(message_id=each) for each in ids)
