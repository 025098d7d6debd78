"""Looking into messages of real engines: what went out is what the network was handed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.answers import Arrival
from engine.codec.sds import encode_message, part_sizes
from engine.core.errors import CommandError, CommandRefusal, LocalProtocolError
from engine.core.ids import (
    ChannelId,
    ContentTopic,
    ConversationId,
    DeliveryState,
    HolderSource,
    MessageId,
    ParticipantId,
    UnixMs,
    WakuHash,
)
from engine.core.sds.bloom import BloomFilter
from engine.core.sds.vocabulary import HistoryEntry, Message, SendPurpose
from engine.core.waku import WakuMessage
from engine.events import EngineEvent, MessageAdded, MessageChanged
from engine.inspection_views import MessageInspection, Occasion, Seal, SentBy, Whereabouts
from engine.network.memory import MemoryNetwork
from engine.network.transport import Receipt, TransportRole
from engine.runtime.inspection.copies import FIRST_KEPT, LAST_KEPT, MOST_MESSAGES, CopyNotes
from engine.runtime.inspection.figures import connection_figures, percentile
from engine.runtime.inspection.message_bytes import causal_history, filter_view
from engine.session.transitions import Publish
from tests.runtime.conftest import MakePerson, Person
from tests.runtime.test_engine_contacts import delivered, friends, shows

HELD = DeliveryState.HELD


async def together(person: MakePerson) -> tuple[Person, Person, ConversationId]:
    alice, bob = await person("Alice"), await person("Bob")
    group = await alice.engine.groups.create("Tide")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    await alice.until(lambda e: isinstance(e, MessageAdded) and e.message.kind == "joined")
    return alice, bob, group


async def look(person: Person, place: ConversationId, message_id: MessageId) -> MessageInspection:
    return await person.engine.inspection.message(place, message_id)


def is_held(event: EngineEvent, message_id: MessageId) -> bool:
    return (
        isinstance(event, MessageChanged)
        and event.message.message_id == message_id
        and event.message.delivery is not None
        and event.message.delivery.state is HELD
    )


async def test_an_own_message_of_a_group_from_the_first_copy_to_all_holders(
    person: MakePerson,
) -> None:
    alice, bob, group = await together(person)
    first = await alice.engine.timeline.send_text(group, "does it talk?")
    await bob.until(lambda e: isinstance(e, MessageAdded) and e.message.message_id == first)
    answer = await bob.engine.timeline.send_text(group, "it does")
    await alice.until(lambda e: is_held(e, first))
    await alice.until(lambda e: isinstance(e, MessageAdded) and e.message.message_id == answer)
    found = await look(alice, group, first)
    assert (found.whereabouts, found.is_own) == (Whereabouts.LOGGED, True)
    assert found.arrival is Arrival.WRITTEN_HERE
    assert found.copies_since_ms is None
    assert [(copy.number, copy.occasion, copy.sent_by, copy.peers) for copy in found.copies][
        :1
    ] == [(1, Occasion.FIRST, SentBy.RELAY, 1)]
    assert found.again is None, "Bob acknowledged it"
    (bob_there,) = found.holders
    assert (bob_there.name, bob_there.certain) == ("Bob", True)
    assert bob_there.source in {HolderSource.CAUSAL, HolderSource.HOLDINGS}, "whichever came first"
    assert [link.message_id for link in found.named_by] == [answer]
    assert found.sds is not None
    assert found.sds.message_id == first
    assert found.sds.group_key == 1
    assert found.sds.retrieval_hint in {copy.waku_hash for copy in found.copies}
    size = (await alice.engine.timeline.info(group, first)).size
    assert sum(part.size for part in found.parts) == size
    theirs = await look(bob, group, first)
    assert (theirs.is_own, theirs.sender_name, theirs.arrival) == (False, "Alice", Arrival.LIVE)
    assert theirs.sds is not None
    assert theirs.sds.causal_history == found.sds.causal_history
    assert [link.message_id for link in theirs.named_by] == [answer]


async def test_whoever_names_somebody_elses_message_holds_it(person: MakePerson) -> None:
    alice, bob, group = await together(person)
    carol = await person("Carol")
    await carol.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    await bob.until(lambda e: isinstance(e, MessageAdded) and e.message.sender_name == "Carol")
    said = await bob.engine.timeline.send_text(group, "does it talk?")
    for one in (alice, carol):
        await one.until(lambda e: isinstance(e, MessageAdded) and e.message.message_id == said)
    before = await look(alice, group, said)
    assert [(each.name, each.source) for each in before.holders] == [("Carol", None)]
    answer = await carol.engine.timeline.send_text(group, "it does")
    await alice.until(lambda e: isinstance(e, MessageAdded) and e.message.message_id == answer)
    found = await look(alice, group, said)
    assert [link.message_id for link in found.named_by] == [answer]
    assert [(each.name, each.certain, each.source) for each in found.holders] == [
        ("Carol", True, HolderSource.CAUSAL)
    ]


async def test_after_a_restart_it_says_which_copies_it_knows_nothing_of(
    tmp_path: Path,
) -> None:
    network = MemoryNetwork()
    alice = await Person("Alice", tmp_path, network).start()
    group = await alice.engine.groups.create("Alone")
    said = await alice.engine.timeline.send_text(group, "anybody?")
    await alice.engine.stop()
    again = await Person("Alice", tmp_path, network).start()
    await again.engine.loaded()
    found = await look(again, group, said)
    await again.engine.stop()
    assert found.saved_ms is not None
    assert found.copies_since_ms is not None
    assert found.copies_since_ms >= found.saved_ms
    assert all(copy.occasion is not Occasion.FIRST for copy in found.copies)


async def test_a_message_between_two_with_its_record(person: MakePerson) -> None:
    alice, bob, pair = await friends(person)
    bob.transport.set_online(False)
    said = await alice.engine.timeline.send_text(pair, "are you there?")
    found = await look(alice, pair, said)
    assert found.mvds is not None
    assert found.mvds.record in {"message", "offer"}
    assert found.again is not None
    assert [each.certain for each in found.holders] == [False]
    assert found.mvds.body_size == sum(part.size for part in found.parts)
    bob.transport.set_online(True)
    await alice.until(delivered("are you there?"))
    found = await look(alice, pair, said)
    assert found.mvds is not None
    assert (found.mvds.record, found.again) == ("", None)
    assert found.mvds.seal is Seal.OLM
    assert all(copy.by_olm for copy in found.copies)
    assert found.mvds.olm_since_ms is not None
    assert [(each.name, each.certain) for each in found.holders] == [("Bob", True)]
    theirs = await look(bob, pair, said)
    assert (theirs.is_own, theirs.sender_name, theirs.holders) == (False, "Alice", ())
    assert theirs.mvds is not None
    assert theirs.mvds.seal is Seal.OLM


async def test_the_message_since_which_both_speak_olm_went_by_it(person: MakePerson) -> None:
    """Also where the system's time moved, by less than is told."""
    alice, bob, pair = await friends(person)
    bob.ahead_ms = -500
    said = await alice.engine.timeline.send_text(pair, "are you there?")
    await bob.until(shows("are you there?"))
    theirs = await look(bob, pair, said)
    assert theirs.mvds is not None
    assert theirs.mvds.seal is Seal.OLM


async def test_what_nobody_knows_of_is_refused_and_a_strange_conversation_too(
    person: MakePerson,
) -> None:
    alice, _bob, pair = await friends(person)
    for message_id in ("", "nowhere", "A" * 22, "A" * 43, "\u202e\n" * 99):
        with pytest.raises(CommandError):
            await look(alice, pair, MessageId(message_id))
    group = await alice.engine.groups.create("Tide")
    with pytest.raises(CommandError):
        await look(alice, group, MessageId("nowhere"))
    with pytest.raises(LocalProtocolError):
        await look(alice, ConversationId("none"), MessageId("nowhere"))


async def test_a_message_hidden_here_is_in_the_log_and_has_no_row(person: MakePerson) -> None:
    alice, _bob, group = await together(person)
    said = await alice.engine.timeline.send_text(group, "a secret")
    await alice.engine.timeline.delete_locally(group, said)
    found = await look(alice, group, said)
    assert (found.whereabouts, found.message) == (Whereabouts.LOGGED, None)
    assert found.is_own


# --- copies -------------------------------------------------------------------------------------


def published(message_id: str) -> Publish:
    message = WakuMessage(payload=b"sealed", content_topic=ContentTopic("/a/1/b/proto"))
    ids = (MessageId(message_id),)
    return Publish(message=message, purpose=SendPurpose.CONTENT, message_ids=ids)


def receipt(number: int) -> Receipt:
    return Receipt(
        waku_hash=WakuHash(number.to_bytes(32, "big")), peers=number, role=TransportRole.EDGE
    )


PLACE = ConversationId("place")


def test_notes_are_bounded_in_copies_and_messages_and_say_what_they_lack() -> None:
    times = iter(range(10**6))
    notes = CopyNotes(lambda: UnixMs(next(times)))
    for number in range(40):
        notes.handed_over(PLACE, published("m"), receipt(number))
    kept = notes.of(PLACE, MessageId("m"))
    assert [copy.peers for copy in kept.kept] == [*range(FIRST_KEPT), *range(40 - LAST_KEPT, 40)]
    assert kept.omitted == 40 - FIRST_KEPT - LAST_KEPT


def test_what_is_forgotten_makes_no_doubt_of_what_is_still_noted() -> None:
    times = iter(range(10**6))
    notes = CopyNotes(lambda: UnixMs(next(times)))
    saved = [UnixMs(next(times))]
    notes.handed_over(PLACE, published("m"), receipt(1))
    for number in range(MOST_MESSAGES):
        saved.append(UnixMs(next(times)))
        notes.handed_over(PLACE, published(f"other {number}"), receipt(1))
    assert not notes.of(PLACE, MessageId("m")).kept
    assert notes.since_ms(saved[0]) is not None, "it was forgotten"
    for number in (0, MOST_MESSAGES - 1):
        (copy,) = notes.of(PLACE, MessageId(f"other {number}")).kept
        assert notes.since_ms(saved[number + 1]) is None, "all of its copies are noted"
        since_ms = notes.since_ms(saved[0])
        assert since_ms is not None
        assert since_ms < copy.at_ms


def test_a_copy_that_was_read_is_told_from_the_others() -> None:
    times = iter(range(100))
    notes = CopyNotes(lambda: UnixMs(next(times)))
    for number in (1, 2):
        notes.handed_over(PLACE, published("m"), receipt(number))
    notes.taken(PLACE, published("m"), receipt(2))
    assert [copy.taken_ms for copy in notes.of(PLACE, MessageId("m")).kept] == [None, UnixMs(4)]
    notes.taken(PLACE, published("unknown"), receipt(2))


def test_a_wish_to_send_again_counts_for_the_next_copy_unless_it_fails() -> None:
    notes = CopyNotes(lambda: UnixMs(0))
    with pytest.raises(CommandError), notes.asking_again(PLACE, MessageId("m")):
        raise CommandError(CommandRefusal.NO_MESSAGE)
    notes.handed_over(PLACE, published("m"), receipt(1))
    with notes.asking_again(PLACE, MessageId("m")):
        pass
    notes.handed_over(PLACE, published("m"), receipt(2))
    notes.handed_over(PLACE, published("m"), receipt(3))
    kept = notes.of(PLACE, MessageId("m")).kept
    assert [copy.was_asked_for for copy in kept] == [False, True, False]


# --- bytes --------------------------------------------------------------------------------------


ids = st.text(max_size=20).map(MessageId)
entries = st.builds(
    HistoryEntry, ids, st.none() | st.binary(max_size=32), st.none() | st.builds(ParticipantId, ids)
)
sds_messages = st.builds(
    Message,
    st.builds(ParticipantId, ids),
    ids,
    st.builds(ChannelId, ids),
    st.none() | st.integers(0, 2**64 - 1),
    st.lists(entries, max_size=5).map(tuple),
    st.none() | st.binary(max_size=300),
    st.lists(entries, max_size=5).map(tuple),
    st.none() | st.binary(max_size=300),
)


@given(sds_messages)
def test_the_parts_of_a_message_are_all_of_its_bytes(message: Message) -> None:
    assert sum(part_sizes(message).values()) == len(encode_message(message))


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_can_be_asked_what_they_name(raw: bytes, is_open: bool) -> None:
    assert isinstance(causal_history(raw, is_open=is_open), tuple)


def test_an_id_in_a_text_is_not_named_by_it() -> None:
    named, mentioned = MessageId("named"), MessageId("mentioned")
    message = Message(
        ParticipantId("Bob"),
        MessageId("own"),
        ChannelId("0"),
        7,
        (HistoryEntry(named),),
        content=mentioned.encode(),
    )
    assert causal_history(encode_message(message), is_open=True) == (named,)


@pytest.mark.parametrize("number", [0, 10, 300, 5_000])
def test_a_filter_tells_about_how_many_ids_it_has(number: int) -> None:
    bloom = BloomFilter(capacity=10_000, fixed=True)
    bloom.include([MessageId(f"id {each}") for each in range(number)])
    view = filter_view(bloom.to_bytes())
    assert abs(view.about_ids - number) <= 0.02 * number + 1
    assert view.false_probability <= 0.001
    assert filter_view(b"\xff" * 8).about_ids == 0


# --- figures ------------------------------------------------------------------------------------


async def test_figures_tell_what_is_held_by_all_and_what_waits(person: MakePerson) -> None:
    alice, bob, group = await together(person)
    first = await alice.engine.timeline.send_text(group, "does it talk?")
    await bob.until(lambda e: isinstance(e, MessageAdded) and e.message.message_id == first)
    await bob.engine.timeline.send_text(group, "it does")
    await alice.until(lambda e: is_held(e, first))
    bob.transport.set_online(False)
    await alice.engine.timeline.send_text(group, "are you there?")
    figures = await alice.engine.inspection.figures()
    (tide,) = figures.conversations
    page = (await alice.engine.timeline.latest_page(group)).messages
    assert (tide.name, tide.looked_at, tide.received) == ("Tide", len(page), len(page))
    assert tide.own == sum(row.is_own for row in page)
    held = [
        row
        for row in page
        if row.is_own
        and all(each.certain for each in await alice.engine.timeline.holders(group, row.message_id))
    ]
    assert tide.held_by_all == len(held) < tide.own
    assert tide.held_p50_ms is not None
    assert tide.held_p95_ms is not None
    assert 0 <= tide.held_p50_ms <= tide.held_p95_ms
    assert figures.connection == connection_figures(alice.engine.connection())
    assert figures.counters.keys() >= {"node.published"}


@given(st.lists(st.integers(0, 10**6), max_size=40).map(sorted), st.integers(1, 100))
def test_a_percentile_is_one_of_them_and_enough_are_not_above_it(
    ascending: list[int], percent: int
) -> None:
    found = percentile(ascending, percent)
    if found is None:
        assert not ascending
        return
    assert found in ascending
    assert sum(each <= found for each in ascending) * 100 >= percent * len(ascending)
