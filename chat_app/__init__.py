"""The composition root: command line, settings, paths, the qasync loop, the demo."""
