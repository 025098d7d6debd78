"""The sections about what is kept on this device, about records, and about what few ever change."""

from collections.abc import Callable, Iterator

from ui.backup_port import BackupActs
from ui.controls import Button
from ui.foreign_text import breaking
from ui.settings_page.backup_rows import BackupRow, DailyRow
from ui.settings_page.rows import (
    ActionRow,
    Bound,
    ChoiceRow,
    FieldRow,
    NumberRow,
    SettingRow,
    SwitchRow,
)
from ui.settings_page.section import SettingsSection
from ui.translate import tr


def data_section(
    bound: Bound,
    backups: BackupActs | None,
    show_space: Callable[[], None] | None,
    erase: Callable[[], None] | None,
) -> SettingsSection:
    """None of what is not offered."""
    section = SettingsSection(
        "data", "data", tr("Data"), tr("What is kept on this device, and for how long.")
    )
    section.add_rows(*_backup_rows(bound, backups), heading=tr("Backup"))
    if show_space is not None:
        section.add_rows(
            ActionRow(
                tr("Where the space goes"),
                tr("By conversation: texts, files, evidence; and what may be let go."),
                Button(tr("Show…")),
                show_space,
            )
        )
    _add_room(section, bound)
    if erase is not None:
        section.add_rows(
            ActionRow(
                tr("Erase this profile"),
                tr("Everything of it on this device. What others have stays with them."),
                Button(tr("Erase…"), kind="danger"),
                erase,
            )
        )
    return section


def _add_room(section: SettingsSection, bound: Bound) -> None:
    section.add_rows(
        NumberRow(
            bound,
            ("storage", "files_megabytes"),
            tr("Room for files"),
            tr("Larger ones than 96 KiB, those you sent and those you fetched."),
            tr("MB"),
        ),
        heading=tr("Files"),
    )
    section.add_rows(
        NumberRow(
            bound,
            ("storage", "keep_days"),
            tr("Keep sealed messages for others"),
            tr("So that members of your conversations can fetch what they missed. 0: keep none."),
            tr("days"),
        ),
        NumberRow(
            bound,
            ("storage", "keep_megabytes"),
            tr("Room for them"),
            tr("The oldest goes first."),
            tr("MB"),
        ),
        heading=tr("Kept for others"),
    )


def _backup_rows(bound: Bound, backups: BackupActs | None) -> Iterator[SettingRow]:
    if backups is not None:
        yield BackupRow(backups)
        if backups.daily is not None:
            yield DailyRow(backups, backups.daily)
    yield NumberRow(
        bound,
        ("backup", "keep_daily"),
        tr("Daily ones kept"),
        tr("Of so many days the newest stays."),
    )
    yield NumberRow(
        bound,
        ("backup", "keep_weekly"),
        tr("Weekly ones kept"),
        tr("Besides these, of so many weeks the newest stays."),
    )
    yield SwitchRow(
        bound,
        ("backup", "remind"),
        tr("Remind me"),
        tr("When the last backup is older than 30 days."),
    )


def recording_section(bound: Bound, agree: Callable[[Callable[[], None]], None]) -> SettingsSection:
    """``agree`` says what recording means, and calls what it was given once one agreed."""
    section = SettingsSection(
        "recording",
        "record",
        tr("Recording"),
        tr("For testers who compare how messages travelled. It holds no text and no names."),
    )
    section.add_rows(
        RecordRow(bound, agree),
        FieldRow(
            bound,
            ("delivery", "key"),
            tr("Key of your records"),
            tr("Records can be compared if all who made them have the same key."),
            placeholder=tr("one is made when you begin to record"),
        ),
        NumberRow(
            bound,
            ("delivery", "max_megabytes"),
            tr("Room for records"),
            tr("The oldest goes first."),
            tr("MB"),
        ),
    )
    return section


class RecordRow(SwitchRow):
    """Switched on only once it was said what that means."""

    def __init__(self, bound: Bound, agree: Callable[[Callable[[], None]], None]) -> None:
        self._agree = agree
        super().__init__(
            bound,
            ("delivery", "record"),
            tr("Record deliveries"),
            tr("When each message was sent, arrived, was missing and was acknowledged."),
        )

    def wish(self, on: bool) -> None:
        if on:
            self.refresh()
            self._agree(lambda: self.change(value=True))
        else:
            self.change(value=False)


def advanced_section(
    bound: Bound, open_file: Callable[[], None], open_folder: Callable[[], None]
) -> SettingsSection:
    section = SettingsSection(
        "advanced",
        "settings",
        tr("Advanced"),
        tr("All settings are lines of one file, which you may edit, too."),
    )
    section.add_rows(
        ActionRow(
            tr("Settings file"), breaking(bound.port.file), Button(tr("Open the file")), open_file
        ),
        ActionRow(
            tr("Where it lies"),
            tr("In a folder with the settings of this profile only."),
            Button(tr("Open the folder")),
            open_folder,
        ),
    )
    _add_protocols(section, bound)
    _add_log(section, bound)
    return section


def _add_protocols(section: SettingsSection, bound: Bound) -> None:
    section.add_rows(
        FieldRow(
            bound,
            ("network", "listen_host"),
            tr("Address to listen on"),
            tr("auto: reached from the whole network, or not at all if a proxy is set."),
        ),
        NumberRow(
            bound,
            ("network", "connections_per_address"),
            tr("Connections from one address"),
            tr("So many devices can connect to this one from one address."),
        ),
        NumberRow(
            bound,
            ("network", "cluster"),
            tr("Waku cluster"),
            tr("People meet only within the same cluster."),
        ),
        NumberRow(
            bound,
            ("network", "shards"),
            tr("Shards of the cluster"),
            tr("Everybody in it must use the same number."),
        ),
        ChoiceRow(
            bound,
            ("network", "mvds_mode"),
            tr("One-to-one messages go out"),
            (
                ("ours", tr("As costs least")),
                ("batch", tr("At once")),
                ("interactive", tr("On request")),
            ),
            tr("All are understood, whatever the other side uses."),
        ),
        ChoiceRow(
            bound,
            ("network", "mvds_wire"),
            tr("Field numbers of one-to-one chats"),
            (("rfc", tr("2/MVDS")), ("draft", tr("Draft 0.6"))),
            tr("Both are understood, and who uses the other is answered in it."),
        ),
        heading=tr("Protocols"),
    )


def _add_log(section: SettingsSection, bound: Bound) -> None:
    section.add_rows(
        ChoiceRow(
            bound,
            ("log", "level"),
            tr("Log"),
            (
                ("debug", tr("Everything")),
                ("info", tr("Usual")),
                ("warning", tr("Warnings and errors")),
                ("error", tr("Errors only")),
            ),
            tr("It never holds what people write, nor keys."),
        ),
        NumberRow(
            bound,
            ("log", "max_bytes"),
            tr("Size of a log file"),
            tr("Then a new one is begun."),
            tr("bytes"),
        ),
        NumberRow(bound, ("log", "keep_files"), tr("Older log files kept")),
        heading=tr("Log"),
    )
