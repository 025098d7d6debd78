"""Governed groups beside their sessions: commands, inviting and letting in, asking to be let in."""
