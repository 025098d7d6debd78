"""The libp2p subset that Waku peers need: TCP, multistream, Noise XX, yamux, identify, ping."""
