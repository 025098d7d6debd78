"""Runs sessions on asyncio: runners give each one its clock, timer, disk and network."""
