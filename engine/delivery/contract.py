"""The contract of the delivery log, as plain data: tables, columns, types, bounds, vocabularies.

It is declared only here.  The log file's SQL, the page docs/delivery-contract.md and the pipeline's
schemas are generated from it, and a test fails when one of them differs.  The application writes by
it and the pipeline reads by it, possibly on another machine, so any change beyond wording needs a
new ``SCHEMA_VERSION``.

No column holds text, a name, a key or a topic of the user: participants and channels are pseudonyms
(``engine.delivery.pseudonym``), and ``detail`` uses our own words.  Only ``store_message``, which
an operator exports from a Store, names topics.  SQL, Spark and Arrow are handled elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

SCHEMA_VERSION: Final = 3
READABLE_VERSIONS: Final = (1, 2, 3)
"""Version 1 has no ``fault``.  Up to version 2 a member's newest stay replaced the ones before, and
the columns that say ``since`` 3 are unknown."""

INT16: Final = 2**15 - 1
INT32: Final = 2**31 - 1
INT64: Final = 2**63 - 1
MAX_MESSAGE_ID_BYTES: Final = 128
MAX_PARENTS: Final = 256
PSEUDONYM_BYTES: Final = 16
"""Lower-case hex characters: 64 bits."""

Value: TypeAlias = int | float | str | bytes | list[str] | list[int] | None
Row: TypeAlias = Mapping[str, Value]


class Protocol(StrEnum):
    SDS = "sds"
    MVDS = "mvds"


class Kind(StrEnum):
    """What happened.  ``KIND_TEXTS`` describes each."""

    SENT = "sent"
    PUBLISHED = "published"
    RECEIVED = "received"
    DUPLICATE = "duplicate"
    DELIVERED = "delivered"
    MISSING = "missing"
    LOST = "lost"
    POSSIBLY_ACKED = "possibly_acked"
    ACKED = "acked"
    RETRANSMITTED = "retransmitted"
    GIVEN_UP = "given_up"
    REPAIR_REQUESTED = "repair_requested"
    REPAIR_SENT = "repair_sent"
    SYNC_SENT = "sync_sent"
    SYNC_RECEIVED = "sync_received"
    EPHEMERAL_SENT = "ephemeral_sent"
    EPHEMERAL_RECEIVED = "ephemeral_received"
    STORE_QUERY = "store_query"
    STORE_HIT = "store_hit"
    REJECTED = "rejected"
    ONLINE = "online"
    OFFLINE = "offline"
    STARTED = "started"
    STOPPED = "stopped"
    SNAPSHOT = "snapshot"
    GAP = "gap"
    FAULT = "fault"


KIND_TEXTS: Final[Mapping[Kind, str]] = {
    Kind.SENT: "An own message was made; `delivered` follows at once.",
    Kind.PUBLISHED: (
        "The network was handed a copy that carries an own message, the first of it with `attempt`"
        " 1; `amount`: how many peers it went to, 0 = nobody."
    ),
    Kind.RECEIVED: "The first copy of somebody's message came and checked out.",
    Kind.DUPLICATE: "A further copy of a message that was received before.",
    Kind.DELIVERED: (
        "It is in the log: all it depends on is there, or lost.  Own ones at once.  `position`:"
        " its place then."
    ),
    Kind.MISSING: "A message is known to exist and is not here; told once, when that was learnt.",
    Kind.LOST: "It was looked for long enough and is waited for no longer.",
    Kind.POSSIBLY_ACKED: "`peer` may hold an own message: a filter says so.",
    Kind.ACKED: "`peer` holds an own message, for certain; `ack_source` says how that is known.",
    Kind.RETRANSMITTED: "As `published`, `attempt` 2 and more.",
    Kind.GIVEN_UP: "An own message is sent no more: nobody took it.",
    Kind.REPAIR_REQUESTED: "Others were asked for a missing message.",
    Kind.REPAIR_SENT: "Somebody's message was sent again for one who asked.",
    Kind.SYNC_SENT: "A message without content was handed to the network.",
    Kind.SYNC_RECEIVED: "A message without content came.",
    Kind.EPHEMERAL_SENT: "A message that nobody keeps was handed to the network.",
    Kind.EPHEMERAL_RECEIVED: "A message that nobody keeps came.",
    Kind.STORE_QUERY: (
        "A query at Stores is over; `amount`: for how many messages by hash, 0 = by time;"
        " `attempt`: its number; `detail`: how it ended.  What it brought stands before it."
    ),
    Kind.STORE_HIT: (
        "A Store's answer held this message, and it was not here; `attempt`: number of the query."
    ),
    Kind.REJECTED: "Bytes were refused; `detail` is the reason.",
    Kind.ONLINE: "From now on somebody can be reached.",
    Kind.OFFLINE: "From now on nobody can be reached.",
    Kind.STARTED: "Recording begins or goes on, in this file.",
    Kind.STOPPED: "Recording ends in order.  Without it the process died, or a new file was begun.",
    Kind.SNAPSHOT: "`log_snapshot` of this channel was written; `amount`: how many messages.",
    Kind.FAULT: (
        "Somebody tries a bad network on this device, on purpose.  With a channel: what was done to"
        " a copy, `detail` says what and `_out` or `_in` which way: `lost`, `delayed` (by `amount`"
        " ms), `doubled`, `held`, `overflowed`.  Without one: faults have `begun`, changed or"
        " `ended`, a peer's connections were cut (`peer_cut_off`) or allowed (`peer_let_back`),"
        " something was done to a copy on its way to one peer or from it (`peer_lost_out` and so"
        " on, as with a channel), or the clock was put `clock_ahead` or `clock_back` by"
        " `amount` ms, 0 = right."
    ),
    Kind.GAP: "`amount` rows were dropped here, because the disk did not keep up.",
}


class AckSource(StrEnum):
    """How an acknowledgement is known.  Only BLOOM is uncertain."""

    CAUSAL = "causal"
    HOLDINGS = "holdings"
    REPAIR = "repair"
    AUTHOR = "author"
    BLOOM = "bloom"
    MVDS = "mvds"


class Via(StrEnum):
    """How a copy travelled: relay, a service node, another member's repair, or a Store."""

    RELAY = "relay"
    FILTER = "filter"
    LIGHTPUSH = "lightpush"
    REPAIR = "repair"
    STORE = "store"


class Type(StrEnum):
    """A column's type.  Lists are JSON in the log file."""

    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT64 = "float64"
    TEXT = "text"
    BINARY = "binary"
    TEXTS = "texts"
    INT64S = "int64s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """``maximum`` bounds a number's value, the UTF-8 bytes of text, bytes, and a list's items.

    ``per_log``: the same in all rows of a log; a log file holds it once, in its table ``log``.
    ``since``: the first version that has it; unknown in logs of earlier ones.
    """

    name: str
    type: Type
    text: str
    nullable: bool = False
    minimum: int = 0
    maximum: int = INT64
    choices: tuple[str, ...] = ()
    per_log: bool = False
    since: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Compared by identity, which makes it a fast key."""

    name: str
    text: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def needed(self) -> frozenset[str]:
        """The columns that no row of any version is without."""
        return frozenset(c.name for c in self.columns if not c.nullable and c.since == 1)

    @property
    def row_columns(self) -> tuple[Column, ...]:
        """The columns that a log file holds in every row."""
        return tuple(column for column in self.columns if not column.per_log)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


# --- columns that several tables have -------------------------------------------------------------


def _pseudonym(
    name: str, text: str, *, nullable: bool = False, per_log: bool = False, since: int = 1
) -> Column:
    return Column(
        name=name,
        type=Type.TEXT,
        text=text,
        nullable=nullable,
        maximum=PSEUDONYM_BYTES,
        per_log=per_log,
        since=since,
    )


def _int(name: str, text: str, maximum: int = INT64, *, nullable: bool = False) -> Column:
    kind = {INT16: Type.INT16, INT32: Type.INT32}.get(maximum, Type.INT64)
    return Column(name=name, type=kind, text=text, nullable=nullable, maximum=maximum)


def _text(name: str, text: str, maximum: int, *, per_log: bool = False) -> Column:
    return Column(
        name=name, type=Type.TEXT, text=text, maximum=maximum, per_log=per_log, nullable=not per_log
    )


_VERSION: Final = Column(
    name="schema_version",
    type=Type.INT16,
    text="Of this contract.",
    minimum=1,
    maximum=INT16,
    per_log=True,
)
_LOG_ID: Final = _pseudonym("log_id", "Random, one for each log file.", per_log=True)
_PARTICIPANT: Final = _pseudonym("participant", "Whose log it is.", per_log=True)
_KEY_ID: Final = _pseudonym(
    "key_id", "Of the key that pseudonyms are made with: compare equal ones only.", per_log=True
)
_LOG: Final = (_VERSION, _LOG_ID, _PARTICIPANT, _KEY_ID)
_CHANNEL: Final = _pseudonym("channel", "Which conversation.")
_PROTOCOL: Final = Column(
    name="protocol",
    type=Type.TEXT,
    text="That keeps the conversation together.",
    maximum=4,
    choices=tuple(Protocol),
)
_MID_TEXT: Final = "First 8 bytes of sha256 of the id's UTF-8, big-endian, signed."


def _message_id(*, nullable: bool = False) -> tuple[Column, Column]:
    return (
        Column(
            name="message_id",
            type=Type.TEXT,
            text="As on the wire.",
            nullable=nullable,
            maximum=MAX_MESSAGE_ID_BYTES,
        ),
        Column(name="mid", type=Type.INT64, text=_MID_TEXT, nullable=nullable, minimum=-INT64 - 1),
    )


_LAMPORT_TEXT: Final = "The message's Lamport timestamp, as it claims."

DELIVERY_EVENT: Final = Table(
    name="delivery_event",
    text="What happened, in the order in which it did.",
    key=("log_id", "seq"),
    columns=(
        *_LOG,
        _text("app_version", "Of the program that recorded.", 32, per_log=True),
        _text("network", "Which network, such as `waku/42`, `sim`.", 32, per_log=True),
        _pseudonym(
            "previous_log_id",
            "Of the file that this one continues; none: it continues none.",
            nullable=True,
            per_log=True,
            since=3,
        ),
        Column(name="seq", type=Type.INT64, text="1, 2, 3 and so on, without a hole.", minimum=1),
        _pseudonym("channel", "Which conversation; none: of the whole profile.", nullable=True),
        Column(
            name="protocol",
            type=Type.TEXT,
            text="That keeps the conversation together.",
            nullable=True,
            maximum=4,
            choices=tuple(Protocol),
        ),
        Column(name="kind", type=Type.TEXT, text="See below.", maximum=24, choices=tuple(Kind)),
        *_message_id(nullable=True),
        Column(
            name="waku_hash",
            type=Type.BINARY,
            text="Deterministic hash of the Waku message that was the copy.",
            nullable=True,
            minimum=32,
            maximum=32,
        ),
        _int("lamport", _LAMPORT_TEXT, nullable=True),
        _int("position", "Messages before it in the log, at that time.", nullable=True),
        _int("at_ms", "Unix time by the clock of this device."),
        _int("mono_ns", "Monotonic clock of the process; starts anew with `started`."),
        _pseudonym("peer", "The other: who sent it, who holds it, who is asked.", nullable=True),
        Column(
            name="ack_source",
            type=Type.TEXT,
            text="How an acknowledgement is known.",
            nullable=True,
            maximum=8,
            choices=tuple(AckSource),
        ),
        _int("bloom_m", "The filter's size, bits.", INT32, nullable=True),
        _int("bloom_k", "Bits for each message in it.", INT32, nullable=True),
        _int("bloom_n", "Messages in it, as its fill tells.", INT32, nullable=True),
        _int("attempt", "Which copy of an own message, or which request.", INT32, nullable=True),
        _int("wire_bytes", "Length of the Waku message's payload.", INT32, nullable=True),
        Column(
            name="via",
            type=Type.TEXT,
            text="How the copy travelled.",
            nullable=True,
            maximum=9,
            choices=tuple(Via),
        ),
        _int("amount", "A number; of what, the kind says.", nullable=True),
        _text("detail", "A reason, of a fixed vocabulary.", 64),
    ),
)

LOG_SNAPSHOT: Final = Table(
    name="log_snapshot",
    text="A conversation as it stood, in its final order.  The newest of a channel counts.",
    key=("log_id", "channel", "position"),
    columns=(
        *_LOG,
        _CHANNEL,
        _PROTOCOL,
        _int("snapshot_ms", "When it was taken, Unix time."),
        _int("position", "0, 1, 2 and so on."),
        *_message_id(),
        _int("lamport", _LAMPORT_TEXT),
    ),
)

MESSAGE: Final = Table(
    name="message",
    text="A message as this participant knows it, once for each.",
    key=("log_id", "channel", "message_id"),
    columns=(
        *_LOG,
        _CHANNEL,
        _PROTOCOL,
        *_message_id(),
        _int("lamport", _LAMPORT_TEXT),
        _pseudonym("sender", "Who wrote it."),
        _int("sent_ms", "Unix time by its sender's clock, as it claims.", nullable=True),
        Column(
            name="parents",
            type=Type.TEXTS,
            text="Ids of its causal history, oldest first; none: not known any more.",
            nullable=True,
            maximum=MAX_PARENTS,
        ),
        Column(
            name="parent_mids",
            type=Type.INT64S,
            text="Their `mid`s, in the same order.",
            nullable=True,
            maximum=MAX_PARENTS,
        ),
        _pseudonym(
            "content",
            "Digest of what it says, under the key; none: not known any more, or never here.",
            nullable=True,
            since=3,
        ),
    ),
)

MEMBERSHIP: Final = Table(
    name="membership",
    text="Who belongs to a conversation, as this participant knows: every stay of each member.",
    key=("log_id", "channel", "member", "joined_ms"),
    columns=(
        *_LOG,
        _CHANNEL,
        _PROTOCOL,
        _pseudonym("member", "Who; the log's owner is among them."),
        _int("joined_ms", "Unix time, as the member's own join says."),
        _int("left_ms", "Unix time; none: is still there.", nullable=True),
    ),
)

STORE_MESSAGE: Final = Table(
    name="store_message",
    text="What a Store holds, as `causerie export-store` wrote it down.",
    key=("source", "waku_hash"),
    columns=(
        Column(
            name="schema_version",
            type=Type.INT16,
            text="Of this contract.",
            minimum=1,
            maximum=INT16,
        ),
        Column(
            name="source",
            type=Type.TEXT,
            text="Which Store: its peer id, or the archive's name.",
            maximum=128,
        ),
        Column(
            name="waku_hash",
            type=Type.BINARY,
            text="Deterministic hash of the message.",
            minimum=32,
            maximum=32,
        ),
        Column(name="pubsub_topic", type=Type.TEXT, text="As archived.", maximum=256),
        Column(name="content_topic", type=Type.TEXT, text="As archived.", maximum=256),
        _int("timestamp_ns", "Unix time, as the message claims, or as archived."),
        _int("payload_bytes", "Length of its payload.", INT32),
        _int("exported_ms", "When it was exported, Unix time."),
    ),
)

LOG_TABLES: Final = (DELIVERY_EVENT, LOG_SNAPSHOT, MESSAGE, MEMBERSHIP)
"""The tables of a delivery log."""
TABLES: Final = (*LOG_TABLES, STORE_MESSAGE)
TABLES_BY_NAME: Final[Mapping[str, Table]] = {table.name: table for table in TABLES}
