"""What the packaged program starts with: the same entry as the ``causerie`` command."""  # noqa: INP001 -- this folder must not be a package, or it would hide the library of its name

import sys

from chat_app.__main__ import main

sys.exit(main())
