"""What somebody meets who has just begun: nothing cut off, nothing out of date, nothing unseen."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QVBoxLayout, QWidget

from engine.core.contacts import ContactState
from engine.core.ids import DeliveryState
from engine.events import DeliveryView
from tests.ui.driving import Key, pair_stage, play, stage, turn, until
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.scripted_people import person_id
from tests.ui.seeing import add_person
from ui.window.composer import Composer


class PaintWatcher(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.paints = 0

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        self.paints += event.type() == QEvent.Type.Paint
        return False


@pytest.mark.parametrize("state", [s for s in ContactState if s is not ContactState.ACCEPTED])
@pytest.mark.parametrize("width", [1280, 846, 600, 420])
def test_the_first_bar_of_a_window_cuts_no_word_off(state: ContactState, width: int) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", state)
        async with stage(engine, opening=bob, size=(width, 900)) as it:
            await turn()
            await turn()
            bar = it.window.pane.contact_bar
            for part in (bar.title, bar.words, bar.fingerprint):
                if part.isVisible():
                    corner = part.mapTo(bar, part.rect().bottomRight())
                    assert bar.rect().contains(corner)
                    assert part.height() >= part.heightForWidth(part.width())

    play(scenario)


def test_who_waits_reads_when_the_request_has_arrived() -> None:
    async def scenario() -> None:
        async with pair_stage("Bob", ContactState.ASKED) as (it, engine, bob):
            words = it.window.pane.contact_bar.words
            assert words.text() == "Your request reaches them as soon as they can be reached."
            row = engine.views[bob].last_message
            assert row is not None
            held = DeliveryView(state=DeliveryState.HELD, held_by=(person_id("Bob"),), of=1)
            engine.deliver(bob, row.message_id, held)
            await until(
                lambda: (
                    words.text()
                    == "Your request is on their device. You see here when they answer."
                )
            )

    play(scenario)


def test_a_link_is_found_among_the_words_it_came_with() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        engine.add_group("Tide")
        async with stage(engine) as it:
            sheet = await add_person(it.window)
            for text in (
                "Hi! My link:\ncauserie:contact/Bob\nsee you",
                "causerie:contact/Bob, see you",
                "causerie:con\n tact/Bob",
            ):
                sheet.theirs.field.setPlainText(text)
                assert sheet.theirs.link() == "causerie:contact/Bob", text
                assert not sheet.theirs.problem.isVisible()
            sheet.theirs.field.setPlainText("join us: causerie:join/Tide")
            assert "invitation to a group" in sheet.theirs.problem.text()
            assert not sheet.confirm.isEnabled()

    play(scenario)


def test_another_reason_not_to_write_is_painted_in_the_place_of_the_old_one() -> None:
    async def scenario() -> None:
        async with pair_stage("Bob", ContactState.ASKING) as (it, engine, bob):
            await turn()
            box = it.window.pane.composer.box
            watcher = PaintWatcher()
            box.viewport().installEventFilter(watcher)
            engine.set_state(bob, ContactState.DECLINED)
            await until(lambda: box.placeholderText() == "You and Bob do not talk")
            watcher.paints = 0
            it.window.pane.composer.block("Another reason")
            await until(lambda: watcher.paints > 0)

    play(scenario)


def test_a_new_name_is_in_the_title_at_once() -> None:
    async def scenario() -> None:
        async with pair_stage("Bob") as (it, engine, bob):
            assert it.window.windowTitle() == "Bob — Causerie"
            engine.set_contact(bob, replace(engine.contact(bob), local_name="Bobby"))
            assert it.window.windowTitle() == "Bobby — Causerie"

    play(scenario)


def test_a_request_during_the_first_start_is_shown() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine(name=None)
        async with stage(engine) as it:
            page = it.window.first_page.page
            page.name_step.name.setText("Ines")
            page.name_step.next.click()
            await until(page.stores_step.isVisible)
            page.stores_step.next.click()
            await until(page.conversation_step.isVisible)
            bob = engine.add_person("Bob", ContactState.ASKING)
            assert it.window.pages.currentWidget() is it.window.body
            assert it.window.model.index_of(bob).isValid()

    play(scenario)


def test_all_the_lines_that_fit_are_to_be_seen_while_one_writes_them() -> None:
    async def scenario() -> None:
        async with pair_stage("Bob") as (it, _, _):
            box = it.window.pane.composer.box
            for line in range(1, 7):
                box.insertPlainText(f"{line} \U0001f389")
                await until(lambda: box.verticalScrollBar().maximum() == 0)
                assert box.firstVisibleBlock().blockNumber() == 0
                QTest.keyClick(box, Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)

    play(scenario)


@pytest.mark.usefixtures("qapp")
def test_a_draft_that_is_there_before_the_window_has_its_full_height() -> None:
    holder = QWidget()
    layout = QVBoxLayout(holder)
    composer = Composer()
    layout.addStretch(1)
    layout.addWidget(composer)
    holder.resize(900, 700)
    composer.hide()
    composer.set_text("q" * 20_000)
    composer.set_room(700)
    composer.show()
    holder.show()
    QApplication.processEvents()
    at_once = composer.box.height()
    composer.refit()
    assert at_once == composer.box.height()
    assert at_once > 5 * composer.box.fontMetrics().lineSpacing()
    assert composer.box.verticalScrollBar().isVisible()
    assert widest_line(composer.box) <= composer.box.viewport().width()
    holder.close()


def widest_line(box: QPlainTextEdit) -> float:
    layout = box.document().firstBlock().layout()
    lines = (layout.lineAt(number) for number in range(layout.lineCount()))
    return max(line.x() + line.naturalTextWidth() for line in lines)


def test_what_came_while_one_was_elsewhere_is_read_when_one_comes_back() -> None:
    async def scenario() -> None:
        async with pair_stage("Bob") as (it, engine, bob):
            await turn()
            elsewhere = QWidget()
            elsewhere.show()
            elsewhere.activateWindow()
            await until(lambda: not it.window.isActiveWindow())
            engine.arrive(engine.row(bob, engine.views[bob].members[1], "Are you there?", 1))
            await turn()
            soon = [t for t in it.window.pane.timeline.findChildren(QTimer) if t.isSingleShot()]
            await until(lambda: not any(timer.isActive() for timer in soon))
            assert not engine.called("mark_read")
            elsewhere.close()
            it.window.activateWindow()
            await until(lambda: bool(engine.called("mark_read")))

    play(scenario)
