"""Keys, signatures and envelopes.  Knows nothing of disk, network or groups' rules."""
