"""Two people react, edit and delete on a bad network, and end up showing the same: by seeds.

Payloads are lost, doubled and reordered, and processes die.  What one shows is what the other shows
and what the rules say; what fails names its seed.
"""

from random import Random

import pytest

from engine.core.content import Body, Edit, Reaction, Retraction, Text
from engine.core.emoji import without_selectors
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.waku import WakuMessage
from engine.session.inputs import Say
from engine.session.transitions import AnnotationAdded
from engine.sim.judge import ShownMessage
from tests.session.pair_stage import PairPerson, exchange, friends, live

SEEDS = range(1, 11)
STEPS = 80
LOSS, DOUBLED, DEATH = 0.3, 0.1, 0.04
EMOJI = ("👍", "❤", "❤\ufe0f", "🎉")
Flight = list[tuple[PairPerson, WakuMessage]]
Saying = tuple[MessageId, ParticipantId, Body]


def shown(person: PairPerson) -> list[ShownMessage]:
    found = []
    for stored in person.rows():
        if stored.record.kind != "text":
            continue
        message_id = stored.record.position.message_id
        reactors = person.store.reactors(person.conversation_id, message_id)
        chosen = sorted((without_selectors(one.emoji), one.participant_id) for one in reactors)
        found.append(
            ShownMessage(
                message_id=message_id,
                text=stored.record.text,
                is_edited=stored.edited_ms is not None,
                retracted=stored.retracted,
                reactions=tuple(chosen) if stored.reactions else (),
                quoted_id=stored.record.reply_to,
                quoted_text=stored.quote.text if stored.quote else None,
            )
        )
    return found


def text_by_the_rules(message_id: MessageId, said: list[Saying]) -> str:
    """``said`` is in the order in which it was said, which counts among those of one author."""
    (author_id, text) = next(
        (who, b.text) for m, who, b in said if m == message_id and isinstance(b, Text)
    )
    own = [body for _, who, body in said if who == author_id]
    if any(isinstance(b, Retraction) and b.target_id == message_id for b in own):
        return ""
    edits = [b.text.text for b in own if isinstance(b, Edit) and b.target_id == message_id]
    return edits[-1] if edits else text


class Trial:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.people = friends()
        self.flight: Flight = []
        self.said: list[Saying] = []

    def run(self) -> None:
        for number in range(STEPS):
            self._step(number)
        self.flight.clear()
        live(*self.people, 300)

    def _step(self, number: int) -> None:
        who = self.random.choice(self.people)
        if self.random.random() < DEATH:
            who.restart()
        body = self._body(number)
        transition = who.session.handle(Say(body), now_ms=who.now_ms)
        assert transition.message_id is not None
        self.said.append((transition.message_id, who.identity.participant_id, body))
        self._send(who, who.perform(transition))
        for one in self.people:
            one.now_ms = UnixMs(one.now_ms + self.random.choice((0, 100, 1_000)))
            self._send(one, one.advance())
        self.random.shuffle(self.flight)
        arrives = self.random.randrange(len(self.flight) + 1)
        arriving, self.flight = self.flight[:arrives], self.flight[arrives:]
        for to, message in arriving:
            self._send(to, to.hear(message))

    def _send(self, who: PairPerson, messages: list[WakuMessage]) -> None:
        (other,) = (one for one in self.people if one is not who)
        for message in messages:
            if self.random.random() >= LOSS:
                copies = 2 if self.random.random() < DOUBLED else 1
                self.flight += [(other, message)] * copies

    def _body(self, number: int) -> Body:
        texts = [(message_id, author) for message_id, author, b in self.said if isinstance(b, Text)]
        chance = self.random.random()
        if chance < 0.35 or not texts:
            quoted = self.random.choice(texts)[0] if texts and chance < 0.2 else None
            return Text(text=f"text {number}", reply_to=quoted)
        target_id, _ = self.random.choice(texts)
        if chance < 0.65:
            emoji = self.random.choice(EMOJI)
            return Reaction(target_id=target_id, emoji=emoji, removed=self.random.random() < 0.3)
        if chance < 0.92:
            return Edit(target_id=target_id, text=Text(text=f"edit {number}"))
        return Retraction(target_id=target_id)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_show_the_same_and_what_the_rules_say(seed: int) -> None:
    trial = Trial(seed)
    trial.run()
    alice, bob = trial.people
    assert shown(alice) == shown(bob)
    assert len(shown(alice)) == sum(isinstance(body, Text) for *_, body in trial.said)
    for message in shown(alice):
        assert message.text == text_by_the_rules(message.message_id, trial.said)
    assert any(message.reactions for message in shown(alice))
    assert any(message.is_edited for message in shown(alice))


def test_an_edit_by_the_other_changes_nothing_and_is_noted() -> None:
    alice, bob = friends()
    exchange(alice, bob, alice.say("mine"))
    (message_id,) = (
        row.record.position.message_id for row in bob.rows() if row.record.text == "mine"
    )
    said = Say(Edit(target_id=message_id, text=Text(text="yours")))
    exchange(bob, alice, bob.perform(bob.session.handle(said, now_ms=bob.now_ms)))
    live(alice, bob, 3)
    assert alice.texts() == bob.texts() == ["mine"]
    (note,) = (note for note in alice.notes if isinstance(note, AnnotationAdded))
    assert (note.annotation.kind, note.notify) == ("edit", True)
