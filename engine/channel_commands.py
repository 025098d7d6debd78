"""What a user interface can ask about open channels: a part of ``engine.api``.

A channel without a key can be read and written by anybody who knows its names; one with a shared
key by anybody who has the key as well.  ``engine.runtime.open_channels`` implements it.
"""

from typing import Protocol

from engine.core.ids import ConversationId
from engine.core.records import ChannelName, OpenFormat, OpenPace


class OpenChannels(Protocol):
    def cluster_id(self) -> int:
        """The cluster of our node, the only one whose channels can be joined."""

    def new_name(self) -> ChannelName:
        """A proposal for a channel with a shared key, whose content topic and key are random."""

    async def join(
        self,
        name: ChannelName,
        *,
        label: str,
        nick: str,
        format_: OpenFormat = OpenFormat.AUTO,
        pace: OpenPace = OpenPace.JS_WAKU,
    ) -> ConversationId:
        """Join a channel, or create it: there is no difference.

        ``label`` is the user's name for it ("" = its channel id), ``nick`` the name that others
        see.  ``pace``: whose length of histories and retries.  Raises InputError.
        """

    async def make_link(self, conversation_id: ConversationId) -> str:
        """A link with which anybody can read and write in a channel with a shared key."""

    def preview_link(self, link: str) -> ChannelName:
        """Parse the link, without network or disk.  Raises InviteError with the reason."""

    async def shared_key(self, conversation_id: ConversationId) -> bytes:
        """The channel's key, for another program; b"" if nothing is sealed there."""

    async def set_label(self, conversation_id: ConversationId, label: str) -> None:
        """Name the channel on this device only.  Raises InputError."""

    async def leave(self, conversation_id: ConversationId) -> None:
        """Forget the channel on this device.  Nobody is notified."""
