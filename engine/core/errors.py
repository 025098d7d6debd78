"""Every error that the engine raises on purpose; any other one is a bug.

Errors are split by who is to blame, because that decides what happens next.  A peer's fault is
dropped and counted, ours is raised, the environment's is shown with an action.

What a person meets while using the window has a code; ``ui/error_words.py`` has the sentences,
because they are translated.  The text of such an error is for developers and logs.
"""

from enum import StrEnum

from msgspec import Struct


class ChatError(Exception):
    """Base of all errors that this application raises on purpose."""


class ProtocolError(ChatError):
    """A protocol rule was broken; the subclass says by whom."""


class LocalProtocolError(ProtocolError):
    """Our own caller asked for something that the protocol forbids."""


class CommandRefusal(StrEnum):
    """Why a command cannot be carried out now, although it was offered a moment ago."""

    NO_CONVERSATION = "no_conversation"
    NOT_ANSWERED = "not_answered"
    """They have not answered our request yet."""
    ACCEPT_FIRST = "accept_first"
    DECLINED = "declined"
    BLOCKED = "blocked"
    NOTHING_TO_ACCEPT = "nothing_to_accept"
    NOTHING_TO_DECLINE = "nothing_to_decline"
    NOTHING_TO_WITHDRAW = "nothing_to_withdraw"
    TOO_MANY_FAULTS = "too_many_faults"
    """There are as many faults on purpose already as there can be."""
    NO_MEMBER = "no_member"
    """Nobody in this conversation is it, or it is no group."""
    LEFT_GROUP = "left_group"
    """They were removed from the group, or left it."""
    KEYS_NOT_HERE = "keys_not_here"
    """Nothing that this member signed has come, and so not the key to seal something for them."""
    NOT_KEPT = "not_kept"
    """One of the two messages of a fork is not kept any more."""
    NO_MESSAGE = "no_message"
    """The message is not in the timeline, or neither a text nor a file."""
    NO_FILE = "no_file"
    """The message has no file."""
    NOT_COMPLETE = "not_complete"
    """Not all bytes of the file are here."""
    TOO_LARGE_TO_SHOW = "too_large_to_show"
    """The file has more bytes than can be read at once."""
    RETRACTED = "retracted"
    """Its author deleted it for everybody."""
    NOT_OURS = "not_ours"
    """Only its author can change a message."""
    NOT_GOVERNED = "not_governed"
    """Anyone with the link is in the group, and nobody has a role in it."""
    NOT_IN_GROUP = "not_in_group"
    """We were removed from the group, or left it."""
    ROLE_TOO_LOW = "role_too_low"
    OUTRANKED = "outranked"
    """It is about somebody who ranks as high as we do, or higher."""
    TOO_OFTEN = "too_often"
    """We did this to them as often as it counts."""
    INVITATION_OVER = "invitation_over"
    """Used up, expired or revoked."""
    LOG_FULL = "log_full"
    """Nothing of ours has room in the group's admin log any more."""
    NOBODY_MORE = "nobody_more"
    """The group's admin log is too large to be given to anybody who comes."""
    STILL_LOADING = "still_loading"
    """The conversation is being read from the disk."""
    NOBODY_ASKS = "nobody_asks"
    """This person does not wait for us to let them in, or not any more."""
    NOT_FOR_US = "not_for_us"
    """It was said before we were let in, and we were not given its key."""
    TOO_MANY_INVITATIONS = "too_many_invitations"
    """Of ours are open in this group."""
    TOO_MANY_JOINS = "too_many_joins"
    """We wait to be let into as many groups as we can at one time."""


class CommandError(LocalProtocolError):
    """The user's command came too late, or too early."""

    def __init__(self, refusal: CommandRefusal) -> None:
        super().__init__(f"refused: {refusal}")
        self.refusal = refusal


class RemoteProtocolError(ProtocolError):
    """A peer sent something that the protocol forbids: drop it, count it, continue.

    ``reason`` is a short stable identifier, used as the counter's name: ``"lamport_too_large"``.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class CryptoError(RemoteProtocolError):
    """A seal, signature or key failed its check: a peer's bytes, never trusted."""


class StorageFault(StrEnum):
    """What a person can do something about, or wait for."""

    DISK_FULL = "disk_full"
    DISK_ERROR = "disk_error"
    LOCKED = "locked"
    """Another process keeps the database locked."""
    READ_ONLY = "read_only"
    NOT_OPENED = "not_opened"
    NOT_DECRYPTED = "not_decrypted"
    DAMAGED = "damaged"
    DATABASE_GONE = "database_gone"
    """Or empty, though the profile was used."""
    TOO_SLOW = "too_slow"
    CLOSING = "closing"
    """The profile is being closed; what was asked last may not have been saved."""
    UNKNOWN_OUTCOME = "unknown_outcome"
    """The work was interrupted, and may have been saved."""
    NOT_LOADED = "not_loaded"
    """The conversation is not loaded."""
    NOT_FOUND = "not_found"
    """The conversation is not in the profile."""
    CONTRADICTION = "contradiction"
    """The write contradicts what is stored already."""
    NOT_STORABLE = "not_storable"
    """A value does not fit the database."""
    NO_ROOM_TO_CARRY_OVER = "no_room_to_carry_over"
    """The disk is too full for a profile of an old version and the new one; ``detail``: how many
    megabytes that takes at most."""
    NO_ROOM_TO_RECLAIM = "no_room_to_reclaim"
    """The disk is too full to pack the database; ``detail``: how many megabytes are missing."""
    IN_USE = "in_use"
    """Another process has the profile open; ``detail``: the profile's name."""
    HANDED_OVER = "handed_over"
    """The same, and it was told what this start was for, but did not answer."""
    UNUSABLE = "unusable"
    """The profile's directory or a file in it; ``detail``: its path and the system's reason."""
    TOO_NEW = "too_new"
    """A newer version of the application wrote the profile."""
    TOO_OLD = "too_old"
    """A test version from before the first schema wrote it."""
    NO_KEY = "no_key"
    """The profile's key cannot be had."""
    PASSPHRASE_NEEDED = "passphrase_needed"  # noqa: S105 - the name of a fault
    """Nothing else opens the profile; ``detail``: why, if something else should."""
    WRONG_PASSPHRASE = "wrong_passphrase"  # noqa: S105 - likewise
    TOO_SOON = "too_soon"
    """After wrong passphrases; ``detail``: how many seconds are left."""
    KEYS_DAMAGED = "keys_damaged"
    """The key header, which leads to the database's key."""
    KEYS_FOREIGN = "keys_foreign"
    """Another file is in the place of the key header, or its beginning is damaged."""
    KEYS_TOO_NEW = "keys_too_new"
    """A newer version wrote the key header."""
    FILE_NOT_WRITTEN = "file_not_written"
    """A file that the user wanted saved; ``detail``: the system's own reason."""
    FOLDER_GONE = "folder_gone"
    """Into which the user wanted something written; ``detail``: its path."""
    FILE_NOT_READ = "file_not_read"
    """A file that the user wanted to send; ``detail``: the system's own reason."""
    NOT_ERASED = "not_erased"
    """Not all of the profile; ``detail``: its path and the system's own reason."""
    FILES_FULL = "files_full"
    """As many bytes of files as this profile may keep."""
    OTHER = "other"
    """None of the others; where a profile is opened, the command line shows the text."""


class StorageError(ChatError):
    """The local database refused: disk full, locked, corrupt, unwritable."""

    def __init__(
        self, text: str, fault: StorageFault = StorageFault.OTHER, detail: str = ""
    ) -> None:
        super().__init__(text)
        self.fault = fault
        self.detail = detail


class BackupFlaw(StrEnum):
    """Why a backup cannot be made, opened or restored."""

    FOREIGN = "foreign"
    """The file is no backup of ours."""
    TOO_NEW = "too_new"
    """A newer version wrote it; ``detail``: which, if it says so."""
    TOO_COSTLY = "too_costly"
    """Its passphrase would take more memory or work than is allowed."""
    CUT_OFF = "cut_off"
    """Its end is missing."""
    DAMAGED = "damaged"
    """Bytes of it were changed."""
    NOT_OPENED = "not_opened"
    """With this passphrase."""
    PROFILE_THERE = "profile_there"
    """A profile is in the place where it should go."""
    TOO_SHORT = "too_short"
    """A passphrase; ``detail``: how many characters it needs."""
    FILE_THERE = "file_there"
    """A file has the name that was given; ``detail``: its path."""
    IN_PROFILE = "in_profile"
    """The backup was to go where the profile or its settings are; ``detail``: its path."""
    FOLDER_GONE = "folder_gone"
    """The folder for daily backups is not there, perhaps as its disk is not; ``detail``: which."""
    TOO_LITTLE_MEMORY = "too_little_memory"
    """For its passphrase, which takes ``detail`` MB."""
    STOPPED = "stopped"
    """By the user."""


class BackupError(ChatError):
    """Nothing was changed: neither a profile nor a backup that was there before."""

    def __init__(self, flaw: BackupFlaw, text: str, detail: str = "") -> None:
        super().__init__(text)
        self.flaw = flaw
        self.detail = detail


class TransportFault(StrEnum):
    """Why the network failed, as far as it makes a difference to a person.

    What ``TransportError.detail`` holds stands beside it; nothing, if it is not said.
    """

    FAILED = "failed"
    """None of the others."""
    SYSTEM = "system"
    """``detail``: the system's own reason."""
    CERTIFICATE = "certificate"
    """``detail``: the TLS library's reason, as of ``TLS``."""
    TLS = "tls"
    CLOSED = "closed"
    """The other side closed the connection at once."""
    NO_ANSWER = "no_answer"
    LOST = "lost"
    """A connection or a stream ended too early."""
    NOT_CONNECTED = "not_connected"
    WRONG_PEER = "wrong_peer"
    """``detail``: the peer id that answered, a space, and the one that was expected."""
    BROKEN_PROTOCOL = "broken_protocol"
    """``detail``: the reason of the ``RemoteProtocolError``."""
    NO_PROTOCOL = "no_protocol"
    """The peer speaks none of ours."""
    BAD_ADDRESS = "bad_address"
    OURSELVES = "ourselves"
    CUT_OFF = "cut_off"
    """On purpose, by the fault bench."""
    FULL = "full"
    """As many connections or streams are open as there can be."""
    STOPPED = "stopped"
    """Our node does not run, or not any more."""
    NO_WEBSOCKET = "no_websocket"
    """``detail``: the status that a web server answered with."""
    NOT_PUBLISHABLE = "not_publishable"
    CANNOT_LISTEN = "cannot_listen"
    """``detail``: the address and the system's own reason."""
    CANNOT_LISTEN_TLS = "cannot_listen_tls"
    """``detail``: the address."""
    PROXY_UNREACHABLE = "proxy_unreachable"
    """``detail``: the system's own reason."""
    PROXY_HUNG_UP = "proxy_hung_up"
    PROXY_NOT_SOCKS = "proxy_not_socks"
    PROXY_BROKEN = "proxy_broken"
    """It broke the protocol."""
    PROXY_WANTS_LOGIN = "proxy_wants_login"
    PROXY_WANTS_OTHER_LOGIN = "proxy_wants_other_login"
    PROXY_LOGIN_REFUSED = "proxy_login_refused"
    PROXY_NAME_TOO_LONG = "proxy_name_too_long"
    PROXY_SAYS_NOT_WHY = "proxy_says_not_why"
    PROXY_FORBIDS = "proxy_forbids"
    PROXY_NO_NETWORK = "proxy_no_network"
    PROXY_NO_HOST = "proxy_no_host"
    PROXY_REFUSED_BY_HOST = "proxy_refused_by_host"
    PROXY_TOO_SLOW = "proxy_too_slow"
    PROXY_CANNOT_CONNECT = "proxy_cannot_connect"
    PROXY_KIND_UNSUPPORTED = "proxy_kind_unsupported"
    PROXY_REFUSES = "proxy_refuses"
    """``detail``: a number that is not known here."""
    ONION_UNKNOWN = "onion_unknown"
    ONION_NOT_VALID = "onion_not_valid"
    ONION_NOT_INTRODUCED = "onion_not_introduced"
    ONION_NO_ANSWER = "onion_no_answer"
    ONION_NEEDS_KEY = "onion_needs_key"
    ONION_REFUSED_KEY = "onion_refused_key"
    ONION_BAD_ADDRESS = "onion_bad_address"
    ONION_TOO_SLOW = "onion_too_slow"


class TransportError(ChatError):
    """The network failed for now: no peer reachable, connection lost, port taken."""

    def __init__(
        self, text: str, fault: TransportFault = TransportFault.FAILED, detail: str = ""
    ) -> None:
        super().__init__(text)
        self.fault = fault
        self.detail = detail

    def during(self, what: str) -> "TransportError":
        """The same fault, in a text that names the address or the peer."""
        return TransportError(f"{what}: {self}", self.fault, self.detail)


def broken_protocol(text: str, error: RemoteProtocolError) -> TransportError:
    """A connection that is of no use, because the peer broke the protocol."""
    return TransportError(text, TransportFault.BROKEN_PROTOCOL, error.reason)


class ConfigError(ChatError):
    """The user's settings or arguments; the text names file, key and what is allowed."""


class InputFlaw(StrEnum):
    """What is wrong with something that the user entered."""

    NAME_EMPTY = "name_empty"
    NAME_TOO_LONG = "name_too_long"
    PICTURE_TOO_LARGE = "picture_too_large"
    PICTURE_UNKNOWN = "picture_unknown"
    """It is neither PNG nor JPEG."""
    TOPIC_TOO_LONG = "topic_too_long"
    TEXT_EMPTY = "text_empty"
    TEXT_TOO_LONG = "text_too_long"
    NO_EMOJI = "no_emoji"
    """More or less than one emoji."""
    MENTION = "mention"
    """A mention is at no place of the text, or there are too many."""
    FILE_EMPTY = "file_empty"
    FILE_TOO_LARGE = "file_too_large"
    """``given`` and ``limit`` in bytes."""
    FILE_NAME = "file_name"
    """Nothing that can be shown is left of its name."""
    STORE_LISTED = "store_listed"
    STORES_FULL = "stores_full"
    STORE_UNKNOWN = "store_unknown"
    DAYS = "days"
    OFFSET = "offset"
    PEER = "peer"
    """Nothing that can be the id of a peer."""
    CHANNEL_TOO_LONG = "channel_too_long"
    """The id of an open channel; ``limit`` in bytes."""
    CONTENT_TOPIC = "content_topic"
    CLUSTER = "cluster"
    """Not the one that this node is on, which ``limit`` names."""
    SHARD = "shard"
    SHARED_KEY = "shared_key"
    """It is not 32 bytes long."""
    TOPIC_PLACED = "topic_placed"
    """Another channel here has the same content topic on another shard."""


class InputError(ConfigError):
    """``given``: the number or the text that was entered; ``limit``: how much is allowed."""

    def __init__(self, flaw: InputFlaw, *, given: int | str = "", limit: int = 0) -> None:
        super().__init__(f"{flaw}: {given}, allowed are {limit}" if limit else f"{flaw}: {given}")
        self.flaw = flaw
        self.given = given
        self.limit = limit


class AddressFlaw(StrEnum):
    """What is wrong with a multiaddr."""

    TOO_LONG = "too_long"
    NO_SLASH = "no_slash"
    """It does not start with one."""
    TOO_MANY_PARTS = "too_many_parts"
    BAD_KIND = "bad_kind"
    ENDS_WITH_SLASH = "ends_with_slash"
    NO_TCP = "no_tcp"
    """Something else follows the host."""
    NO_PORT = "no_port"
    BAD_IP = "bad_ip"
    ZONE = "zone"
    BAD_HOST = "bad_host"
    BAD_PORT = "bad_port"
    BARE_TLS = "bare_tls"
    UNSUPPORTED = "unsupported"
    NO_PEER_ID = "no_peer_id"
    BAD_PEER_ID = "bad_peer_id"
    AFTER_PEER_ID = "after_peer_id"
    PEER_NOT_NAMED = "peer_not_named"
    """It is one where any peer may answer, and one peer was wanted."""
    TOO_MANY = "too_many"
    """Of a list of addresses: it is too long."""


class ProxyFlaw(StrEnum):
    """What is wrong with the address of a SOCKS5 proxy."""

    TOO_LONG = "too_long"
    SHAPE = "shape"
    SCHEME = "scheme"
    HOST = "host"
    NO_PORT = "no_port"
    BAD_PORT = "bad_port"
    CREDENTIALS = "credentials"


class AddressError(ConfigError):
    """A multiaddr or a proxy that cannot be used, and which part of it is to blame.

    ``shown``: the address, printable and without secrets; ``allowed``: a limit, an example, or the
    names that are known.
    """

    def __init__(
        self,
        flaw: AddressFlaw | ProxyFlaw,
        *,
        shown: str = "",
        part: str = "",
        allowed: int | str = "",
    ) -> None:
        super().__init__(f"address {shown!r}: {flaw} {part!r}")
        self.flaw = flaw
        self.shown = shown
        self.part = part
        self.allowed = allowed


class SettingsFlaw(StrEnum):
    """What is wrong with a settings file, or with one of its settings."""

    UNREADABLE = "unreadable"
    TOO_LARGE = "too_large"
    NOT_TEXT = "not_text"
    """Not UTF-8."""
    NOT_TOML = "not_toml"
    NO_SECTION = "no_section"
    """The key of a section has another value."""
    UNKNOWN = "unknown"
    WRONG_VALUE = "wrong_value"
    READABLE = "readable"
    """Others on this machine can read a secret."""


class SettingKind(StrEnum):
    """What a setting can be."""

    FLAG = "flag"
    WHOLE = "whole"
    CHOICE = "choice"
    HOST_ADDRESS = "host_address"
    MULTIADDRS = "multiaddrs"
    SERVICE_NODES = "service_nodes"
    DELIVERY_KEY = "delivery_key"
    PROXY = "proxy"
    FOLDER = "folder"


class AllowedValue(Struct, frozen=True):
    """What is allowed for a setting.  ``parts``: limits, the values to choose from, an example."""

    kind: SettingKind
    parts: tuple[str, ...] = ()


class SettingsError(ConfigError):
    """``place``: file and line; ``key``: the setting to blame; ``allowed``: what it can be."""

    def __init__(
        self,
        text: str,
        flaw: SettingsFlaw,
        *,
        place: str = "",
        key: str = "",
        allowed: AllowedValue | None = None,
    ) -> None:
        super().__init__(f"{place}: {text}" if place else text)
        self.flaw = flaw
        self.place = place
        self.key = key
        self.allowed = allowed


class SettingsUnwritableError(ConfigError):
    """``reason``: the operating system's, in its own words."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: cannot be written: {reason}")
        self.path = path
        self.reason = reason


class LinkKind(StrEnum):
    CONTACT = "contact"
    INVITATION = "invitation"
    CHANNEL = "channel"
    """To a channel with a shared key."""


class LinkFlaw(StrEnum):
    """Why a link cannot be used."""

    EMPTY = "empty"
    FAR_TOO_LONG = "far_too_long"
    """It was not even read."""
    TOO_LONG = "too_long"
    FOREIGN = "foreign"
    OTHER_KIND = "other_kind"
    """An invitation where a contact link belongs, and so on."""
    CUT_OFF = "cut_off"
    CHANGED = "changed"
    UNREADABLE = "unreadable"
    NEWER = "newer"
    """Of a newer version."""
    INCOMPLETE = "incomplete"
    NOT_CANONICAL = "not_canonical"
    BAD_NAME = "bad_name"
    BAD_ADDRESS = "bad_address"
    BAD_SERVICE_NODE = "bad_service_node"
    BAD_KEY = "bad_key"
    BAD_SIGNATURE = "bad_signature"
    EXPIRED = "expired"
    OWN = "own"
    BLOCKED = "blocked"


class InviteError(ChatError):
    """A link that cannot be used, of any kind."""

    def __init__(
        self, flaw: LinkFlaw, kind: LinkKind, *, name: str = "", expired_ms: int = 0
    ) -> None:
        """``name``: of whom is blocked; ``expired_ms``: since when it is expired."""
        super().__init__(f"{kind} link: {flaw}")
        self.flaw = flaw
        self.kind = kind
        self.name = name
        self.expired_ms = expired_ms


class OwnWords(str):
    """Our own text, which may be logged: it contains nothing that a person or peer wrote."""

    __slots__ = ()
