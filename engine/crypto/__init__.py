"""Keys, signatures and envelopes.  Disk, network and groups' rules are handled elsewhere."""
