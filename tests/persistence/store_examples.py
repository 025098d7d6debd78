"""Records as short as a test wants them; everything that a test does not name is ordinary."""

from engine.core.contacts import ContactState
from engine.core.ids import (
    AuthorSequence,
    ChannelId,
    ContentTopic,
    ConversationId,
    DeliveryState,
    HolderSource,
    InstanceId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.mvds.vocabulary import (
    Epoch,
    GroupId,
    MvdsId,
    MvdsMessage,
    MvdsWrite,
    PutRecord,
    Record,
    RecordType,
)
from engine.core.ports import (
    ApplyChannel,
    ApplyMvds,
    PutAnnotation,
    PutDelivery,
    PutLost,
    PutMember,
    PutMessage,
    PutWaiting,
    SaveOwnSequence,
    SavePairClock,
    StoreWrite,
)
from engine.core.records import (
    AnnotationRecord,
    ContactRecord,
    DeliveryRecord,
    FileRecord,
    GroupRecord,
    LostRange,
    MemberRecord,
    MessageRecord,
    OpenChannelRecord,
    OwnSequence,
    ProfileRecord,
    WaitingContent,
)
from engine.core.sds.floods import PutSetAside, PutSpent, SetAside, Spent
from engine.core.sds.forks import Fork, PutFork
from engine.core.sds.vocabulary import (
    AppendToLog,
    HolderEntry,
    LogEntry,
    OutgoingEntry,
    OutgoingState,
    PutHolder,
    PutOutgoing,
    PutReplacement,
    RemoveFromLog,
    Replacement,
    SaveClock,
    Write,
)

GROUP = ConversationId("R" * 43)
OTHER_GROUP = ConversationId("S" * 43)
OPEN = ConversationId("U" * 43)
PAIR = ConversationId("P" * 43)
OTHER_PAIR = ConversationId("Q" * 43)
ME = ParticipantId("0" * 32)
ALICE = ParticipantId("a" * 32)
BOB = ParticipantId("b" * 32)
INSTANCE = InstanceId(b"\x07" * 16)
NOW = UnixMs(1_790_000_000_000)

PROFILE = ProfileRecord(
    name="Mîra",
    signing_key=b"\x01" * 32,
    encryption_key=b"\x02" * 32,
    network_key=b"\x03" * 32,
    instance_id=INSTANCE,
    created_ms=NOW,
)


SERVICE_NODES = ("/dns4/a.example/tcp/1/wss/p2p/16Uiu2A", "/ip4/192.0.2.1/tcp/2/p2p/16Uiu2B")


def group(conversation_id: ConversationId = GROUP, name: str = "Friends") -> GroupRecord:
    return GroupRecord(
        conversation_id=conversation_id,
        name=name,
        epoch_keys=(b"\x04" * 32, b"\x05" * 32),
        admin_public_key=b"\x06" * 32,
        created_ms=NOW,
        service_nodes=SERVICE_NODES,
    )


def open_channel(
    conversation_id: ConversationId = OPEN, name: str = "Chat with anybody"
) -> OpenChannelRecord:
    return OpenChannelRecord(
        conversation_id=conversation_id,
        name=name,
        channel_id=ChannelId("general"),
        content_topic=ContentTopic("/toy-chat/2/huilong/proto"),
        cluster_id=1,
        shard=None,
        sender_id=ParticipantId("Mîra 0a1b2c"),
        nick="Mîra",
        created_ms=NOW,
    )


def contact(conversation_id: ConversationId = PAIR, name: str = "Bob") -> ContactRecord:
    return ContactRecord(
        conversation_id=conversation_id,
        participant_id=BOB,
        public_key=b"\x0b" * 32,
        encryption_key=b"\x0c" * 32,
        name=name,
        state=ContactState.ASKED,
        created_ms=NOW,
    )


def member(
    participant_id: ParticipantId, *, left_ms: UnixMs | None = None, known_ms: UnixMs = NOW
) -> PutMember:
    return PutMember(
        member=MemberRecord(
            conversation_id=GROUP,
            participant_id=participant_id,
            public_key=b"\x08" * 32,
            encryption_key=b"\x09" * 32,
            name=f"name of {participant_id[:1]}",
            is_admin=False,
            joined_ms=NOW,
            left_ms=left_ms,
            join_statement=b"signed",
            known_ms=known_ms,
        )
    )


def at(lamport_timestamp: int, name: str = "m") -> Position:
    return Position(lamport_timestamp=lamport_timestamp, message_id=MessageId(name))


def row(  # noqa: PLR0913 - each is what some test is about
    lamport_timestamp: int,
    name: str,
    *,
    is_own: bool = False,
    kind: str = "text",
    waiting: bool = False,
    text: str = "hello",
    conversation_id: ConversationId = GROUP,
    sender_id: ParticipantId = ALICE,
    reply_to: str | None = None,
    mentions_me: bool = False,
    data: bytes = b"bytes",
    came_ms: UnixMs | None = None,
) -> PutMessage:
    """``data``: of a row of the kind "file"."""
    file = FileRecord(name=f"{name}.png", media_type="image/png", size=len(data), width=3, height=2)
    return PutMessage(
        message=MessageRecord(
            conversation_id=conversation_id,
            position=at(lamport_timestamp, name),
            sender_id=ME if is_own else sender_id,
            is_own=is_own,
            kind=kind,
            text=text,
            spans=(),
            sent_ms=NOW,
            received_ms=NOW,
            waiting=waiting,
            reply_to=None if reply_to is None else MessageId(reply_to),
            mentions_me=mentions_me,
            file=file if kind == "file" else None,
        ),
        data=data if kind == "file" else b"",
        came_ms=came_ms,
    )


def annotation(  # noqa: PLR0913 - each is what some test is about
    lamport_timestamp: int,
    name: str,
    target: str,
    *,
    kind: str = "reaction",
    sender_id: ParticipantId = ALICE,
    emoji: str = "👍",
    removed: bool = False,
    text: str = "",
    conversation_id: ConversationId = GROUP,
    mentions_me: bool = False,
) -> PutAnnotation:
    is_edit = kind == "edit"
    return PutAnnotation(
        annotation=AnnotationRecord(
            conversation_id=conversation_id,
            position=at(lamport_timestamp, name),
            kind=kind,
            target_id=MessageId(target),
            sender_id=sender_id,
            is_own=sender_id == ME,
            sent_ms=UnixMs(NOW + lamport_timestamp),
            received_ms=NOW,
            emoji=emoji if kind == "reaction" else "",
            removed=removed and kind == "reaction",
            text=(text or f"edited by {name}") if is_edit else "",
            mentions_me=mentions_me and is_edit,
        )
    )


def edit(
    lamport_timestamp: int,
    name: str,
    target: str,
    text: str = "",
    *,
    sender_id: ParticipantId = ALICE,
) -> PutAnnotation:
    return annotation(lamport_timestamp, name, target, kind="edit", sender_id=sender_id, text=text)


def retraction(
    lamport_timestamp: int, name: str, target: str, *, sender_id: ParticipantId = ALICE
) -> PutAnnotation:
    return annotation(lamport_timestamp, name, target, kind="retraction", sender_id=sender_id)


def delivery(name: str, state: DeliveryState, failure: str | None = None) -> PutDelivery:
    return PutDelivery(
        conversation_id=GROUP,
        message_id=MessageId(name),
        delivery=DeliveryRecord(state=state, failure=failure),
    )


def channel(*writes: Write, conversation_id: ConversationId = GROUP) -> ApplyChannel:
    return ApplyChannel(conversation_id=conversation_id, writes=writes)


def logged(
    lamport_timestamp: int, name: str, raw: bytes = b"raw", *, previous: str | None = None
) -> AppendToLog:
    entry = LogEntry(
        position=at(lamport_timestamp, name),
        sender_id=ALICE,
        retrieval_hint=b"\x0a" * 32,
        author=AuthorSequence(instance_id=INSTANCE, sequence=lamport_timestamp + 1),
        previous_id=None if previous is None else MessageId(previous),
        size=len(raw),
    )
    return AppendToLog(entry=entry, raw=raw)


def outgoing(name: str, *, attempts: int = 0, raw: bytes = b"raw") -> PutOutgoing:
    return PutOutgoing(
        entry=OutgoingEntry(
            message_id=MessageId(name),
            raw=raw,
            state=OutgoingState.UNACKNOWLEDGED,
            attempts=attempts,
            next_send_ms=NOW,
            accepted=False,
            created_ms=NOW,
        )
    )


def held(
    name: str,
    participant_id: ParticipantId,
    source: HolderSource,
    since_ms: int = 5,
    false_probability: float | None = None,
) -> PutHolder:
    return PutHolder(
        entry=HolderEntry(
            message_id=MessageId(name),
            participant_id=participant_id,
            source=source,
            since_ms=UnixMs(since_ms),
            false_probability=false_probability,
        )
    )


def mvds(*writes: MvdsWrite, conversation_id: ConversationId = PAIR) -> ApplyMvds:
    return ApplyMvds(conversation_id=conversation_id, writes=writes)


def mvds_id(name: str) -> MvdsId:
    return MvdsId(name.encode().ljust(32, b"\x00"))


def record(
    name: str,
    epoch: int = 7,
    *,
    peer_id: ParticipantId = BOB,
    type_: RecordType = RecordType.MESSAGE,
    created_ms: int = NOW,
) -> PutRecord:
    return PutRecord(
        Record(
            peer_id=peer_id,
            message_id=mvds_id(name),
            type=type_,
            send_count=1,
            send_epoch=Epoch(epoch),
            body_bytes=200,
            created_ms=UnixMs(created_ms),
        )
    )


def body(text: bytes = b"sealed") -> MvdsMessage:
    return MvdsMessage(group_id=GroupId(b"\x0d" * 32), timestamp=NOW // 1000, body=text)


def clock(lamport_timestamp: int, conversation_id: ConversationId = PAIR) -> SavePairClock:
    return SavePairClock(conversation_id=conversation_id, lamport_timestamp=lamport_timestamp)


def waiting(
    name: str,
    content: bytes = b"content",
    *,
    shown: bool = False,
    conversation_id: ConversationId = PAIR,
) -> PutWaiting:
    return PutWaiting(
        conversation_id=conversation_id,
        waiting=WaitingContent(
            message_id=MessageId(name),
            sender_id=BOB,
            content=content,
            received_ms=NOW,
            shown=shown,
        ),
    )


def given_up(
    first: int,
    last: int,
    *,
    instance_id: InstanceId = INSTANCE,
    conversation_id: ConversationId = PAIR,
) -> PutLost:
    return PutLost(
        conversation_id=conversation_id,
        lost=LostRange(
            instance_id=instance_id,
            first=first,
            last=last,
            before=at(last + 1, "after"),
            since_ms=NOW,
            given_up_ms=UnixMs(NOW + 1),
        ),
    )


def replacement(
    name: str, sender_id: ParticipantId = BOB, lamport_timestamp: int = 5
) -> PutReplacement:
    return PutReplacement(
        replacement=Replacement(
            message_id=MessageId(name),
            sender_id=sender_id,
            lamport_timestamp=lamport_timestamp,
            by=MessageId(f"{name} again by {sender_id} at {lamport_timestamp}"),
        )
    )


def fork(instance_id: InstanceId = INSTANCE, sequence: int = 3) -> PutFork:
    return PutFork(
        fork=Fork(
            sender_id=BOB,
            instance_id=instance_id,
            sequence=sequence,
            first_id=MessageId("first"),
            second_id=MessageId("second"),
        )
    )


def set_aside(name: str, raw: bytes, *, lamport: int = 1, sender_id: ParticipantId = BOB) -> Write:
    entry = SetAside(
        message_id=MessageId(name), sender_id=sender_id, lamport_timestamp=lamport, size=len(raw)
    )
    return PutSetAside(entry=entry, raw=raw, retrieval_hint=raw[:1] or None)


def spent(
    day: int, messages: int = 3, *, sender_id: ParticipantId = BOB, fetched: bool = False
) -> PutSpent:
    return PutSpent(
        spent=Spent(
            sender_id=sender_id,
            day=day,
            fetched=fetched,
            messages=messages,
            size=7 * messages,
            lifted=messages > 5,
        )
    )


def own_sequence(
    sequence: int,
    name: str,
    *,
    stay: InstanceId = INSTANCE,
    instance_id: InstanceId = INSTANCE,
) -> OwnSequence:
    return OwnSequence(
        stay=stay, instance_id=instance_id, sequence=sequence, previous_id=MessageId(name)
    )


def own_message_sent(sequence: int, text: str = "hello") -> list[StoreWrite]:
    """The writes of one typical transition: an own message, from Enter to "saved"."""
    name = f"message-{sequence:014d}"
    return [
        channel(
            logged(sequence, name, raw=text.encode()),
            outgoing(name, raw=text.encode()),
            SaveClock(lamport_timestamp=sequence),
        ),
        row(sequence, name, is_own=True, text=text),
        delivery(name, DeliveryState.SAVED),
        SaveOwnSequence(
            conversation_id=GROUP,
            own_sequence=own_sequence(sequence, name),
        ),
    ]


FUTURE = 2**50


def said_again(number: int) -> list[StoreWrite]:
    """A message from the future takes the place of the one before, which leaves no trace."""
    name, before = (f"future-{each:014d}" for each in (number, number - 1))
    return [
        channel(
            RemoveFromLog(message_id=MessageId(before)),
            replacement(before, ME, number),
            logged(FUTURE + number, name),
        ),
        row(FUTURE + number, name, is_own=True),
        delivery(name, DeliveryState.SAVED),
    ]
