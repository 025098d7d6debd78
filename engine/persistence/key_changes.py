"""Changes the ways that lead to a database's key; the key and the database stay as they are.

The order makes it safe to be killed anywhere: a secret is in its place before the header leads to
it, a header is written in one step, and what no header leads to any more is forgotten last.  The
caller holds the profile's lock.  A copy of an old header together with the old secret still opens
the database: only a new profile, from a backup, has another key.
"""

import logging
from contextlib import suppress

from msgspec import Struct

from engine.core.backup import Cost
from engine.core.errors import StorageError
from engine.core.key_header import KeyHeader, Way, WayKind
from engine.crypto.key_header import header_of, is_vouched_for, open_passphrase, passphrase_way
from engine.persistence.errors import KeyUnavailableError
from engine.persistence.key import (
    DatabaseKey,
    KeyPlace,
    key_by_passphrase,
    key_by_place,
    new_place,
    place_of,
    read_account,
    wants_key_file,
)
from engine.persistence.key_header_file import mend_copies, read_key_header, write_key_header
from engine.persistence.key_places import forget_in_keyring
from engine.persistence.profile_directory import ProfileDirectory, write_private_file

logger = logging.getLogger(__name__)


class KeyWays(Struct, frozen=True, kw_only=True):
    """What leads to the key."""

    place: KeyPlace | None
    """Keyring or file, which need nobody; None: nothing but the passphrase."""
    has_passphrase: bool


def key_ways(directory: ProfileDirectory) -> KeyWays:
    """Raises StorageError."""
    header = read_key_header(directory)
    if header is None:
        in_file = directory.key_file.exists()
        place = KeyPlace.KEY_FILE if in_file else KeyPlace.SYSTEM_KEYRING
        return KeyWays(place=place, has_passphrase=False)
    place_way = header.place
    return KeyWays(
        place=None if place_way is None else place_of(place_way),
        has_passphrase=header.passphrase is not None,
    )


# --- at a start ---------------------------------------------------------------------------------


def tend_key_header(
    directory: ProfileDirectory, opened: DatabaseKey, *, force_key_file: bool = False
) -> None:
    """Once the database is open: carry an earlier profile over, and mend what was found broken.

    What an earlier profile left goes at a later start, which the new way has opened: a keyring may
    forget what it took as soon as its session ends.  Nothing here keeps a profile from opening.
    """
    force_key_file = force_key_file or wants_key_file()
    try:
        header = read_key_header(directory)
        if header is None:
            _carry_over(directory, opened, force_key_file=force_key_file)
            return
        if not is_vouched_for(header, opened.key):
            return
        if mend_copies(directory, header):
            logger.warning("A copy of the key header was made anew.")
        if header.place is not None:
            _tend_place(directory, header, header.place, opened, force_key_file=force_key_file)
        else:
            _forget_all_but_the_passphrase(directory)
    except StorageError as error:
        logger.warning("The key header stays as it is.", extra={"reason": error.fault.value})


def _carry_over(directory: ProfileDirectory, opened: DatabaseKey, *, force_key_file: bool) -> None:
    in_file = force_key_file or opened.place is KeyPlace.KEY_FILE
    way = new_place(directory, opened.key, force_key_file=in_file)
    if place_of(way) is opened.place:  # A key in the keyring never goes to a file by itself.
        write_key_header(directory, header_of((way,), opened.key))
    else:
        _forget_place(directory, way)


def _tend_place(
    directory: ProfileDirectory,
    header: KeyHeader,
    place: Way,
    opened: DatabaseKey,
    *,
    force_key_file: bool,
) -> None:
    is_left = directory.key_file.exists() or directory.keyring_account.exists()
    if opened.place is place_of(place) and not is_left:
        return  # It has just been opened by it; the keyring need not be asked once more.
    try:
        key_by_place(directory, place, force_key_file=force_key_file)
    except KeyUnavailableError:
        if force_key_file and place.kind is WayKind.KEYRING:
            return
        in_file = place.kind is WayKind.KEY_FILE
        if in_file and directory.place_secret.exists():
            directory.place_secret.replace(directory.place_secret.with_suffix(".unusable"))
        fresh = new_place(directory, opened.key, force_key_file=in_file)
        if fresh.kind is not place.kind:
            _forget_place(directory, fresh)
            return
        _write(directory, (fresh, header.passphrase), opened.key)
        logger.warning("The place of the profile's key was made anew.")
    else:
        if not _forget_before(directory, place):
            logger.warning("The keyring's earlier entry of this profile could not be removed.")


# --- the passphrase -----------------------------------------------------------------------------


def check_passphrase(directory: ProfileDirectory, passphrase: str) -> bytes:
    """The key.  Takes what a passphrase costs.

    Raises WrongPassphraseError, TooSoonError, StorageError.
    """
    return key_by_passphrase(directory, _header(directory), passphrase)


def set_passphrase(  # noqa: PLR0913 - the last two may be left out
    directory: ProfileDirectory,
    key: bytes,
    passphrase: str,
    *,
    alone: bool,
    force_key_file: bool = False,
    cost: Cost | None = None,
) -> bool:
    """Set or change it.  ``alone``: nothing else opens the profile from now on.

    Whether what led to the key before is gone, too, if it should: a keyring may refuse.  Raises
    BackupError if it is too short, StorageError.
    """
    force_key_file = force_key_file or wants_key_file()
    before = _header_or_none(directory, key)
    way = passphrase_way(passphrase, key, cost)
    if open_passphrase(way, passphrase) != key:
        raise StorageError("The passphrase could not be set.")
    place = None if before is None else before.place
    if alone:
        if place is not None and place.kind is WayKind.KEYRING:
            _note_account(directory, place.name.hex())
        _write(directory, (way,), key)
        is_gone = place is None or _forget_place(directory, place)
        return _forget_all_but_the_passphrase(directory) and is_gone
    if place is None:
        place = new_place(directory, key, force_key_file=force_key_file)
    _write(directory, (place, way), key)
    return True


def remove_passphrase(
    directory: ProfileDirectory, key: bytes, *, force_key_file: bool = False
) -> KeyPlace:
    """Where the key's secret is now.  Raises StorageError."""
    force_key_file = force_key_file or wants_key_file()
    before = _header_or_none(directory, key)
    place = None if before is None else before.place
    if place is not None:
        try:
            if key_by_place(directory, place, force_key_file=force_key_file) != key:
                place = None
        except KeyUnavailableError:
            place = None
    if place is None:
        place = new_place(directory, key, force_key_file=force_key_file)
    _write(directory, (place,), key)
    return place_of(place)


# --- both ---------------------------------------------------------------------------------------


def _header(directory: ProfileDirectory) -> KeyHeader:
    header = read_key_header(directory)
    if header is None:
        raise KeyUnavailableError("This profile has no passphrase.")
    return header


def _header_or_none(directory: ProfileDirectory, key: bytes) -> KeyHeader | None:
    header = read_key_header(directory)
    if header is not None and not is_vouched_for(header, key):
        raise KeyUnavailableError("The key header is another profile's; it was left as it is.")
    return header


def _write(directory: ProfileDirectory, ways: tuple[Way | None, ...], key: bytes) -> None:
    header = header_of(tuple(way for way in ways if way is not None), key)
    write_key_header(directory, header)
    if read_key_header(directory) != header:
        raise StorageError("The key header could not be read back.")


def _forget_place(directory: ProfileDirectory, place: Way) -> bool:
    """What no header leads to; whether it is gone."""
    if place.kind is WayKind.KEYRING:
        return forget_in_keyring(place.name.hex())
    with suppress(OSError):
        directory.place_secret.unlink(missing_ok=True)
    return not directory.place_secret.exists()


def _note_account(directory: ProfileDirectory, account: str) -> None:
    """So that a later start forgets the keyring's entry, if this one is killed before."""
    with suppress(OSError):
        if not directory.keyring_account.exists():
            write_private_file(directory.keyring_account, account + "\n")


def _forget_all_but_the_passphrase(directory: ProfileDirectory) -> bool:
    with suppress(OSError):
        directory.place_secret.unlink(missing_ok=True)
    return _forget_before(directory) and not directory.place_secret.exists()


def _forget_before(directory: ProfileDirectory, kept: Way | None = None) -> bool:
    """What an earlier profile had in place of a header; whether it is gone.

    An entry that ``kept`` leads to was only noted, by a change that did not come to its end.
    """
    account = read_account(directory)
    is_kept = kept is not None and account == kept.name.hex()
    if account is not None and not is_kept and not forget_in_keyring(account):
        return False
    with suppress(OSError):
        directory.keyring_account.unlink(missing_ok=True)
        directory.key_file.unlink(missing_ok=True)
    return not (directory.key_file.exists() or directory.keyring_account.exists())
