"""People who chose different modes and field numbers meet, agree and talk all the same."""

from itertools import product

import pytest
from msgspec.structs import replace

from engine.codec.mvds import decode_payload
from engine.core.ids import DeliveryState
from engine.core.mvds.config import Mode
from engine.core.mvds.vocabulary import WireGeneration
from engine.core.waku import WakuMessage
from engine.crypto.pair import MvdsPart, PairSeal
from engine.session.inputs import AcceptContact
from engine.session.pair.factory import PAIR_CONFIG
from tests.session.pair_stage import NOW, PairPerson, exchange, live

CHOICES = [*product(Mode, WireGeneration)]
LONG = "x" * 5_000


def agreed(
    ours: tuple[Mode, WireGeneration], theirs: tuple[Mode, WireGeneration]
) -> tuple[PairPerson, PairPerson]:
    alice, bob = (
        PairPerson(name, config=replace(PAIR_CONFIG, mode=mode, generation=generation), olm=False)
        for name, (mode, generation) in (("Alice", ours), ("Bob", theirs))
    )
    exchange(alice, bob, alice.ask(bob.link()))
    exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=NOW)))
    live(alice, bob, 3)
    return alice, bob


@pytest.mark.parametrize("theirs", CHOICES)
@pytest.mark.parametrize("ours", CHOICES)
def test_whatever_two_people_chose_they_agree_and_everything_arrives(
    ours: tuple[Mode, WireGeneration], theirs: tuple[Mode, WireGeneration]
) -> None:
    alice, bob = agreed(ours, theirs)
    for person, peer in ((alice, bob), (bob, alice)):
        for text in (f"short, by {person.name}", f"{person.name} {LONG}"):
            exchange(person, peer, person.say(text))
    live(alice, bob, 3)
    assert sorted(alice.texts()) == sorted(bob.texts())
    assert len(alice.texts()) == 4
    for person in (alice, bob):
        own = [text for text in person.texts() if person.name in text]
        assert {person.delivery(text) for text in own} == {DeliveryState.HELD}


def _opened(receiver: PairPerson, sender: PairPerson, message: WakuMessage) -> bytes:
    seal = PairSeal(
        receiver.identity,
        peer_public_key=sender.identity.public_key,
        peer_encryption_key=sender.identity.encryption_public_key,
    )
    body = seal.open(message.payload).body
    assert isinstance(body, MvdsPart)
    return body.payload


@pytest.mark.parametrize(("mode", "generation"), CHOICES)
def test_the_setting_decides_how_the_first_one_goes(mode: Mode, generation: WireGeneration) -> None:
    alice, bob = agreed((mode, generation), (mode, generation))
    (message,) = alice.say("hello")
    payload, sent_in = decode_payload(_opened(bob, alice, message))
    assert sent_in is generation
    assert bool(payload.offers) is (mode is Mode.INTERACTIVE)
    assert bool(payload.messages) is (mode is not Mode.INTERACTIVE)
