"""The protocol ids of the supported Waku protocols."""

from typing import Final

from engine.network.libp2p.ports import ProtocolId

FILTER_SUBSCRIBE_PROTOCOL: Final = ProtocolId("/vac/waku/filter-subscribe/2.0.0-beta1")
FILTER_PUSH_PROTOCOL: Final = ProtocolId("/vac/waku/filter-push/2.0.0-beta1")
LIGHTPUSH_PROTOCOL: Final = ProtocolId("/vac/waku/lightpush/3.0.0")
LEGACY_LIGHTPUSH_PROTOCOL: Final = ProtocolId("/vac/waku/lightpush/2.0.0-beta1")
STORE_QUERY_PROTOCOL: Final = ProtocolId("/vac/waku/store-query/3.0.0")
LEGACY_STORE_PROTOCOL: Final = ProtocolId("/vac/waku/store/2.0.0-beta4")
METADATA_PROTOCOL: Final = ProtocolId("/vac/waku/metadata/1.0.0")
RELAY_PROTOCOL: Final = ProtocolId("/vac/waku/relay/2.0.0")
