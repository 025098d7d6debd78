"""The panel at the window's right: about a group, a channel or a person."""
