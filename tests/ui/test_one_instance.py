"""A second start meets the window that has the profile: its link arrives, nonsense does not."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path

import pytest
import qasync
from PySide6.QtNetwork import QLocalSocket
from PySide6.QtWidgets import QApplication

from chat_app import one_instance, starting
from chat_app.one_instance import (
    MAX_LINE_BYTES,
    VERSION,
    HandOver,
    InstanceServer,
    hand_over,
    server_name,
)
from chat_app.paths import ProfilePaths, profile_paths
from chat_app.pipe_owner import is_own_pipe
from chat_app.window import WindowOptions
from engine.core.errors import ChatError
from engine.core.invite import MAX_LINK_CHARACTERS
from engine.persistence.errors import HandedOverError
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import open_profile_directory
from tests.patience import PATIENCE_S
from tests.ui.driving import stage
from tests.ui.scripted_engine import ScriptedEngine
from ui.error_words import error_words
from ui.failed_start import StartAction

LINK = "causerie:join/abc"
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The names of a test's own directories are too long for a socket's path."""
    made = tmp_path_factory.mktemp("p")
    made.chmod(0o700)
    return made


def play(scenario: Coroutine[object, object, None]) -> None:
    with asyncio.Runner(loop_factory=qasync.QEventLoop) as runner:
        runner.run(asyncio.wait_for(scenario, PATIENCE_S))


async def second_start(place: Path, link: str) -> bool:
    """A process of its own: Qt's waiting would keep this one's loop from answering."""
    program = (
        "import sys; from pathlib import Path; from chat_app.one_instance import *;"
        " tries = (hand_over(Path(sys.argv[1]), sys.argv[2]) for _ in range(9));"
        " sys.exit(0 if HandOver.TAKEN in tries else 1)"
    )
    command = [sys.executable, "-c", program, str(place), link]
    done = await asyncio.to_thread(subprocess.run, command, cwd=REPOSITORY, check=False)
    return done.returncode == 0


async def until(heard: list[str], count: int) -> None:
    while len(heard) < count:  # noqa: ASYNC110 - patience is the caller's
        await asyncio.sleep(0.01)


def test_a_link_reaches_the_window_and_a_second_start_without_one_does_too(
    qapp: QApplication, place: Path
) -> None:
    del qapp

    async def scenario() -> None:
        server, heard = InstanceServer(place), list[str]()
        server.called.connect(heard.append)
        assert await second_start(place, LINK)
        assert await second_start(place, "")
        await until(heard, 2)
        assert heard == [LINK, ""]
        server.close()

    play(scenario())


def test_nonsense_of_any_script_reaches_the_window_which_says_so(
    qapp: QApplication, place: Path
) -> None:
    del qapp
    nonsense = ("causerie:" + "\N{GRINNING FACE}" * MAX_LINK_CHARACTERS)[: MAX_LINK_CHARACTERS + 1]

    async def scenario() -> None:
        server, heard = InstanceServer(place), list[str]()
        server.called.connect(heard.append)
        assert await second_start(place, nonsense)
        await until(heard, 1)
        assert heard == [nonsense]
        server.close()

    play(scenario())


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"nonsense\n",
        b"[" * 2_000 + b"\n",
        b"\xff\xfe\n",
        json.dumps({"version": VERSION, "link": 7}).encode() + b"\n",
        json.dumps({"version": VERSION, "link": "x" * (MAX_LINK_CHARACTERS + 2)}).encode() + b"\n",
        json.dumps([LINK]).encode() + b"\n",
    ],
)
def test_a_line_that_is_not_ours_brings_the_window_and_no_link(
    qapp: QApplication, place: Path, line: bytes
) -> None:
    del qapp

    async def scenario() -> None:
        server, heard = InstanceServer(place), list[str]()
        server.called.connect(heard.append)
        socket = QLocalSocket()
        socket.connectToServer(server_name(place) or "")
        socket.write(line)
        await until(heard, 1)
        assert heard == [""]
        socket.abort()
        server.close()

    play(scenario())


def test_the_end_of_a_server_does_not_end_its_callers(qapp: QApplication, place: Path) -> None:
    """A caller's signals hold the server, so it may end while the caller does: each ends once."""
    del qapp

    async def scenario() -> None:
        owned: list[str] = []
        server = InstanceServer(
            place, figures=lambda _answer: owned.append(f"{len(server.findChildren(QLocalSocket))}")
        )
        socket = QLocalSocket()
        socket.connectToServer(server_name(place) or "")
        socket.write(json.dumps({"version": VERSION, "ask": "figures"}).encode() + b"\n")
        await until(owned, 1)
        assert owned == ["0"]
        socket.abort()
        server.close()

    play(scenario())


@pytest.mark.parametrize(
    "said",
    [
        {"version": VERSION + 1, "link": LINK},
        {"version": VERSION + 1, "link": LINK, "open": ["a", {"b": None}]},
        {"version": "2.0", "link": LINK},
        {"link": LINK},
    ],
)
def test_the_link_of_another_version_is_opened_and_what_else_it_wanted_is_told(
    qapp: QApplication, place: Path, said: dict[str, object]
) -> None:
    del qapp

    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            server, heard = InstanceServer(place), list[str]()
            server.called.connect(heard.append)
            server.other_version.connect(it.window.tell_other_version)
            socket = QLocalSocket()
            socket.connectToServer(server_name(place) or "")
            socket.write(json.dumps(said).encode() + b"\n")
            await until(heard, 1)
            assert heard == [LINK]
            (notice,) = it.window.notices.notices()
            assert "Another version of Causerie was started" in notice.text
            heard.clear()
            known = {"version": VERSION, "link": LINK, "open": ["a"]}
            it.window.notices.clear(notice.key)
            socket = QLocalSocket()
            socket.connectToServer(server_name(place) or "")
            socket.write(json.dumps(known).encode() + b"\n")
            await until(heard, 1)
            assert heard == [LINK]
            assert not it.window.notices.notices(), "a field that is not known does no harm"
            server.close()

    play(scenario())


def test_too_much_too_many_and_silence_cost_the_callers_only(
    qapp: QApplication, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del qapp
    monkeypatch.setattr(one_instance, "CALLER_MS", 300)

    async def scenario() -> None:
        server, heard = InstanceServer(place), list[str]()
        server.called.connect(heard.append)
        ended = list[str]()
        flood = [QLocalSocket() for _ in range(20)]
        for socket in flood:
            socket.disconnected.connect(lambda: ended.append("one"))
            socket.connectToServer(server_name(place) or "")
        flood[0].write(b"x" * (MAX_LINE_BYTES + 1))
        await until(ended, len(flood))
        assert await second_start(place, LINK)
        await until(heard, 1)
        assert heard == [LINK]
        server.close()

    play(scenario())


def test_a_window_that_died_leaves_nothing_in_the_way(qapp: QApplication, place: Path) -> None:
    del qapp
    name = server_name(place)
    assert name is not None
    Path(name).write_bytes(b"")

    async def scenario() -> None:
        server = InstanceServer(place)
        assert await second_start(place, LINK)
        server.close()

    play(scenario())


def test_a_busy_window_hears_a_link_once_although_its_answer_comes_too_late(
    qapp: QApplication, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del qapp

    async def scenario() -> None:
        server, heard = InstanceServer(place), list[str]()
        server.called.connect(heard.append)
        # The loop does not turn meanwhile: the window is busy.
        with monkeypatch.context() as hurried:
            hurried.setattr(one_instance, "ANSWER_MS", 50)
            assert hand_over(place, LINK) is HandOver.UNANSWERED
        assert heard == []
        await until(heard, 1)
        assert await second_start(place, "")
        await until(heard, 2)
        assert heard == [LINK, ""]
        server.close()

    play(scenario())


def test_a_start_that_a_busy_window_was_told_of_says_so_and_tells_it_no_second_time(
    qapp: QApplication, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del qapp
    paths = profile_paths(directory=place)
    asked = list[str]()

    def ask(error: ChatError, _paths: ProfilePaths) -> StartAction:
        asked.append(error_words(error))
        return StartAction.TRY_AGAIN if len(asked) == 1 else StartAction.QUIT

    monkeypatch.setattr(starting, "require_display", lambda: None)
    monkeypatch.setattr(starting, "can_be_seen", lambda: True)
    monkeypatch.setattr(starting, "ask_about", ask)
    monkeypatch.setattr(one_instance, "ANSWER_MS", 50)

    async def scenario() -> None:
        server, heard = InstanceServer(place), list[str]()
        server.called.connect(heard.append)
        with (
            ProfileLock(open_profile_directory(place)),
            pytest.raises(HandedOverError, match="does not answer now"),
        ):
            starting.open_window(paths, WindowOptions(link=LINK))
        await until(heard, 2)
        assert heard == [LINK, ""]
        assert ["was told of this start" in said for said in asked] == [True, True]
        server.close()

    play(scenario())


def test_nobody_there_is_said_and_no_place_of_others_is_used(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place.parent))
    place.parent.chmod(0o755)
    assert hand_over(place, LINK) is HandOver.NOT_TOLD
    place.chmod(0o755)
    assert server_name(place) is None
    long = place / ("d" * 120)
    long.mkdir(mode=0o700)
    assert server_name(long) is None
    place.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    found = server_name(long)
    assert found is not None
    assert Path(found).parent == place
    assert os.fspath(long) not in found


class Users:
    """What Windows would say."""

    def __init__(self, *, server: int | None = 7, theirs: bytes | None = b"me") -> None:
        self._server = server
        self._theirs = theirs

    def server_of(self, pipe: int) -> int | None:
        assert pipe == 3
        return self._server

    def user_of(self, process_id: int) -> bytes | None:
        assert process_id == self._server
        return self._theirs

    def own_user(self) -> bytes | None:
        return b"me"


def test_a_pipe_is_ours_only_if_windows_says_so() -> None:
    assert is_own_pipe(3, Users())
    assert not is_own_pipe(3, Users(theirs=b"somebody else"))
    assert not is_own_pipe(3, Users(theirs=None))
    assert not is_own_pipe(3, Users(server=None))


def test_nothing_is_said_to_a_pipe_of_somebody_else(place: Path) -> None:
    async def scenario() -> None:
        server, heard = InstanceServer(place), list[str]()
        server.called.connect(heard.append)
        asked = list[int]()

        def refuse(handle: int) -> bool:
            asked.append(handle)
            return False

        taken = await asyncio.to_thread(hand_over, place, LINK, is_ours=refuse)
        assert taken is HandOver.NOT_TOLD
        assert len(asked) == 1
        assert await second_start(place, "")
        await until(heard, 1)
        assert heard == [""], "only the one that may speak was heard"
        server.close()

    play(scenario())
