"""Sans-I/O state machines and their types.

Time is handed in as integer Unix milliseconds; randomness, hashes and signatures are injected.
Nothing in here knows asyncio, SQLite, Qt or a socket.
"""
