"""One group on one device: its session, who is in it, its bytes, and how its events become rows."""
