"""The libp2p subset that Waku peers need, from sockets to identified peers and their streams.

docs/network.md lists what is implemented.
"""
