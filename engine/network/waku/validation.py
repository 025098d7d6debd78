"""What a relay forwards: decodable Waku messages within the limits, with a well-formed topic.

The peer that forwarded undecodable or oversized data is penalised.  A malformed content topic is
only ignored: other implementations relay it, so their nodes are not to blame.
"""

from engine.codec.waku import decode_waku_message
from engine.core.errors import RemoteProtocolError
from engine.core.ids import PubsubTopic
from engine.core.waku import WakuMessage
from engine.network.waku.gossip.vocabulary import Refused
from engine.network.waku.topics import parse_content_topic

_BLAMELESS = frozenset(
    {
        "content_topic_malformed",
        "content_topic_missing",
        "content_topic_oversized",
        "meta_oversized",
    }
)


def validate_relayed(_topic: PubsubTopic, data: bytes) -> WakuMessage | Refused:
    """The validator of the relay; never raises."""
    try:
        message = decode_waku_message(data)
        parse_content_topic(message.content_topic)
    except RemoteProtocolError as error:
        return Refused(reason=error.reason, penalize=error.reason not in _BLAMELESS)
    return message
