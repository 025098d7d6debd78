"""What this device knows of one message, put together for whoever looks into it."""
