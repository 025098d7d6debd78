"""Links that the system sends as events reach the window, also those from before there is one.

In a process of its own, because there is one application in each.
"""

import json
import subprocess
import sys
from typing import Final

from engine.core.invite import MAX_LINK_CHARACTERS

PROGRAM: Final = """
import json, sys
from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtGui import QFileOpenEvent
from chat_app.opened_links import LinkedApplication, lead_links_to

application = LinkedApplication(["causerie"])

def arrive(*links):
    for link in links:
        QCoreApplication.sendEvent(application, QFileOpenEvent(QUrl(link)))

heard = []
arrive(*(f"causerie:early{n}" for n in range(6)), "https://example.org/", "file:///etc/passwd")
lead_links_to(heard.append)
arrive("causerie:group/a-b_c?x=%C3%A9#key", "causerie:" + "x" * 100_000, "CAUSERIE:upper")
lead_links_to(None)
arrive("causerie:between")
late = []
lead_links_to(late.append)
json.dump([[one[:40] for one in heard], max(map(len, heard)), late], sys.stdout)
"""


def test_links_lead_to_the_window_and_few_wait_for_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, text=True, stdout=subprocess.PIPE
    )
    heard, longest, late = json.loads(done.stdout)
    assert heard[:4] == [f"causerie:early{number}" for number in range(2, 6)]
    assert heard[4] == "causerie:group/a-b_c?x=%C3%A9#key"
    assert heard[5].startswith("causerie:xxx")
    assert longest == MAX_LINK_CHARACTERS + 1
    assert heard[6:] == ["causerie:upper"]
    assert late == ["causerie:between"]
