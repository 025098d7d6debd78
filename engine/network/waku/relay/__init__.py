"""11/WAKU2-RELAY: the gossipsub router on real streams."""
