"""Which messages of the removed count for nothing: those beyond the cut that a removal makes.

A removal names the last message of each instance that still counts, by number *and* id.  The number
alone would not do: whoever is removed could write other messages under the numbers before it, and
send those afterwards.  An id commits to the previous message, so one id names a whole chain, and
what is on no such chain is void.  A message whose place is not known yet, because something between
it and the cut is missing, counts until it is.
"""

from collections.abc import Container, Iterable, Iterator, Mapping

from msgspec import Struct

from engine.core.admin_log.acts import LastMessage
from engine.core.ids import InstanceId, MessageId, ParticipantId


class Written(Struct, frozen=True, kw_only=True):
    """What a message says of its place among those of its author."""

    message_id: MessageId
    author: ParticipantId
    instance_id: InstanceId
    sequence: int
    previous_id: MessageId | None
    is_said: bool = True
    """A text or a file."""


def void_messages(
    last_messages: Mapping[ParticipantId, Mapping[InstanceId, LastMessage]],
    members: Container[ParticipantId],
    messages: Iterable[Written],
) -> frozenset[MessageId]:
    """``last_messages`` as in ``AdminState``; a function of the set of ``messages``."""
    cut = [message for message in messages if message.author in last_messages]
    by_id = {message.message_id: message for message in cut}
    chains: dict[tuple[ParticipantId, InstanceId], dict[int, MessageId]] = {}
    for author, named in last_messages.items():
        for instance_id, last in named.items():
            chains[author, instance_id] = dict(_chain(last, author, by_id))
    return frozenset(
        message.message_id
        for message in cut
        if _is_void(message, last_messages[message.author], members, chains)
    )


def _is_void(
    message: Written,
    named: Mapping[InstanceId, LastMessage],
    members: Container[ParticipantId],
    chains: Mapping[tuple[ParticipantId, InstanceId], Mapping[int, MessageId]],
) -> bool:
    last = named.get(message.instance_id)
    if last is None:
        return message.author not in members
    if message.sequence > last.sequence:
        return True
    chain = chains[message.author, message.instance_id]
    return chain.get(message.sequence, message.message_id) != message.message_id


def _chain(
    last: LastMessage, author: ParticipantId, by_id: Mapping[MessageId, Written]
) -> Iterator[tuple[int, MessageId]]:
    """The ids from the last one down, as far as the messages are here, and one more."""
    sequence, wanted = last.sequence, last.message_id
    while True:
        yield sequence, wanted
        message = by_id.get(wanted)
        if message is None or message.previous_id is None:
            return
        place = message.author, message.instance_id, message.sequence
        if place != (author, last.instance_id, sequence):
            return
        sequence, wanted = sequence - 1, message.previous_id
