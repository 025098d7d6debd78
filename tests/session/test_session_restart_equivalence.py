"""A device with a real database that dies anywhere, beside a twin in memory that never does."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.waku import decode_waku_message
from engine.core.content import Text
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.ids import InstanceId, UnixMs, WakuHash
from engine.core.ports import ProfileStore
from engine.core.records import GroupRecord, ProfileRecord
from engine.core.sds.inputs import DeadlineReached
from engine.core.stored import StoredMessage
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.crypto.links import parse_invite
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.session.group.factory import GroupFactory
from engine.session.inputs import MessageArrived, Say
from engine.session.transitions import SessionTransition
from engine.sim.session_participant import SessionParticipant, seeded_bytes
from tests.persistence.new_database import new_database

NOW = UnixMs(1_800_000_000_000)
KEY = bytes(range(32))
HEARD = 6


@dataclass
class Device:
    """One profile in one group; ``reopen`` gives the store that a new process would find."""

    reopen: Callable[[], ProfileStore]
    link: str
    now_ms: UnixMs = NOW
    saved: list[str] = field(default_factory=list)
    """What was said and became durable."""

    def __post_init__(self) -> None:
        self.random_bytes = seeded_bytes(1, "device")
        self.identity = Identity.generate(self.random_bytes)
        self.store = self.reopen()
        group, writes, opening = self._book().joined_group(parse_invite(self.link))
        self.group: GroupRecord = group
        self.store.apply(writes)
        self.session = self._book().load(group)
        for body in opening:
            self.store.apply(self.session.handle(Say(body), now_ms=self.now_ms).writes)

    def _book(self) -> GroupFactory:
        return GroupFactory(
            store=self.store,
            identity=self.identity,
            profile=ProfileRecord(
                name="Device",
                signing_key=self.identity.signing_key,
                encryption_key=self.identity.encryption_key,
                network_key=bytes(32),
                instance_id=InstanceId(bytes(16)),
                created_ms=NOW,
            ),
            entropy=Entropy(random_bytes=self.random_bytes, random_unit=Random(1).random),
            counters=Counters(),
            now_ms=lambda: self.now_ms,
            online=lambda: True,
        )

    def restart(self) -> None:
        self.store.close()
        self.store = self.reopen()
        self.session = self._book().load(self.group)

    def perform(self, transition: SessionTransition, death: str) -> bool:
        """Whether the writes became durable; what was to be sent is lost with either death."""
        if death != "before the disk":
            self.store.apply(transition.writes)
        if death:
            self.restart()
        return death != "before the disk"

    def say(self, text: str, death: str) -> None:
        transition = self.session.handle(Say(Text(text=text)), now_ms=self.now_ms)
        if self.perform(transition, death):
            self.saved.append(text)

    def hear(self, message: WakuMessage, death: str) -> None:
        waku_hash = WakuHash(bytes(32))
        self.perform(
            self.session.handle(MessageArrived(message, waku_hash), now_ms=self.now_ms), death
        )

    def advance(self, death: str) -> None:
        self.perform(self.session.handle(DeadlineReached(), now_ms=self.now_ms), death)

    def texts(self) -> list[str]:
        page = self.store.latest_page(self.group.conversation_id, limit=200)
        return [m.record.text for m in page.messages if m.record.kind == "text"]

    def check(self) -> None:
        """Memory is what was written; own numbers are 1, 2, 3… and each is used once."""
        state = self.session.channel.snapshot()
        stored = self.store.channel_state(self.group.conversation_id)
        newest = max((one.position.lamport_timestamp for one in stored.log), default=0)
        clock = max(stored.lamport_timestamp, newest)
        assert replace(state, missing=()) == replace(stored, missing=(), lamport_timestamp=clock)
        assert {m.entry for m in state.missing} == {m.entry for m in stored.missing}
        me = self.identity.participant_id
        own = [e.author.sequence for e in state.log if e.sender_id == me and e.author]
        assert own == list(range(1, len(own) + 1))
        waiting = {e.message.message_id for e in state.incoming}
        rows = {m.record.position.message_id for m in self.rows()}
        assert {e.position.message_id for e in state.log} <= rows
        assert rows <= {e.position.message_id for e in state.log} | waiting

    def rows(self) -> list[StoredMessage]:
        page = self.store.latest_page(self.group.conversation_id, limit=200)
        return list(page.messages)


def bobs_messages() -> tuple[str, list[WakuMessage]]:
    """An invitation to Bob's group, and what he says in it."""
    bob = SessionParticipant("Bob", seed=9, now_ms=NOW)
    sent = list(bob.create_group("Tide", now_ms=NOW))
    for number in range(HEARD):
        sent += bob.say(Text(text=f"bob {number}"), now_ms=UnixMs(NOW + 1 + number))
    return bob.invite_link(), [decode_waku_message(out.payload) for out in sent]


def by_author(texts: list[str]) -> list[str]:
    """Each author's in their order."""
    return sorted(texts, key=lambda text: text.split()[0])


LINK, BOBS = bobs_messages()
DEATHS = st.sampled_from(["", "", "", "before the disk", "after the disk"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["say", "hear", "advance", "restart"]),
        st.integers(0, len(BOBS) - 1),
        st.sampled_from([0, 1, 2_000, 61_000, 600_000]),
        DEATHS,
    ),
    max_size=14,
)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
@example(steps=[("say", 0, 0, death) for death in ("", "", "before the disk", "")])
def test_a_device_that_dies_anywhere_ends_where_its_twin_does(
    steps: list[tuple[str, int, int, str]],
) -> None:
    with TemporaryDirectory() as place:
        path = new_database(Path(place) / "causerie.db", KEY)
        device = Device(lambda: SqliteProfileStore.open(path, KEY), LINK)
        memory = SqliteProfileStore.in_memory()
        twin = Device(lambda: memory, LINK)
        for number, (step, which, pause_ms, death) in enumerate(steps):
            for one, how in ((device, death), (twin, "")):
                one.now_ms = UnixMs(one.now_ms + pause_ms)
                if step == "say":
                    one.say(f"own {number}", how)
                elif step == "hear":
                    one.hear(BOBS[which], how)
                elif step == "advance":
                    one.advance(how)
                elif one is device:
                    one.restart()
            device.check()
        for one in (device, twin):
            for message in BOBS:
                one.hear(message, "")
            one.check()
        lost = set(twin.saved) - set(device.saved)
        both = device.texts(), [text for text in twin.texts() if text not in lost]
        assert both[0] == both[1] or lost, "with nothing lost the order is the same"
        # What was lost has not moved the clock, so what came later may stand before what Bob said.
        assert by_author(both[0]) == by_author(both[1])
        unsent = {entry.message_id for entry in device.session.channel.snapshot().outgoing}
        own = {m.record.position.message_id for m in device.rows() if m.record.is_own}
        assert unsent == own, "whatever became durable is still to be sent"
        device.store.close()
