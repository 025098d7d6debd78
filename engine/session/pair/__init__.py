"""A conversation of two: its session, the order of its messages, its bytes, and consent."""
