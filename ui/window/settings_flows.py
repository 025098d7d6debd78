"""The settings page in the window: made when first wanted, shown in the conversations' place.

What a changed setting does to the window happens here, wherever it was changed: on the page, by a
key, or in the file.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from PySide6.QtCore import QEvent, QObject, Qt, QUrl, Signal
from PySide6.QtWidgets import QApplication, QStackedWidget, QWidget
from shiboken6 import isValid

from engine.api import ChatEngine
from ui.dialogs.recording import RecordingKey, recording_confirm
from ui.settings import UiSettings
from ui.settings_port import SettingName, SettingsPort
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.backup_flows import BackupFlows
from ui.window.data_flows import DataFlows
from ui.window.desktop import Desktop
from ui.window.lock_flows import LockFlows
from ui.window.looks import Looks
from ui.window.notices import NoticesBar
from ui.window.one_sheet import OneSheet
from ui.window.update_flows import UpdateFlows
from ui.window.window_context import WindowContext

if TYPE_CHECKING:
    from ui.dialogs.profile import ProfileFields
    from ui.dialogs.stores import StoresList
    from ui.settings_page.fault_rows import FaultRows
    from ui.settings_page.page import SettingsPage
    from ui.settings_page.section import SettingsSection


_TELLS_OF_SCREEN = sys.platform not in {"win32", "darwin"}


class SettingsParts(Struct, frozen=True, kw_only=True):
    """What the page shows and acts on."""

    engine: ChatEngine
    tasks: Tasks
    settings: UiSettings
    context: WindowContext
    looks: Looks
    desktop: Desktop
    one_sheet: OneSheet
    notices: NoticesBar
    pages: QStackedWidget
    """Of which the page is one."""
    make_profile: Callable[[], "ProfileFields"]
    make_stores: Callable[[], "StoresList"]
    lock_flows: LockFlows
    backups: BackupFlows
    data: DataFlows


class SettingsFlows(QObject):
    restart_requested = Signal()
    language_changed = Signal()

    def __init__(self, parts: SettingsParts, window: QWidget) -> None:
        super().__init__(window)
        self._parts = parts
        self._window = window
        self._before: QWidget | None = None
        """What was shown before the page."""
        self._focus_before: QWidget | None = None
        self.page: SettingsPage | None = None
        self.faults: FaultRows | None = None
        """The fault bench on it."""
        self.updates = UpdateFlows(parts.context, parts.tasks, parts.notices, self)
        port = parts.context.settings_port
        self._call_off: Callable[[], None] = lambda: None
        if port is not None:
            self._call_off = port.listen(self._heard)
            window.installEventFilter(self)

    @property
    def is_offered(self) -> bool:
        return self._parts.context.settings_port is not None

    @property
    def is_shown(self) -> bool:
        return self.page is not None and self._parts.pages.currentWidget() is self.page

    def open(self, section: str = "") -> None:
        port, pages = self._parts.context.settings_port, self._parts.pages
        if port is None:
            return
        if self.page is None:
            self.page = self._make(port)
            pages.addWidget(self.page)
        if not self.is_shown:
            self._before = pages.currentWidget()
            self._focus_before = QApplication.focusWidget()
            pages.setCurrentWidget(self.page)
        self.page.show_section(section)

    def close(self) -> None:
        if not self.is_shown or self._before is None:
            return
        self._parts.pages.setCurrentWidget(self._before)
        focused = self._focus_before
        if focused is not None and isValid(focused) and focused.isVisible():
            focused.setFocus(Qt.FocusReason.OtherFocusReason)

    # --- building ---------------------------------------------------------------------------------

    def _make(self, port: SettingsPort) -> "SettingsPage":
        # Seldom wanted, so not at the start.
        from ui.settings_page import data_sections as data  # noqa: PLC0415
        from ui.settings_page import looks_sections as looks  # noqa: PLC0415
        from ui.settings_page.lock_rows import lock_rows  # noqa: PLC0415
        from ui.settings_page.network_section import network_section  # noqa: PLC0415
        from ui.settings_page.page import SettingsPage  # noqa: PLC0415
        from ui.settings_page.rows import Bound  # noqa: PLC0415

        parts, bound = self._parts, Bound(port, self._parts.tasks)
        rows_about_lock = (
            tuple(lock_rows(bound, parts.lock_flows, told_by_screen=_TELLS_OF_SCREEN))
            if parts.lock_flows.lock.is_offered
            else ()
        )
        page = SettingsPage(
            port,
            (
                looks.profile_section(
                    parts.engine.identity, parts.make_profile(), parts.lock_flows.lock
                ),
                looks.appearance_section(bound),
                looks.notifications_section(
                    bound, parts.desktop.make_quiet_menu, parts.context.autostart
                ),
                looks.privacy_section(bound, rows_about_lock, parts.context.updates),
                network_section(
                    bound,
                    connection=parts.engine.connection,
                    stores=parts.make_stores(),
                ),
                data.data_section(
                    bound, parts.backups.acts(), parts.data.space_act(), parts.data.erase_act()
                ),
                data.recording_section(bound, self._ask_about_recording),
                self._with_faults(data.advanced_section(bound, self._open_file, self._open_folder)),
            ),
            open_file=self._open_file,
        )
        parts.backups.changed.connect(page.section("data").refresh)
        self.updates.changed.connect(page.section("privacy").refresh)
        page.closed.connect(self.close)
        page.restart_requested.connect(self.restart_requested)
        return page

    def _with_faults(self, section: "SettingsSection") -> "SettingsSection":
        from ui.settings_page.fault_rows import FaultRows  # noqa: PLC0415

        parts = self._parts
        rows = FaultRows(
            lambda: parts.engine.faults,
            parts.data.conversations,
            parts.context.now,
            peers=lambda: [peer.peer_id for peer in parts.engine.network().facts.peers],
        )
        rows.add_to(section)
        self.faults = rows
        return section

    def _open_file(self) -> None:
        self._open_path(Path(self._parts.context.settings_file))

    def _open_folder(self) -> None:
        self._open_path(Path(self._parts.context.settings_file).parent)

    def _open_path(self, path: Path) -> None:
        self._parts.context.open_url(QUrl.fromLocalFile(str(path)))

    def _ask_about_recording(self, agreed: Callable[[], None]) -> None:
        async def flow() -> None:
            if await self._parts.one_sheet.ask(recording_confirm(self._window)):
                agreed()

        self._parts.one_sheet.start(tr("record deliveries"), flow)

    # --- what a change does -----------------------------------------------------------------------

    def _heard(self, name: SettingName) -> None:
        settings, notifications = self._parts.settings, self._parts.desktop.notifications
        settings.reread()
        match name:
            case ("appearance", "language"):
                self.language_changed.emit()
            case ("appearance", _):
                self._parts.looks.apply()
            case ("notifications", "enabled") if not settings.notifications:
                notifications.withdraw_all()
            case ("notifications", "preview") if not settings.show_message_text:
                notifications.hide_texts()
            case ("privacy", "lock_after"):
                self._parts.lock_flows.lock.reread()
            case ("delivery", "record") if settings.record_deliveries:
                self._show_recording_key()
            case _:
                pass
        if self.page is not None:
            self.page.heard(name)

    def end(self) -> None:
        """The window goes."""
        self._call_off()
        self._call_off = lambda: None
        self.updates.end()

    def _show_recording_key(self) -> None:
        async def flow() -> None:
            await self._parts.one_sheet.ask(
                RecordingKey(self._parts.settings.delivery_key, self._window)
            )

        self._parts.one_sheet.start(tr("show the key"), flow, waits=True)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The file may have been edited in another window."""
        if event.type() == QEvent.Type.WindowActivate and self.page is not None and self.is_shown:
            self.page.reread()
        return super().eventFilter(watched, event)
