"""What a window that is about to appear does not wait for."""

import os
import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S

LATE = {
    "zeroconf",
    "ifaddr",
    "keyring",
    "engine.network.libp2p.socks",
    "engine.network.discovery.mdns",
    "engine.network.edge.edge_node",
    "vodozemac",
    "zxingcpp",
    "jeepney",
    "plistlib",
    "segno",
    "ui.dialogs.stores",
    "email",
}
NEVER = {"pandas", "numpy", "pyarrow", "pyspark"}
"""Of the pipeline, where that is installed too."""


def test_the_window_appears_without_what_it_does_not_show_yet() -> None:
    others = LATE | NEVER
    imports = "import sys, chat_app.starting, chat_app.autostart, chat_app.__main__ as main"
    program = f"{imports}; main.command_line(); sys.exit(len({others} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", program], check=False, timeout=PATIENCE_S)
    assert found.returncode == 0


def test_the_program_does_not_keep_its_own_sources_in_memory(tmp_path: Path) -> None:
    """Qt for Python would read them all, for something that is not used."""
    settings = tmp_path / "profile" / "settings.toml"
    settings.parent.mkdir(mode=0o700)
    settings.write_text('[storage]\nkey = "file"\n')
    program = (
        "import linecache, sys; from chat_app.__main__ import main;"
        f"main(['--profile-dir', {str(settings.parent)!r}, '--port=0', '--measure-start-ns=1']);"
        "import ui;"
        "sys.exit(sum(name.startswith(ui.__path__[0]) for name in linecache.cache))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        timeout=PATIENCE_S,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
    )
    assert found.returncode == 0
