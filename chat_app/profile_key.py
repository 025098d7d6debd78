"""The key of a profile for the command line: by its keyring or file, or by its passphrase.

``node`` needs neither: it has no database.
"""

import getpass
import sys
from typing import Final

from chat_app.passphrase_options import PassphraseSource
from engine.core.errors import ConfigError
from engine.persistence.errors import PassphraseNeededError, WrongPassphraseError
from engine.persistence.key import DatabaseKey, obtain_database_key
from engine.persistence.profile_directory import ProfileDirectory, require_not_being_erased

_TRIES: Final = 3


def key_on_command_line(
    directory: ProfileDirectory, source: PassphraseSource, *, force_key_file: bool = False
) -> DatabaseKey:
    """Raises ConfigError if there is nobody to ask, StorageError as ``obtain_database_key``."""
    require_not_being_erased(directory.path)
    given = source.read()
    try:
        return obtain_database_key(directory, force_key_file=force_key_file, passphrase=given)
    except PassphraseNeededError as error:
        if not sys.stdin.isatty():
            raise ConfigError(
                f"{error} There is no terminal to ask on: give it with"
                " --profile-passphrase-file or --profile-passphrase-fd"
            ) from error
    for left in reversed(range(_TRIES)):
        given = getpass.getpass("Passphrase of the profile: ")
        try:
            return obtain_database_key(directory, force_key_file=force_key_file, passphrase=given)
        except WrongPassphraseError as error:
            if not left:
                raise
            sys.stderr.write(f"{error}\n")
    raise AssertionError
