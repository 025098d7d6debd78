"""The left panel: who I am, what I can start, and the conversations, most recent first."""
