"""In another language: a translator that puts brackets around each text finds all of them.

What is left outside of the brackets is what people wrote, and numbers.
"""

import re
from collections.abc import Iterator
from functools import partial

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QLocale, QTranslator
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QLineEdit, QMenu, QWidget

from engine.core.ids import DeliveryState
from engine.core.problems import ConnectionReason, NodeFailed, NodeFault, NodeTrouble
from engine.events import (
    ClocksAhead,
    ConnectionChanged,
    ConnectionLevel,
    ConnectionRole,
    DeliveryView,
    NoticeLevel,
    NoticeRaised,
)
from tests.ui.driving import play, stage, until
from tests.ui.every_sheet import SHEETS, a_lively_engine
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import seen_words, spoken_rows
from ui.connection_words import reason_words
from ui.refusals import refusal_sentences
from ui.timeline.row_words import time_words
from ui.translate import tr

WRITTEN = {
    *(
        "Tide",
        "Gauge",
        "Maya",
        "Ines",
        "Luc",
        "Ann",
        "Bob",
        "Nora",
        "Olga",
        "Tom",
        "Harbour",
        "Watch",
        "Night",
        "Ferry",
        "Causerie",
        "hello",
        "plate",
        "v3",
    ),
    # Not words of a language: signs of keys, units of the clock, and what a link looks like.
    *("Ctrl", "Alt", "Shift", "Del", "Up", "Down", "causerie", "join", "contact", "socks5"),
    # Dates are words of Qt's.
    *(QLocale("en_GB").standaloneDayName(day) for day in range(1, 8)),
    *(QLocale("en_GB").standaloneMonthName(month) for month in range(1, 13)),
}


NO_WORDS = re.compile(r"\b[0-9a-f]{4}\b|</?div[^>]*>|/(dns4|ip4)/\S+")
"""Fingerprints, the sign of a tool tip, addresses."""


class Brackets(QTranslator):
    def translate(
        self, context: str, source_text: str, /, disambiguation: str | None = None, n: int = -1
    ) -> str:
        """``[text]`` for texts of ours; Qt's own have a context."""
        return "" if context else f"[{source_text}]"


@pytest.fixture
def brackets(qapp: QApplication) -> Iterator[None]:
    translator = Brackets()
    time_words.cache_clear()
    qapp.installTranslator(translator)
    yield
    qapp.removeTranslator(translator)
    time_words.cache_clear()


def outside(text: str) -> str:
    """What no bracket holds."""
    depth, left = 0, ""
    for character in text:
        depth += (character == "[") - (character == "]")
        left += character if depth == 0 and character not in "[]" else " "
    return left


def untranslated(text: str) -> list[str]:
    plain = NO_WORDS.sub("", outside(text))
    words = re.findall(r"[^\W\d_]{2,}", plain)
    return [word for word in words if word not in WRITTEN]


def texts_of(window: QWidget) -> Iterator[str]:
    """All that is seen, hinted or read aloud in a window."""
    yield from seen_words(window)
    yield window.windowTitle()
    for widget in window.findChildren(QWidget):
        if not widget.isVisible():
            continue
        yield from (widget.toolTip(), widget.accessibleName())
        if isinstance(widget, QLabel | QAbstractButton):
            yield widget.text()
        if isinstance(widget, QLineEdit):
            yield widget.placeholderText()
    for menu in window.findChildren(QMenu):
        yield from (action.text() for action in menu.actions())


def bare(window: QWidget) -> list[str]:
    return [text for text in texts_of(window) if untranslated(text)]


def test_what_is_outside_of_the_brackets_is_found() -> None:
    assert untranslated("[12 [messages]] of Maya, 3 missing") == ["of", "missing"]
    assert untranslated("[Held by {name}] · 4fd1 90ab, Maya [left]") == []


def test_tr_uses_the_translator_that_is_installed(brackets: None) -> None:
    del brackets
    assert tr("Hello {name}").format(name="[Bob") == "[Hello [Bob]"
    assert [tr("%n bits", "%n bit", n) for n in (0, 1, 2)] == ["[0 bits]", "[1 bits]", "[2 bits]"]


def test_tr_without_a_translator_speaks_english() -> None:
    assert [tr("%n bits", "%n bit", n) for n in (0, 1, 2)] == ["0 bits", "1 bit", "2 bits"]
    assert tr("May", "short") == "May"
    assert tr("100 %nothing") == "100 %nothing"


def test_the_window_with_a_conversation_speaks_the_users_language(brackets: None) -> None:
    del brackets

    async def scenario() -> None:
        engine = a_lively_engine()
        group = next(iter(engine.views))
        async with stage(engine, opening=group) as it:
            await it.send("plate")
            own = next(row for row in engine.rows[group].values() if row.is_own)
            failed = DeliveryView(state=DeliveryState.FAILED, of=2, attempts=3)
            engine.deliver(group, own.message_id, failed)
            engine.set_gap(group, 3)
            trouble = NodeTrouble("192.0.2.1:60000", NodeFailed(NodeFault.SILENT, "filter"))
            poor = replace(
                engine.link_view,
                level=ConnectionLevel.MINIMAL,
                role=ConnectionRole.EDGE,
                reason=ConnectionReason.ONE_SERVICE_NODE,
                trouble=trouble,
            )
            engine.tell(ConnectionChanged(connection=poor))
            content = ClocksAhead(
                conversation_name="Tide", messages=2, names=("Bob",), ahead_ms=7_200_000
            )
            raised = NoticeRaised(key="clock/x", level=NoticeLevel.WARNING, content=content)
            engine.tell(raised)
            await until(lambda: len(spoken_rows(it.window.pane.timeline)) > 2)
            assert bare(it.window) == []
            rows = spoken_rows(it.window.pane.timeline)
            assert [row for row in rows if untranslated(row)] == []
            assert untranslated(reason_words(poor)) == []
            for conversation_id in list(engine.views):
                it.window.open_conversation(conversation_id)
                await until(partial(it.window.pane.is_open, conversation_id))
                assert bare(it.window) == []

    play(scenario)


@pytest.mark.parametrize("name", SHEETS)
def test_every_dialog_speaks_the_users_language(brackets: None, name: str) -> None:
    del brackets

    async def scenario() -> None:
        engine = a_lively_engine()
        async with stage(engine, opening=next(iter(engine.views))) as it:
            SHEETS[name](it)
            await until(lambda: it.window.flows.sheet is not None)
            sheet = it.window.flows.sheet
            assert sheet is not None
            await until(sheet.isVisible)
            assert sheet.windowTitle().startswith("[")
            assert bare(sheet) == []

    play(scenario)


def test_the_first_start_speaks_the_users_language(brackets: None) -> None:
    del brackets

    async def scenario() -> None:
        async with stage(ScriptedEngine(name=None)) as it:
            assert bare(it.window) == []

    play(scenario)


def test_what_was_refused_is_said_in_the_users_language(brackets: None) -> None:
    del brackets
    assert refusal_sentences({"group.replayed": 1}) == (
        "[1 messages that came once more, sealed as before; ignored.]",
    )
