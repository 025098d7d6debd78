"""The user's settings: what there is, and what is allowed.

This declaration is the only one.  The file that a first start writes, the page docs/settings.md and
every complaint about a wrong value are made from it.  A setting that is not in the file has its
default.  Whatever the file holds beyond this, or otherwise than this, is a complaint: a misspelt
key that silently did nothing would be worse.  It names file, line, key and what is allowed.  The
window warns and goes on with that key's default, unless the key protects the user; commands refuse.

The file is read by chat_app/settings_reading.py, and written and changed by
chat_app/settings_file.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Final, TypeVar

from chat_app.settings_rules import (
    AUTOMATIC,
    Choice,
    DeliveryKey,
    Flag,
    Folder,
    HostAddress,
    Multiaddrs,
    ProxyAddress,
    Rule,
    ServiceNodes,
    Whole,
)
from engine.core.rolling_backups import MAX_DAILY, MAX_WEEKLY

MAX_SERVICE_NODES: Final = 8
MAX_DEVICES: Final = 10_000
PROTECTIVE: Final = frozenset(
    {
        ("network", "listen_host"),
        ("network", "role"),
        ("network", "discovery"),
        ("network", "proxy"),
        ("network", "cluster"),
        ("notifications", "enabled"),
        ("notifications", "preview"),
        ("notifications", "mentions_when_muted"),
        ("privacy", "typing"),
        ("privacy", "presence"),
        ("privacy", "confirm_links"),
        ("privacy", "fetch_pictures_below_mb"),
        ("privacy", "lock_after"),
        ("privacy", "lock_with_screen"),
        ("storage", "keep_days"),
    }
)
"""Whose default may tell others more than the user wanted, so that none is taken for a bad line."""

T = TypeVar("T")


def _setting(default: T, rule: Rule, text: str) -> T:
    """One key: its default, what is allowed, and what it does, in a sentence or two."""
    made: T = field(default=default, metadata={"rule": rule, "text": text})
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """How this device meets others."""

    listen_host: str = _setting(
        AUTOMATIC,
        HostAddress(),
        "Address that the built-in node listens on. auto: 0.0.0.0, that is reached from the whole"
        " network, or none at all if a proxy is set. 127.0.0.1 is reached from this machine only.",
    )
    port: int = _setting(
        0,
        Whole(0, 65_535),
        "TCP port of the built-in node. 0: the system chooses one, and the profile keeps it.",
    )
    peers: tuple[str, ...] = _setting(
        (),
        Multiaddrs(max_count=32),
        "Nodes to connect to at every start, besides those that invitations name.",
    )
    service_nodes: tuple[str, ...] = _setting(
        (),
        ServiceNodes(max_count=MAX_SERVICE_NODES),
        "Nodes that serve filter, lightpush and store for you. Those of a group's founder travel in"
        " its invitations.",
    )
    role: str = _setting(
        "auto",
        Choice("auto", "relay", "edge"),
        "How messages travel. relay: this device passes messages on and is reached directly. edge:"
        " only through service nodes. auto: relay, and service nodes too while nobody is reached;"
        " in cluster 1 (the public Waku network) edge.",
    )
    discovery: bool = _setting(
        True,
        Flag(),
        "Find others on the local network, and be found there (mDNS). Off if a proxy is set.",
    )
    proxy: str = _setting(
        "",
        ProxyAddress(),
        "SOCKS5 proxy for all outgoing connections, as Tor has one. Nothing is sent beside it:"
        " names are looked up by the proxy, and discovery is off. With a password in it, a settings"
        " file that others can read is refused.",
    )
    connections_per_address: int = _setting(
        64,
        Whole(1, MAX_DEVICES),
        "So many of the devices that may connect to the node (192 in the window, node.devices for"
        " causerie node) can come from one address (IPv4; IPv6: one /48). Behind a TLS proxy all"
        " come from one: there as many as may connect, and let the proxy limit its clients.",
    )
    cluster: int = _setting(
        42, Whole(0, 65_535), "Waku cluster. People meet only within the same cluster."
    )
    shards: int = _setting(
        8, Whole(1, 1024), "Number of shards in the cluster. Everybody in it must use the same."
    )
    mvds_mode: str = _setting(
        "ours",
        Choice("ours", "batch", "interactive"),
        "How messages of one-to-one chats go out. batch: at once, and whole if they are repeated."
        " interactive: offered, and sent on request. ours: small ones at once, large ones offered,"
        " repeats as costs least. All are understood, whatever the other side uses.",
    )
    mvds_wire: str = _setting(
        "rfc",
        Choice("rfc", "draft"),
        "Field numbers with which one-to-one chats start. rfc: those of 2/MVDS. draft: those of"
        " draft 0.6. Both are understood, and who uses the other is answered in it.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings:
    """How much room `causerie node` has for others. The window's node keeps to the defaults."""

    devices: int = _setting(
        192,
        Whole(1, MAX_DEVICES),
        "So many devices may be connected that dialled the node. Half of the room is reserved for"
        " those that behaved. Each is an open file.",
    )
    subscribers: int = _setting(
        200,
        Whole(1, MAX_DEVICES),
        "So many devices may subscribe (filter). Up to 1 MiB waits in memory for one that reads"
        " slowly.",
    )
    blobs_mb: int = _setting(
        1_024,
        Whole(1, 100_000),
        "So many megabytes of others' files are kept (blobs), sealed. Then the oldest of whoever"
        " put most goes first.",
    )
    blob_days: int = _setting(
        30,
        Whole(1, 3_650),
        "They are kept for so many days at most, or fewer if their sender says.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AppearanceSettings:
    """What the window looks like."""

    theme: str = _setting(
        "system",
        Choice("system", "light", "dark", "high-contrast"),
        "Colours. system: as the desktop has it.",
    )
    language: str = _setting(
        "system",
        Choice("system", "en", "fr"),
        "Language of the window. system: as the desktop has it, or English. en: English. fr:"
        " French.",
    )
    motion: str = _setting(
        "system",
        Choice("system", "off"),
        "Small movements of the window. system: unless the desktop wants less motion. A change"
        " counts from the next start.",
    )
    density: str = _setting(
        "comfortable",
        Choice("comfortable", "compact"),
        "How much room rows and messages take.",
    )
    text_size: int = _setting(100, Whole(85, 200), "Size of text and what goes with it, percent.")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationSettings:
    """What the desktop is told when a message arrives."""

    enabled: bool = _setting(True, Flag(), "Tell the desktop about new messages.")
    preview: bool = _setting(
        True, Flag(), "Show in a notification what was written, not only by whom."
    )
    mentions_when_muted: bool = _setting(
        True,
        Flag(),
        "Tell the desktop of a message that mentions you, although its conversation is muted.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DesktopSettings:
    """The window's place on the desktop."""

    tray: bool = _setting(
        True,
        Flag(),
        "Show an icon in the desktop's tray, if it has one. A change counts from the next start.",
    )
    close_to_tray: str = _setting(
        "ask",
        Choice("ask", "yes", "no"),
        "What closing the window does where there is a tray. yes: the program stays in the tray."
        " no: it ends. ask: you are asked once. Where there is no tray it ends.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySettings:
    """What others are told besides messages."""

    typing: bool = _setting(True, Flag(), "Tell the others when you are typing.")
    presence: bool = _setting(
        True,
        Flag(),
        "Tell people you talk to that you are online. What you write and acknowledge shows it all"
        " the same. Without it, what they sent while you were away may take longer to come.",
    )
    confirm_links: bool = _setting(
        True, Flag(), "Show an address in full and ask before another program opens it."
    )
    fetch_pictures_below_mb: int = _setting(
        2,
        Whole(0, 10),
        "Pictures of at most so many megabytes are fetched by themselves. Whoever has them learns"
        " that you are there. 0: fetch none before you say so.",
    )
    ask_for_updates: bool = _setting(
        False,
        Flag(),
        "Ask once a day whether a newer version was released. The server that is asked learns your"
        " network address, or that of your proxy. Nothing is downloaded. Programs that were built"
        " without such a server never ask.",
    )
    lock_after: str = _setting(
        "off",
        Choice("off", "5", "15", "60"),
        "Lock the window after so many minutes without a key or the mouse in it. Only with a"
        " passphrase, which is set in the window.",
    )
    lock_with_screen: bool = _setting(
        True,
        Flag(),
        "Lock the window when the desktop locks its screen, where it tells (Linux). Only with a"
        " passphrase.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """How messages are kept on this device."""

    keep_days: int = _setting(
        30,
        Whole(0, 3_650),
        "For so many days the built-in node keeps the sealed messages of your conversations for"
        " others, who fetch what they missed. 0: keep nothing for others.",
    )
    keep_megabytes: int = _setting(
        256, Whole(1, 100_000), "At most so much is kept for others; the oldest goes first."
    )
    files_megabytes: int = _setting(
        10_000,
        Whole(100, 1_000_000),
        "At most so much of files beyond 96 KiB is kept in this profile, those you sent and those"
        " you fetched.",
    )
    key: str = _setting(
        "keyring",
        Choice("keyring", "file"),
        "Where a new profile's database key goes. keyring: the system's, or a file where there is"
        " none. file: a file in the profile, which protects nothing if it is copied along.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSettings:
    """Backups that are made by themselves, one a day while the program runs."""

    folder: str = _setting(
        "",
        Folder(),
        "Where they go. Empty: none are made. The window asks for their passphrase once.",
    )
    keep_daily: int = _setting(
        7, Whole(1, MAX_DAILY), "Of so many days the newest stays; older ones are deleted."
    )
    keep_weekly: int = _setting(
        4, Whole(0, MAX_WEEKLY), "Besides these, of so many weeks the newest stays."
    )
    remind: bool = _setting(
        True, Flag(), "Say so when the last backup of any kind is older than 30 days."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The program's log in the profile. It never holds what people write, nor keys."""

    level: str = _setting(
        "info",
        Choice("debug", "info", "warning", "error"),
        "The least important thing that is still logged.",
    )
    max_bytes: int = _setting(
        1_000_000, Whole(10_000, 100_000_000), "Size at which a new log file is begun."
    )
    keep_files: int = _setting(5, Whole(1, 100), "How many older log files are kept.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """A record of what happens to messages, for testers who compare theirs. Off unless wanted."""

    record: bool = _setting(
        False,
        Flag(),
        "Write down when each message was sent, arrived, was missing and was acknowledged, in files"
        " of their own in the profile. They are not encrypted: they hold no text, no names and no"
        " keys, but message ids, times, and a pseudonym for every person and conversation.",
    )
    key: str = _setting(
        "",
        DeliveryKey(),
        "Makes the pseudonyms. Records can be compared if all who made them have the same key, and"
        " whoever has the key can find out whose they are. Empty: one is made and shown when"
        " recording is first switched on.",
    )
    max_megabytes: int = _setting(
        256, Whole(8, 100_000), "At most so much is kept; the oldest file goes first."
    )


Section = (
    NetworkSettings
    | ServingSettings
    | AppearanceSettings
    | NotificationSettings
    | DesktopSettings
    | PrivacySettings
    | StorageSettings
    | BackupSettings
    | LogSettings
    | DeliverySettings
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of them; a field is a section of the file."""

    network: NetworkSettings = NetworkSettings()
    node: ServingSettings = ServingSettings()
    appearance: AppearanceSettings = AppearanceSettings()
    notifications: NotificationSettings = NotificationSettings()
    desktop: DesktopSettings = DesktopSettings()
    privacy: PrivacySettings = PrivacySettings()
    storage: StorageSettings = StorageSettings()
    backup: BackupSettings = BackupSettings()
    log: LogSettings = LogSettings()
    delivery: DeliverySettings = DeliverySettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One setting as declared: files, pages and complaints are written from it."""

    section: str
    name: str
    default: object
    rule: Rule
    text: str


def sections_of(settings: Settings) -> Iterator[tuple[str, Section]]:
    yield "network", settings.network
    yield "node", settings.node
    yield "appearance", settings.appearance
    yield "notifications", settings.notifications
    yield "desktop", settings.desktop
    yield "privacy", settings.privacy
    yield "storage", settings.storage
    yield "backup", settings.backup
    yield "log", settings.log
    yield "delivery", settings.delivery


def keys_of(section: str) -> tuple[Key, ...]:
    """The keys of a section, in order; empty for an unknown one."""
    return _KEYS.get(section, ())


def _declared(name: str, section: Section) -> Iterator[Key]:
    for entry in fields(section):
        rule = entry.metadata["rule"]
        text = entry.metadata["text"]
        yield Key(section=name, name=entry.name, default=entry.default, rule=rule, text=text)


DEFAULTS: Final = Settings()
_KEYS: Final = {name: tuple(_declared(name, section)) for name, section in sections_of(DEFAULTS)}


def find_key(section: str, name: str) -> Key | None:
    return next((key for key in keys_of(section) if key.name == name), None)
