"""Backups in the window: the sheets that make one and set up one a day, and the way to restoring.

What went wrong with a daily backup, and that the last one is long ago, stands in the bar of notices
with an action; a notice that was closed comes back only for other news.  A backup is restored where
there is no profile yet, so the window closes for it and another one, without an engine, does the
work (``ui.restoring``).
"""

from PySide6.QtCore import QObject, Signal

from engine.events import NoticeLevel
from ui.backup_port import BackupActs, DailyBackups, DailyPort, DailyState
from ui.backup_words import last_words
from ui.dialogs.first_start import FirstStart
from ui.error_words import error_words
from ui.problem_words import sentence
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.menu import WindowMenu
from ui.window.notices import Notice, NoticesBar
from ui.window.one_sheet import OneSheet
from ui.window.window_context import WindowContext

_DAILY_KEY = "backup/daily"
_LATE_KEY = "backup/late"


class BackupFlows(QObject):
    close_requested = Signal()
    changed = Signal()
    """The daily backups have another state."""

    def __init__(
        self, context: WindowContext, tasks: Tasks, one_sheet: OneSheet, notices: NoticesBar
    ) -> None:
        super().__init__(one_sheet.window)
        self._context = context
        self._tasks = tasks
        self._one = one_sheet
        self._notices = notices
        notices.repair = None if context.repair is None else self.repair
        self._told = "", False
        """The problem with daily backups, and whether the last one is long ago."""
        self._call_off = _nothing

    @property
    def is_offered(self) -> bool:
        return self._context.backups is not None

    def start(self) -> None:
        if self._context.daily is not None:
            self._call_off = self._context.daily.listen(self._heard)
            self._heard()

    def end(self) -> None:
        self._call_off()
        self._call_off = _nothing

    def offer(self, menu: WindowMenu) -> None:
        if self.is_offered:
            menu.add(tr("Back up…"), (), self.back_up, icon_name="lock")

    def offer_restore(self, first_start: FirstStart) -> None:
        if self._context.restore is not None:
            first_start.offer_restore()
            first_start.restore_requested.connect(self.restore)

    def acts(self) -> BackupActs | None:
        """For the settings page; None if nothing is offered."""
        if not self.is_offered:
            return None
        return BackupActs(
            by_hand=self.back_up,
            daily=self._context.daily,
            set_up=self.set_up_daily,
            turn_off=self._turn_off,
        )

    # --- sheets -----------------------------------------------------------------------------------

    def back_up(self) -> None:
        port, daily = self._context.backups, self._context.daily
        if port is None:
            return
        from ui.dialogs.backup import Backup  # noqa: PLC0415 - seldom wanted, so not at the start

        async def flow() -> None:
            offers = daily is not None and daily.view().state is DailyState.OFF
            sheet = Backup(port, self._tasks, self._one.window, offers_daily=offers)
            await self._one.ask(sheet)
            if daily is not None and sheet.wants_daily is not None:
                path, passphrase = sheet.wants_daily
                await self._ask_daily(daily, str(path.parent), passphrase)

        self._one.start(tr("make a backup"), flow)

    def set_up_daily(self) -> None:
        daily = self._context.daily
        if daily is None:
            return

        async def flow() -> None:
            await self._ask_daily(daily, daily.view().folder)

        self._one.start(tr("set up daily backups"), flow)

    async def _ask_daily(self, daily: DailyPort, folder: str, passphrase: str = "") -> None:
        from ui.dialogs.daily_backup import DailyBackup  # noqa: PLC0415 - seldom wanted

        await self._one.ask(
            DailyBackup(
                daily,
                self._tasks,
                self._one.window,
                choose=self._context.choose_folder,
                folder=folder,
                passphrase=passphrase,
            )
        )

    def _turn_off(self) -> None:
        if self._context.daily is not None:
            self._tasks.spawn(self._context.daily.turn_off, purpose=tr("turn off daily backups"))

    def repair(self) -> None:
        """The database, once this window has let go of it."""
        if self._context.repair is not None:
            self._context.repair()
            self.close_requested.emit()

    def restore(self) -> None:
        """Only while nobody has a name here."""
        if self._context.restore is not None:
            self._context.restore()
            self.close_requested.emit()

    # --- notices ----------------------------------------------------------------------------------

    def _heard(self) -> None:
        daily = self._context.daily
        if daily is None:
            return
        view = daily.view()
        before, self._told = self._told, (_trouble(view), view.is_late)
        if self._told[0] != before[0]:
            self._show(_DAILY_KEY, self._daily_notice(daily, view))
        if view.is_late != before[1]:
            self._show(_LATE_KEY, self._late_notice(view) if view.is_late else None)
        self.changed.emit()

    def _show(self, key: str, notice: Notice | None) -> None:
        if notice is None:
            self._notices.clear(key)
        else:
            self._notices.raise_notice(notice)

    def _daily_notice(self, daily: DailyPort, view: DailyBackups) -> Notice | None:
        trouble = _trouble(view)
        if not trouble:
            return None
        if view.state is DailyState.NEEDS_PASSPHRASE:
            return Notice(
                key=_DAILY_KEY,
                level=NoticeLevel.INFO,
                text=trouble,
                actions=((tr("Enter the passphrase…"), self.set_up_daily),),
            )
        return Notice(
            key=_DAILY_KEY,
            level=NoticeLevel.WARNING,
            text=tr("No daily backup could be made. {why}").format(why=trouble),
            actions=(
                (tr("Try again"), daily.try_again),
                (tr("Another folder…"), self.set_up_daily),
            ),
        )

    def _late_notice(self, view: DailyBackups) -> Notice:
        return Notice(
            key=_LATE_KEY,
            level=NoticeLevel.INFO,
            text=tr("{last} Whoever loses this device goes on with a backup.").format(
                last=last_words(view)
            ),
            actions=(
                (tr("Back up…"), self.back_up),
                (tr("Do not remind me"), self._remind_no_more),
            ),
        )

    def _remind_no_more(self) -> None:
        port = self._context.settings_port
        if port is None:
            self._notices.clear(_LATE_KEY)
            return

        async def work() -> None:
            await port.change(("backup", "remind"), False)

        self._tasks.spawn(work, purpose=tr("change a setting"))


def _nothing() -> None:
    """Nobody is heard."""


def _trouble(view: DailyBackups) -> str:
    if view.state is DailyState.NEEDS_PASSPHRASE:
        return tr("Daily backups begin once you give a passphrase for them on this device.")
    if view.state is not DailyState.FAILED or view.problem is None:
        return ""
    return sentence(error_words(view.problem))
