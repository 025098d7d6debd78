"""What the simulator knows of a bad time, beside which statements about it are held.

Whole sessions with their stores talk, crash, are cut off, and lose half of what they send, until
all is healed.  What is in a message is what its author signed, as the author's own log has it.
"""

from collections.abc import Callable

from msgspec import Struct

from engine.codec.content import decode_content
from engine.codec.envelope import decode_signed_part
from engine.codec.sds import decode_message
from engine.core.faults import SeededRandom
from engine.core.ids import AuthorSequence, MessageId, ParticipantId, UnixMs
from engine.sim.annotated_trial import HEALING_MS, AnnotatedWorld
from engine.sim.network import SimNetwork
from engine.sim.session_participant import SessionParticipant
from engine.sim.world import START_MS


def through_a_bad_time(
    world: AnnotatedWorld, look: Callable[[SimNetwork], None], every_ms: int
) -> None:
    """``look``: called again and again while it lasts."""
    end_ms = world.talk()
    world.befall(end_ms)
    for at_ms in range(START_MS, end_ms + 60_000, every_ms):
        world.network.at(UnixMs(at_ms), look)
    world.network.run_until(UnixMs(end_ms + 60_000))
    world.network.run_until(UnixMs(end_ms + HEALING_MS), stop=world.all_claims_heard)


def somebody(
    world: AnnotatedWorld, network: SimNetwork, random: SeededRandom
) -> SessionParticipant | None:
    """One of those who are up."""
    up = [name for name in world.people if network.is_up(name)]
    return world.people[up[random.between(0, len(up) - 1)]] if up else None


class Signed(Struct, frozen=True):
    """What the author signed, as the author's own log has it."""

    sender_id: ParticipantId
    lamport_timestamp: int | None
    history: tuple[MessageId, ...]
    author: AuthorSequence


class SignedMessages:
    """All messages that anybody has logged."""

    def __init__(self, world: AnnotatedWorld) -> None:
        self._world = world
        self._signed: dict[MessageId, Signed] = {}

    def of(self, message_id: MessageId) -> Signed | None:
        if message_id not in self._signed:
            for person in self._world.people.values():
                (group,) = person.store.groups()
                raw = person.store.raw(group.conversation_id, message_id)
                if raw is not None and person.session.channel.has_logged(message_id):
                    self._signed[message_id] = signed_in(raw)
                    break
        return self._signed.get(message_id)


def signed_in(raw: bytes) -> Signed:
    message = decode_message(decode_signed_part(raw).sds_message)
    return Signed(
        message.sender_id,
        message.lamport_timestamp,
        tuple(entry.message_id for entry in message.causal_history),
        decode_content(message.content or b"").author,
    )


def holds(person: SessionParticipant, message_id: MessageId) -> bool:
    """On its disk, whether it is up or not."""
    (group,) = person.store.groups()
    inspecting = person.store.inspecting
    is_logged = inspecting.log_entry(group.conversation_id, message_id) is not None
    return is_logged or inspecting.incoming(group.conversation_id, message_id) is not None
