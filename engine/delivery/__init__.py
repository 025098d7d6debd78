"""The delivery log: what happened to every message, without its text or its sender's name."""
