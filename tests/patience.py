"""How long tests wait for what must happen.

A test that is stuck fails, and a test on a slow or busy machine does not: nothing is asserted about
speed.  Waits that are meant to end in a timeout have their own figures.
"""

from typing import Final

PATIENCE_S: Final = 120
