"""Finding each other on the local network: libp2p's mDNS discovery.

Whoever is on the same network can say anything here.  What is heard is checked, bounded, tried and
forgotten; who a peer really is, Noise proves when it is dialled.
"""
