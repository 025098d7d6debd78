"""The gossipsub router (1.0 and 1.1), sans-I/O: mesh, caches, peers and their scores."""
