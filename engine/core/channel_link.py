"""Limits of the invitation to a channel with a shared key: a link with its names and the key.

That is all it takes (``ChannelName``): whoever has the link can read and write there, for ever, and
nobody can be taken out again.  ``engine.codec.channel_link`` defines its form.  Reading one never
touches the network.
"""

from typing import Final

CHANNEL_PREFIX: Final = "causerie:channel/"
SHARED_KEY_BYTES: Final = 32
MAX_CHANNEL_ID_BYTES: Final = 128
MAX_TOPIC_BYTES: Final = 256
MAX_INDEX: Final = 65_535
"""Of clusters and shards."""
