"""What the bar of notices says, it says to a screen reader, too: once, and not behind a lock."""

import pytest
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.events import NoticeLevel
from ui.window.notices import Notice, NoticesBar

pytestmark = pytest.mark.usefixtures("qapp")


def test_a_notice_is_announced_once_as_soon_as_it_is_to_be_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = list[str]()
    monkeypatch.setattr("ui.window.notices.announce", lambda _bar, words: told.append(words))
    full = Notice(key="full", level=NoticeLevel.ERROR, text="The disk is full.")
    window, bar = QWidget(), NoticesBar()
    QVBoxLayout(window).addWidget(bar)
    bar.raise_notice(full)
    bar.raise_notice(Notice(key="gone", level=NoticeLevel.INFO, text="It is over."))
    bar.clear("gone")
    assert told == [], "nobody can see it"
    window.show()
    assert told == ["error: The disk is full."]
    bar.raise_notice(full)
    bar.raise_notice(Notice(key="sent", level=NoticeLevel.INFO, text="Forwarded to Ann."))
    assert told[1:] == ["Forwarded to Ann."], "what is known is not said again"
    bar.raise_notice(Notice(key="full", level=NoticeLevel.WARNING, text="It is nearly full."))
    assert told[2:] == ["warning: It is nearly full."]
    bar.clear("full")
    bar.raise_notice(full)
    assert told[3:] == ["error: The disk is full."], "it came back"
    window.close()
    window.deleteLater()
