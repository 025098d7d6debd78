"""The fault bench in the window: switched on in the settings, said wherever it counts, stopped."""

import pytest
from PySide6.QtWidgets import QStyleOptionComboBox

from chat_app.settings_control import SettingsControl
from engine.core.fault_bench import EVERYTHING, FaultRule, FaultTarget, Preset
from engine.core.ids import ConversationId
from tests.ui.driving import Key, Stage, play, stage, until
from tests.ui.scripted_engine import ScriptedEngine
from ui.choice import Choice
from ui.settings_page.fault_rows import FaultRows

pytestmark = pytest.mark.usefixtures("qapp")


def bench_of(it: Stage) -> FaultRows:
    it.window.settings.open("advanced")
    rows = it.window.settings.faults
    assert rows is not None
    return rows


def bar_words(it: Stage) -> str:
    bar = it.window.commands.fault_notices.bar
    return bar.words.text() if bar.isVisible() else ""


def told_engine() -> tuple[ScriptedEngine, ConversationId, ConversationId]:
    engine = ScriptedEngine()
    return engine, engine.add_group("Tide <b>Gauge</b>"), engine.add_group("Ebb")


def test_a_preset_is_started_said_everywhere_and_ends_by_itself(control: SettingsControl) -> None:
    async def scenario() -> None:
        engine, tide, ebb = told_engine()
        async with stage(engine, opening=tide, control=control) as it:
            rows = bench_of(it)
            rows.where.choice.setCurrentText("Tide <b>Gauge</b>")
            rows.presets[Preset.PARTITION].button.setFocus()
            it.press(Key.Key_Return, on=rows.presets[Preset.PARTITION].button)
            assert engine.faults.view().about(tide)
            assert (
                "Tide <b>Gauge</b>: Partition of 30 s: cut off, until" in rows.overview.hint.text()
            )
            assert it.window.strip.faults.isVisible()
            it.window.settings.close()
            await until(lambda: bar_words(it) != "")
            assert bar_words(it).startswith("Faults on purpose: Partition of 30 s: cut off, until")
            it.window.open_conversation(ebb)
            assert bar_words(it) == ""
            it.window.open_conversation(tide)
            assert bar_words(it) != ""
            engine.steady_ms += 30_000
            engine.faults.view()  # It looks at the time.
            assert bar_words(it) == ""
            assert not it.window.strip.faults.isVisible()

    play(scenario)


def test_numbers_are_checked_and_one_button_stops_everything(control: SettingsControl) -> None:
    async def scenario() -> None:
        engine, tide, _ = told_engine()
        async with stage(engine, opening=tide, control=control) as it:
            rows = bench_of(it)
            for text in ("101", "-1", "many", "30%"):
                rows.loss.field.setText(text)
                rows.own.button.click()
                assert rows.loss.problem.text() == "Allowed: 0 to 100."
                assert not engine.faults.view().is_on
            rows.loss.field.setText("30")
            rows.delay.field.setText("200")
            rows.skew.field.setText("-60")
            rows.own.button.click()
            rows.clock.button.click()
            (fault,) = engine.faults.view().faults
            assert fault.target == EVERYTHING
            assert fault.rule.spec.loss == 0.3
            assert fault.rule.spec.delay_ms == (200, 200)
            assert engine.faults.view().skew_ms == -3_600_000
            it.window.settings.close()
            bar = it.window.commands.fault_notices.bar
            assert bar_words(it) == (
                "Faults on purpose: 30 % lost, up to 0.2 s late; the clock is 1 h behind"
            )
            bar.stop.setFocus()
            it.press(Key.Key_Return, on=bar.stop)
            assert not engine.faults.view().is_on
            assert bar_words(it) == ""
            assert it.window.pane.composer.box.hasFocus()

    play(scenario)


def test_one_member_is_spoiled_and_one_peer_cut_off(control: SettingsControl) -> None:
    async def scenario() -> None:
        engine, tide, _ = told_engine()
        peer_id = "16Uiu2HAm" + "x" * 40 + "LastPart"
        async with stage(engine, opening=tide, control=control) as it:
            rows = bench_of(it)
            assert not rows.member.choice.isEnabled(), "all conversations have no one member"
            option = QStyleOptionComboBox()
            rows.member.choice.initStyleOption(option)
            assert option.currentText == "Everybody", "what has room is whole"
            rows.where.choice.setCurrentText("Tide <b>Gauge</b>")
            assert rows.member.choice.isEnabled()
            rows.member.choice.setCurrentText("Maya")
            rows.loss.field.setText("30")
            rows.own.button.click()
            (fault,) = engine.faults.view().faults
            assert (fault.target.participant_id or "").startswith("maya")
            rows.back.button.click()  # There is no peer: harmless.
            engine.faults.cut_off(peer_id)
            rows.peer.refresh()
            assert rows.peer.choice.currentText() == "…LastPart"
            rows.cuts[30_000].button.setFocus()
            it.press(Key.Key_Return, on=rows.cuts[30_000].button)
            (cut,) = engine.faults.view().cut_off
            assert cut.ends_ms == 30_000
            said = rows.overview.hint.text()
            assert "Tide <b>Gauge</b>, from Maya: 30 % lost" in said
            assert "Peer …LastPart: cut off, until" in said
            it.window.settings.close()
            await until(lambda: "from Maya: 30 % lost" in bar_words(it))
            assert "Peer …LastPart: cut off" in bar_words(it)
            bench_of(it)
            rows.back.button.click()
            assert engine.faults.view().cut_off == ()
            assert engine.peers_cut_off[-1] == ()
            peers = FaultTarget(peer_id=peer_id)
            engine.faults.set(peers, FaultRule(paused=True))
            rows.where.refresh()
            rows.where.choice.setCurrentText("Peer …LastPart")
            assert not rows.member.choice.isEnabled(), "a peer is no member"
            rows.own.button.click()
            assert engine.faults.view().faults[-1].target == peers
            assert "Peer …LastPart: 30 % lost" in rows.overview.hint.text()
            rows.where.refresh()
            assert rows.where.target == peers, "it stays chosen"
            it.window.settings.close()
            await until(lambda: "Peer …LastPart: 30 % lost" in bar_words(it))

    play(scenario)


def test_a_name_without_room_ends_in_an_ellipsis() -> None:
    choice = Choice()
    choice.addItem("A very long name of a conversation that has no room")
    choice.resize(choice.sizeHint())
    option = QStyleOptionComboBox()
    choice.initStyleOption(option)
    assert option.currentText == choice.currentText()
    choice.resize(120, choice.height())
    choice.initStyleOption(option)
    assert option.currentText.endswith("…")
    assert choice.currentText().endswith("room")


def test_the_strip_leads_to_the_bench_and_search_finds_it(control: SettingsControl) -> None:
    async def scenario() -> None:
        engine, tide, _ = told_engine()
        async with stage(engine, opening=tide, control=control) as it:
            engine.faults.start(EVERYTHING, Preset.HOTEL)
            it.window.strip.faults.click()
            page = it.window.settings.page
            assert page is not None
            assert it.window.settings.is_shown
            page.search.setText("bandwidth")
            rows = it.window.settings.faults
            assert rows is not None
            assert rows.line.isVisible()
            assert not rows.loss.isVisible()
            page.search.clear()
            rows.overview.button.click()
            assert "No faults are on." in rows.overview.hint.text()

    play(scenario)
