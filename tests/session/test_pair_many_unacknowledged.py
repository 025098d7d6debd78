"""More of our messages unacknowledged than are in memory: none of them is forgotten."""

from msgspec.structs import replace

from engine.codec.mvds import encode_payload
from engine.codec.mvds_id import mvds_id_of_row
from engine.core.ids import UnixMs
from engine.core.mvds.vocabulary import Payload
from engine.session.inputs import AcceptContact
from engine.session.pair.factory import PAIR_CONFIG
from engine.session.transitions import TransitionBuilder
from tests.session.pair_stage import PairPerson, exchange, live

FEW = replace(PAIR_CONFIG, load_records=5)
COUNT = 23


def test_what_was_on_disk_at_the_start_is_awaited_too() -> None:
    alice, bob = PairPerson("Alice", config=FEW), PairPerson("Bob")
    exchange(alice, bob, alice.ask(bob.link()))
    exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=bob.now_ms)))
    live(alice, bob, 5)
    for number in range(COUNT):
        alice.say(f"m{number:02}")
    ids = [mvds_id_of_row(row.record.position.message_id) for row in alice.rows()[-COUNT:]]
    alice.restart()
    channel = alice.session.channel
    while channel.node.snapshot().loaded_before is not None:
        builder = TransitionBuilder()
        alice.now_ms = UnixMs(alice.now_ms + 5_000)
        channel.seen(builder, now_ms=alice.now_ms)
        alice.perform(builder.finish())
    for known in range(COUNT):
        assert channel.awaits
        acknowledged = encode_payload(Payload(acks=(ids[known],)))
        channel.take(
            acknowledged,
            TransitionBuilder(),
            signed_ms=alice.now_ms,
            admits=None,
            now_ms=alice.now_ms,
        )
    assert not channel.awaits
