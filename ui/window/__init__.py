"""The main window and its parts: header, composer, strip, notices, and the pages they stand on."""
