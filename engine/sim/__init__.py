"""The deterministic network simulator: virtual time, seeded faults, the real state machines."""
