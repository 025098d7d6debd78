"""The window.  Knows the engine by its commands, events and read models only."""
