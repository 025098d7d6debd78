"""``causerie doctor``: identity, database, clock, network and counters of a profile, on a page.

It only reads and asks service nodes and Stores how they are, and it works while the application
runs on the same profile.  It shows no message text and no keys.  Exit status 0 if everything is
well, 1 if something needs attention, 2 if the profile cannot be read at all.
"""

import json
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chat_app.doctor_network import (
    ask_stores,
    asked_nodes,
    node_complaints,
    shown_node,
    shown_store,
    store_complaints,
)
from chat_app.passphrase_options import PassphraseSource
from chat_app.paths import ProfilePaths
from chat_app.profile_key import key_on_command_line
from chat_app.settings import Settings
from chat_app.settings_reading import load_settings
from engine.core.errors import ConfigError, StorageError, StorageFault
from engine.core.history.progress import StoreRecord
from engine.core.ids import ContentTopic
from engine.crypto.identity import Identity
from engine.crypto.sealed import topic_of
from engine.events import OwnClockView
from engine.persistence.database import damaged_pages, open_readonly
from engine.persistence.earlier_profile import earlier_profile
from engine.persistence.file_damage import (
    FileDamage,
    examine_files,
    explained,
    require_what_was_there,
)
from engine.persistence.key_changes import key_ways
from engine.persistence.lock import is_held
from engine.persistence.page_trees import page_owners
from engine.persistence.profile_directory import ProfileDirectory
from engine.persistence.salvage import kept_damaged
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.runtime.clock_watch import JUDGED_KEY, read_judged
from engine.runtime.engine import PORT_KEY
from engine.runtime.own_clock import OFFSET_KEY, read_offset
from ui.clock_words import off_sentence, who_sentence
from ui.foreign_text import one_line
from ui.refusals import refusal_sentences
from ui.times import off_words

EARLIEST_PLAUSIBLE_CLOCK_S = 1_760_000_000
"""October 2025: a clock before this program was written is wrong."""
MAX_PAGES_NAMED = 20
_OF_A_PAGE = "HMAC verification failed for page "
MAX_ASKED = 16
"""Service nodes, and Stores."""


@dataclass(slots=True)
class Findings:
    """Sections of plain values, and what needs attention, in words."""

    sections: dict[str, dict[str, object]] = field(default_factory=dict)
    attention: list[str] = field(default_factory=list)
    group_service_nodes: list[str] = field(default_factory=list)
    """Asked beside those of the settings."""
    stores: list[StoreRecord] = field(default_factory=list)
    content_topics: list[ContentTopic] = field(default_factory=list)
    """Of the groups: what Stores are asked about."""
    refused: Sequence[str] = ()
    """What was refused or set aside, in words."""


def examine(
    paths: ProfilePaths, *, as_json: bool, passphrase: PassphraseSource | None = None
) -> int:
    """Print the page.  Raises ConfigError, StorageError for what cannot be read at all."""
    if not paths.directory.is_dir():
        raise ConfigError(f"there is no profile in {paths.directory}")
    settings = load_settings(paths.settings_file)
    directory = ProfileDirectory(paths.directory)  # To be looked at, also where nothing is written.
    findings = Findings()
    findings.sections["profile"] = {
        "name": paths.name,
        "directory": str(paths.directory),
        "running": is_held(directory),
    }
    _database(directory, findings, settings, passphrase or PassphraseSource())
    _service_nodes(settings, findings)
    _stores(settings, findings)
    _system_time(findings)
    text = json.dumps(_as_object(findings), indent=2) if as_json else "\n".join(_page(findings))
    sys.stdout.write(text + "\n")
    return 1 if findings.attention else 0


def _database(
    directory: ProfileDirectory,
    findings: Findings,
    settings: Settings,
    passphrase: PassphraseSource,
) -> None:
    if not directory.has_database():
        findings.sections["database"] = {"present": False}
        require_what_was_there(directory)
        findings.attention.append("This profile was never opened: it has no database yet.")
        return
    key = key_on_command_line(directory, passphrase, force_key_file=settings.storage.key == "file")
    ways = key_ways(directory)
    section: dict[str, object] = {
        "present": True,
        "bytes": _bytes_on_disk(directory.database),
        "key": "passphrase" if ways.place is None else ways.place.value,
        "passphrase": ways.has_passphrase,
    }
    findings.sections["database"] = section
    if kept := kept_damaged(directory):
        section["kept_damaged"] = ", ".join(path.name for path in kept)
    if (earlier := earlier_profile(directory)) is not None:
        section["earlier_profile"] = str(earlier)
    try:
        _read(directory, key.key, findings, settings.network.cluster)
    except StorageError as error:
        explanation = explained(directory.database, key.key, error)
        if explanation.fault is not StorageFault.DAMAGED:
            raise
        findings.attention.append(f"Not all of this page could be read. {explanation}")
    if findings.sections["database"].get("damage"):
        findings.attention.append("`causerie salvage` repairs what can be read.")


def _read(directory: ProfileDirectory, key: bytes, findings: Findings, cluster: int) -> None:
    """Raises StorageError where the database is damaged."""
    section = findings.sections["database"]
    if not is_held(directory):  # Else it changes while it is looked at.
        damage = examine_files(directory.database, key)
        section["damaged_pages"] = len(damage.unreadable)
        if not damage.is_whole:
            section["damage"] = ", ".join(_file_damage(damage))
            findings.attention.append(f"The database is damaged: {section['damage']}.")
        if damage.frames_lost:
            return  # Opening it would forget them.
    connection = open_readonly(directory.database, key)
    store = SqliteProfileStore(connection)
    try:
        damaged = damaged_pages(connection)
        section["damaged_pages"] = len(damaged)
        if damaged:
            named = ", ".join(_named(directory.database, key, connection, damaged))
            section["damage"] = named
            findings.attention.append(f"The database is damaged: {len(damaged)} findings; {named}.")
        _identity(store, findings)
        _open_channels(store, findings, cluster)
        _network(store, findings)
        _clock(store, findings)
    finally:
        store.close()


def _file_damage(damage: FileDamage) -> Iterator[str]:
    if damage.unreadable:
        yield f"pages {_some(str(page) for page in damage.unreadable)}"
    if damage.frames_lost:
        yield f"{damage.frames_lost} pages of the write-ahead log"
    if damage.is_cut:
        yield "the file ends within a page"


def _named(
    database: Path, key: bytes, connection: sqlite3.Connection, damaged: Sequence[str]
) -> Iterator[str]:
    """Which tables and indexes damaged pages belong to."""
    numbers = [int(text.rpartition(" ")[2]) for text in damaged if text.startswith(_OF_A_PAGE)]
    owners = page_owners(connection, database, key, numbers)
    pages = Counter(owners.get(number, "long values, or nothing") for number in numbers)
    yield from (f"{count} of {owner}" for owner, count in sorted(pages.items()))
    if len(numbers) < len(damaged):
        yield f"{len(damaged) - len(numbers)} contradictions"


def _some(values: Iterable[str]) -> str:
    named = list(values)
    more = len(named) - MAX_PAGES_NAMED
    said = ", ".join(named[:MAX_PAGES_NAMED])
    return f"{said} and {more} more" if more > 0 else said


def _bytes_on_disk(database: Path) -> int:
    """With what SQLite has not put into the main file yet."""
    files = (database, database.with_name(f"{database.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _identity(store: SqliteProfileStore, findings: Findings) -> None:
    profile = store.profile()
    if profile is None:
        findings.sections["identity"] = {"present": False}
        return
    identity = Identity(signing_key=profile.signing_key, encryption_key=profile.encryption_key)
    groups, people, channels = store.groups(), store.contacts(), store.open_channels()
    ids = [group.conversation_id for group in groups]
    ids += [channel.conversation_id for channel in channels]
    ids += [person.conversation_id for person in people]
    summaries = [each.summary for each in store.listed(ids).values()]
    findings.sections["identity"] = {
        "present": True,
        "name": profile.name,
        "participant_id": identity.participant_id,
        "fingerprint": identity.fingerprint,
    }
    findings.sections["conversations"] = {
        "groups": len(groups),
        "open_channels": len(channels),
        "people": len(people),
        "unread": sum(s.unread for s in summaries),
        "waiting_to_send": sum(s.waiting_to_send for s in summaries),
        "not_delivered": sum(s.failed for s in summaries),
    }
    failed = sum(s.failed for s in summaries)
    if failed:
        findings.attention.append(f"{failed} messages were not delivered; resend them.")
    findings.content_topics = [topic_of(group) for group in groups]
    findings.group_service_nodes = [node for group in groups for node in group.service_nodes]


def _open_channels(store: SqliteProfileStore, findings: Findings, cluster_id: int) -> None:
    """Under which names, and whether this device's cluster is theirs."""
    for number, channel in enumerate(store.open_channels(), start=1):
        findings.sections[f"open_channel_{number}"] = {
            "channel_id": one_line(channel.channel_id, 80),
            "content_topic": channel.content_topic,
            "cluster": channel.cluster_id,
            "shard": "by content topic" if channel.shard is None else channel.shard,
            "encrypted": "with a shared key" if channel.key else False,
        }
        if channel.cluster_id != cluster_id:
            findings.attention.append(
                f"An open channel is on cluster {channel.cluster_id}, and this device is on "
                f"{cluster_id}: nothing of it is sent or received."
            )


def _network(store: SqliteProfileStore, findings: Findings) -> None:
    port = store.value(PORT_KEY)
    findings.sections["network"] = {
        "port": int(port) if port else None,
        "known_peers": len(store.node_addresses()),
    }
    findings.stores = store.stores()
    counters = store.counters()
    findings.sections["counters"] = dict(counters)
    findings.refused = refusal_sentences(counters)


def _service_nodes(settings: Settings, findings: Findings) -> None:
    findings.sections.setdefault("network", {})["role"] = settings.network.role
    nodes = dict.fromkeys((*settings.network.service_nodes, *findings.group_service_nodes))
    checked = asked_nodes(settings, tuple(nodes)[:MAX_ASKED])
    for number, node in enumerate(checked, start=1):
        findings.sections[f"service_node_{number}"] = shown_node(node)
    findings.attention.extend(node_complaints(settings, checked))


def _stores(settings: Settings, findings: Findings) -> None:
    on = [record for record in findings.stores if record.enabled][:MAX_ASKED]
    tested = ask_stores(settings, [record.store for record in on], findings.content_topics)
    for number, record in enumerate(findings.stores, start=1):
        findings.sections[f"store_{number}"] = shown_store(record, tested.get(record.store))
    findings.attention.extend(store_complaints(tested))


def _clock(store: SqliteProfileStore, findings: Findings) -> None:
    """What a person set, and what was said of this clock when the program ran last, or runs."""
    stored = read_offset(store.value(OFFSET_KEY))
    judged = read_judged(store.value(JUDGED_KEY))
    section = findings.sections.setdefault("clock", {})
    section["offset_ms"] = 0 if stored is None else stored.offset_ms
    section["offset_since"] = None if stored is None else _utc(stored.since_ms / 1_000)
    if stored is not None:
        off = off_words(stored.offset_ms)
        where = "ahead of" if stored.offset_ms > 0 else "behind"
        section["in_force"] = f"the others' time, {off} {where} this device's, set by hand"
    clock, at_ms = judged or (OwnClockView(), None)
    section["behind_ms"] = clock.behind_ms
    section["says_who"] = ", ".join(one_line(name, 40) for name in clock.by)
    section["says_how_many"] = len(clock.by)
    section["of_how_many_heard"] = clock.heard
    section["known_for_a_day"] = clock.known_long if clock.by else None
    section["judged"] = None if at_ms is None else _utc(at_ms / 1_000)
    if clock.behind_ms:
        findings.attention.append(f"{off_sentence(clock)} {who_sentence(clock)}")


def _utc(at_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def _system_time(findings: Findings) -> None:
    now_s = time.time()
    findings.sections["clock"] = {
        "utc": _utc(now_s),
        "plausible": now_s >= EARLIEST_PLAUSIBLE_CLOCK_S,
        **findings.sections.pop("clock", {}),
    }
    if now_s < EARLIEST_PLAUSIBLE_CLOCK_S:
        findings.attention.append("This machine's clock is far in the past; set it.")


def _as_object(findings: Findings) -> dict[str, object]:
    return {
        "ok": not findings.attention,
        "attention": findings.attention,
        "refused": list(findings.refused),
        **findings.sections,
    }


def _page(findings: Findings) -> Iterator[str]:
    for title, values in findings.sections.items():
        yield title.replace("_", " ")
        if not values:
            yield "  none"
        for name, value in values.items():
            yield f"  {name.replace('_', ' '):<24} {_shown(value)}"
    if findings.refused:
        yield "what was refused or set aside"
        yield from (f"  {sentence}" for sentence in findings.refused)
    yield ""
    yield from findings.attention or ["Everything is well."]


def _shown(value: object) -> str:
    match value:
        case None:
            return "not yet"
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)
