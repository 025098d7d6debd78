"""The libp2p subset that Waku peers need: TCP, multistream-select, Noise XX, yamux, identify, ping."""
