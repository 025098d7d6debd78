"""Makes a profile with a long past: ``python -m benchmarks.scale_profile DIR GROUPS TEXTS``.

Two members talk in each group through their real sessions, three texts of 80 bytes in a row each, a
minute apart, and all is acknowledged by what follows.  One of them has her store on disk, as the
program lays it out.  A million texts take minutes, so a finished profile is kept for the next run.
"""

import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from chat_app.compose import open_store
from engine.core.content import Body, Text
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.ids import ConversationId, InstanceId, UnixMs
from engine.core.ports import ProfileStore, SaveProfile, StoreWrite
from engine.core.records import GroupRecord, ProfileRecord
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.crypto.links import parse_invite
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import Sharding
from engine.persistence.profile_directory import open_profile_directory
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.session.contract import Session
from engine.session.group.factory import GroupFactory
from engine.session.inputs import MessageArrived, Say
from engine.session.transitions import Publish

STEP_MS: Final = 60_000
IN_A_ROW: Final = 3
WRITES_TOGETHER: Final = 4_000
WORDS: Final = "a short text as people write it all day, about this and that and nothing much"
TEXT_BYTES: Final = 80
DONE: Final = "done"
"""A file beside the finished profile, with the ids of its groups."""


class Clock:
    def __init__(self, now_ms: int) -> None:
        self.now_ms = UnixMs(now_ms)


class Member:
    """One person: an identity, a store, and one session per group."""

    def __init__(self, name: str, clock: Clock, store: ProfileStore, *, keeps: bool) -> None:
        """``keeps``: whether the writes are applied; the other one only talks."""
        entropy = Random(name)  # noqa: S311 - the same profile each time
        self.store = store
        self._keeps = keeps
        self._writes: list[StoreWrite] = []
        identity = Identity.generate(entropy.randbytes)
        self.profile = ProfileRecord(
            name=name,
            signing_key=identity.signing_key,
            encryption_key=identity.encryption_key,
            network_key=entropy.randbytes(32),
            instance_id=InstanceId(entropy.randbytes(16)),
            created_ms=clock.now_ms,
        )
        self.book = GroupFactory(
            store=store,
            identity=identity,
            profile=self.profile,
            entropy=Entropy(random_bytes=entropy.randbytes, random_unit=entropy.random),
            counters=Counters(),
            now_ms=lambda: clock.now_ms,
            online=lambda: True,  # Nobody is given time to sync: the conversation, nothing else.
        )

    def begin(self, group: GroupRecord, writes: Sequence[StoreWrite]) -> Session:
        self.store.apply(writes)
        return self.book.load(group)

    def keep(self, writes: Sequence[StoreWrite]) -> None:
        if self._keeps:
            self._writes.extend(writes)
            if len(self._writes) >= WRITES_TOGETHER:
                self.flush()

    def flush(self) -> None:
        self.store.apply(self._writes)
        self._writes.clear()


class Talk:
    """A group of two, in which each hears the other at once."""

    def __init__(self, name: str, clock: Clock, members: tuple[Member, Member]) -> None:
        self._clock, self._members = clock, members
        founder, guest = members
        group, writes, opening = founder.book.new_group(name)
        self.group = group.conversation_id
        link = founder.book.invite_link(group, ())
        joined, words, join = guest.book.joined_group(parse_invite(link))
        self._sessions = (founder.begin(group, writes), guest.begin(joined, words))
        self.say(0, opening[0])
        self.say(1, join[0])

    def say(self, number: int, body: Body) -> None:
        now_ms = self._clock.now_ms = UnixMs(self._clock.now_ms + STEP_MS)
        told = self._sessions[number].handle(Say(body), now_ms=now_ms)
        self._members[number].keep(told.writes)
        for send in told.sends:
            if isinstance(send, Publish):
                self._reach(1 - number, send.message)

    def _reach(self, number: int, message: WakuMessage) -> None:
        topic = Sharding().pubsub_topic(message.content_topic)
        arrived = MessageArrived(message, message_hash(topic, message))
        told = self._sessions[number].handle(arrived, now_ms=self._clock.now_ms)
        self._members[number].keep(told.writes)


def make_profile(place: Path, groups: int, texts: int) -> list[ConversationId]:
    """``texts`` in all.  Returns the groups, from a finished profile if there is one."""
    done = place / DONE
    if done.exists():
        _finish_index(place)
        return [ConversationId(line) for line in done.read_text().splitlines()]
    shutil.rmtree(place, ignore_errors=True)
    clock = Clock(time.time_ns() // 1_000_000 - (texts + 4 * groups + 60) * STEP_MS)
    store = open_store(open_profile_directory(place), force_key_file=True).store
    ines = Member("Ines", clock, store, keeps=True)
    max_ = Member("Max", clock, SqliteProfileStore.in_memory(), keeps=False)
    store.apply([SaveProfile(profile=ines.profile)])
    made: list[ConversationId] = []
    for number in range(groups):
        talk = Talk(f"Group {number + 1}", clock, (ines, max_))
        for text in range(texts // groups):
            talk.say(text // IN_A_ROW % 2, Text(text=f"{text} {WORDS}"[:TEXT_BYTES]))
        ines.flush()
        made.append(talk.group)
    store.close()
    _finish_index(place)
    done.write_text("\n".join(made))
    return made


def _finish_index(place: Path) -> None:
    """What the program does in the background, in the first minutes with an old profile."""
    store = open_store(open_profile_directory(place), force_key_file=True).store
    while (indexed := store.searching.index_some(old=True)).is_more or indexed.old_left:
        pass
    store.close()


if __name__ == "__main__":
    began = time.perf_counter()
    make_profile(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    print(f"{time.perf_counter() - began:.1f} s")
