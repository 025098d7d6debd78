"""Attacks on strong invitations: forged and foreign proofs, replays, floods, lies, broken disks."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from msgspec import Struct

from engine.codec.joining import encode_admission, encode_joining
from engine.core.admin_log.acts import Add, Role
from engine.core.contacts import MAX_PICTURE_BYTES
from engine.core.errors import ChatError, CommandError, RemoteProtocolError, StorageError
from engine.core.governed import PutEntry
from engine.core.ids import ConversationId, UnixMs
from engine.core.invite import StrongInvite, group_id_of
from engine.core.joining import (
    MAX_ASKING_BY_ONE,
    AdmissionParts,
    Joining,
    JoiningKind,
    PutAsking,
    PutInvitation,
    PutJoin,
    Reason,
    Refusal,
    RemoveAsking,
    RemoveJoin,
)
from engine.core.ports import StoreWrite
from engine.core.waku import WakuMessage
from engine.crypto.epochs import seal_earlier_keys
from engine.crypto.identity import Identity
from engine.crypto.join import build_join
from engine.crypto.joining import make_ask, public_answer_key
from engine.crypto.links import encode_strong_invite, parse_any_invite
from engine.crypto.pair import JoiningPart, OpenedPair, PairSeal, inbox_topic_of
from engine.governance_views import EarlierMessages, JoinState
from engine.network.memory import MemoryNetwork
from engine.network.transport import Receipt, Transport
from engine.network.wrapped import WrappedTransport
from tests.crypto.test_joining import OLD_KEY, Log
from tests.patience import PATIENCE_S
from tests.runtime.conftest import Person
from tests.runtime.test_engine_governed import added, governed, join_is, shows, view_of

CHUNKS = 4
"""Of an admission with eight pictures."""
STRANGER = Identity(signing_key=bytes([5] * 32), encryption_key=bytes([6] * 32))
NS_PER_MS = 1_000_000


class _Post(WrappedTransport):
    """What somebody sends to inboxes, which may get lost."""

    def __init__(self, inner: Transport, keep: "Guest") -> None:
        super().__init__(inner)
        self._keep = keep

    async def publish(self, message: WakuMessage, /) -> Receipt:
        self._keep.sent.append(message)
        if self._keep.loses(message):
            return Receipt(waku_hash=(await super().publish(_nothing(message))).waku_hash, peers=0)
        return await super().publish(message)


def _nothing(message: WakuMessage) -> WakuMessage:
    return WakuMessage(
        payload=b"lost", content_topic=message.content_topic, timestamp_ns=message.timestamp_ns
    )


class Guest(Person):
    def __init__(self, name: str, place: Path, network: MemoryNetwork) -> None:
        self.sent: list[WakuMessage] = []
        self.loses: Callable[[WakuMessage], bool] = lambda _message: False
        super().__init__(name, place, network)

    def _worn(self) -> Transport:
        return _Post(self.transport, self)

    @property
    def identity(self) -> Identity:
        with self.disk() as disk:
            profile = disk.profile()
        assert profile is not None
        return Identity(signing_key=profile.signing_key, encryption_key=profile.encryption_key)

    @property
    def key(self) -> bytes:
        return self.identity.public_key

    def sent_to(self, other: "Guest") -> int:
        topic = inbox_topic_of(other.key)
        return sum(message.content_topic == topic for message in self.sent)


class Scene:
    """Olga's group, Anna outside, and Mallory, who sends what she likes."""

    def __init__(self, place: Path) -> None:
        self.network = MemoryNetwork()
        self.olga = Guest("Olga", place, self.network)
        self.anna = Guest("Anna", place, self.network)
        self.mallory = Identity(signing_key=bytes([7] * 32), encryption_key=bytes([8] * 32))
        self.wire = self.network.attach("Mallory")
        self.group = ConversationId("")

    async def begin(self) -> None:
        await self.wire.start()
        await self.olga.start()
        await self.anna.start()
        self.group = await self.olga.engine.governing.create("Walks")

    async def invite(self, *, uses: int = 1, needs_approval: bool = False) -> str:
        return await self.olga.engine.governing.invite(
            self.group,
            uses=uses,
            days=7,
            needs_approval=needs_approval,
            earlier=EarlierMessages.ALL,
        )

    async def publish(self, payload: bytes, to: bytes) -> None:
        topic, now_ns = inbox_topic_of(to), self.olga.now_ms() * NS_PER_MS
        await self.wire.publish(
            WakuMessage(payload=payload, content_topic=topic, timestamp_ns=now_ns)
        )

    async def send(self, by: Identity, to: Guest, joining: Joining) -> None:
        """Sealed and signed as it should be."""
        keys = to.identity
        seal = PairSeal(
            by, peer_public_key=keys.public_key, peer_encryption_key=keys.encryption_public_key
        )
        part = JoiningPart(joining=encode_joining(joining))
        await self.publish(seal.seal(part, signed_ms=self.olga.now_ms()), keys.public_key)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    made = Scene(tmp_path)
    await made.begin()
    yield made
    for one in (made.olga, made.anna):
        await one.engine.stop()
    await made.wire.stop()


def strong(link: str) -> StrongInvite:
    invite = parse_any_invite(link, now_ms=None)
    assert isinstance(invite, StrongInvite)
    return invite


def ask_by(who: Identity, invite: StrongInvite, *, joined_ms: UnixMs) -> Joining:
    join = build_join(who, group_id=invite.group_id, name="M", joined_ms=joined_ms)
    ask = make_ask(who, invite, bytes([9] * 32), join.statement)
    return Joining(group_id=invite.group_id, invitation_id=invite.invitation_id, kind=ask)


def opened_from(who: Identity, *, signed_ms: UnixMs, data: bytes) -> OpenedPair:
    return OpenedPair(
        sender_public_key=who.public_key,
        sender_encryption_key=who.encryption_public_key,
        signed_ms=signed_ms,
        body=JoiningPart(joining=data),
    )


# --- who asks -------------------------------------------------------------------------------------


async def test_a_recorded_ask_lets_nobody_else_in_and_is_answered_once(scene: Scene) -> None:
    link = await scene.invite(uses=9)
    await scene.anna.engine.groups.join(link)
    await scene.anna.until(added(scene.group))
    to_olga = inbox_topic_of(scene.olga.key)
    (recorded,) = [one for one in scene.anna.sent if one.content_topic == to_olga]
    answers = scene.olga.sent_to(scene.anna)
    for _ in range(20):
        await scene.publish(recorded.payload, scene.olga.key)
    await scene.olga.until_counted("inbox.join_replayed", 20)
    assert scene.olga.sent_to(scene.anna) == answers == 1


async def test_proofs_that_are_guessed_or_of_another_let_nobody_in(scene: Scene) -> None:
    invite, now_ms = strong(await scene.invite(uses=9)), scene.olga.now_ms()
    other = strong(await scene.invite(uses=9))
    for wrong in (
        ask_by(scene.mallory, replace(invite, token=bytes(16)), joined_ms=now_ms),
        ask_by(STRANGER, invite, joined_ms=now_ms),
        replace(ask_by(scene.mallory, other, joined_ms=now_ms), invitation_id=invite.invitation_id),
    ):
        await scene.send(scene.mallory, scene.olga, wrong)
    await scene.olga.until_counted("inbox.join_bad_proof", 3)
    for unknown in (
        replace(invite, invitation_id=invite.first_entry),
        replace(invite, group_id=bytes(32)),
    ):
        await scene.send(scene.mallory, scene.olga, ask_by(STRANGER, unknown, joined_ms=now_ms))
    await scene.olga.until_counted("inbox.join_unknown", 2)
    assert len(view_of(scene.olga, scene.group).roles) == 1


async def test_ten_thousand_asks_take_no_room_and_the_honest_one_gets_in(scene: Scene) -> None:
    """Those without the token cost an HMAC; of those with it only so many wait."""
    waiting = strong(await scene.invite(uses=9, needs_approval=True))
    now_ms = scene.olga.now_ms()
    forged = encode_joining(ask_by(STRANGER, waiting, joined_ms=now_ms))
    governing = scene.olga.engine.governing
    for number in range(10_000):
        opened = opened_from(scene.mallory, signed_ms=UnixMs(now_ms + number), data=forged)
        with pytest.raises(RemoteProtocolError, match="join_bad_proof"):
            await governing.take(opened, forged)
    for number in range(MAX_ASKING_BY_ONE + 5):
        key = (number + 1).to_bytes(32, "big")
        sybil = Identity(signing_key=key, encryption_key=key)
        data = encode_joining(ask_by(sybil, waiting, joined_ms=now_ms))
        await governing.take(opened_from(sybil, signed_ms=now_ms, data=data), data)
    assert len(view_of(scene.olga, scene.group).asking) == MAX_ASKING_BY_ONE
    assert scene.olga.engine.counters()["joining.too_many_ask"] == 5
    await scene.anna.engine.groups.join(await scene.invite())
    await scene.anna.until(added(scene.group))


async def test_who_asked_with_a_clock_ahead_is_heard_when_it_is_right(scene: Scene) -> None:
    scene.anna.passed_ms = 3 * 86_400_000
    await scene.anna.engine.groups.join(await scene.invite(needs_approval=True))
    await scene.anna.until(join_is(JoinState.WAITS))
    recorded = scene.anna.sent[-1]
    scene.anna.passed_ms = 0
    await scene.anna.engine.governing.forget_join(scene.group)
    await scene.anna.engine.groups.join(await scene.invite())
    await scene.anna.until(added(scene.group))
    answers = scene.olga.sent_to(scene.anna)
    for _ in range(2):
        await scene.publish(recorded.payload, scene.olga.key)
    await scene.olga.until_counted("inbox.join_replayed", 1)
    assert scene.olga.sent_to(scene.anna) == answers


async def test_nobody_waits_for_an_inviter_who_may_not_let_them_in_any_more(scene: Scene) -> None:
    """Anna was an admin, has an invitation out, and is removed while somebody waits."""
    await scene.anna.engine.groups.join(await scene.invite())
    await scene.anna.until(added(scene.group))
    await scene.olga.until(governed(lambda view: len(view.roles) == 2))
    who = scene.anna.identity.participant_id
    await scene.olga.engine.governing.promote(scene.group, who)
    await scene.anna.until(governed(lambda view: view.own_role is Role.ADMIN))
    invite = strong(
        await scene.anna.engine.governing.invite(
            scene.group, uses=9, days=7, needs_approval=True, earlier=EarlierMessages.ALL
        )
    )
    ask = ask_by(scene.mallory, invite, joined_ms=scene.olga.now_ms())
    await scene.send(scene.mallory, scene.anna, ask)
    await scene.anna.until(governed(lambda view: len(view.asking) == 1))
    waits = len(scene.anna.sent)
    await scene.olga.engine.governing.remove(scene.group, who)
    await scene.anna.until(governed(lambda view: view.own_role is Role.NOBODY))
    with pytest.raises(CommandError):
        await scene.anna.engine.governing.approve(scene.group, scene.mallory.participant_id)
    scene.anna.told.clear()
    await scene.send(scene.mallory, scene.anna, ask)
    await scene.anna.until(governed(lambda view: not view.asking))
    assert len(scene.anna.sent) > waits
    assert scene.mallory.participant_id not in view_of(scene.olga, scene.group).roles


# --- who answers ----------------------------------------------------------------------------------


async def test_answers_of_strangers_and_stale_ones_are_not_heeded(scene: Scene) -> None:
    link = await scene.invite()
    invite = strong(link)
    scene.olga.loses = lambda _message: True
    await scene.anna.engine.groups.join(link)
    refusal = Refusal(reason=Reason.REFUSED, answer_key=bytes(32))
    (chunk,) = encode_admission(AdmissionParts(entries=(b"x",), keys=b""))
    kinds: tuple[JoiningKind, ...] = refusal, chunk
    for kind in kinds:
        said = Joining(group_id=invite.group_id, invitation_id=invite.invitation_id, kind=kind)
        await scene.send(scene.mallory, scene.anna, said)
        await scene.send(scene.olga.identity, scene.anna, said)
        other = replace(said, invitation_id=invite.first_entry)
        await scene.send(scene.olga.identity, scene.anna, other)
    for reason, count in (
        ("join_stranger", 2),
        ("join_unknown", 2),
        ("join_stale", 1),
        ("entry_malformed", 1),
    ):
        await scene.anna.until_counted(f"inbox.{reason}", count)
    assert [one.state for one in scene.anna.engine.governing.joins()] == [JoinState.ASKED]
    assert await scene.anna.engine.conversations() == []


@pytest.mark.parametrize("network_was_away", [True, False])
async def test_a_lost_answer_comes_again_with_the_next_ask(
    scene: Scene, *, network_was_away: bool
) -> None:
    """Which is sent when the network is back, and when somebody else is connected."""
    lost = asyncio.Event()

    def loses(message: WakuMessage) -> bool:
        if message.content_topic == inbox_topic_of(scene.anna.key):
            lost.set()
        return lost.is_set()

    scene.olga.loses = loses
    await scene.anna.engine.groups.join(await scene.invite())
    async with asyncio.timeout(PATIENCE_S):
        await lost.wait()
    scene.olga.loses = lambda _message: False
    scene.olga.passed_ms += 60_000
    scene.anna.passed_ms += 15_000
    if network_was_away:
        scene.anna.transport.set_online(False)
        scene.anna.transport.set_online(True)
    else:
        await scene.network.attach("Ben").start()
    await scene.anna.until(added(scene.group))
    assert len(view_of(scene.olga, scene.group).roles) == 2
    entries = [one for one in view_of(scene.olga, scene.group).invitations if one.came]
    assert [one.came for one in entries] == [(scene.anna.identity.participant_id,)]


async def test_chunks_of_several_answers_make_one_admission(scene: Scene) -> None:
    """Of the first answer the beginning is lost, of the second all the rest."""
    for number in range(8):
        picture = b"\x89PNG\r\n\x1a\n" + Random(number).randbytes(MAX_PICTURE_BYTES - 9)
        picture += bytes([number])
        await scene.olga.engine.governing.set_picture(scene.group, picture)
    topic = inbox_topic_of(scene.anna.key)
    answered = list[int]()

    def loses(message: WakuMessage) -> bool:
        if message.content_topic != topic:
            return False
        answered.append(len(answered))
        return answered[-1] in {0, *range(CHUNKS + 1, 2 * CHUNKS)}

    scene.olga.loses = loses
    await scene.anna.engine.groups.join(await scene.invite())
    await scene.anna.until_counted("joining.chunks", CHUNKS - 1)
    scene.olga.passed_ms += 60_000
    scene.anna.transport.set_online(False)
    scene.anna.transport.set_online(True)
    await scene.anna.until(added(scene.group))
    assert len(answered) == 2 * CHUNKS
    assert view_of(scene.anna, scene.group).picture[-1] == 7


async def test_the_log_of_another_group_under_this_id_is_not_mixed_in(scene: Scene) -> None:
    """Whoever was removed follows a link that names their group and another beginning."""
    await scene.anna.engine.groups.join(await scene.invite())
    await scene.anna.until(added(scene.group))
    await scene.olga.engine.governing.remove(scene.group, scene.anna.identity.participant_id)
    await scene.anna.until(governed(lambda view: view.own_role is Role.NOBODY))
    before = view_of(scene.anna, scene.group)
    other = Log(group_id=group_id_of(scene.group), owner=scene.mallory)
    other.write(scene.mallory, Add(member=scene.anna.identity.participant_id, reads_from=1))
    invite = replace(
        strong(await scene.invite()),
        first_entry=other.first,
        invitation_id=other.invitation,
        public_key=scene.mallory.public_key,
        encryption_key=scene.mallory.encryption_public_key,
    )
    await scene.anna.engine.groups.join(encode_strong_invite(scene.mallory, invite))
    with scene.anna.disk() as disk:
        (join,) = disk.joining.joins()
    keys = seal_earlier_keys(
        (OLD_KEY,),
        scene.anna.identity.participant_id,
        public_answer_key(join.answer_key),
        group_id=invite.group_id,
    )
    for chunk in encode_admission(AdmissionParts(entries=other.data, keys=keys)):
        said = Joining(group_id=invite.group_id, invitation_id=invite.invitation_id, kind=chunk)
        await scene.send(scene.mallory, scene.anna, said)
    await scene.anna.until_counted("inbox.join_other_log", 1)
    assert view_of(scene.anna, scene.group) == before


# --- broken disks ---------------------------------------------------------------------------------


async def test_an_invitation_whose_entry_is_out_works_after_a_crash(scene: Scene) -> None:
    """The id of its entry was not noted any more."""

    def fails(writes: Sequence[StoreWrite]) -> None:
        if any(isinstance(one, PutInvitation) and one.invitation.invitation_id for one in writes):
            raise StorageError("The disk is full.")

    assert scene.olga.store is not None
    scene.olga.store.before_write = fails
    with pytest.raises(StorageError):
        await scene.invite()
    await scene.olga.restart()
    (invitation,) = view_of(scene.olga, scene.group).invitations
    assert invitation.link is not None
    await scene.anna.engine.groups.join(invitation.link)
    await scene.anna.until(added(scene.group))


async def test_who_asks_while_they_are_let_in_does_not_go_on_asking(scene: Scene) -> None:
    another = await scene.invite()
    is_taken_in, may_go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def waits(writes: Sequence[StoreWrite]) -> None:
        if any(isinstance(write, RemoveJoin) for write in writes):
            loop.call_soon_threadsafe(is_taken_in.set)
            may_go_on.wait(PATIENCE_S)

    assert scene.anna.store is not None
    scene.anna.store.before_write = waits
    await scene.anna.engine.groups.join(await scene.invite())
    await asyncio.wait_for(is_taken_in.wait(), PATIENCE_S)
    asking = asyncio.create_task(scene.anna.engine.groups.join(another))
    await asyncio.sleep(0)
    may_go_on.set()
    await asking
    await scene.anna.until(added(scene.group))
    with scene.anna.disk() as disk:
        assert disk.joining.joins() == []


@pytest.mark.parametrize(
    ("who", "kind"),
    [
        ("Olga", PutInvitation),
        ("Olga", PutAsking),
        ("Olga", PutEntry),
        ("Olga", RemoveAsking),
        ("Anna", PutJoin),
        ("Anna", RemoveJoin),
    ],
)
async def test_where_the_disk_fails_all_goes_on_after_a_restart(
    scene: Scene, who: str, kind: type[Struct]
) -> None:
    """As after a crash between two steps: nothing is done twice, and nobody is lost."""
    victim = scene.olga if who == "Olga" else scene.anna

    def fails(writes: Sequence[StoreWrite]) -> None:
        if any(isinstance(write, kind) for write in writes):
            raise StorageError("The disk is full.")

    assert victim.store is not None
    victim.store.before_write = fails
    with suppress(ChatError):
        link = await scene.invite(needs_approval=True)
        await scene.anna.engine.groups.join(link)
        if kind is PutAsking:
            await scene.olga.until_counted("inbox.failed", 1)
            raise StorageError("Nobody is told of it.")
        await scene.anna.until(join_is(JoinState.WAITS))
        await scene.olga.engine.governing.approve(scene.group, scene.anna.identity.participant_id)
        await scene.anna.until_counted("inbox.failed", 1)
    await victim.restart()
    victim.told.clear()
    await scene.anna.engine.groups.join(await scene.invite())
    await scene.anna.until(added(scene.group))
    await scene.anna.engine.timeline.send_text(scene.group, "in")
    await scene.olga.until(shows("in"))
    view = view_of(scene.olga, scene.group)
    assert (len(view.roles), view.asking) == (2, ())
    with scene.anna.disk() as disk:
        assert disk.joining.joins() == []
