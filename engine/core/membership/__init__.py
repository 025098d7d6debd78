"""Group membership, computed from signed statements."""
