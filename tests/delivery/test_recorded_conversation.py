"""What real engines record when they talk: what happened, in order, and nothing that they said."""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TypeGuard

import pytest

from chat_app.__main__ import main
from engine.core.contacts import ContactState
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.delivery.contract import (
    DELIVERY_EVENT,
    LOG_SNAPSHOT,
    LOG_TABLES,
    MEMBERSHIP,
    MESSAGE,
    Table,
)
from engine.delivery.pseudonym import Pseudonyms
from engine.delivery.recorder import Recorder, RecorderSettings
from engine.delivery.sqlite_log import LogReader, find_logs
from engine.events import (
    ConversationChanged,
    EngineEvent,
    MessageAdded,
    MessageChanged,
    MessageKind,
    MessageView,
)
from engine.network.memory import MemoryNetwork
from engine.network.transport import Transport
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.runtime.engine import Engine, EngineDependencies, OpenedStore
from tests.patience import PATIENCE_S
from tests.runtime.conftest import hurried_entropy

KEY = bytes(range(32))
NAMES = ("Ünüsüal-Näme-7319", "Zaphod-Quux-4482")
GROUP_NAME = "Gröup-of-Söme-5521"
TEXT = "xylophöne-{}-zebra-quartz"


class Talker:
    """An engine that records, and what it was told."""

    def __init__(self, name: str, place: Path, network: MemoryNetwork) -> None:
        self.name = name
        self.logs = place / f"logs {NAMES.index(name)}"
        self.told: list[EngineEvent] = []
        self._database = place / f"{NAMES.index(name)}.db"
        self._transport = network.attach(name)
        self._news = asyncio.Event()
        self.recorder = Recorder(
            RecorderSettings(
                directory=self.logs, key=KEY, app_version="1.2.3", network="memory", linger_ms=1
            ),
            now_ms=_now_ms,
            random_bytes=os.urandom,
        )
        self.engine = Engine(
            EngineDependencies(
                open_store=self._open,
                make_transport=self._make_transport,
                port_of=lambda _transport: None,
                entropy=hurried_entropy(),
                now_ms=_now_ms,
                recorder=self.recorder,
            )
        )
        self.engine.subscribe(self._hear)

    def _open(self) -> OpenedStore:
        return OpenedStore(store=SqliteProfileStore.open(self._database, KEY), key_storage="")

    def _make_transport(self, _seed: object) -> Transport:
        return self._transport

    def _hear(self, event: EngineEvent) -> None:
        self.told.append(event)
        self._news.set()

    async def until(self, wanted: Callable[[EngineEvent], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not any(map(wanted, self.told)):
                self._news.clear()
                await self._news.wait()

    async def until_shown(self, text: str) -> None:
        await self.until(
            lambda event: (
                isinstance(event, MessageAdded)
                and event.message.kind is MessageKind.TEXT
                and event.message.text == text
            )
        )


Scenario = Callable[[Talker, Talker], Coroutine[object, object, None]]


def _now_ms() -> UnixMs:
    return UnixMs(time.time_ns() // 1_000_000)


def _play(place: Path, scenario: Scenario) -> tuple[Talker, Talker]:
    async def whole() -> tuple[Talker, Talker]:
        network = MemoryNetwork()
        one, other = (Talker(name, place, network) for name in NAMES)
        try:
            for talker in (one, other):
                await talker.engine.start()
                if talker.engine.identity() is None:
                    await talker.engine.create_identity(talker.name)
            await scenario(one, other)
        finally:
            for talker in (one, other):
                await talker.engine.stop()
        return one, other

    return asyncio.run(whole())


async def _say_four(one: Talker, other: Talker, where: ConversationId) -> None:
    for number, speaker in enumerate((one, other, one, other)):
        await speaker.engine.timeline.send_text(where, TEXT.format(number))
        for talker in (one, other):
            await talker.until_shown(TEXT.format(number))


async def _in_a_group(one: Talker, other: Talker) -> None:
    group = await one.engine.groups.create(GROUP_NAME)
    await other.engine.groups.join(await one.engine.groups.make_invite_link(group))
    await _say_four(one, other, group)


async def _in_a_pair(one: Talker, other: Talker) -> None:
    pair = await one.engine.people.add(await other.engine.people.make_contact_link())

    def is_asked(event: EngineEvent) -> bool:
        return _stands(event, ContactState.ASKING)

    def is_accepted(event: EngineEvent) -> bool:
        return _stands(event, ContactState.ACCEPTED)

    await other.until(is_asked)
    await other.engine.people.accept(pair)
    await one.until(is_accepted)
    await _say_four(one, other, pair)


def _stands(event: EngineEvent, state: ContactState) -> bool:
    conversation = getattr(event, "conversation", None)
    contact = getattr(conversation, "contact", None)
    return contact is not None and contact.state is state


def _read(talker: Talker) -> dict[Table, list[dict[str, object]]]:
    """Every row of the one log, each of which keeps to the contract."""
    found: dict[Table, list[dict[str, object]]] = {}
    for path in find_logs(talker.logs):
        with LogReader(path) as log:
            for table in LOG_TABLES:
                for row, problem in log.checked(table):
                    assert problem is None, (table.name, row)
                    line = dict(zip(table.names, row, strict=True))
                    found.setdefault(table, []).append(line)
    return found


def _ids(rows: list[dict[str, object]], kind: str) -> list[object]:
    return [row["message_id"] for row in rows if row["kind"] == kind]


@pytest.fixture(scope="module")
def group_talk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Talker, Talker]:
    return _play(tmp_path_factory.mktemp("group"), _in_a_group)


@pytest.fixture(scope="module")
def pair_talk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Talker, Talker]:
    return _play(tmp_path_factory.mktemp("pair"), _in_a_pair)


@pytest.fixture(params=["group_talk", "pair_talk"])
def talk(request: pytest.FixtureRequest) -> tuple[Talker, Talker]:
    found: tuple[Talker, Talker] = request.getfixturevalue(request.param)
    return found


def test_both_record_the_same_conversation(talk: tuple[Talker, Talker]) -> None:
    one, other = map(_read, talk)
    orders = [
        [(row["channel"], row["message_id"], row["mid"]) for row in log[LOG_SNAPSHOT]]
        for log in (one, other)
    ]
    assert orders[0] == orders[1]
    assert len(orders[0]) >= 4
    for log in (one, other):
        events = log[DELIVERY_EVENT]
        assert {row["message_id"] for row in log[MESSAGE]} == {at[1] for at in orders[0]}
        assert Counter(_ids(events, "delivered")) == Counter(at[1] for at in orders[0])
    assert {row["member"] for row in one[MEMBERSHIP]} == {
        row["member"] for row in other[MEMBERSHIP]
    }
    assert len({row["member"] for row in one[MEMBERSHIP]}) == 2
    sent = [_ids(log[DELIVERY_EVENT], "sent") for log in (one, other)]
    assert sorted(map(str, sent[0] + sent[1])) == sorted(str(at[1]) for at in orders[0])


async def _said_about(one: Talker, other: Talker) -> None:
    """A reaction, an edit and a deletion, each seen by the other."""
    await _in_a_group(one, other)
    texts = [event.message for event in one.told if _is_own_text(event)]
    group = texts[0].conversation_id
    first, second = (text.message_id for text in texts)
    timeline = one.engine.timeline
    await other.engine.timeline.react(group, first, "\N{THUMBS UP SIGN}", active=True)
    await one.until(_shows(lambda message: bool(message.reactions)))
    await timeline.edit(group, first, "another xylophone")
    await other.until(_shows(lambda message: message.text == "another xylophone"))
    await timeline.retract(group, second)
    await other.until(_shows(lambda message: message.retracted))


def _shows(wanted: Callable[[MessageView], bool]) -> Callable[[EngineEvent], bool]:
    return lambda event: isinstance(event, MessageChanged) and wanted(event.message)


def test_what_is_said_about_messages_is_recorded_as_messages_are(tmp_path: Path) -> None:
    """Reaction, edit and deletion: sent, delivered, in both orders and with when they were sent."""
    one, other = (_read(talker) for talker in _play(tmp_path, _said_about))
    sent = [_ids(log[DELIVERY_EVENT], "sent") for log in (one, other)]
    assert [len(ids) for ids in sent] == [5, 4], "a beginning, two texts, and what came after"
    for log in (one, other):
        assert set(_ids(log[DELIVERY_EVENT], "delivered")) == {*sent[0], *sent[1]}
        assert {row["message_id"] for row in log[LOG_SNAPSHOT]} == {*sent[0], *sent[1]}
        times = {row["message_id"]: row["sent_ms"] for row in log[MESSAGE]}
        assert set(times) == {*sent[0], *sent[1]}
        assert all(times.values())


def test_numbers_have_no_holes_and_times_go_forward(talk: tuple[Talker, Talker]) -> None:
    for talker in talk:
        events = _read(talker)[DELIVERY_EVENT]
        assert [row["seq"] for row in events] == list(range(1, len(events) + 1))
        clock = [row["mono_ns"] for row in events]
        assert clock == sorted(clock, key=lambda ns: int(str(ns)))
        assert [events[0]["kind"], events[-1]["kind"]] == ["started", "stopped"]
        assert talker.recorder.dropped == 0


def test_copies_are_the_same_copies_on_both_sides(talk: tuple[Talker, Talker]) -> None:
    one, other = (_read(talker)[DELIVERY_EVENT] for talker in talk)
    left = {"published", "retransmitted", "repair_sent", "sync_sent", "ephemeral_sent"}
    came = {"received", "duplicate", "sync_received", "ephemeral_received", "rejected"}
    for sender, receiver in ((one, other), (other, one)):
        sizes = {r["waku_hash"]: r["wire_bytes"] for r in sender if r["kind"] in left}
        for row in receiver:
            if row["kind"] in came and row["wire_bytes"] is not None:
                assert sizes[row["waku_hash"]] == row["wire_bytes"]
                assert row["via"] in {"relay", "repair"}


def test_every_text_was_acknowledged_by_the_other(talk: tuple[Talker, Talker]) -> None:
    """All but each one's last, whose acknowledgement may not have come before the end.

    The first acknowledgement in a pair may come after the first message by Olm; then it does not
    count, and the answer that it is about is sent again, later than here.
    """
    names = [Pseudonyms(KEY).participant(_own_id(talker)) for talker in talk]
    for talker, peer in zip(talk, reversed(names), strict=True):
        events = _read(talker)[DELIVERY_EVENT]
        acked = set(_ids(events, "acked"))
        texts = [event.message.message_id for event in talker.told if _is_own_text(event)]
        assert len(texts) == 2
        assert set(texts) <= set(_ids(events, "sent"))
        assert set(texts[:-1]) <= acked
        assert {row["peer"] for row in events if row["kind"] == "acked"} == {peer}
        sources = {row["ack_source"] for row in events if row["kind"] == "acked"}
        assert sources <= {"causal", "holdings", "repair", "author", "mvds"}


def _is_own_text(event: EngineEvent) -> TypeGuard[MessageAdded]:
    return (
        isinstance(event, MessageAdded)
        and event.message.is_own
        and event.message.kind is MessageKind.TEXT
    )


def _own_id(talker: Talker) -> ParticipantId:
    (identity,) = {
        event.message.sender_id
        for event in talker.told
        if isinstance(event, MessageAdded) and event.message.is_own
    }
    return identity


def test_both_have_one_digest_of_what_a_message_says_and_no_two_messages_the_same(
    group_talk: tuple[Talker, Talker],
) -> None:
    told = [
        {row["message_id"]: row["content"] for row in _read(one)[MESSAGE]} for one in group_talk
    ]
    assert told[0] == told[1]
    assert None not in told[0].values()
    assert len(set(told[0].values())) == len(told[0])


def test_nothing_that_was_said_and_nobody_s_name_is_in_the_files(
    talk: tuple[Talker, Talker],
) -> None:
    said = [*NAMES, GROUP_NAME, *(TEXT.format(number) for number in range(4)), "zebra", "Zaphod"]
    ids = [str(_own_id(talker)) for talker in talk]
    conversations = {
        event.conversation.conversation_id
        for talker in talk
        for event in talker.told
        if isinstance(event, ConversationChanged)
    }
    assert conversations
    secrets = [text.encode() for text in (*said, *ids, *conversations)]
    for talker in talk:
        (path,) = find_logs(talker.logs)
        assert path.stat().st_size > 4096
        for file in talker.logs.iterdir():
            data = file.read_bytes()
            for secret in (*secrets, KEY, KEY.hex().encode()):
                assert secret not in data, (file, secret)
                assert secret.decode("utf-8", "replace").encode("utf-16-le") not in data


def test_a_second_run_goes_on_in_the_same_file_and_knows_what_was_there(tmp_path: Path) -> None:
    where: list[ConversationId] = []

    async def first(one: Talker, other: Talker) -> None:
        where.append(await one.engine.groups.create(GROUP_NAME))
        await other.engine.groups.join(await one.engine.groups.make_invite_link(where[0]))
        await _say_four(one, other, where[0])

    async def second(one: Talker, other: Talker) -> None:
        await one.engine.timeline.send_text(where[0], "again")
        await other.until_shown("again")
        assert one.recorder.flush()

    _play(tmp_path, first)
    one, other = _play(tmp_path, second)
    for talker in (one, other):
        assert len(find_logs(talker.logs)) == 1
        log = _read(talker)
        events = log[DELIVERY_EVENT]
        assert [row["seq"] for row in events] == list(range(1, len(events) + 1))
        kinds = Counter(row["kind"] for row in events)
        assert (kinds["started"], kinds["stopped"], kinds["snapshot"]) == (2, 2, 2)
        last = [row for row in events if row["kind"] == "delivered"][-1]
        order = [row["message_id"] for row in log[LOG_SNAPSHOT]]
        assert last["position"] in {None, order.index(last["message_id"])}


def test_an_export_has_the_order_as_of_now_while_the_program_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def export(place: Path, name: str) -> list[str]:
        out = tmp_path / name
        asked = ["export-log", "--logs", str(place), "--format", "jsonl", "--out", str(out)]
        assert await asyncio.to_thread(main, asked) == 0
        lines = (out / "log_snapshot.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["message_id"] for line in lines]

    async def scenario(one: Talker, other: Talker) -> None:
        await _in_a_group(one, other)
        for number, talker in enumerate((one, other)):
            order = await export(talker.logs, f"out {number}")
            assert talker.recorder.flush()
            assert sorted(order) == sorted(
                map(str, _ids(_read(talker)[DELIVERY_EVENT], "delivered"))
            )
            assert list(talker.logs.glob("*wanted")) == []

    one, other = _play(tmp_path, scenario)
    assert capsys.readouterr().err == ""
    orders = [[row["message_id"] for row in _read(t)[LOG_SNAPSHOT]] for t in (one, other)]
    assert orders[0] == orders[1]
