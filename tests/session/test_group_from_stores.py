"""What a Store gives is checked like anything else: spoilt copies, garbage, repeats, any order."""

from msgspec.structs import replace

from engine.codec.waku import decode_waku_message
from engine.core.content import Text
from engine.core.ids import PubsubTopic, UnixMs
from engine.core.waku import WakuMessage
from engine.network.waku.message_hash import message_hash
from engine.session.inputs import MessageArrived
from engine.sim.session_participant import SessionParticipant

NOW = UnixMs(1_800_000_000_000)
LATER = UnixMs(NOW + 86_400_000)
TOPIC = PubsubTopic("/waku/2/rs/42/0")


def archive() -> tuple[str, list[WakuMessage]]:
    """An invitation and what a Store has: genuine messages, and all that a Store may do to them."""
    alice = SessionParticipant("Alice", seed=3, now_ms=NOW)
    sent = alice.create_group("Tide", now_ms=NOW)
    for number in range(12):
        sent += alice.say(Text(text=f"text {number}"), now_ms=UnixMs(NOW + number + 1))
    genuine = [decode_waku_message(out.payload) for out in sent]
    forged = bytearray(genuine[3].payload)
    forged[-1] ^= 1
    spoilt = replace(genuine[3], payload=bytes(forged))
    garbage = replace(genuine[3], payload=b"no envelope")
    held_back = genuine.pop(5)
    return alice.invite_link(), [*genuine[:4], spoilt, garbage, *genuine[4:], genuine[2], held_back]


def test_all_that_is_genuine_is_shown_once_and_the_rest_is_refused() -> None:
    link, messages = archive()
    reader = SessionParticipant("Reader", seed=4, now_ms=LATER)
    reader.join_group(link, now_ms=LATER)
    for message in messages:
        arrived = MessageArrived(message, message_hash(TOPIC, message), stored=True)
        reader.store.apply(reader.session.handle(arrived, now_ms=LATER).writes)
    group = reader.store.groups()[0].conversation_id
    shown = reader.store.latest_page(group, limit=100).messages
    texts = [one.record for one in shown if one.record.kind == "text"]
    assert len(texts) == len({record.text for record in texts}) == 12
    refused = [reader.counters[f"group.{why}"] for why in ("bad_seal", "replayed")]
    assert refused == [1, 1]
    assert reader.session.gap() is None
