"""Discovery on the local network: libp2p's mDNS discovery.

Anyone on the same network can announce anything.  Announcements are checked, bounded, tried and
forgotten; Noise proves a peer's identity when it is dialled.
"""
