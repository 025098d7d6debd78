"""Two people react, edit and delete on a bad network, and end up showing the same: by seeds.

Payloads are lost, doubled and reordered, and processes die.  What one shows is what the other shows
and what the rules say; what fails names its seed.
"""

from random import Random

import pytest

from engine.core.blobs.manifest import ChunkName, Manifest
from engine.core.content import Attachment, Body, Edit, Reaction, Retraction, Text
from engine.core.emoji import without_selectors
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.waku import WakuMessage
from engine.persistence.rules import SAID_KINDS
from engine.runtime.views import message_view
from engine.session.inputs import HoldsFiles, Say
from engine.session.transitions import AnnotationAdded
from engine.sim.judge import ShownFile, ShownMessage
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
        if stored.record.kind not in SAID_KINDS:
            continue
        file = stored.record.file
        transfer = None if file is None else file.transfer
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
                file=None
                if file is None or transfer is None
                else ShownFile(name=file.name, size=file.size, root=transfer.manifest.root),
            )
        )
    return found


def text_by_the_rules(message_id: MessageId, said: list[Saying]) -> str:
    """``said`` is in the order in which it was said, which counts among those of one author."""
    (author_id, text) = next(
        (who, b.text if isinstance(b, Text) else b.caption.text)
        for m, who, b in said
        if m == message_id and isinstance(b, Text | Attachment)
    )
    own = [body for _, who, body in said if who == author_id]
    if any(isinstance(b, Retraction) and b.target_id == message_id for b in own):
        return ""
    edits = [b.text.text for b in own if isinstance(b, Edit) and b.target_id == message_id]
    return edits[-1] if edits else text


def holders(person: PairPerson) -> dict[MessageId, bool]:
    """Of each file that is shown: whether it is shown as held by the other."""
    members, own_id = person.session.members(), person.identity.participant_id
    views = [message_view(row, members, own_id) for row in person.rows()]
    return {
        view.message_id: bool(view.file.held_whole_by) for view in views if view.file is not None
    }


class Trial:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.people = friends()
        self.flight: Flight = []
        self.said: list[Saying] = []
        self.held: list[tuple[PairPerson, MessageId]] = []

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
        self._hold(self.random.choice(self.people))
        for one in self.people:
            one.now_ms = UnixMs(one.now_ms + self.random.choice((0, 100, 1_000)))
            self._send(one, one.advance())
        self.random.shuffle(self.flight)
        arrives = self.random.randrange(len(self.flight) + 1)
        arriving, self.flight = self.flight[:arrives], self.flight[arrives:]
        for to, message in arriving:
            self._send(to, to.hear(message))

    def _hold(self, who: PairPerson) -> None:
        """A file of theirs came as a whole; or none did, and it says so all the same."""
        files = [m for m, author, b in self.said if isinstance(b, Attachment)]
        if files:
            self.held.append((who, self.random.choice(files)))
            held = tuple(message_id for one, message_id in self.held if one is who)
            transition = who.session.handle(HoldsFiles(held), now_ms=who.now_ms)
            self._send(who, who.perform(transition))

    def claimed(self, by: PairPerson) -> dict[MessageId, bool]:
        """What ``by`` is to show of each file: whether the other said that they have it."""
        own = by.identity.participant_id
        return {
            message.message_id: any(
                message_id == message.message_id and one is not by for one, message_id in self.held
            )
            and self.author_of(message.message_id) == own
            for message in shown(by)
            if message.file is not None
        }

    def author_of(self, message_id: MessageId) -> ParticipantId:
        return next(author for one, author, _ in self.said if one == message_id)

    def _send(self, who: PairPerson, messages: list[WakuMessage]) -> None:
        (other,) = (one for one in self.people if one is not who)
        for message in messages:
            if self.random.random() >= LOSS:
                copies = 2 if self.random.random() < DOUBLED else 1
                self.flight += [(other, message)] * copies

    def _body(self, number: int) -> Body:
        texts = [
            (message_id, author)
            for message_id, author, b in self.said
            if isinstance(b, Text | Attachment)
        ]
        chance = self.random.random()
        if chance < 0.35 or not texts:
            quoted = self.random.choice(texts)[0] if texts and chance < 0.2 else None
            return Text(text=f"text {number}", reply_to=quoted)
        if chance < 0.5:
            manifest = Manifest(
                key=bytes(32), root=ChunkName(bytes([number]) * 32), size=number + 1
            )
            return Attachment(name=f"{number}.bin", media_type="x/y", data=b"", manifest=manifest)
        target_id, _ = self.random.choice(texts)
        if chance < 0.7:
            emoji = self.random.choice(EMOJI)
            return Reaction(target_id=target_id, emoji=emoji, removed=self.random.random() < 0.3)
        if chance < 0.95:
            return Edit(target_id=target_id, text=Text(text=f"edit {number}"))
        return Retraction(target_id=target_id)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_show_the_same_and_what_the_rules_say(seed: int) -> None:
    trial = Trial(seed)
    trial.run()
    alice, bob = trial.people
    assert shown(alice) == shown(bob)
    said = sum(isinstance(body, Text | Attachment) for *_, body in trial.said)
    assert len(shown(alice)) == said
    assert any(message.file for message in shown(alice))
    assert [holders(one) for one in trial.people] == [trial.claimed(one) for one in trial.people]
    assert any(any(holders(one).values()) for one in trial.people)
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
