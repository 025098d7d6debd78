"""Who may do what in a group, computed from signed entries that arrive in any order.

``acts`` has the types and the table of rights, ``ancestry`` the graph of which entry knew which,
``judging`` decides what counts, ``log`` is what others use.  docs/admin-log.md has the rules.
"""
