"""Sheets over the window.  None of them blocks: they open and hand back a future."""
