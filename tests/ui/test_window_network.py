"""The network view: mine or theirs, each peer with its reasons, and what became of queries."""

from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.core.errors import TransportFault
from engine.core.fault_bench import EVERYTHING, Preset
from engine.core.ids import UnixMs
from engine.core.problems import ConnectionReason, LinkEnded, LinkReason, Unreachable
from engine.events import ConnectionLevel
from engine.network_views import (
    LinkEventKind,
    LinkProblem,
    NetworkFacts,
    NetworkView,
    ScoreView,
    StoreResult,
)
from tests.ui.driving import NOW, Key, Stage, play, stage, turn, until
from tests.ui.every_sheet import a_lively_engine, group_of
from tests.ui.scripted_network import PEERS, a_network, happened, peer, person, store_past
from ui.network.health import Outcome, store_line
from ui.network.sheet import NetworkSheet
from ui.network.words import event_words, peer_details, score_parts, verdict
from ui.window.strip import Dot

HOSTILE = "nwaku\u202e\n<b>evil</b>" + "x" * 5_000


def offline(view: NetworkView, *events: LinkEventKind) -> NetworkView:
    down = replace(
        view.connection,
        level=ConnectionLevel.OFFLINE,
        peers=0,
        reason=ConnectionReason.NOBODY_CONNECTED,
    )
    problems: dict[LinkEventKind, LinkProblem] = {
        LinkEventKind.CLOSED: LinkEnded(LinkReason.SILENT),
        LinkEventKind.NOT_REACHED: Unreachable(TransportFault.NO_ANSWER),
    }
    facts = NetworkFacts(events=tuple(happened(kind, 40_000, problems[kind]) for kind in events))
    return replace(view, connection=down, facts=facts)


async def opened(it: Stage) -> NetworkSheet:
    await until(lambda: isinstance(it.window.flows.sheet, NetworkSheet))
    sheet = it.window.flows.sheet
    assert isinstance(sheet, NetworkSheet)
    return sheet


def test_the_first_words_tell_ones_own_network_from_that_of_others() -> None:
    said = " ".join(verdict(a_network(), None))
    assert "connected to 3 peers" in said
    assert "came 2 s ago, so your own connection works" in said
    assert "Maya was last heard 12 min ago." in said
    assert "Ann was not heard since the start." in said
    silent = replace(a_network(), facts=NetworkFacts(peers=(peer(silent_ms=13_000),)))
    assert "for 13 s: your own connection may be broken" in " ".join(verdict(silent, None)), (
        "it was pinged after 8, and did not answer"
    )
    lost = " ".join(verdict(offline(a_network(), LinkEventKind.CLOSED), None))
    assert "Waiting for network." in lost
    assert "The last peer was lost 40 s ago: it did not answer any more." in lost
    never = " ".join(verdict(offline(a_network()), None))
    assert "No peer was connected since the start." in never
    vain = " ".join(verdict(offline(a_network(), LinkEventKind.NOT_REACHED), None))
    assert "192.0.2.8:60000 could not be reached: it does not answer in time." in vain
    both = (LinkEventKind.NOT_REACHED, LinkEventKind.CLOSED)
    since = " ".join(verdict(offline(a_network(), *both), None))
    assert "The last peer was lost 40 s ago: it did not answer any more." in since
    assert "192.0.2.8:60000 could not be reached" in since
    assert "Nobody is connected." in since, "not yet: somebody was"


def test_faults_made_on_purpose_are_named_before_anything_is_concluded() -> None:
    assert verdict(a_network(), None, faults=True)[0] == (
        "Faults are made on purpose on this device: they spoil messages, not what is measured here."
    )


def test_the_sheet_knows_of_the_fault_bench(qapp: QApplication) -> None:
    async def scenario() -> None:
        engine = a_lively_engine()
        engine.network_view = a_network()
        async with stage(engine) as it:
            it.window.commands.network()
            sheet = await opened(it)
            assert "on purpose" not in sheet.verdict.text()
            engine.faults.start(EVERYTHING, Preset.PARTITION)
            sheet.refresh()
            assert sheet.verdict.text().startswith("Faults are made on purpose")

    del qapp
    play(scenario)


def test_of_the_people_those_of_the_open_conversation_are_told_first() -> None:
    engine = a_lively_engine()
    group = next(view for view in engine.views.values() if view.contact is None)
    here = group.conversation_id
    view = a_network(person("Ann", 3_000), person("Maya", 720_000, here))
    said = " ".join(verdict(view, here))
    assert "Maya was last heard 12 min ago." in said
    assert "Ann" not in said


def test_what_is_not_known_is_said_to_be_unknown() -> None:
    details = dict(peer_details(peer(round_trip_ms=None, measured_ago_ms=None, agent=""), NOW))
    assert details["Round trip"] == "not measured yet"
    assert details["Program"] == "it does not say"
    assert score_parts(ScoreView()) == "nothing counts for or against it"


def test_a_store_that_is_gone_keeps_its_past_and_is_not_called_good() -> None:
    result = StoreResult(at_ms=UnixMs(0), problem=None, is_complete=True, messages=3)
    here, gone = (
        store_line(store_past("/ip4/192.0.2.7/tcp/60000", result, is_listed=is_listed), at_ms=1_000)
        for is_listed in (True, False)
    )
    assert (here.state, gone.state) == ("Answers in 41 ms.", "Not asked at present.")
    assert gone.figures == here.figures
    assert here.figures.endswith("The last one 1 s ago."), "how fast it answered is not known"
    answers = [replace(result, round_trip_ms=trip) for trip in (90, 20, 40)]
    many = store_line(store_past("/ip4/192.0.2.7/tcp/60000", *answers), at_ms=1_000)
    assert many.figures.endswith("Half of the answers came within 40 ms; the last one 1 s ago.")
    assert gone.outcomes == here.outcomes == (Outcome.COMPLETE,)


def test_what_strangers_say_of_themselves_is_cleaned_and_cut() -> None:
    evil = peer(agent=HOSTILE, protocols=(HOSTILE,), peer_id=HOSTILE, address=f"/dns4/{HOSTILE}")
    for name, value in peer_details(evil, NOW):
        assert "\u202e" not in value, name
        assert len(value) <= 260, name
    closed = LinkEnded(LinkReason.BROKE_PROTOCOL, HOSTILE)
    said = event_words(happened(LinkEventKind.CLOSED, 1_000, closed))
    assert "\u202e" not in said
    assert len(said) < 120


def test_the_menus_key_and_the_strip_open_it_and_closing_ends_all_looking(
    qapp: QApplication,
) -> None:
    async def scenario() -> None:
        engine = a_lively_engine()
        engine.network_view = a_network()
        async with stage(engine) as it:
            assert engine.looks == 0, "nothing is read while nobody looks"
            dot = it.window.strip.findChild(Dot)
            assert dot is not None
            QTest.mouseClick(dot, Qt.MouseButton.LeftButton)
            sheet = await opened(it)
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            looked = engine.looks
            QTest.keyClick(
                it.window,
                Key.Key_N,
                Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier,
            )
            sheet = await opened(it)
            assert engine.looks == looked + 1
            assert sheet.refreshed_every_ms() >= 500, "at most twice a second"
            ended: list[int] = []
            sheet.finished.connect(lambda _code: ended.append(sheet.refreshed_every_ms()))
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            assert ended == [0]

    del qapp
    play(scenario)


def test_keys_and_screen_readers_reach_each_peer_and_its_reasons(qapp: QApplication) -> None:
    async def scenario() -> None:
        engine = a_lively_engine()
        engine.network_view = a_network()
        async with stage(engine) as it:
            it.window.open_conversation(group_of(it).conversation_id)
            it.window.commands.network()
            sheet = await opened(it)
            await until(sheet.peers.hasFocus)
            QTest.keyClick(sheet.peers, Key.Key_Down)
            assert sheet.peers.key() == PEERS[1]
            table = QAccessible.queryAccessibleInterface(sheet.peers)
            assert table.role() is QAccessible.Role.Table
            cells = [table.child(n).text(QAccessible.Text.Name) for n in range(table.childCount())]
            assert {"Round trip", "in the mesh", "23 ms", "not measured yet"} <= set(cells)
            texts = sheet.details.findChildren(type(sheet.verdict))
            (said,) = (t.accessibleName() for t in texts if t.accessibleName().startswith("Score"))
            assert said.startswith("Score: 9.1: +3.6 time in the mesh, +8.0 messages that it")
            assert said.endswith("2.5 many peers at one address")
            store = next(iter(sheet.stores.rows.values()))
            name = store.accessibleName()
            assert "20 complete, 1 with messages left out, 1 failed" in name

    del qapp
    play(scenario)


def test_peers_can_be_told_apart_in_a_narrow_window_with_large_letters(qapp: QApplication) -> None:
    async def scenario() -> None:
        engine = a_lively_engine()
        engine.network_view = a_network()
        async with stage(engine, stored={"text_percent": "200"}, size=(420, 720)) as it:
            it.window.commands.network()
            peers = (await opened(it)).peers
            needed = peers.fontMetrics().horizontalAdvance("…" + PEERS[0][-8:])
            assert peers.columnWidth(0) > needed

    del qapp
    play(scenario)


def test_a_refresh_leaves_the_chosen_peer_chosen_and_survives_its_end(qapp: QApplication) -> None:
    async def scenario() -> None:
        engine = a_lively_engine()
        engine.network_view = view = a_network()
        async with stage(engine) as it:
            it.window.commands.network()
            sheet = await opened(it)
            sheet.peers.setCurrentCell(1, 0)
            others = tuple(reversed(view.facts.peers))
            engine.network_view = replace(view, facts=replace(view.facts, peers=others))
            sheet.refresh()
            assert sheet.peers.key() == PEERS[1]
            engine.network_view = offline(view, LinkEventKind.CLOSED)
            sheet.refresh()
            await turn()
            assert sheet.peers.key() == ""
            assert sheet.no_peers.isVisible()
            assert not sheet.details.isVisible()

    del qapp
    play(scenario)
