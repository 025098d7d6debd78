"""The asyncio side of history: which Stores there are, who asks them, and where answers go."""
