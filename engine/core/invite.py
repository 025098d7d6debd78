"""The two kinds of invitation to a group, both as links.

The simple one holds all that a newcomer needs: anyone who has it can read the group.  The strong
one, to a governed group, holds no key: whoever has it asks the inviter's device to be let in
(docs/invitations.md).  ``engine.codec.invite`` and ``engine.codec.strong_invite`` define the forms
of the links.  Parsing an invitation never touches the network.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field

from engine.core.admin_log.acts import EntryId
from engine.core.errors import LocalProtocolError
from engine.core.ids import ConversationId, UnixMs

GROUP_ID_BYTES = 32
EPOCH_KEY_BYTES = 32
TOKEN_BYTES = 16
INVITE_PREFIX = "causerie:join/"
MAX_LINK_CHARACTERS = 2048
MAX_NODE_ADDRESSES = 16
MAX_NODE_ADDRESS_CHARACTERS = 256
MAX_SERVICE_NODES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Invite:
    """``node_addresses`` are multiaddrs, most useful first; only their characters are checked.

    ``service_nodes`` are the group's, for members who cannot be reached directly; each includes its
    peer id.
    """

    group_id: bytes
    group_name: str
    epoch_key: bytes = field(repr=False)
    admin_public_key: bytes
    inviter_name: str
    node_addresses: tuple[str, ...] = ()
    service_nodes: tuple[str, ...] = ()

    @property
    def conversation_id(self) -> ConversationId:
        return conversation_id_of(self.group_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrongInvite:
    """Addresses and nodes as in ``Invite``; the keys are the inviter's."""

    group_id: bytes
    first_entry: EntryId
    """Of the group's admin log."""
    group_name: str
    """As the inviter knew it."""
    inviter_name: str
    public_key: bytes
    encryption_key: bytes
    invitation_id: EntryId
    """Of the ``Invite`` entry."""
    token: bytes = field(repr=False)
    expires_ms: UnixMs
    node_addresses: tuple[str, ...] = ()
    service_nodes: tuple[str, ...] = ()

    @property
    def conversation_id(self) -> ConversationId:
        return conversation_id_of(self.group_id)


def conversation_id_of(group_id: bytes) -> ConversationId:
    """base64url without padding of the 32-byte group id."""
    return ConversationId(urlsafe_b64encode(group_id).decode().rstrip("="))


def group_id_of(conversation_id: ConversationId) -> bytes:
    """The 32-byte group id.  Raises LocalProtocolError if the conversation id holds none."""
    try:
        group_id = urlsafe_b64decode(conversation_id + "=")
    except ValueError as error:
        raise LocalProtocolError("not a conversation id") from error
    if conversation_id_of(group_id) != conversation_id or len(group_id) != GROUP_ID_BYTES:
        raise LocalProtocolError("not a conversation id")
    return group_id
