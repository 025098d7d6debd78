"""Waku's protocols over libp2p streams."""
