"""Runs history queries with asyncio: which Stores to ask, when, and where answers go."""
