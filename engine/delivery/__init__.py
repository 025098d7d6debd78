"""The delivery log: what happened to every message, without what it says and who said it."""
