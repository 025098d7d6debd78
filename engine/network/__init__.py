"""How Waku messages travel: the transport port and its adapters."""
