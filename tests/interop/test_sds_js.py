"""Real ``@waku/sds`` channels and ours in one group: their code is the judge.

Everything runs on virtual time over the simulated network; only the channels in Node are not ours.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from engine.codec.open_content import message_id_of_content
from engine.codec.sds import decode_message, encode_message
from engine.core.errors import RemoteProtocolError
from engine.core.faults import FaultSpec, SeededRandom
from engine.core.ids import ChannelId, MessageId, ParticipantId, UnixMs
from engine.core.sds.bloom import JS_BYTES
from engine.core.sds.config import SdsConfig
from engine.core.sds.vocabulary import (
    EphemeralReceived,
    HeldByChanged,
    OutgoingState,
    RepairRequested,
)
from engine.sim.archive import SimArchive
from engine.sim.judge import causal_violations
from engine.sim.network import Outgoing, SimNetwork
from engine.sim.open_participant import OpenParticipant
from tests.interop.js_sds import (
    ACKNOWLEDGED,
    DELIVERED,
    ERROR,
    POSSIBLY,
    REQUEST_RECEIVED,
    REQUEST_SENT,
    JsHost,
    JsMember,
    encoded,
    js_host,
)

START = UnixMs(1_760_000_000_000)
HOUR = 3_600_000


@pytest.fixture(scope="module")
def host() -> Iterator[JsHost]:
    with js_host() as running:
        yield running


def ours(name: str, config: SdsConfig | None = None, *, seed: int = 1) -> OpenParticipant:
    return OpenParticipant(
        ParticipantId(name),
        members=frozenset(),
        config=config or SdsConfig.for_open_channel(),
        seed=seed,
        now_ms=START,
    )


def only(outgoing: list[Outgoing]) -> bytes:
    (item,) = outgoing
    return item.payload


def ours_holds(member: OpenParticipant) -> list[MessageId]:
    return member.store.log_ids()


def ids(*texts: str) -> list[MessageId]:
    return [message_id_of_content(text.encode()) for text in texts]


def state_of(member: OpenParticipant, text: str) -> OutgoingState | None:
    """None = acknowledged: it has left the outgoing buffer."""
    buffered = {entry.message_id: entry.state for entry in member.store.state().outgoing}
    return buffered.get(message_id_of_content(text.encode()))


def later(seconds: float) -> UnixMs:
    return UnixMs(START + int(seconds * 1_000))


# --- one thing at a time --------------------------------------------------------------------------


def test_acknowledgements_by_causal_history_go_both_ways(host: JsHost) -> None:
    js, we = JsMember(host, "ack-js", now_ms=START), ours("ack-we")
    we.receive(only(js.send("from js", now_ms=START)), now_ms=later(1))
    assert js.details(ACKNOWLEDGED) == []
    js.receive(only(we.send("from us", now_ms=later(2))), now_ms=later(3))
    assert js.details(DELIVERED) == ids("from us")
    assert js.details(ACKNOWLEDGED) == ids("from js")
    assert state_of(we, "from us") is OutgoingState.UNACKNOWLEDGED
    we.receive(only(js.send("and again", now_ms=later(4))), now_ms=later(5))
    assert state_of(we, "from us") is None
    assert ours_holds(we) == js.log(now_ms=later(5)) == ids("from js", "from us", "and again")
    assert js.details(ERROR) == []


def test_nobody_unproved_is_a_certain_holder(host: JsHost) -> None:
    js, we = JsMember(host, "holder-js", now_ms=START), ours("holder-we")
    js.receive(only(we.send("held?", now_ms=START)), now_ms=later(1))
    we.receive(only(js.send("yes", now_ms=later(2))), now_ms=later(3))
    (told,) = [event for event in we.events if isinstance(event, HeldByChanged)]
    assert told.certain == ()
    assert [entry.participant_id for entry in told.maybe] == ["holder-js"]


def test_filters_are_read_both_ways_and_are_what_js_takes_them_for(host: JsHost) -> None:
    """Histories of one entry, so that only the filter can speak of the older message."""
    js = JsMember(host, "bloom-js", now_ms=START, options={"causalHistorySize": 1})
    we = ours("bloom-we", replace(SdsConfig.for_open_channel(), causal_history_size=1))
    for number, text in enumerate(("js old", "js new")):
        we.receive(only(js.send(text, now_ms=later(number))), now_ms=later(number + 0.5))
    answer = only(we.send("ours old", now_ms=later(3)))
    assert len(decode_message(answer).bloom_filter or b"") == JS_BYTES
    js.receive(answer, now_ms=later(4))
    assert js.details(ACKNOWLEDGED) == ids("js new")
    assert js.details(POSSIBLY) == ids("js old")
    js.receive(only(we.send("ours new", now_ms=later(5))), now_ms=later(6))
    we.receive(only(js.send("js last", now_ms=later(7))), now_ms=later(8))
    assert state_of(we, "ours new") is None
    assert state_of(we, "ours old") is OutgoingState.POSSIBLY_ACKNOWLEDGED
    assert js.details(ERROR) == []


def test_js_drops_a_filter_of_any_other_size(host: JsHost) -> None:
    """The reason why open channels carry 18 752 bytes: were js more tolerant, this would tell."""
    js, other = JsMember(host, "size-js", now_ms=START), ours("size-we", SdsConfig())
    js.receive(only(other.send("small filter", now_ms=START)), now_ms=later(1))
    assert js.details(DELIVERED) == []
    assert len(js.details(ERROR)) == 1


def test_our_answer_to_js_repair_request_is_taken(host: JsHost) -> None:
    js, we = JsMember(host, "repair-js", now_ms=START), ours("repair-we")
    we.send("lost", now_ms=START)
    js.receive(only(we.send("names it", now_ms=later(1))), now_ms=later(1))
    assert js.details(DELIVERED) == []
    (request,) = js.sync(now_ms=later(125))
    assert js.details(REQUEST_SENT) == ids("lost")
    we.receive(request.payload, now_ms=later(126))
    answers = we.sends.get("repair", 0)
    payloads = [] if not answers else [we.store.raw[ids("lost")[0]]]
    while not payloads:
        at_ms = we.next_deadline()
        assert at_ms is not None
        sent = we.advance(now_ms=max(at_ms, later(126)))
        if we.sends.get("repair", 0):
            payloads = [item.payload for item in sent]
    for payload in payloads:
        js.receive(payload, now_ms=later(400))
    js.advance(now_ms=later(410))
    assert set(js.details(DELIVERED)) == set(ids("lost", "names it"))
    assert js.log(now_ms=later(411)) == ids("lost", "names it")


def test_js_answer_to_our_repair_request_is_taken(host: JsHost) -> None:
    js, we = JsMember(host, "answer-js", now_ms=START), ours("answer-we")
    js.send("lost", now_ms=START)
    we.receive(only(js.send("names it", now_ms=later(1))), now_ms=later(1))
    assert ours_holds(we) == []
    asked_ms, requests = later(1), list[Outgoing]()
    while not any(isinstance(event, RepairRequested) for event in we.events):
        asked_ms = we.next_deadline() or asked_ms
        requests = list(we.advance(now_ms=asked_ms))
    assert asked_ms <= later(1 + 120 + 30)
    for request in requests:
        js.receive(request.payload, now_ms=asked_ms)
    assert js.details(REQUEST_RECEIVED) == ids("lost")
    for answer in js.advance(now_ms=UnixMs(asked_ms + 120_000)):
        we.receive(answer.payload, now_ms=UnixMs(asked_ms + 120_000))
    assert ours_holds(we) == ids("lost", "names it")


def test_sync_messages_reveal_a_lost_newest_message_both_ways(host: JsHost) -> None:
    js, we = JsMember(host, "sync-js", now_ms=START), ours("sync-we")
    js.send("theirs, lost", now_ms=START)
    (told,) = js.sync(now_ms=later(1))
    we.receive(told.payload, now_ms=later(1))
    assert [entry.entry.message_id for entry in we.store.state().missing] == ids("theirs, lost")
    we.send("ours, lost", now_ms=later(2))
    sent: list[Outgoing] = []
    while not any(decode_message(item.payload).is_sync for item in sent):
        at_ms = we.next_deadline()
        assert at_ms is not None
        sent = list(we.advance(now_ms=at_ms))
    for item in sent:
        if decode_message(item.payload).is_sync:
            js.receive(item.payload, now_ms=later(40))
    missing = host.ask("sweep", now_ms=later(41), name=js.name)["missing"]
    assert [entry[0] for entry in missing] == ids("ours, lost")


def test_ephemeral_messages_pass_both_ways_and_leave_no_trace(host: JsHost) -> None:
    js, we = JsMember(host, "typing-js", now_ms=START), ours("typing-we")
    we.receive(only(js.send_ephemeral("typing", now_ms=START)), now_ms=START)
    (event,) = we.events
    assert isinstance(event, EphemeralReceived)
    assert event.message.content == b"typing"
    payload = only(we.send_ephemeral("typing too", now_ms=later(1)))
    answer = host.ask("receive", now_ms=later(1), name=js.name, raw=encoded(payload))
    assert answer["kind"] == "EphemeralMessage"
    assert ours_holds(we) == js.log(now_ms=later(2)) == []
    assert js.details(ERROR) == []


def test_another_channel_is_refused_by_name(host: JsHost) -> None:
    js, we = JsMember(host, "other-js", now_ms=START), ours("other-we")
    we.channel_id = ChannelId("another")
    we.restart(now_ms=START)
    with pytest.raises(RemoteProtocolError) as caught:
        we.receive(only(js.send("hello", now_ms=START)), now_ms=START)
    assert caught.value.reason == "wrong_channel"
    js.receive(only(we.send("hello", now_ms=START)), now_ms=START)
    assert js.details(DELIVERED) == []


# --- all together, on a bad network ---------------------------------------------------------------


class NetworkWithStore(SimNetwork):
    """A Store node misses nothing.  js-waku's members ask it, and ours if they are told to.

    js-waku's need it: one of them asks for a repair once and never again, and is stuck for good if
    request or answer is lost.
    """

    def __init__(self, spec: FaultSpec, *, start_ms: UnixMs) -> None:
        super().__init__(spec, start_ms=start_ms)
        self.stored: dict[str, bytes] = {}
        """Payloads by retrieval hint (base64)."""
        self.archive = SimArchive()

    def transmit(self, sender: str, receiver: str, payload: bytes) -> bool:
        self.stored[encoded(hashlib.sha256(payload).digest())] = payload
        self.archive.receive(payload, now_ms=self.now_ms)
        return super().transmit(sender, receiver, payload)


@dataclass
class MixedGroup:
    """Two of js-waku's and three of ours; everybody talks, much is lost."""

    host: JsHost
    seed: int
    as_shipped: bool = False
    """js-waku's members are untouched, and ours ask the Store."""
    network: NetworkWithStore = field(init=False)
    js: list[JsMember] = field(init=False)
    ours: list[OpenParticipant] = field(init=False)
    said: int = 0

    def __post_init__(self) -> None:
        spec = FaultSpec(loss=0.25, delay_ms=(50, 400), dup=0.1, reorder=0.2, seed=self.seed)
        self.network = NetworkWithStore(spec, start_ms=START)
        self.js = [
            JsMember(
                self.host,
                f"js-{self.seed}-{number}",
                now_ms=START,
                store=self.network.stored,
                seed=self.seed,
                as_shipped=self.as_shipped,
            )
            for number in range(2)
        ]
        self.ours = [ours(f"we-{self.seed}-{number}", seed=self.seed) for number in range(3)]
        for js in self.js:
            self.network.add(js.name, js)
        for we in self.ours:
            self.network.add(we.participant_id, we)
            if self.as_shipped:
                we.use_store(self.network.archive, now_ms=START)

    def talk(self, messages: int) -> UnixMs:
        random, at_ms = SeededRandom(self.seed, "users"), self.network.now_ms
        everybody: list[JsMember | OpenParticipant] = [*self.js, *self.ours]
        for number in range(messages):
            at_ms = UnixMs(at_ms + random.between(0, 3_000))
            member = everybody[random.between(0, len(everybody) - 1)]
            self.network.at(at_ms, self._say(member, f"{number}, seed {self.seed}"))
        return at_ms

    def _say(self, member: JsMember | OpenParticipant, text: str) -> Callable[[SimNetwork], None]:
        name = member.name if isinstance(member, JsMember) else member.participant_id

        def say(network: SimNetwork) -> None:
            if not network.is_up(name):
                return
            self.said += 1
            network.broadcast(name, member.send(text, now_ms=network.now_ms))

        return say

    def restart_one(self, at_ms: int, *, down_ms: int) -> None:
        """One of ours dies and comes back with what its disk holds."""
        we = self.ours[0]

        def restart(network: SimNetwork) -> None:
            we.restart(now_ms=network.now_ms)
            network.add(we.participant_id, we)

        self.network.at(UnixMs(at_ms), lambda network: network.crash(we.participant_id))
        self.network.at(UnixMs(at_ms + down_ms), restart)

    def all_done(self) -> bool:
        """Identical logs, and nobody waits for an acknowledgement."""
        if any(len(we.store) < self.said or we.store.state().outgoing for we in self.ours):
            return False
        logs = self.logs()
        return all(log == logs[0] for log in logs) and not any(
            js.look(now_ms=self.network.now_ms)["outgoing"] for js in self.js
        )

    def ours_are_complete(self) -> bool:
        return all(len(we.store) == self.said for we in self.ours)

    def logs(self) -> list[list[MessageId]]:
        now_ms = self.network.now_ms
        return [js.log(now_ms=now_ms) for js in self.js] + [ours_holds(we) for we in self.ours]


@pytest.mark.parametrize(
    "seed", [*range(1, 6), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 41))]
)
def test_all_logs_end_identical_and_everything_is_acknowledged(host: JsHost, seed: int) -> None:
    group = MixedGroup(host, seed)
    end_ms = group.talk(120)
    group.restart_one(START + 60_000, down_ms=20_000)
    group.network.run_until(end_ms)
    assert group.network.run_until(UnixMs(end_ms + HOUR), stop=group.all_done), seed
    assert group.said > 100
    assert all(len(log) == group.said for log in group.logs()), seed
    assert all(causal_violations(we.observation()) == 0 for we in group.ours), seed
    assert all(js.details(ERROR) == [] for js in group.js), seed
    assert group.network.traffic.refused == {}, seed
    assert group.network.traffic.lost > 200
    assert all(js.details(ACKNOWLEDGED) for js in group.js)


@pytest.mark.parametrize(
    "seed", [*range(1, 6), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 21))]
)
def test_beside_members_as_shipped_ours_get_all_that_a_store_has(host: JsHost, seed: int) -> None:
    """They answer no repair requests, and no Store has their hints: only times are left to ask."""
    group = MixedGroup(host, seed, as_shipped=True)
    end_ms = group.talk(80)
    group.restart_one(START + 30_000, down_ms=20_000)
    group.network.run_until(end_ms)
    assert group.network.run_until(UnixMs(end_ms + 120_000), stop=group.ours_are_complete), seed
    assert all(causal_violations(we.observation()) == 0 for we in group.ours), seed
    assert not any(we.observation().lost for we in group.ours), seed
    assert group.network.traffic.lost > 60
    assert len(group.network.archive.asked_windows) < 20 * len(group.ours), "paced"


def test_our_encoding_of_what_js_says_is_byte_for_byte_theirs(host: JsHost) -> None:
    js, we = JsMember(host, "bytes-js", now_ms=START), ours("bytes-we")
    payloads = []
    for number in range(30):
        at_ms = later(number)
        payloads += [item.payload for item in js.send(f"message {number}", now_ms=at_ms)]
        js.receive(only(we.send(f"ours {number}", now_ms=at_ms)), now_ms=at_ms)
    payloads += [item.payload for item in js.sync(now_ms=later(40))]
    assert [encode_message(decode_message(data)) for data in payloads] == payloads
