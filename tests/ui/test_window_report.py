"""A report of a problem is two clicks away, and shown before it is saved."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QWidget

from chat_app.settings_control import SettingsControl
from engine.core.errors import StorageError, StorageFault
from tests.ui.driving import play, stage, until
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import sheet_of
from ui.dialogs.report import ReportProblem
from ui.report_port import Report
from ui.window.window_context import WindowContext

pytestmark = pytest.mark.usefixtures("qapp")


class Reports:
    records = False
    full = False

    async def make(self) -> Report:
        return Report(text='{"causerie_report": 1}\n', events=0)

    async def save(self, report: Report, folder: Path) -> Path:
        if self.full:
            raise StorageError("full", StorageFault.DISK_FULL)
        (folder / "report.txt").write_text(report.text)
        return folder / "report.txt"


def test_two_clicks_save_what_was_shown(tmp_path: Path, control: SettingsControl) -> None:
    async def scenario() -> None:
        async def choose(_parent: QWidget) -> Path:
            return tmp_path

        reports = Reports()
        around = replace(WindowContext(), report=reports, choose_folder=choose)
        async with stage(ScriptedEngine(), control=control, around=around) as it:
            actions = {action.text(): action for action in it.window.menu.actions()}
            actions["Report a problem…"].trigger()
            sheet = await sheet_of(it.window, ReportProblem)
            assert sheet.preview.toPlainText() == '{"causerie_report": 1}\n'
            assert "are not recorded now" in sheet.says.text()
            reports.full = True
            sheet.confirm.click()
            await until(lambda: "The disk is full" in sheet.problem.text())
            reports.full = False
            sheet.confirm.click()
            await until(lambda: sheet.state.text() != "")
            assert (tmp_path / "report.txt").read_text() == sheet.preview.toPlainText()
            sheet.record.click()
            await until(lambda: it.window.settings.is_shown)
            page = it.window.settings.page
            assert page is not None
            assert page.section("recording").isVisible()

    play(scenario)
