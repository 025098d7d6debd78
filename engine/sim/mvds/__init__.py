"""MVDS in the simulator: participants, their disks, and trials."""
