"""Live figures in the window: they are counted while the delivery view is open, and not longer."""

from pathlib import Path

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.core.ids import UnixMs
from engine.events import ConversationRemoved
from engine.live_views import LiveSample
from tests.ui.driving import Stage, heard, pair_stage, turn, until
from tests.ui.driving import play as played
from tests.ui.scripted_inspection import SENT_MS
from tests.ui.seeing import seen_words
from tests.ui.test_window_delivery import looking, opened
from ui.delivery.contents import Contents

pytestmark = pytest.mark.usefixtures("qapp")


def contents(it: Stage) -> Contents:
    found = it.window.delivery.live.contents
    assert found is not None
    return found


def test_the_engine_counts_from_opening_the_view_to_closing_it() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group):
            assert engine.inspected.watches == []
            sampled = heard(it.window.delivery.live.sampled)
            await opened(it)
            await sampled
            (watch,) = engine.inspected.watches
            assert watch.is_open
            shown = contents(it)
            assert len(shown.holders.matrix.matrix.columns) == 12
            assert len(shown.live.charts) == 9
            assert not shown.records.isVisible()
            assert shown.refusals.words.text() == "Nothing was refused or set aside."
            assert not shown.refusals.elsewhere.isVisible()
            shown.refusals.show_counters(
                {"group.replayed": 2}, {"group.replayed": 2, "pair.replayed": 1}
            )
            assert shown.refusals.words.text().startswith("2 messages that came once more")
            assert shown.refusals.elsewhere.text().startswith("1 message that came once more")
            it.window.pane.header.views.choose(0)
            await until(lambda: not watch.is_open)
            await turn()
            assert engine.inspected.watches == [watch]

    played(scenario)


def test_what_changed_comes_in_frames_of_its_own_until_all_is_shown() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, group):
            engine.inspected.samples[group] = [
                LiveSample(conversation_id=group, at_ms=SENT_MS, since_ms=SENT_MS, placed=4),
                LiveSample(
                    conversation_id=group,
                    at_ms=UnixMs(SENT_MS + 31_000),
                    since_ms=SENT_MS,
                    placed=9,
                ),
            ]
            sampled = heard(it.window.delivery.live.sampled)
            await opened(it)
            await sampled
            shown = contents(it).live
            before = [each.chart for each in shown.charts]
            await heard(it.window.delivery.live.sampled)
            changed = [
                each.chart is not old for each, old in zip(shown.charts, before, strict=True)
            ]
            assert sum(changed) == 2, "time went on, so all of them have to change"
            await until(
                lambda: all(
                    each.chart is not old for each, old in zip(shown.charts, before, strict=True)
                )
            )

    played(scenario)


def test_tab_comes_to_charts_where_they_stand_and_a_reader_hears_what_they_are() -> None:
    async def scenario() -> None:
        async with looking() as (it, _engine, _group):
            sampled = heard(it.window.delivery.live.sampled)
            await opened(it)
            await sampled
            shown, page = contents(it), it.window.delivery.page
            assert page is not None
            charts = [page.graph_card.graph, shown.holders.matrix, *shown.live.charts]
            for each in charts:
                role = QAccessible.queryAccessibleInterface(each).role()
                assert role == QAccessible.Role.Chart
            wanted = [*charts, shown.live.buttons.table, shown.live.buttons.export]
            chain: list[QWidget] = [page.graph_card.graph]
            while (following := chain[-1].nextInFocusChain()) not in {None, chain[0]}:
                assert following is not None
                chain.append(following)
            assert [each for each in chain if each in wanted] == wanted

    played(scenario)


def test_another_conversation_begins_anew_and_a_removed_one_ends_it() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, group):
            other = engine.add_group("Sky", ("Luc",))
            sampled = heard(it.window.delivery.live.sampled)
            await opened(it)
            await sampled
            it.window.pane.header.views.choose(0)
            again = heard(it.window.delivery.live.sampled)
            it.window.open_conversation(other)
            it.window.pane.header.views.choose(1)
            await again
            assert [each.conversation_id for each in engine.inspected.watches] == [group, other]
            assert [each.is_open for each in engine.inspected.watches] == [False, True]
            del engine.rows[other]
            engine.tell(ConversationRemoved(conversation_id=other))
            await until(lambda: not engine.inspected.watches[-1].is_open)

    played(scenario)


def test_between_two_there_are_records_and_no_buffers_of_sds() -> None:
    async def scenario() -> None:
        async with pair_stage("Maya") as (it, _engine, _pair):
            sampled = heard(it.window.delivery.live.sampled)
            await opened(it)
            await sampled
            shown = contents(it)
            assert shown.records.isVisible()
            assert "Nothing to do" in shown.records.head.text()
            assert len(shown.live.charts) == 5

    played(scenario)


def test_a_table_takes_the_place_of_the_pictures_and_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, group):
            engine.inspected.samples[group] = [
                LiveSample(conversation_id=group, at_ms=SENT_MS, since_ms=SENT_MS, placed=4)
            ]
            sampled = heard(it.window.delivery.live.sampled)
            await opened(it)
            await sampled
            shown = contents(it)
            shown.holders.buttons.table.click()
            assert shown.holders.table.isVisible()
            assert not shown.holders.matrix.isVisible()
            assert len(shown.holders.table.texts()) == 13
            shown.live.buttons.table.click()
            assert len(shown.live.table.texts()) == 41

            place = tmp_path / "live.csv"
            monkeypatch.setattr(QFileDialog, "open", lambda dialog: answer(dialog, place))
            saved = heard(it.window.delivery.live.saved)
            shown.live.buttons.export_wanted.emit("csv")
            await saved
            assert place.read_bytes().startswith(b"\xef\xbb\xbffrom_ms")

            graph = tmp_path / "graph.png"
            monkeypatch.setattr(QFileDialog, "open", lambda dialog: answer(dialog, graph))
            saved = heard(it.window.delivery.live.saved)
            page = it.window.delivery.page
            assert page is not None
            picture, _drawing, _table = page.graph_card.export.menu().actions()
            picture.trigger()
            await saved
            assert graph.read_bytes().startswith(b"\x89PNG")

            graph.unlink()
            graph.mkdir()
            picture.trigger()
            await until(
                lambda: any("cannot be written" in w for w in seen_words(it.window.notices))
            )

    played(scenario)


def answer(dialog: QFileDialog, place: Path) -> None:
    dialog.selectFile(str(place))
    dialog.done(QFileDialog.DialogCode.Accepted.value)
