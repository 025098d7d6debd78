"""All settings on one page of the window, each put into force and written down at once."""
