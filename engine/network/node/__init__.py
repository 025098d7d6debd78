"""The embedded node: the transport port on a libp2p host of our own.

Puts together a host with connections (``engine.network.libp2p``) and Waku's protocols on it
(``engine.network.waku``).
"""
