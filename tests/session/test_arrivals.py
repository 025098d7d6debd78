"""By which way a message came here: kept with its row, also if it waited for others."""

from msgspec.structs import replace

from engine.codec.waku import decode_waku_message
from engine.core.content import Text
from engine.core.ids import MessageId, UnixMs, WakuHash
from engine.core.records import MessageRecord
from engine.session.arrivals import MAX_REMEMBERED, Arrivals
from engine.session.inputs import MessageArrived
from engine.session.rows import LIVE, UNKNOWN_WAY, Way
from engine.sim.session_participant import SessionParticipant
from tests.session.pair_stage import friends
from tests.session.test_group_session import NOW, conversation_of, give, pair, person, settle


def record(someone: SessionParticipant, text: str) -> MessageRecord:
    page = someone.store.latest_page(conversation_of(someone), limit=100)
    return next(row.record for row in page.messages if row.record.text == text)


def test_what_is_said_and_what_comes_live() -> None:
    alice, bob = pair()
    at_ms = settle(alice, bob, NOW, 60)
    give(bob, alice.say(Text(text="live"), now_ms=UnixMs(at_ms)), at_ms)
    assert record(alice, "live").arrival == "written_here"
    assert (record(bob, "live").arrival, record(bob, "live").repaired_by) == ("live", None)


def test_what_a_store_brings() -> None:
    alice, bob = pair()
    settle(alice, bob, NOW, 60)
    for out in alice.say(Text(text="stored"), now_ms=UnixMs(NOW + 60_000)):
        message = decode_waku_message(out.payload)
        arrived = MessageArrived(message, WakuHash(bytes(32)), stored=True)
        transition = bob.session.handle(arrived, now_ms=UnixMs(NOW + 61_000))
        bob.store.apply(transition.writes)
    assert record(bob, "stored").arrival == "store"


def test_who_sent_it_again() -> None:
    alice, bob = pair()
    carol = person("Carol")
    give(alice, carol.join_group(alice.invite_link(), now_ms=NOW))
    give(alice, carol.say(Text(text="only Alice hears this"), now_ms=NOW))
    settle(alice, bob, NOW, 120)
    came = record(bob, "only Alice hears this")
    assert (came.arrival, came.repaired_by) == ("repair", alice.participant_id)


def test_what_waited_came_by_its_own_way_unless_the_program_ended() -> None:
    for restarts, arrival in ((False, "live"), (True, "unknown")):
        alice, bob = pair()
        at_ms = settle(alice, bob, NOW, 60)
        first = alice.say(Text(text="first"), now_ms=UnixMs(at_ms))
        give(bob, alice.say(Text(text="second"), now_ms=UnixMs(at_ms + 1)), at_ms + 1)
        if restarts:
            bob.restart(now_ms=UnixMs(at_ms + 2))
        give(bob, first, at_ms + 3)
        assert record(bob, "second").arrival == arrival
        assert record(bob, "first").arrival == "live"
        rows = [record(bob, text) for text in ("first", "second")]
        ids = [row.position.message_id for row in rows]
        assert {row.received_ms for row in rows} == {at_ms + 3}, "they got their places together"
        came = bob.store.inspecting.came_ms(conversation_of(bob), ids)
        assert came == {ids[1]: at_ms + 1}, "and when the second one came is kept"


def test_one_to_one() -> None:
    alice, bob = friends()
    sent = alice.say("hello")
    bob.hear(*(replace(message) for message in sent))
    by_text = {row.record.text: row.record.arrival for one in (alice, bob) for row in one.rows()}
    assert by_text["hello"] == "live"
    (own,) = (row.record for row in alice.rows() if row.record.text == "hello")
    assert own.arrival == "written_here"


def test_when_one_came_that_waited_for_an_earlier_one_of_its_author() -> None:
    alice, bob = friends()
    first, second = alice.say("first"), alice.say("second")
    came_ms = bob.now_ms
    bob.hear(*second)
    bob.advance(61_000)
    assert [row.record.waiting for row in bob.rows() if row.record.text == "second"] == [True]
    bob.hear(*first)
    rows = {row.record.text: row.record for row in bob.rows()}
    ids = [rows[text].position.message_id for text in ("first", "second")]
    assert bob.store.inspecting.came_ms(rows["first"].conversation_id, ids) == {ids[1]: came_ms}
    assert rows["second"].received_ms == bob.now_ms


def test_what_is_remembered_is_bounded_and_the_first_way_counts() -> None:
    arrivals = Arrivals()
    arrivals.note(MessageId("first"), Way(LIVE))
    arrivals.note(MessageId("first"), Way("store"))
    assert arrivals.take(MessageId("first")) == Way(LIVE)
    assert arrivals.take(MessageId("first")) is UNKNOWN_WAY
    for number in range(MAX_REMEMBERED + 1):
        arrivals.note(MessageId(str(number)), Way(LIVE))
    assert arrivals.look(MessageId("0")) is UNKNOWN_WAY
    assert arrivals.look(MessageId(str(MAX_REMEMBERED))) == Way(LIVE)
