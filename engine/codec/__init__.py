"""Bytes ↔ core types.  The only importer of the generated modules in ``proto``."""
