"""Every figure that the project quotes, measured on the real code path."""
