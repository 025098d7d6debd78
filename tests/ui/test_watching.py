"""``causerie watch`` beside a window: the same figures in another process, and no escapes."""

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
import qasync
from PySide6.QtWidgets import QApplication

from chat_app.one_instance import InstanceServer
from chat_app.paths import profile_paths
from chat_app.watch import page_of, plain, watch
from engine.core.errors import ConfigError
from engine.core.ids import ConversationId, UnixMs
from engine.events import ConnectionLevel, ConnectionRole
from engine.history_views import StoreHealth
from engine.inspection_views import (
    ConnectionFigures,
    ConversationFigures,
    Figures,
    StoreFigures,
)
from tests.patience import PATIENCE_S

REPOSITORY = Path(__file__).parents[2]
EVIL = "\x1b]0;title\x07\x1b[31mred\u202e\n\u009b2J" + "x" * 400

FIGURES = Figures(
    at_ms=UnixMs(1_795_000_000_000),
    connection=ConnectionFigures(
        level=ConnectionLevel.GOOD,
        role=ConnectionRole.RELAY,
        peers=7,
        bytes_in=3_900_000,
        bytes_out=1_230_000,
    ),
    conversations=(
        ConversationFigures(
            conversation_id=ConversationId("tide"),
            name="Tide Gauge",
            looked_at=200,
            received=12,
            is_all=True,
            own=5,
            held_by_all=4,
            held_p50_ms=1_400,
            held_p95_ms=4_400,
            waiting=2,
            missing=3,
            lost=1,
            waiting_to_send=0,
            failed=6,
        ),
    ),
    more_conversations=0,
    stores=(
        StoreFigures(
            multiaddr="/dns4/quay.example/tcp/443/wss",
            enabled=True,
            health=StoreHealth.GOOD,
            queries=9,
            complete=8,
            messages=500,
            omitted=3,
        ),
    ),
    counters={"group.id_mismatch": 2, "sds.received": 70},
)


def as_answer(figures: Figures) -> Mapping[str, object]:
    answer: Mapping[str, object] = json.loads(msgspec.json.encode(figures))
    return answer


def test_the_page_says_how_delivery_goes_in_words_and_figures() -> None:
    page = "\n".join(page_of(as_answer(FIGURES)))
    for expected in (
        "relay, 7 peers, 1230 kB sent, 3900 kB received",
        "/dns4/quay.example/tcp/443/wss: good, 8 of 9 queries complete, 3 omitted",
        "2 messages with an id that does not belong to what was said; refused.",
    ):
        assert expected in page
    (row,) = [line for line in page.splitlines() if line.startswith("Tide Gauge")]
    assert row.split()[2:] == ["12", "4/5", "1.4", "s", "4.4", "s", "2", "3", "1", "0", "6"]


@pytest.mark.parametrize("is_json", [False, True])
def test_nothing_of_a_name_reaches_the_terminal_as_an_escape(is_json: bool) -> None:
    (one,) = FIGURES.conversations
    evil = msgspec.structs.replace(
        FIGURES, conversations=(msgspec.structs.replace(one, name=EVIL),)
    )
    out, answers = io.StringIO(), iter([as_answer(evil), None, None, None])
    status = watch(
        profile_paths(None, Path("/nowhere")),
        as_json=is_json,
        out=out,
        ask=lambda _: next(answers),
        sleep=lambda _: None,
    )
    said = out.getvalue()
    assert status == 0
    assert all(mark.isprintable() or mark == "\n" for mark in said)
    assert "\u202e" not in said
    assert max(map(len, said.splitlines())) < (4_000 if is_json else 200)
    assert plain("") == ""


@pytest.mark.parametrize("answer", [{}, {"at_ms": "soon"}, {"conversations": 7}, {"x": [1]}])
def test_an_answer_that_is_none_of_figures_is_said_in_words(answer: Mapping[str, object]) -> None:
    (line,) = page_of(answer)
    assert line.endswith((".", "again."))


def test_without_a_window_it_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="no window has the profile"):
        watch(
            profile_paths(None, Path("/nowhere")),
            as_json=False,
            ask=lambda _: None,
            sleep=lambda _: None,
        )


def test_ctrl_c_is_a_clean_end() -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    out = io.StringIO()
    paths = profile_paths(None, Path("/nowhere"))
    ask: Callable[[Path], Mapping[str, object]] = lambda _: as_answer(FIGURES)  # noqa: E731
    assert watch(paths, as_json=True, out=out, ask=ask, sleep=interrupted) == 0
    assert len(out.getvalue().splitlines()) == 1


def test_another_process_hears_the_figures_and_ends_with_the_window(
    qapp: QApplication, tmp_path_factory: pytest.TempPathFactory
) -> None:
    del qapp
    place = tmp_path_factory.mktemp("p")
    place.chmod(0o700)
    asked: list[str] = []

    async def scenario() -> None:
        called: list[str] = []
        line = msgspec.json.encode(FIGURES)

        def answer(say: Callable[[bytes], None]) -> None:
            asked.append("figures")
            say(line)

        server = InstanceServer(place, figures=answer)
        server.called.connect(called.append)
        command = [sys.executable, "-m", "chat_app", "watch", "--json", "--profile-dir", str(place)]
        watcher = subprocess.Popen(  # noqa: ASYNC220 - its output is waited for in a thread
            command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert watcher.stdout is not None
        first = await asyncio.to_thread(watcher.stdout.readline)
        second = await asyncio.to_thread(watcher.stdout.readline)
        assert json.loads(first) == json.loads(second) == json.loads(line)
        server.close()
        rest, errors = await asyncio.to_thread(watcher.communicate)
        assert (rest, errors, watcher.returncode) == ("", "", 0)
        assert called == [], "watching brings no window to the front"

    with asyncio.Runner(loop_factory=qasync.QEventLoop) as runner:
        runner.run(asyncio.wait_for(scenario(), 3 * PATIENCE_S))
    assert len(asked) > 1
