"""Bytes ↔ core types.  Only this package imports the generated modules in ``proto``."""
