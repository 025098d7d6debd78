"""Words about backups: why one cannot be made or restored, and how strong a passphrase is."""

from collections.abc import Callable, Mapping
from typing import Final

from engine.core.backup import Strength
from engine.core.errors import BackupError, BackupFlaw
from ui.backup_port import DailyBackups
from ui.foreign_text import one_line
from ui.times import moment, moment_words
from ui.translate import tr

_FLAWS: Final[Mapping[BackupFlaw, Callable[[], str]]] = {
    BackupFlaw.FOREIGN: lambda: tr("This file is no backup of Causerie."),
    BackupFlaw.TOO_NEW: lambda: tr(
        "This backup was made by a newer version of Causerie. Install that version, and restore it "
        "there."
    ),
    BackupFlaw.TOO_COSTLY: lambda: tr(
        "Opening this backup would take more memory or time than a backup of Causerie ever does."
    ),
    BackupFlaw.CUT_OFF: lambda: tr(
        "The end of this backup is missing, perhaps because copying it broke off. Nothing was "
        "restored; copy it again, or use another backup."
    ),
    BackupFlaw.DAMAGED: lambda: tr(
        "This backup is damaged, so it cannot be trusted. Nothing was restored; use another one."
    ),
    BackupFlaw.NOT_OPENED: lambda: tr("This is not the passphrase of this backup."),
    BackupFlaw.PROFILE_THERE: lambda: tr(
        "There is an identity here already, and a backup never takes its place. Nothing was "
        "changed."
    ),
    BackupFlaw.TOO_SHORT: lambda: tr("A passphrase needs {detail} characters or more."),
    BackupFlaw.FILE_THERE: lambda: tr("There is a file of this name already: {detail}"),
    BackupFlaw.IN_PROFILE: lambda: tr(
        "A backup cannot be kept inside the profile that it is of: {detail}. Choose another folder."
    ),
    BackupFlaw.FOLDER_GONE: lambda: tr(
        "The folder for daily backups is not there: {detail}. If it is on another disk or a stick,"
        " connect that."
    ),
    BackupFlaw.TOO_LITTLE_MEMORY: lambda: tr(
        "Opening this backup takes {detail} MB of memory, which are not free on this device now."
        " Close other programs and try again; nothing was changed."
    ),
    BackupFlaw.STOPPED: lambda: tr("It was stopped. Nothing was changed."),
}


def backup_words(error: BackupError) -> str:
    return _FLAWS[error.flaw]().format(detail=one_line(error.detail))


def strength_words(strength: Strength) -> str:
    match strength:
        case Strength.TOO_SHORT:
            return tr("Too short")
        case Strength.WEAK:
            return tr("Weak: it may be guessed by whoever has the file")
        case Strength.FAIR:
            return tr("Fair: better with one more word")
        case Strength.STRONG:
            return tr("Strong")


def last_words(view: DailyBackups) -> str:
    if not view.last_good_ms:
        return tr("No backup of this device is known yet.")
    when = moment_words(moment(view.last_good_ms))
    return tr("The last good backup: {when}.").format(when=when)
