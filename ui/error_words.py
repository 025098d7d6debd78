"""Sentences about errors: one for each code, and what to do.

The text of an error is never shown: it is English, and for developers, logs and the command line.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from engine.core.channel_link import CHANNEL_PREFIX
from engine.core.contacts import CONTACT_PREFIX
from engine.core.errors import (
    AddressError,
    BackupError,
    ChatError,
    CommandError,
    CommandRefusal,
    ConfigError,
    InputError,
    InputFlaw,
    InviteError,
    LinkFlaw,
    LinkKind,
    RemoteProtocolError,
    SettingsError,
    SettingsUnwritableError,
    StorageError,
    StorageFault,
    TransportError,
)
from engine.core.invite import INVITE_PREFIX, MAX_LINK_CHARACTERS
from ui.address_words import address_words
from ui.backup_words import backup_words
from ui.foreign_text import one_line
from ui.governing_words import nobody_more_words
from ui.problem_words import sentence
from ui.setting_words import settings_words
from ui.times import LATEST_MS, date_words
from ui.translate import tr
from ui.transport_words import transport_words

_MAX_NAME: Final = 60


_REFUSALS: Final[Mapping[CommandRefusal, Callable[[], str]]] = {
    CommandRefusal.TOO_MANY_FAULTS: lambda: tr(
        "There are too many faults on purpose. Stop some first."
    ),
    CommandRefusal.NO_MEMBER: lambda: tr("They are no member of this group."),
    CommandRefusal.LEFT_GROUP: lambda: tr("They are not in this group any more."),
    CommandRefusal.KEYS_NOT_HERE: lambda: tr(
        "Nothing of theirs has come here yet, so their keys are not known. Try again later."
    ),
    CommandRefusal.NO_CONVERSATION: lambda: tr("There is no such conversation any more."),
    CommandRefusal.NOT_ANSWERED: lambda: tr("They have not answered your request yet."),
    CommandRefusal.ACCEPT_FIRST: lambda: tr("Accept their request first."),
    CommandRefusal.DECLINED: lambda: tr("The request was declined."),
    CommandRefusal.BLOCKED: lambda: tr("You blocked this person."),
    CommandRefusal.NOTHING_TO_ACCEPT: lambda: tr("There is no request to accept any more."),
    CommandRefusal.NOTHING_TO_DECLINE: lambda: tr("There is nothing to decline any more."),
    CommandRefusal.NOTHING_TO_WITHDRAW: lambda: tr("There is no request to withdraw any more."),
    CommandRefusal.NOT_KEPT: lambda: tr("One of the two messages is not kept here any more."),
    CommandRefusal.NO_MESSAGE: lambda: tr("This message is not here any more."),
    CommandRefusal.NO_FILE: lambda: tr("This message has no file."),
    CommandRefusal.NOT_COMPLETE: lambda: tr("Not all of this file is here."),
    CommandRefusal.TOO_LARGE_TO_SHOW: lambda: tr("This file is too large to be shown here."),
    CommandRefusal.RETRACTED: lambda: tr("This message was deleted."),
    CommandRefusal.NOT_OURS: lambda: tr("Only its author can change a message."),
    CommandRefusal.NOT_GOVERNED: lambda: tr(
        "Anyone with the link is in this group, so nobody can do that here."
    ),
    CommandRefusal.NOT_IN_GROUP: lambda: tr("You are not in this group any more."),
    CommandRefusal.ROLE_TOO_LOW: lambda: tr("Only admins of this group can do that."),
    CommandRefusal.OUTRANKED: lambda: tr("They were an admin before you, so you cannot do that."),
    CommandRefusal.TOO_OFTEN: lambda: tr("You did this to them too often already."),
    CommandRefusal.INVITATION_OVER: lambda: tr("This invitation is not open any more."),
    CommandRefusal.LOG_FULL: lambda: tr("The log of this group has no room for more."),
    CommandRefusal.NOBODY_MORE: nobody_more_words,
    CommandRefusal.STILL_LOADING: lambda: tr(
        "This conversation is still being read from the disk. Try again in a moment."
    ),
    CommandRefusal.NOT_FOR_US: lambda: tr(
        "It was written before you came, and whoever let you in did not give you its key."
    ),
    CommandRefusal.NOBODY_ASKS: lambda: tr("They do not wait to be let in any more."),
    CommandRefusal.TOO_MANY_INVITATIONS: lambda: tr(
        "There are too many open invitations of yours to this group. Revoke one first."
    ),
    CommandRefusal.TOO_MANY_JOINS: lambda: tr(
        "You wait to be let into too many groups already. Cancel one first."
    ),
}


_STORAGE: Final[Mapping[StorageFault, Callable[[], str]]] = {
    StorageFault.DISK_FULL: lambda: tr("The disk is full; nothing was saved."),
    StorageFault.DISK_ERROR: lambda: tr("The disk reported an error."),
    StorageFault.LOCKED: lambda: tr("Another process keeps the database locked."),
    StorageFault.READ_ONLY: lambda: tr("The database may only be read."),
    StorageFault.NOT_OPENED: lambda: tr("The database file cannot be opened."),
    StorageFault.NOT_DECRYPTED: lambda: tr(
        "The database cannot be decrypted: either its key is another one, or the file was damaged."
    ),
    StorageFault.DAMAGED: lambda: tr("The database is damaged."),
    StorageFault.DATABASE_GONE: lambda: tr(
        "The database of this profile is gone or empty, though the profile was used."
    ),
    StorageFault.TOO_SLOW: lambda: tr("The disk is too slow: too much waits for it."),
    StorageFault.NOT_LOADED: lambda: tr("This conversation could not be loaded."),
    StorageFault.NOT_FOUND: lambda: tr("This conversation is not in the profile any more."),
    StorageFault.CONTRADICTION: lambda: tr(
        "This contradicts what is stored already; nothing was saved."
    ),
    StorageFault.NOT_STORABLE: lambda: tr("This cannot be stored; nothing was saved."),
    StorageFault.NO_ROOM_TO_CARRY_OVER: lambda: tr(
        "The disk is too full to carry your messages over to this version: for a while that takes "
        "up to {detail} MB more. Make room and start again; nothing was changed."
    ),
    StorageFault.NO_ROOM_TO_RECLAIM: lambda: tr(
        "There is too little free room on the disk for that: {detail} MB are missing. Make room "
        "and try again; nothing was changed."
    ),
    StorageFault.IN_USE: lambda: tr(
        'The profile "{detail}" is in use by another program, whose window does not answer. Close '
        "that program first."
    ),
    StorageFault.HANDED_OVER: lambda: tr(
        'The profile "{detail}" is open in another window, which does not answer now. It was told '
        "of this start, and goes on with it once it can. If it never does, close that program."
    ),
    StorageFault.UNUSABLE: lambda: tr("The profile's folder cannot be used ({detail})."),
    StorageFault.TOO_NEW: lambda: tr(
        "This profile was written by a newer version of Causerie. Install that version; nothing "
        "was changed."
    ),
    StorageFault.TOO_OLD: lambda: tr(
        "This profile was written by a test version whose format is not used any more. Nothing was "
        "changed."
    ),
    StorageFault.NO_KEY: lambda: tr(
        "The key of this profile cannot be read, so its messages cannot be opened. Unlock the "
        "system's keyring, or put the missing file back, and try again. Nothing was changed."
    ),
    StorageFault.PASSPHRASE_NEEDED: lambda: tr("This profile opens with its passphrase."),
    StorageFault.WRONG_PASSPHRASE: lambda: tr("This is not the passphrase."),
    StorageFault.TOO_SOON: lambda: tr("Too many wrong passphrases. Try again in {detail} seconds."),
    StorageFault.KEYS_DAMAGED: lambda: tr(
        "The key header of this profile and its copy are damaged ({detail}), so its messages "
        "cannot be opened. Put a copy of the file back, or restore a backup. Nothing was changed."
    ),
    StorageFault.KEYS_FOREIGN: lambda: tr(
        "In the place of this profile's key header is another file, or its beginning is damaged "
        "({detail}). Put the right file back, or restore a backup. Nothing was changed."
    ),
    StorageFault.KEYS_TOO_NEW: lambda: tr(
        "The key header of this profile was written by a newer version of Causerie. Install that "
        "version; nothing was changed."
    ),
    StorageFault.FILE_NOT_WRITTEN: lambda: tr("The file cannot be written: {detail}."),
    StorageFault.FOLDER_GONE: lambda: tr(
        "The folder is not there any more: {detail}. If it is on another disk or a stick, connect"
        " that."
    ),
    StorageFault.FILE_NOT_READ: lambda: tr("The file cannot be read: {detail}."),
    StorageFault.NOT_ERASED: lambda: tr(
        "Not all of the profile could be erased ({detail}). Try again to go on with it."
    ),
    StorageFault.FILES_FULL: lambda: tr(
        "As many files are kept here as there may be; delete some first."
    ),
    StorageFault.OTHER: lambda: tr("The profile's database cannot be used."),
    StorageFault.CLOSING: lambda: tr(
        "The profile is being closed; what was asked last may not have been saved."
    ),
    StorageFault.UNKNOWN_OUTCOME: lambda: tr(
        "It is not known whether this was saved: the work was interrupted."
    ),
}


_INPUT: Final[Mapping[InputFlaw, Callable[[], str]]] = {
    InputFlaw.NAME_EMPTY: lambda: tr("This name cannot be used: nothing is left of the name."),
    InputFlaw.NAME_TOO_LONG: lambda: tr(
        "This name cannot be used: the name is longer than {limit} characters."
    ),
    InputFlaw.PICTURE_TOO_LARGE: lambda: tr(
        "This picture cannot be used: the picture is larger than {limit} bytes."
    ),
    InputFlaw.PICTURE_UNKNOWN: lambda: tr(
        "This picture cannot be used: the picture is neither PNG nor JPEG."
    ),
    InputFlaw.TOPIC_TOO_LONG: lambda: tr("A topic has at most {limit} characters."),
    InputFlaw.TEXT_EMPTY: lambda: tr("A message needs some text."),
    InputFlaw.TEXT_TOO_LONG: lambda: tr(
        "This message has {given} bytes; at most {limit} can be sent at once."
    ),
    InputFlaw.NO_EMOJI: lambda: tr("A reaction is one emoji."),
    InputFlaw.MENTION: lambda: tr("A message can mention {limit} people."),
    InputFlaw.FILE_EMPTY: lambda: tr("This file is empty."),
    InputFlaw.FILE_TOO_LARGE: lambda: tr(
        "This file has {given} bytes; at most {limit} can be sent at once."
    ),
    InputFlaw.FILE_NAME: lambda: tr("A file needs a name."),
    InputFlaw.STORE_LISTED: lambda: tr("This Store is in the list already."),
    InputFlaw.STORES_FULL: lambda: tr("There can be {limit} Stores."),
    InputFlaw.STORE_UNKNOWN: lambda: tr("There is no such Store in the list."),
    InputFlaw.DAYS: lambda: tr("{given} days: allowed are 1 to {limit}"),
    InputFlaw.CHANNEL_TOO_LONG: lambda: tr(
        "This channel id is too long: at most {limit} bytes are allowed."
    ),
    InputFlaw.CONTENT_TOPIC: lambda: tr(
        'A content topic looks like /my-app/1/room/proto; "{given}" does not.'
    ),
    InputFlaw.CLUSTER: lambda: tr(
        "This device is on cluster {limit}, so it cannot reach a channel on cluster {given}. "
        "Choose that network in the settings, or use another profile for it."
    ),
    InputFlaw.SHARD: lambda: tr("A shard is a number from 0 to {limit}."),
    InputFlaw.SHARED_KEY: lambda: tr(
        "A shared key has {limit} bytes, written as 64 digits from 0 to 9 and a to f."
    ),
    InputFlaw.TOPIC_PLACED: lambda: tr(
        "You are in a channel with this content topic on another shard. Leave it first."
    ),
    InputFlaw.PEER: lambda: tr("That is no id of a peer."),
    InputFlaw.OFFSET: lambda: tr("A clock can be set by a hundred years at most."),
}


# --- links ----------------------------------------------------------------------------------------

_ANY_LINK: Final[Mapping[LinkFlaw, Callable[[], str]]] = {
    LinkFlaw.CUT_OFF: lambda: tr("This link is cut off. Copy the whole link."),
    LinkFlaw.CHANGED: lambda: tr(
        "This link was cut off or changed on its way. Copy the whole link."
    ),
    LinkFlaw.OWN: lambda: tr(
        "This is your own contact link. Send it to somebody, or paste the link of another."
    ),
    LinkFlaw.BLOCKED: lambda: tr("You blocked {name}. Unblock them first."),
    LinkFlaw.EXPIRED: lambda: tr("This contact link expired on {date}. Ask for a new one."),
    LinkFlaw.BAD_SIGNATURE: lambda: tr(
        "This contact link is not signed by the person it names. Do not trust it."
    ),
    LinkFlaw.BAD_SERVICE_NODE: lambda: tr(
        "This invitation has an unusable service node in it. Ask for a new one."
    ),
}
"""The flaws that are alike for all kinds, and those that only one kind has."""

_CONTACT_LINK: Final[Mapping[LinkFlaw, Callable[[], str]]] = {
    LinkFlaw.EMPTY: lambda: tr("Paste a contact link: it starts with {prefix}"),
    LinkFlaw.FAR_TOO_LONG: lambda: tr("This is far too long to be a contact link."),
    LinkFlaw.TOO_LONG: lambda: tr(
        "This link is too long: a contact link has at most {limit} characters."
    ),
    LinkFlaw.FOREIGN: lambda: tr("This is not a Causerie contact link: those start with {prefix}"),
    LinkFlaw.OTHER_KIND: lambda: tr("This is an invitation, not a contact link. Join with it."),
    LinkFlaw.UNREADABLE: lambda: tr("This contact link cannot be read. Ask for a new one."),
    LinkFlaw.NEWER: lambda: tr(
        "This contact link was made by a newer version of Causerie. Update first."
    ),
    LinkFlaw.INCOMPLETE: lambda: tr(
        "Something is missing in this contact link. Ask for a new one."
    ),
    LinkFlaw.NOT_CANONICAL: lambda: tr(
        "This contact link has something in it that does not belong there. Ask for a new one."
    ),
    LinkFlaw.BAD_NAME: lambda: tr(
        "This contact link has an unusable name in it. Ask for a new one."
    ),
    LinkFlaw.BAD_ADDRESS: lambda: tr(
        "This contact link has an unusable address in it. Ask for a new one."
    ),
    LinkFlaw.BAD_KEY: lambda: tr(
        "This contact link names a key that cannot be genuine. Do not trust it."
    ),
}

_INVITATION: Final[Mapping[LinkFlaw, Callable[[], str]]] = {
    LinkFlaw.EMPTY: lambda: tr("Paste an invitation link: it starts with {prefix}"),
    LinkFlaw.FAR_TOO_LONG: lambda: tr("This is far too long to be an invitation link."),
    LinkFlaw.TOO_LONG: lambda: tr(
        "This link is too long: an invitation link has at most {limit} characters."
    ),
    LinkFlaw.FOREIGN: lambda: tr(
        "This is not a Causerie invitation link: those start with {prefix}"
    ),
    LinkFlaw.OTHER_KIND: lambda: tr(
        "This is no invitation to a group, but the link of a person or a channel."
    ),
    LinkFlaw.UNREADABLE: lambda: tr("This invitation cannot be read. Ask for a new one."),
    LinkFlaw.NEWER: lambda: tr(
        "This invitation was made by a newer version of Causerie. Update first."
    ),
    LinkFlaw.INCOMPLETE: lambda: tr("Something is missing in this invitation. Ask for a new one."),
    LinkFlaw.NOT_CANONICAL: lambda: tr(
        "This invitation has something in it that does not belong there. Ask for a new one."
    ),
    LinkFlaw.BAD_NAME: lambda: tr("This invitation has an unusable name in it. Ask for a new one."),
    LinkFlaw.BAD_ADDRESS: lambda: tr(
        "This invitation has an unusable address in it. Ask for a new one."
    ),
    LinkFlaw.BAD_KEY: lambda: tr(
        "This invitation names an admin key that cannot be genuine. Do not trust it."
    ),
    LinkFlaw.EXPIRED: lambda: tr("This invitation expired on {date}. Ask for a new one."),
    LinkFlaw.BAD_SIGNATURE: lambda: tr(
        "This invitation is not signed by the person it names. Do not trust it."
    ),
}


_CHANNEL_LINK: Final[Mapping[LinkFlaw, Callable[[], str]]] = {
    LinkFlaw.EMPTY: lambda: tr("Paste a channel link: it starts with {prefix}"),
    LinkFlaw.FAR_TOO_LONG: lambda: tr("This is far too long to be a channel link."),
    LinkFlaw.TOO_LONG: lambda: tr(
        "This link is too long: a channel link has at most {limit} characters."
    ),
    LinkFlaw.FOREIGN: lambda: tr("This is not a Causerie channel link: those start with {prefix}"),
    LinkFlaw.OTHER_KIND: lambda: tr("This is the link of a person or a group, not a channel link."),
    LinkFlaw.UNREADABLE: lambda: tr("This channel link cannot be read. Ask for a new one."),
    LinkFlaw.NEWER: lambda: tr(
        "This channel link was made by a newer version of Causerie. Update first."
    ),
    LinkFlaw.INCOMPLETE: lambda: tr(
        "Something is missing in this channel link. Ask for a new one."
    ),
    LinkFlaw.NOT_CANONICAL: lambda: tr(
        "This channel link has something in it that does not belong there. Ask for a new one."
    ),
    LinkFlaw.BAD_NAME: lambda: tr(
        "This channel link has an unusable name in it. Ask for a new one."
    ),
    LinkFlaw.BAD_ADDRESS: lambda: tr(
        "This channel link has an unusable cluster or shard in it. Ask for a new one."
    ),
    LinkFlaw.BAD_KEY: lambda: tr(
        "The key in this channel link has the wrong length. Ask for a new one."
    ),
}


_BY_KIND: Final = {
    LinkKind.CONTACT: (CONTACT_PREFIX, _CONTACT_LINK),
    LinkKind.INVITATION: (INVITE_PREFIX, _INVITATION),
    LinkKind.CHANNEL: (CHANNEL_PREFIX, _CHANNEL_LINK),
}


def error_words(error: ChatError) -> str:  # noqa: C901, PLR0911 - a table of errors
    match error:
        case CommandError(refusal=refusal):
            return _REFUSALS[refusal]()
        case StorageError(fault=fault, detail=detail):
            return _STORAGE[fault]().format(detail=one_line(detail))
        case BackupError():
            return backup_words(error)
        case InputError(flaw=flaw, given=given, limit=limit):
            return _INPUT[flaw]().format(given=given, limit=limit)
        case InviteError():
            return _link_words(error)
        case AddressError():
            return address_words(error)
        case SettingsError() | SettingsUnwritableError():
            return settings_words(error)
        case TransportError(fault=fault, detail=detail):
            return sentence(transport_words(fault, detail))
        case RemoteProtocolError(reason=reason):
            return tr("What came cannot be used ({reason}).").format(reason=reason)
        case ConfigError():
            return tr("This cannot be used.")
        case _:
            return tr("This cannot be done now.")


def _link_words(error: InviteError) -> str:
    prefix, of_kind = _BY_KIND[error.kind]
    words = {**_ANY_LINK, **of_kind}[error.flaw]()
    expired = datetime.fromtimestamp(min(error.expired_ms, LATEST_MS) / 1_000, tz=UTC)
    return words.format(
        prefix=prefix,
        limit=MAX_LINK_CHARACTERS,
        name=one_line(error.name, _MAX_NAME),
        date=date_words(expired),
    )
