"""Every statement of a delivery view equals what the simulator knows, at any moment of a bad time.

The world is that of ``test_inspection_truth``: members crash, are cut off and lose what they send.
Again and again somebody reads the newest page of their log, or all of it page by page.
"""

from collections.abc import Iterator

from engine.core.faults import SeededRandom
from engine.core.ids import MessageId, UnixMs
from engine.core.sds.vocabulary import ChannelState, MissingState
from engine.delivery_views import DeliveryMark, DeliveryMessage, DeliveryPage
from engine.inspection_views import Whereabouts
from engine.runtime.inspection.delivery import (
    Histories,
    LookingOn,
    channel_page,
    others_messages,
    read_channel,
)
from engine.sim.annotated_trial import AnnotatedWorld
from engine.sim.network import SimNetwork
from engine.sim.session_participant import SessionParticipant
from tests.simulation.bad_time import SignedMessages, holds, somebody, through_a_bad_time
from ui.delivery.loaded import LoadedMessages

LOOK_EVERY_MS = 20_000
PAGE = 40
ELSEWHERE = {
    Whereabouts.WAITING: DeliveryMark.WAITING,
    Whereabouts.MISSING: DeliveryMark.MISSING,
    Whereabouts.LOST: DeliveryMark.LOST,
}
SOMEWHERE = frozenset(ELSEWHERE.values())


class Reader:
    """As the engine reads a page, from one member's store and session."""

    def __init__(self, person: SessionParticipant, now_ms: UnixMs) -> None:
        self._person = person
        self._now_ms = now_ms
        self._histories = Histories()

    def page(self, loaded: LoadedMessages | None = None) -> DeliveryPage:
        person = self._person
        (group,) = person.store.groups()
        before = None if loaded is None else loaded.first
        facts = read_channel(
            person.store, group, self._histories, person.participant_id, before=before, limit=PAGE
        )
        claimed = person.session.claimed_by
        looking = LookingOn(
            own_id=person.participant_id,
            members=person.session.members(),
            claimed={each: claimed(each) for each in others_messages(facts, person.participant_id)},
            looked_ms=self._now_ms,
        )
        return channel_page(group, facts, looking)


class Truth:
    def __init__(self, world: AnnotatedWorld) -> None:
        self.world = world
        self.looked = 0
        self.seen: set[DeliveryMark] = set()
        self.wrong: list[str] = []
        self._signed = SignedMessages(world)

    def look(self, network: SimNetwork, random: SeededRandom) -> None:
        person = somebody(self.world, network, random)
        if person is None:
            return
        state = person.session.channel.snapshot()
        page = Reader(person, network.now_ms).page()
        self.wrong += [f"{person.name}: {what}" for what in self._whole(state, page)]
        where = places(state)
        for message in page.messages:
            self.looked += 1
            self.seen.add(message.mark)
            found = where.get(message.message_id, Whereabouts.UNKNOWN)
            for what in self._errors(person, found, message):
                self.wrong.append(f"{person.name}, {message.message_id}: {what}")

    def _whole(self, state: ChannelState, page: DeliveryPage) -> Iterator[str]:
        placed = [each.position for each in page.messages if each.position is not None]
        if placed != [entry.position for entry in state.log[-PAGE:]]:
            yield "its part of the log"
        if page.has_older != (len(state.log) > PAGE) or page.has_newer:
            yield "whether there is more"
        waiting = {e.message_id for e in page.messages if e.mark is DeliveryMark.WAITING}
        if waiting != {entry.message.message_id for entry in state.incoming}:
            yield "what waits"
        missing = {e.message_id for e in page.messages if e.mark is DeliveryMark.MISSING}
        first = page.first if page.has_older else None
        known = {
            each.entry.message_id
            for each in state.missing
            if first is None or each.before is None or each.before >= first
        }
        if not missing <= known or known - missing - {
            e.message_id for e in page.messages if e.mark is DeliveryMark.LOST
        }:
            yield "what is missing"

    def _errors(
        self, person: SessionParticipant, where: Whereabouts, message: DeliveryMessage
    ) -> Iterator[str]:
        if ELSEWHERE.get(where) is not (message.mark if message.mark in SOMEWHERE else None):
            yield f"it is not {message.mark}"
        yield from self._holder_errors(person, message)
        if message.late_by_ms is not None and message.late_by_ms < 0:
            yield "late before it was due"
        signed = self._signed.of(message.message_id)
        if signed is None:
            return
        if message.sender_id not in {signed.sender_id, None}:
            yield "its author"
        if message.is_own != (message.sender_id == person.participant_id):
            yield "whose it is"
        if where in {Whereabouts.LOGGED, Whereabouts.WAITING} and (
            message.lamport_timestamp,
            message.names,
        ) != (signed.lamport_timestamp, signed.history):
            yield "its Lamport timestamp or causal history"

    def _holder_errors(self, person: SessionParticipant, message: DeliveryMessage) -> Iterator[str]:
        by_id = {each.participant_id: each for each in self.world.people.values()}
        for holder in message.holders:
            if holder.certain and not holds(by_id[holder.participant_id], message.message_id):
                yield f"{by_id[holder.participant_id].name} does not hold it"
            if holder.participant_id in {person.participant_id, message.sender_id}:
                yield "a strange holder"
        if message.held_by > message.of:
            yield "more hold it than there are"


def places(state: ChannelState) -> dict[MessageId, Whereabouts]:
    missing = {
        each.entry.message_id: Whereabouts.LOST
        if each.state is MissingState.LOST
        else Whereabouts.MISSING
        for each in state.missing
    }
    waiting = {each.message.message_id: Whereabouts.WAITING for each in state.incoming}
    logged = {entry.position.message_id: Whereabouts.LOGGED for entry in state.log}
    return missing | waiting | logged


def test_every_statement_is_what_the_simulator_knows() -> None:
    seed = 7
    world = AnnotatedWorld(seed)
    truth, random = Truth(world), SeededRandom(seed, "who looks")
    through_a_bad_time(world, lambda network: truth.look(network, random), LOOK_EVERY_MS)
    for person in world.people.values():
        state, reader = person.session.channel.snapshot(), Reader(person, world.network.now_ms)
        loaded = LoadedMessages()
        loaded.take_newest(reader.page())
        while loaded.has_older:
            assert loaded.take_older(reader.page(loaded))
        placed = [each.position for each in loaded.messages if each.position is not None]
        assert placed == [entry.position for entry in state.log], "pages join to the whole log"
    assert not truth.wrong
    assert truth.looked >= 300
    assert {DeliveryMark.HERE, DeliveryMark.WAITING, DeliveryMark.MISSING} <= truth.seen
