"""asyncio: runners that give state machines a clock, a timer, a disk and a network."""
