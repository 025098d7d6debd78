"""From a start of the window to its end: what is done when one fails, and what one closes for.

A start that failed may be tried again, after something was put right or in another profile.  A
window may close to be started again, or for a backup to be restored or the profile to be erased.
"""

import time
from typing import Final

from msgspec.structs import replace

from chat_app.display import require_display
from chat_app.failed_start import (
    ask_about,
    ask_about_salvaged,
    can_be_seen,
    set_settings_aside,
    tell_left,
)
from chat_app.paths import ProfilePaths, paths_beside
from chat_app.unlocking import ForgottenError
from chat_app.window import (
    START_AGAIN,
    EraseAskedError,
    Keys,
    RestoreAskedError,
    WindowOptions,
    run_window,
)
from engine.core.errors import ChatError, SettingsUnwritableError
from engine.persistence.errors import CarryOverStoppedError, HandedOverError, ProfileInUseError
from engine.persistence.profile_directory import is_being_erased
from ui.failed_start import LeftBehind, StartAction

_PATIENCE_S: Final = 3.0
_LOOK_AGAIN_S: Final = 0.1


def open_window(paths: ProfilePaths, options: WindowOptions) -> int:
    """Run until the window is closed; a window that has the profile open already takes over.

    Raises ConfigError, StorageError, TransportError for what keeps it from opening.
    """
    require_display()
    action, keys, erases = StartAction.TRY_AGAIN, Keys(), False
    while True:
        try:
            options = _prepared(action, paths, options)
            status = (_erase if erases else open_or_hand_over)(paths, options, keys)
            if status != START_AGAIN:
                return status
            action = StartAction.TRY_AGAIN
            options = replace(options, link="", minimised=False)
        except (RestoreAskedError, ForgottenError) as error:
            action = StartAction.TRY_AGAIN
            paths = _restored_as_asked(paths, beside=isinstance(error, ForgottenError))
        except EraseAskedError:
            action, erases = StartAction.TRY_AGAIN, True
        except Exception as error:
            if not can_be_seen() or options.measure_start_ns is not None:
                raise
            options = _told_once(error, options)
            chosen = _after_failure(error, paths, keys)
            if chosen is None:
                return 0
            action, paths = chosen
            if action is StartAction.QUIT:
                raise


def _after_failure(
    error: Exception, paths: ProfilePaths, keys: Keys
) -> tuple[StartAction, ProfilePaths] | None:
    """What is to be done before the next try, and in which profile; None: nothing is left to do."""
    action = ask_about(error, paths)
    if action is StartAction.SALVAGE:
        from chat_app.salvaging import salvage_in_window  # noqa: PLC0415 - seldom wanted

        try:
            made = salvage_in_window(paths, keys.of(paths))
        except CarryOverStoppedError:
            return StartAction.QUIT, paths
        except ChatError as worse:
            action = ask_about(worse, paths, offers_salvage=False)
        else:
            action = ask_about_salvaged(made)
            return None if action is StartAction.QUIT else (action, paths)
    if action is StartAction.RESTORE:
        return action, _restored_beside(paths)
    return action, paths


def _erase(paths: ProfilePaths, options: WindowOptions, keys: Keys) -> int:
    del keys  # Whoever may remove the profile needs none.
    from chat_app.erasing import erase_profile  # noqa: PLC0415 - seldom wanted

    erased = erase_profile(paths, options.start_command)
    if (erased.stayed or erased.keyring_entry) and can_be_seen():
        tell_left(LeftBehind(paths=erased.stayed, keyring_entry=erased.keyring_entry), paths)
    return 0


def _restored_as_asked(paths: ProfilePaths, *, beside: bool) -> ProfilePaths:
    """``beside``: a profile is here, and stays as it is."""
    if beside:
        return _restored_beside(paths)
    _restored(paths)
    return paths


def _restored_beside(paths: ProfilePaths) -> ProfilePaths:
    """Of the profile that is to be opened then."""
    beside = paths_beside(paths, f"restored-{time.strftime('%Y-%m-%d')}")
    return beside if _restored(beside) else paths


def _told_once(error: Exception, options: WindowOptions) -> WindowOptions:
    """For another try: the window that has the link needs no second one."""
    return replace(options, link="") if isinstance(error, HandedOverError) else options


def _restored(paths: ProfilePaths) -> bool:
    """Whether a backup has become the profile there."""
    from chat_app.restoring import restore_in_window  # noqa: PLC0415 - seldom wanted

    return restore_in_window(paths)


def open_or_hand_over(paths: ProfilePaths, options: WindowOptions, keys: Keys | None = None) -> int:
    """The process that has the profile may be about to listen, or to end: wait for either."""
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _open(paths, options, keys or Keys())
        except ProfileInUseError as error:
            if _hand_over(paths, options, error):
                return 0
            if time.monotonic() > until_s:
                raise
        time.sleep(_LOOK_AGAIN_S)


def _hand_over(paths: ProfilePaths, options: WindowOptions, in_use: ProfileInUseError) -> bool:
    """Whether the window that has it took over.  Raises HandedOverError if it may yet."""
    from chat_app.one_instance import (  # noqa: PLC0415 - a first start has no use for it
        HandOver,
        hand_over,
    )

    outcome = hand_over(paths.directory, options.link)
    if outcome is HandOver.UNANSWERED:
        raise HandedOverError(in_use.profile_name) from in_use
    return outcome is HandOver.TAKEN


def _prepared(action: StartAction, paths: ProfilePaths, options: WindowOptions) -> WindowOptions:
    """Whatever the next try needs first.  Raises SettingsUnwritableError."""
    if action is StartAction.USE_DEFAULTS:
        try:
            set_settings_aside(paths.settings_file)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise SettingsUnwritableError(str(paths.settings_file), reason) from error
    return replace(options, port=0) if action is StartAction.ANY_PORT else options


def _open(paths: ProfilePaths, options: WindowOptions, keys: Keys) -> int:
    if is_being_erased(paths.directory):
        _erase(paths, options, keys)
    return run_window(paths, options, keys)
