"""The settings page: changed at once in the file, refused beside the field, by the keyboard."""

import os
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QWidget
from shiboken6 import delete

from chat_app.network_control import NetworkControl
from chat_app.passphrase_control import PassphraseControl
from chat_app.settings import DEFAULTS, keys_of, sections_of
from chat_app.settings_control import SettingsControl
from chat_app.settings_reading import load_settings
from engine.core.errors import SettingKind
from engine.persistence.key import obtain_database_key
from engine.persistence.profile_directory import open_profile_directory
from tests.ui.driving import Key, Stage, heard, play, stage, turn, until
from tests.ui.on_settings import (
    control_of,
    field_of,
    is_shown,
    open_settings,
    pick,
    row_of,
    rows_of,
    shown_labels,
    switch_of,
)
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.scripted_updates import ScriptedUpdates
from tests.ui.seeing import seen_words, sheet_of
from tests.ui.test_languages import built_translations
from ui.choice import Choice
from ui.controls import Button, Text
from ui.dialogs.confirm import Confirm
from ui.dialogs.recording import RecordingKey
from ui.lines_field import LinesField
from ui.settings_page.looks_sections import ProfileCard
from ui.settings_page.page import SettingsPage
from ui.settings_page.rows import BoundRow, ChoiceRow, LinesRow
from ui.theme import ThemeMode, current_theme
from ui.window.window_context import WindowContext

pytestmark = pytest.mark.usefixtures("qapp")
CTRL = Qt.KeyboardModifier.ControlModifier
NODE = "/ip4/192.0.2.7/tcp/60000/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
NOT_ON_THE_PAGE = {("backup", "folder"), ("storage", "key")}
"""Of a profile that is only being made."""
WORDS = "# mine\n[appearance]\ntheme = 'light' # by day\n\n[future]\nkept = 1\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "settings.toml"


@pytest.fixture
def control(file: Path) -> SettingsControl:
    write(file, WORDS)
    control = SettingsControl(file, DEFAULTS, NetworkControl(DEFAULTS.network))
    control.reread()
    return control


def test_every_setting_of_the_window_stands_on_the_page_with_all_its_choices(
    control: SettingsControl, tmp_path: Path
) -> None:
    profile = open_profile_directory(tmp_path / "profile")
    key = obtain_database_key(profile, force_key_file=True)
    around = WindowContext(
        passphrase=PassphraseControl(profile, key, force_key_file=True), updates=ScriptedUpdates()
    )

    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control, around=around) as it:
            page = open_settings(it.window)
            rows = {row.name: row for row in rows_of(page) if isinstance(row, BoundRow)}
            for section, _ in sections_of(DEFAULTS):
                for key in keys_of(section):
                    name = section, key.name
                    if section == "node" or name in NOT_ON_THE_PAGE:
                        assert name not in rows
                        continue
                    row = rows.pop(name)
                    allowed = key.rule.allowed
                    if allowed.kind is SettingKind.CHOICE:
                        assert isinstance(row, ChoiceRow)
                        assert row.values() == allowed.parts
            assert rows == {}

    play(scenario)


def test_ctrl_comma_opens_it_and_escape_leads_back(control: SettingsControl) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, opening=group, control=control) as it:
            box = it.window.pane.composer.box
            box.setFocus()
            it.press(Key.Key_Comma, CTRL)
            page = it.window.settings.page
            assert page is not None
            assert is_shown(it.window)
            assert QApplication.focusWidget() is page.list
            it.press(Key.Key_Down)
            assert page.current().name == "appearance"
            assert seen_words(page.current())[0] == "Appearance"
            it.press(Key.Key_Return)
            assert QApplication.focusWidget() is row_of(page, "Colours").control
            it.press(Key.Key_F6)
            assert QApplication.focusWidget() is page.list
            it.press(Key.Key_Escape)
            assert not is_shown(it.window)
            assert QApplication.focusWidget() is box

    play(scenario)


def test_a_choice_holds_at_once_and_changes_its_line_only(
    control: SettingsControl, file: Path
) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            page = open_settings(it.window, "appearance")
            pick(it, page, "Colours", "Dark")
            await until(lambda: current_theme().mode is ThemeMode.DARK)
            it.press(Key.Key_Plus, CTRL)
            await until(lambda: current_theme().metrics.text_percent == 110)
            size = control_of(page, "Text size", QComboBox)
            assert size.currentText() == "110 %", "also when a key changed it"
            control.write(("appearance", "text_size"), 137)
            assert size.currentText() == "137 %", "and when it is no step"

    play(scenario)
    text = read(file)
    assert text == WORDS.replace(
        "theme = 'light' # by day", 'text_size = 137\ntheme = "dark" # by day'
    )


def test_the_search_filters_the_rows_and_says_how_many(control: SettingsControl) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            page = open_settings(it.window, "privacy")
            page.search.setFocus()
            it.write("socks5")
            assert shown_labels(page) == ["SOCKS5 proxy for all connections"]
            assert page.found.text() == "1 setting found"
            assert "Privacy" not in seen_words(page.area)
            it.press(Key.Key_Return)
            assert QApplication.focusWidget() is field_of(page, "SOCKS5 proxy for all connections")
            page.search.setText("keep_days")
            assert shown_labels(page) == ["Keep sealed messages for others"]
            page.search.setText("no such thing")
            assert shown_labels(page) == []
            assert page.found.text() == "No setting is called that."
            it.press(Key.Key_Escape, on=page.search)
            assert page.search.text() == ""
            assert shown_labels(page)[0] == "Tell others when I am typing"
            assert is_shown(it.window)
            page.search.setText("log")
            row = page.list.visualItemRect(page.list.item(0)).center()
            QTest.mouseClick(page.list.viewport(), Qt.MouseButton.LeftButton, pos=row)
            assert page.search.text() == ""
            assert shown_labels(page)[0] == "Your fingerprint"
            page.search.setText("your picture")
            assert shown_labels(page) == []
            page.search.setText("name picture")
            assert page.findChildren(ProfileCard)[0].isVisible()
            assert page.found.text() == "1 setting found"

    play(scenario)


@pytest.mark.parametrize(
    ("section", "label", "typed", "named", "good"),
    [
        ("network", "Listen on port", "70000", "a whole number from 0 to 65535", "5000"),
        ("network", "Listen on port", "abc", "a whole number from 0 to 65535", "0"),
        ("network", "Listen on port", "-1", "a whole number from 0 to 65535", "1"),
        ("advanced", "Address to listen on", "here", "an IPv4 or IPv6 address", "127.0.0.1"),
        (
            "network",
            "SOCKS5 proxy for all connections",
            "http://127.0.0.1:1",
            '"http" is no kind of proxy known here',
            "socks5://127.0.0.1:9050",
        ),
        (
            "network",
            "SOCKS5 proxy for all connections",
            "socks5://ann:hunter2@b:1",
            "socks5://***@b:1",
            "",
        ),
        ("recording", "Key of your records", "short", "43 characters", ""),
    ],
)
def test_bad_input_is_refused_beside_its_field(  # noqa: PLR0913, PLR0917 - a table
    control: SettingsControl,
    file: Path,
    section: str,
    label: str,
    typed: str,
    named: str,
    good: str,
) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            page = open_settings(it.window, section)
            row, field = row_of(page, label), field_of(page, label)
            before = field.text()
            field.setFocus()
            field.selectAll()
            it.write(typed)
            it.press(Key.Key_Return)
            await turn()
            assert row.problem.isVisible()
            assert named in row.problem.text()
            assert named in field.accessibleDescription()
            assert "hunter2" not in row.problem.text()
            assert read(file) == WORDS
            it.press(Key.Key_Escape)
            assert field.text() == before
            assert not row.problem.isVisible()
            assert is_shown(it.window)
            field.selectAll()
            it.press(Key.Key_Backspace)
            it.write(good)
            it.press(Key.Key_Tab)
            await turn()
            assert not row.problem.isVisible()

    play(scenario)
    assert WORDS.splitlines()[0] in read(file)


def test_addresses_are_judged_while_one_types_and_taken_by_a_button(
    control: SettingsControl, file: Path
) -> None:
    label = "Service nodes, one address on each line"

    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            page = open_settings(it.window, "network")
            row = row_of(page, label)
            assert isinstance(row, LinesRow)
            field = control_of(page, label, LinesField)
            assert not row.take.isVisible()
            for typed, named in (
                ("nonsense", 'must start with "/"'),
                ("/ip4/192.0.2.7/udp/60000/quic-v1", '"/udp" is unsupported'),
                ("/ip4/192.0.2.7/tcp/60000", "/p2p/"),
                ("\n".join([NODE] * 9), "at most 8"),
            ):
                field.setPlainText(typed)
                assert named in row.problem.text()
                assert row.take.isVisible()
                assert not row.take.isEnabled()
            row.give_up.click()
            assert field.toPlainText() == ""
            field.setPlainText(f"  {NODE}\n\n")
            row.take.click()
            await until(lambda: not row.take.isVisible())
            assert control.waiting() == (), "in force at once"

    play(scenario)
    assert load_settings_of(file) == (NODE,)


def read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def load_settings_of(file: Path) -> tuple[str, ...]:
    text = read(file).replace("[future]\nkept = 1\n", "")
    write(file, text)
    return load_settings(file).network.service_nodes


def test_what_cannot_be_written_is_said_and_goes_back(
    control: SettingsControl, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            page = open_settings(it.window, "privacy")
            row = row_of(page, "Tell others when I am typing")
            switch = switch_of(page, "Tell others when I am typing")
            with monkeypatch.context() as patch:
                patch.setattr(os, "open", _full)
                switch.click()
                await until(row.problem.isVisible)
            assert "cannot be written: No space left on device" in row.problem.text()
            assert switch.isChecked()
            assert is_shown(it.window)
            switch.click()
            await until(lambda: not row.problem.isVisible())
            assert not switch.isChecked()

    play(scenario)
    assert "typing = false" in read(file)


def _full(*arguments: object, **named: object) -> int:
    del arguments, named
    raise OSError(28, "No space left on device")


def test_a_line_that_somebody_wrote_meanwhile_is_picked_up_and_kept(
    control: SettingsControl, file: Path
) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            page = open_settings(it.window, "privacy")
            write(file, WORDS + "[privacy]\ntyping = false\n")
            presence = switch_of(page, "Tell people when I am online")
            presence.click()
            await until(lambda: not control.settings.privacy.presence)
            assert not switch_of(page, "Tell others when I am typing").isChecked()
            text = read(file)
            assert text == WORDS + "[privacy]\npresence = false\ntyping = false\n"
            write(file, WORDS + "[privacy]\ntyping = true\n")
            page.reread()
            assert presence.isChecked()
            write(file, "[privacy]\ntyping = 5\n")
            page.reread()
            assert page.trouble.isVisible()
            assert "[privacy] typing" in page.trouble.text()
            page.open_file.click()
            assert it.opened_urls == [file.as_uri()]
            switch_of(page, "Tell others when I am typing").click()
            row = row_of(page, "Tell others when I am typing")
            await until(row.problem.isVisible)
            assert read(file) == "[privacy]\ntyping = 5\n"

    play(scenario)


def test_what_counts_from_the_next_start_is_said_and_offered(control: SettingsControl) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            page = open_settings(it.window, "network")
            assert not page.restart.isVisible()
            row = row_of(page, "Find people on this network")
            assert "From the next start on." in row.hint.text()
            switch = switch_of(page, "Find people on this network")
            QTest.mouseClick(switch, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
            await until(page.restart.isVisible)
            assert page.waiting.text() == "1 change counts from the next start on."
            switch.click()
            await until(lambda: not page.restart.isVisible())
            switch.click()
            await until(page.restart.isVisible)
            page.restart.click()
            assert it.window.wants_restart
            await until(lambda: not it.window.isVisible())

    play(scenario)


def test_recording_is_switched_on_once_agreed_and_its_key_is_shown(
    control: SettingsControl, file: Path
) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            page = open_settings(it.window, "recording")
            record = switch_of(page, "Record deliveries")
            record.click()
            ask = await sheet_of(it.window, Confirm)
            assert "not encrypted" in " ".join(seen_words(ask))
            assert not record.isChecked()
            ask.cancel.click()
            await until(lambda: it.window.flows.sheet is None)
            assert read(file) == WORDS
            record.click()
            (await sheet_of(it.window, Confirm)).confirm.click()
            shown = await sheet_of(it.window, RecordingKey)
            assert record.isChecked()
            assert shown.key.text() == control.settings.delivery.key
            assert field_of(page, "Key of your records").text() == shown.key.text()
            shown.reject()
            await until(lambda: it.window.flows.sheet is None)
            record.click()
            await until(lambda: not record.isChecked())

    play(scenario)


async def narrow_and_back(it: Stage, page: SettingsPage) -> None:
    assert page.list.isVisible()
    assert not page.area.isVisible()
    row = page.list.visualItemRect(page.list.item(3)).center()
    QTest.mouseClick(page.list.viewport(), Qt.MouseButton.LeftButton, pos=row)
    assert page.area.isVisible()
    assert not page.list.isVisible()
    assert shown_labels(page)[0] == "Tell others when I am typing"
    it.press(Key.Key_Escape, on=page)
    assert page.list.isVisible()
    assert is_shown(it.window)
    page.search.setText("typing")
    assert page.area.isVisible()
    assert page.search.isVisible()
    it.press(Key.Key_Escape, on=page.search)
    it.press(Key.Key_Escape, on=page.list)
    assert not is_shown(it.window)


def test_in_a_narrow_window_list_and_section_take_turns(control: SettingsControl) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control, size=(420, 720)) as it:
            await narrow_and_back(it, open_settings(it.window))

    play(scenario)


def test_in_a_narrow_window_enter_leads_into_the_section(control: SettingsControl) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control, size=(420, 720)) as it:
            page = open_settings(it.window)
            it.press(Key.Key_Down, on=page.list)
            it.press(Key.Key_Return, on=page.list)
            assert page.area.isVisible()
            assert not page.list.isVisible()
            assert control_of(page, "Colours", Choice).hasFocus()
            it.press(Key.Key_Escape, on=page)
            assert page.list.hasFocus()

    play(scenario)


def test_a_problem_goes_with_what_was_entered(control: SettingsControl) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            page = open_settings(it.window, "network")
            row = row_of(page, "Listen on port")
            it.write("99999", on=field_of(page, "Listen on port"))
            assert row.problem.isVisible()
            it.window.settings.close()
            open_settings(it.window, "network")
            assert field_of(page, "Listen on port").text() == "0"
            assert not row.problem.isVisible()
            assert "Allowed" not in field_of(page, "Listen on port").accessibleDescription()

    play(scenario)


def test_it_closes_though_what_had_the_focus_before_is_gone(control: SettingsControl) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            had_it = Button("of a person who left", parent=it.window.body)
            had_it.show()
            had_it.setFocus()
            page = open_settings(it.window)
            delete(had_it)
            it.press(Key.Key_Escape, on=page.list)
            assert not is_shown(it.window)

    play(scenario)


@pytest.mark.parametrize("width", [420, 1280])
def test_a_unit_stands_beside_its_number(control: SettingsControl, width: int) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control, size=(width, 820)) as it:
            page = open_settings(it.window, "data")
            row = row_of(page, "Room for files")
            (unit,) = [text for text in row.findChildren(Text) if text.text() == "MB"]
            await until(lambda: unit.width() > 0)
            field = field_of(page, "Room for files")
            middle = unit.mapTo(row, unit.rect().center()).y()
            place = field.geometry()
            assert place.top() < middle < place.bottom()
            assert unit.mapTo(row, QPoint()).x() >= place.right()

    play(scenario)


def cut_words(page: SettingsPage) -> list[str]:
    """Texts that are higher than their place, or all if the rows are wider than the window."""
    texts = [text for row in rows_of(page) for text in (row.label, row.hint) if text.isVisible()]
    inside = page.area.widget()
    if inside is None or inside.width() > page.area.viewport().width():
        return [text.text() for text in texts]
    return [text.text() for text in texts if text.height() < text.heightForWidth(text.width())]


@pytest.mark.parametrize("percent", [85, 100, 200])
@pytest.mark.parametrize("width", [420, 1280])
def test_no_word_of_a_section_is_cut(control: SettingsControl, percent: int, width: int) -> None:
    async def scenario() -> None:
        control.write(("appearance", "text_size"), percent)
        engine = ScriptedEngine()
        engine.add_group("Whoever Is Up Before The Tide")
        async with stage(engine, control=control, size=(width, 820)) as it:
            page = open_settings(it.window)
            for section in page.sections:
                page.show_section(section.name)
                await until(lambda: not cut_words(page))
                for row in section.rows:
                    if isinstance(shown := row.control, QWidget):
                        left = shown.mapTo(row, QPoint(0, 0)).x()
                        assert left >= 0
                        assert left + shown.width() <= row.width()

    play(scenario)


def test_a_language_is_spoken_at_once_by_a_window_in_the_same_place(
    control: SettingsControl,
) -> None:
    built_translations()

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, opening=group, control=control) as it:
            it.write("half a thought", on=it.window.pane.composer.box)
            closed = heard(it.window.closed)
            pick(it, open_settings(it.window, "appearance"), "Language", "French")
            await closed
            assert it.window.wants_another
            assert not it.window.wants_restart
            assert control.waiting() == ()
            await until(lambda: engine.called("save_draft")[-1:] == ["half a thought"])
            size = it.window.size()
        around = WindowContext(settings_section="appearance")
        async with stage(engine, control=control, around=around) as it:
            assert it.window.settings.is_shown
            assert it.window.settings.page is not None
            assert "Langue" in shown_labels(it.window.settings.page)
            assert it.window.pane.is_open(group)
            assert it.window.size() == size

    play(scenario)
