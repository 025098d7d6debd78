"""Emoji: the table of them, what was used last, the picker, and ``:name:`` in the composer."""
