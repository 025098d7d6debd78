"""Makes a profile with a long past: ``python -m benchmarks.scale_profile DIR GROUPS TEXTS``.

Two members talk in each group, three texts of 80 bytes in a row each, a minute apart, and all is
acknowledged by what follows.  Ines has a real session, and her store on disk, as the program lays
it out.  Of Max there is what she can tell: his SDS channel and his signature, but no seals, nothing
opened and no rows.  A test compares her tables with those beside a session of his.  A million texts
take minutes, so a finished profile is kept for the next run.
"""

import gc
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Final, Protocol

from chat_app.compose import open_store
from engine.codec.envelope import decode_signed_part
from engine.codec.holdings import decode_claim
from engine.core.content import Body, Text
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.ids import (
    AuthorSequence,
    ContentTopic,
    ConversationId,
    InstanceId,
    MessageId,
    UnixMs,
    WakuHash,
)
from engine.core.ports import ProfileStore, SaveOwnSequence, SaveProfile, StoreWrite
from engine.core.records import GroupRecord, ProfileRecord
from engine.core.sds.inputs import MessageReceived, SendContent
from engine.core.sds.vocabulary import AppendToLog, Claim, Message, MessageDelivered, Transition
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.crypto.links import parse_invite
from engine.crypto.sealed import Opened
from engine.delivery.steps import SdsStep
from engine.persistence.database import open_database
from engine.persistence.key import obtain_database_key
from engine.persistence.profile_directory import open_profile_directory
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.session.group.author_binding import bound_author
from engine.session.group.factory import GroupFactory
from engine.session.group.opening import OpenedEnvelope
from engine.session.group.own_messages import OwnMessages
from engine.session.group.session import GroupSession
from engine.session.inputs import MessageArrived, Say
from engine.session.transitions import Publish, SessionTransition

STEP_MS: Final = 60_000
IN_A_ROW: Final = 3
WRITES_TOGETHER: Final = 32_000
CACHE_KIB: Final = 256 * 1024
"""Of pages: ids come in no order, so each transaction writes all over their indexes."""
WORDS: Final = "a short text as people write it all day, about this and that and nothing much"
TEXT_BYTES: Final = 80
HASH_BYTES: Final = 16
NO_MESSAGE: Final = WakuMessage(payload=b"", content_topic=ContentTopic(""))
"""Around what was opened already."""
DONE: Final = "done"
"""A file beside the finished profile, with the ids of its groups."""
UNFINISHED: Final = "done.unfinished"


class Clock:
    def __init__(self, now_ms: int) -> None:
        self.now_ms = UnixMs(now_ms)


class Writer(Protocol):
    def apply(self, writes: Sequence[StoreWrite], /) -> None: ...

    def wait(self) -> None:
        """Until all is applied."""


class WriterHere:
    def __init__(self, store: ProfileStore) -> None:
        self.apply = store.apply

    def wait(self) -> None:
        pass


class WriterElsewhere:
    """Another process with the same store, which writes while the members talk on."""

    def __init__(self, place: Path) -> None:
        self._process = ProcessPoolExecutor(
            1, get_context("spawn"), initializer=_open_to_write, initargs=(place,)
        )
        self._written: Future[None] | None = None

    def apply(self, writes: Sequence[StoreWrite]) -> None:
        """One batch is written while the next is made."""
        self.wait()
        self._written = self._process.submit(_write, writes)

    def wait(self) -> None:
        if self._written is not None:
            self._written.result()

    def close(self) -> None:
        self._process.submit(_close).result()
        self._process.shutdown()


_OPEN: list[SqliteProfileStore] = []
"""The store of a process that writes."""


def _open_to_write(place: Path) -> None:
    _OPEN.append(_store(place))


def _write(writes: Sequence[StoreWrite]) -> None:
    _OPEN[0].apply(writes)


def _close() -> None:
    _OPEN.pop().close()


class Member:
    """One person: an identity, a store, and one session per group."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        store: ProfileStore,
        *,
        writer: Writer | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        """``store``: sessions are loaded from it.  Without a ``writer`` nothing else is kept."""
        seeded = Random(name)  # noqa: S311 - the same profile each time
        self.store = store
        self._writer = writer
        self._writes: list[StoreWrite] = []
        self.identity = Identity.generate(seeded.randbytes)
        self.profile = ProfileRecord(
            name=name,
            signing_key=self.identity.signing_key,
            encryption_key=self.identity.encryption_key,
            network_key=seeded.randbytes(32),
            instance_id=InstanceId(seeded.randbytes(16)),
            created_ms=clock.now_ms,
        )
        self.entropy = entropy or Entropy(random_bytes=seeded.randbytes, random_unit=seeded.random)
        self.book = GroupFactory(
            store=store,
            identity=self.identity,
            profile=self.profile,
            entropy=self.entropy,
            counters=Counters(),
            now_ms=lambda: clock.now_ms,
            online=lambda: True,  # Nobody is given time to sync: the conversation, nothing else.
        )

    def begin(self, group: GroupRecord, writes: Sequence[StoreWrite]) -> GroupSession:
        self.store.apply(writes)
        self.keep(writes)
        return self.book.load(group)

    def keep(self, writes: Sequence[StoreWrite]) -> None:
        if self._writer is not None:
            self._writes.extend(writes)
            if len(self._writes) >= WRITES_TOGETHER:
                self._pass_on(self._writer)

    def flush(self) -> None:
        if self._writer is not None:
            self._pass_on(self._writer)
            self._writer.wait()

    def _pass_on(self, writer: Writer) -> None:
        writer.apply(self._writes)
        self._writes = []


class Talk:
    """A group of two, in which each hears the other at once."""

    def __init__(self, name: str, clock: Clock, members: tuple[Member, Member]) -> None:
        """Members say who they are by sealed messages, each to the other's session."""
        self._clock, self.members = clock, members
        founder, guest = members
        group, writes, opening = founder.book.new_group(name)
        self.group = group.conversation_id
        link = founder.book.invite_link(group, ())
        joined, words, join = guest.book.joined_group(parse_invite(link))
        self.sessions = (founder.begin(group, writes), guest.begin(joined, words))
        self._say(0, opening[0])
        self.joined = self._say(1, join[0])
        """How the guest's session took its first message."""

    def say(self, number: int, text: Text) -> None:
        self._say(number, text)

    def now_ms(self) -> UnixMs:
        """A step later than before."""
        self._clock.now_ms = UnixMs(self._clock.now_ms + STEP_MS)
        return self._clock.now_ms

    def _say(self, number: int, body: Body) -> SessionTransition:
        now_ms = self.now_ms()
        told = self.sessions[number].handle(Say(body), now_ms=now_ms)
        self.members[number].keep(told.writes)
        for send in told.sends:
            if isinstance(send, Publish):
                arrived = MessageArrived(send.message, hint_of(*send.message_ids))
                self.hear(1 - number, arrived)
        return told

    def hear(self, number: int, arrived: MessageArrived) -> None:
        told = self.sessions[number].handle(arrived, now_ms=self._clock.now_ms)
        self.members[number].keep(told.writes)


class QuickTalk(Talk):
    """Of the guest only the channel goes on once he has joined."""

    def __init__(self, name: str, clock: Clock, members: tuple[Member, Member]) -> None:
        super().__init__(name, clock, members)
        _, self._guest = members
        sequence = next(
            write.own_sequence for write in self.joined.writes if isinstance(write, SaveOwnSequence)
        )
        self._own = OwnMessages(self.group, sequence, (), self._guest.entropy)

    def say(self, number: int, text: Text) -> None:
        if number:
            self._guest_says(text)
        else:
            self._founder_says(text)

    def _founder_says(self, text: Text) -> None:
        now_ms = self.now_ms()
        session, guest = self.sessions
        told = session.handle(Say(text), now_ms=now_ms)
        self.members[0].keep(told.writes)
        (step,) = (step for step in told.steps if isinstance(step, SdsStep))
        message, author, raw = _said_in(step.transition)
        claim = claim_in(raw)
        guest.channel.handle(
            MessageReceived(
                message,
                raw,
                author,
                holdings=claim.holdings if claim else None,
                retrieval_hint=hint_of(message.message_id),
                id_checked=True,
            ),
            now_ms=now_ms,
        )

    def _guest_says(self, text: Text) -> None:
        now_ms = self.now_ms()
        content, author = self._own.next_content(text, now_ms, None)
        bound = bound_author(self._guest.identity.participant_id, author)
        told = self.sessions[1].channel.handle(SendContent(content, bound), now_ms=now_ms)
        message, _, raw = _said_in(told)
        self._own.said(message.message_id, author, None)
        hint = hint_of(message.message_id)
        opened = OpenedEnvelope(
            envelope_hash=hint[:HASH_BYTES],
            opened=Opened(
                sender_id=message.sender_id,
                sender_public_key=self._guest.identity.public_key,
                sds_bytes=b"",
                claim=claim_in(raw),
                signed_ms=now_ms,
                raw=raw,
            ),
            message=message,
            text=None,
        )
        self.hear(0, MessageArrived(NO_MESSAGE, hint, opened=opened))


def _said_in(told: Transition) -> tuple[Message, AuthorSequence | None, bytes]:
    """A message that was just said, who said it, and its signed part."""
    (delivered,) = (event for event in told.events if isinstance(event, MessageDelivered))
    (logged,) = (write for write in told.writes if isinstance(write, AppendToLog))
    return delivered.message, delivered.author, logged.raw


def claim_in(raw: bytes) -> Claim | None:
    return decode_claim(decode_signed_part(raw).claims)


def hint_of(*message_ids: MessageId) -> WakuHash:
    """As long as the hash of a sealed copy, and as hard to compress."""
    return WakuHash(sha256("".join(message_ids).encode()).digest())


def talk_for_long(
    members: tuple[Member, Member], clock: Clock, groups: int, texts: int, kind: type[Talk]
) -> list[ConversationId]:
    """``texts`` in all.  Returns the groups."""
    made: list[ConversationId] = []
    for number in range(groups):
        talk = kind(f"Group {number + 1}", clock, members)
        for text in range(texts // groups):
            talk.say(text // IN_A_ROW % 2, Text(text=f"{text} {WORDS}"[:TEXT_BYTES]))
        made.append(talk.group)
    members[0].flush()
    return made


@contextmanager
def without_collector() -> Iterator[None]:
    """Nothing here is made of cycles, and looking for them took a tenth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def make_profile(place: Path, groups: int, texts: int) -> list[ConversationId]:
    """``texts`` in all.  Returns the groups, from a finished profile if there is one."""
    done = place / DONE
    if done.exists():
        _finish_index(place)
        return [ConversationId(line) for line in done.read_text().splitlines()]
    shutil.rmtree(place, ignore_errors=True)
    clock = Clock(time.time_ns() // 1_000_000 - (texts + 4 * groups + 60) * STEP_MS)
    writer = WriterElsewhere(place)
    hers, his = SqliteProfileStore.in_memory(), SqliteProfileStore.in_memory()
    ines, max_ = Member("Ines", clock, hers, writer=writer), Member("Max", clock, his)
    ines.keep([SaveProfile(profile=ines.profile)])
    with without_collector():
        made = talk_for_long((ines, max_), clock, groups, texts, QuickTalk)
        writer.close()
        _finish_index(place)
    hers.close()
    his.close()
    unfinished = place / UNFINISHED
    unfinished.write_text("\n".join(made))
    unfinished.replace(done)  # Whole, or not at all.
    return made


def _store(place: Path) -> SqliteProfileStore:
    """The one that the program makes or finds there, with a large cache."""
    directory = open_profile_directory(place)
    open_store(directory, force_key_file=True).store.close()
    key = obtain_database_key(directory, force_key_file=True).key
    connection = open_database(directory.database, key)
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    return SqliteProfileStore(connection)


def _finish_index(place: Path) -> None:
    """What the program does in the background, in the first minutes with an old profile."""
    store = _store(place)
    while (indexed := store.searching.index_some(old=True)).is_more or indexed.old_left:
        pass
    store.close()


if __name__ == "__main__":
    began = time.perf_counter()
    make_profile(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    print(f"{time.perf_counter() - began:.1f} s")
