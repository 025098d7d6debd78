"""Qt without a screen, and one theme to start every test from."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
