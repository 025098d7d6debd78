"""What a window that is about to appear does not wait for."""

import subprocess
import sys

from tests.patience import PATIENCE_S

LATE = {
    "zeroconf",
    "ifaddr",
    "engine.network.libp2p.socks",
    "engine.network.discovery.mdns",
    "engine.network.edge.edge_node",
    "zxingcpp",
    "jeepney",
    "plistlib",
    "segno",
    "ui.dialogs.stores",
}
NEVER = {"pandas", "numpy", "pyarrow", "pyspark"}
"""Of the pipeline, where that is installed too."""


def test_the_window_appears_without_what_it_does_not_show_yet() -> None:
    others = LATE | NEVER
    imports = "import sys, chat_app.window, chat_app.autostart"
    program = f"{imports}; sys.exit(len({others} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", program], check=False, timeout=PATIENCE_S)
    assert found.returncode == 0
