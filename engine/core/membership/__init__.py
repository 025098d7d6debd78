"""Who belongs to a group, from signed statements."""
