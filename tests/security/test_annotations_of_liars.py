"""A member edits and deletes what others wrote, floods with reactions, and mentions nobody.

Nothing of it changes what others said, and what it costs stays within the budgets of any message.
"""

from functools import partial
from typing import Final

from engine.codec.content import encode_content
from engine.core.content import Content, Edit, Leave, Reaction, Retraction, Text
from engine.core.ids import AuthorSequence, MessageId, ParticipantId
from engine.core.sds.config import FloodLimits
from engine.core.sds.vocabulary import Message
from engine.events import MessageView, ReactionReceived
from engine.persistence.rules import MAX_EMOJI_EACH, MAX_REACTIONS_SHOWN
from engine.text_spans import SpanKind
from proto import content_pb2
from tests.security.mallory import Mallory
from tests.security.stage import NOTHING_KEPT, Stage, Victim, figure

KIB: Final = 1024
LARGE: Final = "👍" * (15 * KIB)
"""60 KiB that are no emoji."""
FLOOD: Final = 18
"""More than 1 MiB of them."""
LIMITS: Final = FloodLimits(
    bytes_per_day=512 * KIB,
    messages_per_day=400,
    waiting_bytes=256 * KIB,
    waiting_messages=40,
    bare_ids=60,
)


async def row(person: Victim, message_id: MessageId) -> MessageView:
    return next(view for view in await person.rows() if view.message_id == message_id)


async def counted(person: Victim, name: str, number: int) -> bool:
    return person.counted(name) >= number


def malformed(mallory: Mallory, target_id: MessageId, emoji: str) -> Message:
    """A reaction as no version of ours makes it."""
    author = AuthorSequence(instance_id=mallory.instance, sequence=mallory.sequence + 1)
    some = Content(
        author=author,
        previous_id=mallory.previous,
        nonce=bytes(16),
        sent_ms=mallory.clock_ms(),
        body=Leave(),
    )
    wire = content_pb2.Content.FromString(encode_content(some))
    body = content_pb2.Body(reaction=content_pb2.Reaction(target_id=target_id, emoji=emoji))
    wire.body = body.SerializeToString(deterministic=True)
    return mallory.with_content(wire.SerializeToString(deterministic=True))


async def test_nobody_else_edits_or_deletes_a_text(stage: Stage) -> None:
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    text = await alice.say("I owe you 10")
    await stage.heals(["I owe you 10"])
    await mallory.say(Edit(target_id=text, text=Text(text="I owe you 1 000")))
    await mallory.say(Retraction(target_id=text))
    await mallory.say("done")
    await stage.heals(["done"])
    for person in (alice, bob):
        await stage.until(partial(counted, person, "group.changed_by_another", 2))
        view = await row(person, text)
        assert (view.text, view.edited_ms, view.retracted) == ("I owe you 10", None, False)
        assert len(await person.engine.timeline.versions(stage.group, text)) == 1


async def test_what_waits_for_a_text_of_another_does_not_take_it(stage: Stage) -> None:
    """Mallory's edit is there before the text of which it speaks."""
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    bob.on_the_way = lambda _message: ()
    text = await alice.say("I owe you 10")
    bob.on_the_way = lambda message: (message,)
    await mallory.say(Edit(target_id=text, text=Text(text="I owe you 1 000")))
    await mallory.say(Reaction(target_id=text, emoji="🎉"))
    await mallory.say("done")
    await stage.heals(["done", "I owe you 10"])
    view = await row(bob, text)
    assert view.text == "I owe you 10"
    assert [reaction.names for reaction in view.reactions] == [("Mallory",)]


async def test_a_mebibyte_of_reactions_that_are_no_emoji_shows_nothing(stage: Stage) -> None:
    stage.settings, stage.flood = NOTHING_KEPT, LIMITS
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    text = await alice.say("React!")
    await stage.heals(["React!"])
    rows = len(await alice.rows())
    for _ in range(FLOOD):
        message = malformed(mallory, text, LARGE)
        mallory.advance(message)
        await mallory.relay.publish(mallory.payload(message))
    said = [f"meanwhile {number}" for number in range(4)]
    for one in said:
        await bob.say(one)
    took_s = await stage.heals(said)
    for person in (alice, bob):
        await stage.until(partial(counted, person, "group.bad_annotation", 1))
        assert len(await person.rows()) == rows + len(said)
        assert (await row(person, text)).reactions == ()
        state = await person.state()
        logged = sum(entry.size for entry in state.log if entry.sender_id == mallory.me)
        assert logged <= LIMITS.bytes_per_day
        assert sum(entry.size for entry in state.set_aside) <= LIMITS.waiting_bytes
    figure(
        f"{FLOOD * len(LARGE.encode()) // KIB} KiB of reactions that are no emoji: no row, no"
        f" reaction; honest texts placed after {took_s:.1f} s"
    )


async def test_one_member_adds_few_emoji_to_a_message(stage: Stage) -> None:
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    text = await alice.say("React!")
    await stage.heals(["React!"])
    many = 4 * MAX_EMOJI_EACH
    first = mallory.clock_ms()
    for number in range(many):
        reaction = Reaction(target_id=text, emoji=chr(0x1F400 + number))
        await mallory.say(reaction, lamport=first + number)
        await mallory.say(Reaction(target_id=MessageId(f"invented-{number}"), emoji="👍"))
    await mallory.say("done")
    await stage.heals(["done"])
    for person in (alice, bob):
        view = await row(person, text)
        assert len(view.reactions) <= MAX_REACTIONS_SHOWN
        assert len(view.reactions) + view.more_reactions == MAX_EMOJI_EACH
        assert view.reactions[-1].emoji == chr(0x1F400 + many - 1), "the newest count"


async def test_a_mention_of_nobody_is_shown_and_rings_nowhere(stage: Stage) -> None:
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    nobody = ParticipantId("A" * 22)
    text = Text(text="@Alice!", mentions=(nobody,), mention_places=((0, 6),))
    said = await mallory.say(text)
    for person in (alice, bob):
        await stage.until(partial(is_here, person, said.message_id))
        view = await row(person, said.message_id)
        assert not view.mentions_me
        assert view.text == f"@{nobody[:8]}!", "not the name of somebody who was not meant"
        assert [span.kind for span in view.spans] == [SpanKind.MENTION]


async def is_here(person: Victim, message_id: MessageId) -> bool:
    return any(view.message_id == message_id for view in await person.rows())


async def test_only_reactions_that_count_ring(stage: Stage) -> None:
    """Not one that was taken back before it came, nor one to a message that was deleted."""
    alice, _ = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    text = await alice.say("React!")
    now = mallory.clock_ms()
    removed = Reaction(target_id=text, emoji="👍", removed=True)
    await mallory.say(removed, lamport=now + 20)
    first = await mallory.say("taken back")
    await stage.until(partial(is_here, alice, first.message_id))
    await mallory.say(Reaction(target_id=text, emoji="👍"), lamport=now + 10)
    await mallory.say(Reaction(target_id=text, emoji="🎉"), lamport=now + 10)
    second = await mallory.say("older")
    await stage.until(partial(is_here, alice, second.message_id))
    await alice.engine.timeline.retract(stage.group, text)
    await mallory.say(Reaction(target_id=text, emoji="🐱"))
    third = await mallory.say("done")
    await stage.until(partial(is_here, alice, third.message_id))
    rung = [e.annotation.emoji for e in alice.told if isinstance(e, ReactionReceived)]
    assert rung == ["🎉"]


async def test_taking_back_and_adding_again_rings_once(stage: Stage) -> None:
    alice, _ = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    one, other = await alice.say("React!"), await alice.say("And to this!")
    for number in range(6):
        await mallory.say(Reaction(target_id=one, emoji="👍", removed=number % 2 == 1))
        said = await mallory.say(f"number {number}")
        await stage.until(partial(is_here, alice, said.message_id))
    await mallory.say(Reaction(target_id=one, emoji="🎉"))
    await mallory.say(Reaction(target_id=other, emoji="🐱"))
    last = await mallory.say("done")
    await stage.until(partial(is_here, alice, last.message_id))
    rung = [e.annotation.emoji for e in alice.told if isinstance(e, ReactionReceived)]
    assert rung == ["👍", "🐱"]
