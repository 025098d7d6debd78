"""The rows that are not a conversation's traffic: identity, groups, members, values, counters.

Rows that groups and pairs share are here too; a pair's own are in ``pair_tables``. Runs inside the
store's transaction; small tables, read whole.
"""

import sqlite3
from collections.abc import Mapping
from typing import Final, TypeAlias, assert_never

from engine.core.errors import StorageError, StorageFault
from engine.core.ids import (
    ConversationId,
    InstanceId,
    MessageId,
    ParticipantId,
    UnixMs,
)
from engine.core.ports import (
    AddCounters,
    PutGroup,
    PutNodeAddress,
    PutOpenChannel,
    SavePicture,
    SaveProfile,
    SaveValue,
)
from engine.core.records import GroupRecord, MemberRecord, OwnSequence, ProfileRecord
from engine.persistence import governed_tables
from engine.persistence.many_rows import by_the_dozen, with_ids
from engine.persistence.rules import (
    MAX_NODE_ADDRESSES,
    ConversationKind,
    ConversationRow,
    check_picture,
    initial_clock,
    kind_of,
    require_kind,
)
from engine.persistence.stored_ids import mark_of

# Only the first insert sets since when a member is known.
_PUT_MEMBER: Final = """
INSERT INTO member (conversation_key, participant_id, public_key, encryption_key, name, is_admin,
                    joined_ms, left_ms, join_statement, named_ms, known_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, participant_id) DO UPDATE SET
  public_key = excluded.public_key, encryption_key = excluded.encryption_key, name = excluded.name,
  is_admin = excluded.is_admin, joined_ms = excluded.joined_ms, left_ms = excluded.left_ms,
  join_statement = excluded.join_statement, named_ms = excluded.named_ms
"""
_GROUPS: Final = """
SELECT conversation_key, conversation_id, name, admin_public_key, created_ms, muted, draft,
       read_lamport, read_message_id, service_nodes, first_entry, topic_name
FROM conversation JOIN timeline USING (conversation_key)
LEFT JOIN governed USING (conversation_key)
WHERE kind = 'group' AND conversation_key NOT IN (SELECT conversation_key FROM open_channel)
ORDER BY conversation_key
"""
_MEMBERS: Final = with_ids(
    """
SELECT conversation_key, participant_id, public_key, encryption_key, name, is_admin, joined_ms,
       left_ms, join_statement, named_ms, known_ms
FROM member WHERE conversation_key IN
    """,
    order="ORDER BY member_key",
)
_MemberRow: TypeAlias = tuple[
    int, ParticipantId, bytes, bytes, str, int, UnixMs, UnixMs | None, bytes, UnixMs, UnixMs
]
_FIND: Final = """
SELECT conversation_key, CASE WHEN channel_id IS NULL THEN kind ELSE 'open' END
FROM conversation LEFT JOIN open_channel USING (conversation_key) WHERE conversation_id = ?
"""
_STORED_KINDS: Final = {ConversationKind.OPEN: ConversationKind.GROUP}
"""An open channel's row is a group's; its own table tells them apart."""
_FIRST_UNTIL_MS: Final = 2


_Write: TypeAlias = SaveProfile | SavePicture | PutNodeAddress | SaveValue | AddCounters


def apply_to_profile(connection: sqlite3.Connection, write: _Write) -> None:
    match write:
        case SaveProfile(profile=profile):
            save_profile(connection, profile)
        case SavePicture(picture=picture):
            save_picture(connection, picture)
        case PutNodeAddress():
            put_node_address(connection, write)
        case SaveValue(key=key, value=value):
            save_value(connection, key, value)
        case AddCounters(amounts=amounts):
            add_counters(connection, amounts)
        case _:
            assert_never(write)


def save_profile(connection: sqlite3.Connection, profile: ProfileRecord) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO profile VALUES (1, ?, ?, ?, ?, ?, ?)",
        (
            profile.name,
            profile.signing_key,
            profile.encryption_key,
            profile.network_key,
            profile.instance_id,
            profile.created_ms,
        ),
    )


def read_profile(connection: sqlite3.Connection) -> ProfileRecord | None:
    row: tuple[str, bytes, bytes, bytes, bytes, int] | None = connection.execute(
        "SELECT name, signing_key, encryption_key, network_key, instance_id, created_ms "
        "FROM profile"
    ).fetchone()
    if row is None:
        return None
    name, signing_key, encryption_key, network_key, instance_id, created_ms = row
    return ProfileRecord(
        name=name,
        signing_key=signing_key,
        encryption_key=encryption_key,
        network_key=network_key,
        instance_id=InstanceId(instance_id),
        created_ms=UnixMs(created_ms),
    )


def save_picture(connection: sqlite3.Connection, picture: bytes) -> None:
    check_picture(picture)
    connection.execute("INSERT OR REPLACE INTO picture VALUES (1, ?)", (picture,))


def read_picture(connection: sqlite3.Connection) -> bytes:
    row: tuple[bytes] | None = connection.execute("SELECT picture FROM picture").fetchone()
    return row[0] if row else b""


# --- conversations: groups and pairs ------------------------------------------------------------


def find_conversation(
    connection: sqlite3.Connection, conversation_id: str
) -> tuple[int, ConversationKind] | None:
    row: tuple[int, str] | None = connection.execute(_FIND, (conversation_id,)).fetchone()
    return (row[0], ConversationKind(row[1])) if row else None


def conversation_key(connection: sqlite3.Connection, conversation_id: str) -> int | None:
    found = find_conversation(connection, conversation_id)
    return found[0] if found else None


def require_conversation(
    connection: sqlite3.Connection, conversation_id: str
) -> tuple[int, ConversationKind]:
    found = find_conversation(connection, conversation_id)
    if found is None:
        raise StorageError("This conversation is not in the profile.", StorageFault.NOT_FOUND)
    return found


def _of_groups(record: ConversationRow) -> tuple[bytes, UnixMs, str]:
    """The columns admin_public_key, created_ms and service_nodes."""
    if isinstance(record, GroupRecord):
        return record.admin_public_key, record.created_ms, "\n".join(record.service_nodes)
    return b"", record.created_ms, ""


def _add_conversation(connection: sqlite3.Connection, record: ConversationRow) -> int:
    """With an empty timeline."""
    kind = kind_of(record)
    (key,) = connection.execute(
        "INSERT INTO conversation (conversation_id, kind, name, muted, draft, admin_public_key, "
        "created_ms, service_nodes) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING conversation_key",
        (
            record.conversation_id,
            _STORED_KINDS.get(kind, kind),
            record.name,
            _stored_mute(muted=record.muted, until_ms=record.muted_until_ms),
            record.draft,
            *_of_groups(record),
        ),
    ).fetchone()
    mark = record.read_up_to
    connection.execute(
        "INSERT INTO timeline VALUES (?, ?, ?, 0, 0, 0)",
        (key, mark and mark.lamport_timestamp, mark and mark.message_id),
    )
    return int(key)


def put_conversation(connection: sqlite3.Connection, record: ConversationRow) -> tuple[int, bool]:
    """Add or change the row that all kinds share: its key, and whether it is new."""
    known = find_conversation(connection, record.conversation_id)
    if known is None:
        return _add_conversation(connection, record), True
    key, kind = known
    require_kind(kind, kind_of(record))
    connection.execute(
        "UPDATE conversation SET name = ?, admin_public_key = ?, created_ms = ?, "
        "service_nodes = ? WHERE conversation_key = ?",
        (record.name, *_of_groups(record), key),
    )
    return key, False


def add_channel(connection: sqlite3.Connection, key: int, write: PutGroup | PutOpenChannel) -> None:
    connection.execute(
        "INSERT INTO channel (conversation_key, lamport_timestamp) VALUES (?, ?)",
        (key, initial_clock(write)),
    )


def put_group(connection: sqlite3.Connection, write: PutGroup) -> None:
    key, is_new = put_conversation(connection, write.group)
    if is_new:
        add_channel(connection, key, write)
    connection.execute("DELETE FROM epoch WHERE conversation_key = ?", (key,))
    connection.executemany(
        "INSERT INTO epoch (conversation_key, place, epoch_key, known_ms) VALUES (?, ?, ?, ?)",
        [
            (key, place, epoch_key, write.group.created_ms)
            for place, epoch_key in enumerate(write.group.epoch_keys)
        ],
    )
    if write.group.first_entry is not None:
        governed_tables.put_first(connection, key, write.group.first_entry, write.group.topic_name)


def _read_epochs(connection: sqlite3.Connection) -> dict[int, list[bytes]]:
    """By conversation key, oldest first."""
    epoch_keys: dict[int, list[bytes]] = {}
    for key, epoch_key in connection.execute(
        "SELECT conversation_key, epoch_key FROM epoch ORDER BY conversation_key, place"
    ):
        epoch_keys.setdefault(key, []).append(epoch_key)
    return epoch_keys


def save_draft(connection: sqlite3.Connection, key: int, text: str) -> None:
    connection.execute("UPDATE conversation SET draft = ? WHERE conversation_key = ?", (text, key))


def save_muted(
    connection: sqlite3.Connection, key: int, *, muted: bool, until_ms: UnixMs | None
) -> None:
    stored = _stored_mute(muted=muted, until_ms=until_ms)
    connection.execute(
        "UPDATE conversation SET muted = ? WHERE conversation_key = ?", (stored, key)
    )


def _stored_mute(*, muted: bool, until_ms: UnixMs | None) -> int:
    """0: not muted; 1: until the user ends it; any other number: until then, in Unix ms."""
    if not muted or until_ms is None:
        return int(muted)
    return max(until_ms, _FIRST_UNTIL_MS)


def mute_end(stored: int) -> UnixMs | None:
    """The inverse of ``_stored_mute``, for a conversation that is muted."""
    return UnixMs(stored) if stored >= _FIRST_UNTIL_MS else None


def read_groups(connection: sqlite3.Connection) -> list[GroupRecord]:
    epoch_keys = _read_epochs(connection)
    return [
        GroupRecord(
            conversation_id=ConversationId(conversation_id),
            name=name,
            epoch_keys=tuple(epoch_keys.get(key, ())),
            admin_public_key=admin_public_key,
            created_ms=UnixMs(created_ms),
            muted=bool(muted),
            muted_until_ms=mute_end(muted),
            draft=draft,
            read_up_to=mark_of(read_lamport, read_message_id),
            service_nodes=tuple(service_nodes.splitlines()),
            first_entry=first_entry,
            topic_name=topic_name or b"",
        )
        for (
            key,
            conversation_id,
            name,
            admin_public_key,
            created_ms,
            muted,
            draft,
            read_lamport,
            read_message_id,
            service_nodes,
            first_entry,
            topic_name,
        ) in connection.execute(_GROUPS)
    ]


def put_member(connection: sqlite3.Connection, key: int, member: MemberRecord) -> None:
    connection.execute(
        _PUT_MEMBER,
        (
            key,
            member.participant_id,
            member.public_key,
            member.encryption_key,
            member.name,
            member.is_admin,
            member.joined_ms,
            member.left_ms,
            member.join_statement,
            member.named_ms,
            member.known_ms,
        ),
    )


def read_members(
    connection: sqlite3.Connection, keys: Mapping[int, ConversationId]
) -> dict[int, list[MemberRecord]]:
    """By the keys of the conversations; ``keys`` has their ids."""
    found: dict[int, list[MemberRecord]] = {}
    for some in by_the_dozen(list(keys)):
        rows: list[_MemberRow] = connection.execute(_MEMBERS[len(some)], some).fetchall()
        for (
            key,
            participant_id,
            public_key,
            encryption_key,
            name,
            is_admin,
            joined_ms,
            left_ms,
            join_statement,
            named_ms,
            known_ms,
        ) in rows:
            member = MemberRecord(
                conversation_id=keys[key],
                participant_id=participant_id,
                public_key=public_key,
                encryption_key=encryption_key,
                name=name,
                is_admin=bool(is_admin),
                joined_ms=joined_ms,
                left_ms=left_ms,
                join_statement=join_statement,
                named_ms=named_ms,
                known_ms=known_ms,
            )
            found.setdefault(key, []).append(member)
    return found


# --- small things -------------------------------------------------------------------------------


def save_own_sequence(connection: sqlite3.Connection, key: int, own: OwnSequence) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO own_sequence VALUES (?, ?, ?, ?, ?)",
        (key, own.stay, own.instance_id, own.sequence, own.previous_id),
    )


def read_own_sequence(
    connection: sqlite3.Connection, key: int, stay: InstanceId
) -> OwnSequence | None:
    row: tuple[bytes, int, str] | None = connection.execute(
        "SELECT instance_id, sequence, previous_id FROM own_sequence "
        "WHERE conversation_key = ? AND stay = ?",
        (key, stay),
    ).fetchone()
    if row is None:
        return None
    instance_id, sequence, previous_id = row
    return OwnSequence(
        stay=stay,
        instance_id=InstanceId(instance_id),
        sequence=sequence,
        previous_id=MessageId(previous_id),
    )


def put_node_address(connection: sqlite3.Connection, write: PutNodeAddress) -> None:
    connection.execute(
        "INSERT INTO node_address VALUES (?, ?) "
        "ON CONFLICT (multiaddr) DO UPDATE SET seen_ms = max(seen_ms, excluded.seen_ms)",
        (write.multiaddr, write.seen_ms),
    )
    connection.execute(
        "DELETE FROM node_address WHERE multiaddr NOT IN "
        "(SELECT multiaddr FROM node_address ORDER BY seen_ms DESC, multiaddr LIMIT ?)",
        (MAX_NODE_ADDRESSES,),
    )


def read_node_addresses(connection: sqlite3.Connection) -> list[str]:
    cursor = connection.execute(
        "SELECT multiaddr FROM node_address ORDER BY seen_ms DESC, multiaddr"
    )
    return [multiaddr for (multiaddr,) in cursor]


def add_counters(connection: sqlite3.Connection, amounts: Mapping[str, int]) -> None:
    connection.executemany(
        "INSERT INTO counter VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET amount = amount + excluded.amount",
        amounts.items(),
    )


def read_counters(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT name, amount FROM counter ORDER BY name").fetchall())


def save_value(connection: sqlite3.Connection, key: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO value VALUES (?, ?)", (key, value))


def read_value(connection: sqlite3.Connection, key: str) -> str | None:
    row: tuple[str] | None = connection.execute(
        "SELECT value FROM value WHERE key = ?", (key,)
    ).fetchone()
    return row[0] if row else None
