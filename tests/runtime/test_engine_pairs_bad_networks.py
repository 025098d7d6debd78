"""One to one on networks that lose, double, reorder and go away; floods; disks that refuse."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.core.contacts import ContactState
from engine.core.errors import CommandError, InviteError, LocalProtocolError, StorageError
from engine.core.faults import FaultPlan, parse_fault_spec
from engine.core.ids import ContentTopic, ConversationId, DeliveryState, UnixMs, WakuHash
from engine.core.ports import PutContact, SaveValue
from engine.core.records import ContactRecord
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.crypto.links import encode_contact_link, parse_contact_link
from engine.crypto.pair import inbox_topic_of
from engine.events import (
    ConversationAdded,
    ConversationChanged,
    EngineEvent,
    MessageAdded,
    MessageChanged,
    MessageKind,
)
from engine.network.faults import FaultyTransport
from engine.network.memory import MemoryNetwork
from engine.network.transport import MessageHandler, Transport
from engine.network.wrapped import WrappedTransport
from engine.runtime.people import MAX_OPEN_OF_STRANGERS, UNTOLD_KEY
from engine.runtime.request_inbox import MAX_WAITING
from engine.session.inputs import CopiesAccepted
from tests.runtime.conftest import MakePerson, Person
from tests.session.pair_stage import PairPerson


class Afflicted(Person):
    """A person on a bad network."""

    faults = "loss=0.25,dup=0.2,reorder=0.3,delay=1..20ms,seed=5"

    def _worn(self) -> Transport:
        return FaultyTransport(
            self.transport, FaultPlan(parse_fault_spec(self.faults), stream=self.name)
        )


class Ear(WrappedTransport):
    """Remembers what came."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.heard: list[WakuMessage] = []

    def subscribe(
        self, content_topic: ContentTopic, handler: MessageHandler, /
    ) -> Callable[[], None]:
        def arrived(message: WakuMessage, waku_hash: WakuHash) -> bool | None:
            self.heard.append(message)
            return handler(message, waku_hash)

        return super().subscribe(content_topic, arrived)


class Listening(Person):
    def __init__(self, name: str, place: Path, network: MemoryNetwork) -> None:
        super().__init__(name, place, network)
        self.ear = Ear(self.transport)

    def _worn(self) -> Transport:
        return self.ear


def state_is(state: ContactState) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, ConversationChanged | ConversationAdded)
        and event.conversation.contact is not None
        and event.conversation.contact.state is state
    )


def shows(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: isinstance(event, MessageAdded) and event.message.text == text


def names(name: str) -> Callable[[EngineEvent], bool]:
    return lambda event: isinstance(event, ConversationAdded) and event.conversation.name == name


def all_delivered(count: int) -> Callable[[EngineEvent], bool]:
    """Once so many own texts were told to be with the other."""
    seen: set[str] = set()

    def wanted(event: EngineEvent) -> bool:
        if isinstance(event, MessageChanged) and event.message.kind is MessageKind.TEXT:
            delivery = event.message.delivery
            if delivery is not None and delivery.state is DeliveryState.HELD:
                seen.add(event.message.text)
        return len(seen) == count

    return wanted


async def texts(person: Person, pair: ConversationId) -> list[str]:
    page = await person.engine.timeline.latest_page(pair, limit=500)
    return [m.text for m in page.messages if m.kind is MessageKind.TEXT]


async def friends(alice: Person, bob: Person) -> ConversationId:
    pair = await alice.engine.people.add(await bob.engine.people.make_contact_link())
    await bob.until(state_is(ContactState.ASKING))
    await bob.engine.people.accept(pair)
    await alice.until(state_is(ContactState.ACCEPTED))
    return pair


async def test_loss_doubles_and_reordering_both_ways_change_nothing(tmp_path: Path) -> None:
    network = MemoryNetwork()
    alice = await Afflicted("Alice", tmp_path, network).start()
    bob = await Afflicted("Bob", tmp_path, network).start()
    try:
        pair = await friends(alice, bob)
        for number in range(60):
            await alice.engine.timeline.send_text(pair, f"a{number}")
            await bob.engine.timeline.send_text(pair, f"b{number}")
        await alice.until_in_time(all_delivered(60), pair, bob)
        await bob.until_in_time(all_delivered(60), pair, alice)
        hers, his = await texts(alice, pair), await texts(bob, pair)
        assert hers == his
        assert len(hers) == 120
        for who in "ab":
            own = [text for text in hers if text.startswith(who)]
            assert own == [f"{who}{number}" for number in range(60)]
    finally:
        await alice.engine.stop()
        await bob.engine.stop()


async def test_what_is_said_offline_waits_and_goes_out_in_order(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    pair = await friends(alice, bob)
    alice.transport.set_online(False)
    for number in range(20):
        await alice.engine.timeline.send_text(pair, f"later {number}")
    views = {v.conversation_id: v for v in await alice.engine.conversations()}
    assert views[pair].waiting_to_send == 20
    alice.transport.set_online(True)
    await alice.until(all_delivered(20))
    added = [e.message.text for e in bob.told if isinstance(e, MessageAdded)]
    assert [t for t in added if t.startswith("later")] == [f"later {n}" for n in range(20)]


async def test_who_was_away_gets_everything_when_they_are_back(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    pair = await friends(alice, bob)
    await bob.engine.stop()
    for number in range(10):
        await alice.engine.timeline.send_text(pair, f"while away {number}")
    await alice.engine.stop()
    alice_again, bob_again = await person("Alice"), await person("Bob")
    await alice_again.until(all_delivered(10))
    assert await texts(bob_again, pair) == [f"while away {n}" for n in range(10)]
    assert await texts(alice_again, pair) == await texts(bob_again, pair)


async def test_a_disk_that_refuses_is_told_and_nothing_is_lost_or_doubled(
    person: MakePerson,
) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    pair = await friends(alice, bob)
    assert bob.store is not None
    bob.store.broken = True
    with pytest.raises(StorageError):
        await bob.engine.timeline.send_text(pair, "not saved")
    await alice.engine.timeline.send_text(pair, "heard while the disk was full")
    bob.store.broken = False
    await bob.until(shows("heard while the disk was full"))
    await bob.engine.timeline.send_text(pair, "saved")
    await alice.until(shows("saved"))
    expected = ["heard while the disk was full", "saved"]
    assert await texts(alice, pair) == await texts(bob, pair) == expected


async def test_strangers_requests_are_bounded_and_the_rest_counted(person: MakePerson) -> None:
    bob, carol = await person("Bob"), await person("Carol")
    link = await bob.engine.people.make_contact_link()
    requests = [
        message
        for number in range(MAX_OPEN_OF_STRANGERS + 5)
        for message in _request_of(f"Stranger {number}", link)
    ]
    for message in requests:
        await carol.transport.publish(message)
    await asyncio.gather(
        *(bob.until(names(f"Stranger {number}")) for number in range(MAX_OPEN_OF_STRANGERS))
    )
    await bob.until_counted("inbox.too_many_of_strangers", 5)
    views = await bob.engine.conversations()
    assert len(views) == MAX_OPEN_OF_STRANGERS
    assert {v.contact.state for v in views if v.contact} == {ContactState.ASKING}
    for view in views[:10]:
        await bob.engine.people.decline(view.conversation_id)
    bob.told.clear()
    await carol.engine.people.add(link)
    await bob.until(state_is(ContactState.ASKING))


def _request_of(name: str, link: str) -> list[WakuMessage]:
    stranger = PairPerson(name)
    stranger.now_ms = UnixMs(0)
    return stranger.ask(link)


async def test_junk_in_the_inbox_is_bounded_and_crashes_nothing(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    link = await bob.engine.people.make_contact_link()
    topic = inbox_topic_of(parse_contact_link(link, now_ms=bob.now_ms()).public_key)
    for number in range(MAX_WAITING * 3):
        junk = WakuMessage(payload=bytes([number % 256]) * 200, content_topic=topic)
        await alice.transport.publish(junk)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert bob.engine.counters()["inbox.full"] >= MAX_WAITING
    await friends(alice, bob)
    counters = bob.engine.counters()
    assert "inbox.crashed" not in counters
    assert counters["inbox.malformed"] + counters.get("inbox.unsupported_version", 0) > 0


async def test_an_expired_link_is_refused_with_a_sentence(person: MakePerson) -> None:
    alice = await person("Alice")
    old = Identity(signing_key=bytes([1]) * 32, encryption_key=bytes([2]) * 32)
    link = encode_contact_link(old, name="Old", expires_ms=UnixMs(1), node_addresses=())
    with pytest.raises(InviteError, match="expired"):
        alice.engine.people.preview_contact(link)
    with pytest.raises(InviteError, match="expired"):
        await alice.engine.people.add(link)


async def test_a_name_that_a_crash_kept_from_being_told_is_told_at_the_next_start(
    person: MakePerson,
) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    await friends(alice, bob)
    await alice.engine.stop()
    alice.save([SaveValue(key=UNTOLD_KEY, value="1")])
    bob.told.clear()
    alice = await person("Alice")
    await alice.engine.set_profile(name="Alicia", picture=b"")
    await bob.until(
        lambda event: isinstance(event, ConversationChanged) and event.conversation.name == "Alicia"
    )
    with alice.disk() as disk:
        assert disk.value(UNTOLD_KEY) == ""


async def test_the_same_waku_message_on_both_topics_is_taken_once(person: MakePerson) -> None:
    alice = await person("Alice")
    bob = Listening("Bob", alice.place, alice.network)
    await bob.start()
    pair = await friends(alice, bob)
    bob.ear.heard.clear()
    await alice.engine.timeline.send_text(pair, "once")
    await bob.until(shows("once"))
    before = bob.engine.counters().get("pair.replayed", 0)
    runner = bob.engine.runner(pair)
    for message in tuple(bob.ear.heard):
        runner.on_message(message, WakuHash(bytes(32)))
    assert bob.engine.counters()["pair.replayed"] > before
    other = await bob.engine.groups.create("Elsewhere")
    for place, is_refused in ((pair, True), (other, False)):
        watch = bob.engine.inspection.watch(place)
        counted = (await watch.sample()).counted
        assert ("pair.replayed" in counted) is is_refused, "each conversation has its own"
        watch.close()
    assert await texts(bob, pair) == ["once"]
    await bob.engine.stop()


async def test_junk_on_the_pair_s_topic_does_not_crowd_out_what_they_say(
    person: MakePerson,
) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    pair = await friends(alice, bob)
    runner = bob.engine.runner(pair)
    for number in range(5_000):
        payload = number.to_bytes(2, "big") * 150
        runner.on_message(
            WakuMessage(payload=payload, content_topic=ContentTopic("/x")), WakuHash(bytes(32))
        )
    await alice.engine.timeline.send_text(pair, "through")
    await bob.until(shows("through"))
    assert bob.engine.counters().get("runner.inbox_full", 0) == 0


@pytest.mark.logs_a_traceback
async def test_a_session_that_is_built_again_starts_from_the_disk(person: MakePerson) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    pair = await friends(alice, bob)
    runner = bob.engine.runner(pair)
    record = runner.record
    assert isinstance(record, ContactRecord)
    await alice.engine.stop()
    asked = PutContact(contact=replace(record, state=ContactState.ASKED))
    # An input that nobody should ever make: handling it is a bug's exception.
    broken = CopiesAccepted(message_ids=None, peers=1, waku_hash=WakuHash(b""))  # type: ignore[arg-type]

    async def is_refused() -> bool:
        # The runner's own record is behind the disk, unless what she said last comes in between.
        await runner.write(asked)
        with pytest.raises(LocalProtocolError):
            await runner.do(broken)
        try:
            await bob.engine.timeline.send_text(pair, "not yet")
        except CommandError as error:
            return "not_answered" in str(error)
        return False

    await runner.write(asked)
    await bob.engine.timeline.send_text(pair, "friends")  # The session that runs knows no better.
    assert await is_refused() or await is_refused() or await is_refused()
