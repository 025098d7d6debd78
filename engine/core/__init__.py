"""Sans-I/O state machines and their types.

Callers pass time as integer Unix milliseconds; randomness, hashes and signatures are injected.  The
core uses no asyncio, SQLite, Qt or sockets.
"""
