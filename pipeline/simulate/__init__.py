"""Sweeps of the simulator: one row of parameters in, one row of figures out, on any machine."""
