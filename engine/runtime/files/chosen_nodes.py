"""Which peers may keep the files of a conversation: the service nodes that somebody chose for it.

The user chose those of the settings, and a group's creator named those of the group.  People of a
pair chose none together, so for them any node of the user's groups will do, too.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from engine.core.errors import CommandError, ConfigError
from engine.core.ids import ConversationId
from engine.core.records import GroupRecord
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import PeerId
from engine.runtime.conversations import Conversations


class ChosenNodes:
    """``own``: the addresses of the settings, as they are at the moment."""

    def __init__(self, own: Callable[[], Sequence[str]], conversations: Conversations) -> None:
        self._own = own
        self._conversations = conversations

    def of(self, conversation_id: ConversationId) -> frozenset[PeerId]:
        """Those whose addresses name them; none of a conversation that is not there any more."""
        peers: set[PeerId] = set()
        for text in self._addresses(conversation_id):
            with suppress(ConfigError):
                peer_id = parse_multiaddr(text).peer_id
                if peer_id is not None:
                    peers.add(peer_id)
        return frozenset(peers)

    def _addresses(self, conversation_id: ConversationId) -> Sequence[str]:
        try:
            record = self._conversations.runner(conversation_id).record
        except CommandError:
            return ()
        if isinstance(record, GroupRecord):
            return (*self._own(), *record.service_nodes)
        records = [runner.record for runner in self._conversations.groups()]
        of_groups = (
            node for each in records if isinstance(each, GroupRecord) for node in each.service_nodes
        )
        return (*self._own(), *of_groups)
