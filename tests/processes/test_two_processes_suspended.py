"""A process that is stopped takes nothing, although its sockets accept bytes: nothing is "sent"."""

from collections.abc import Callable

import pytest

from tests.processes.conftest import AppProcess, Line
from tests.processes.test_two_processes import together
from tests.processes.test_two_processes_one_to_one import friends

Together = Callable[[Callable[..., AppProcess]], tuple[AppProcess, AppProcess, str]]


def reached(text: str) -> Callable[[Line], bool]:
    return lambda line: line.get("text") == text and line.get("state") in {"sent", "held"}


@pytest.mark.parametrize("meet", [together, friends])
def test_sent_waits_until_a_stopped_peer_runs_again(
    start_app: Callable[..., AppProcess], meet: Together
) -> None:
    alice, bob, conversation = meet(start_app)
    alice.ask("saved", do="say", group=conversation, text="hello Bob")
    alice.wait(reached("hello Bob"))
    bob.suspend()
    texts = [f"while it is stopped {number}" for number in range(20)]
    for text in texts:
        alice.ask("saved", do="say", group=conversation, text=text)
    told = [line for line in alice.heard if line.get("text") in texts and line.get("own")]
    assert {line["state"] for line in told} == {"saved"}
    bob.resume()
    alice.wait(reached(texts[0]))
