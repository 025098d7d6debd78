"""Two real processes record what they send each other over a bad network, one of them killed."""

from collections import Counter
from collections.abc import Callable

from engine.delivery.contract import DELIVERY_EVENT, LOG_SNAPSHOT, MESSAGE, Table
from engine.delivery.pseudonym import key_text
from engine.delivery.sqlite_log import LogReader, find_logs
from tests.processes.conftest import AppProcess, Line

KEY = key_text(bytes(range(32)))
FAULTS = "loss=0.3,delay=5..50ms,dup=0.1,reorder=0.2,seed=4"
COUNT = 15


def _rows(app: AppProcess, table: Table) -> list[dict[str, object]]:
    (path,) = find_logs(app.directory / "delivery")
    with LogReader(path) as log:
        found = list(log.checked(table))
    assert [problem for _, problem in found if problem] == []
    return [dict(zip(table.names, row, strict=True)) for row, _ in found]


def _ids(app: AppProcess, kind: str) -> list[object]:
    return [row["message_id"] for row in _rows(app, DELIVERY_EVENT) if row["kind"] == kind]


def _shown(text: str) -> Callable[[Line], bool]:
    return lambda line: line.get("text") == text and line.get("own") is False


def test_their_logs_tell_one_conversation_and_what_went_wrong_on_the_way(
    start_app: Callable[..., AppProcess],
) -> None:
    alice = start_app("alice", FAULTS, delivery_key=KEY)
    bob = start_app("bob", FAULTS, delivery_key=KEY)
    created = alice.ask("created", do="create", name="Tide")
    group = created["group"]
    bob.ask("joined", do="join", link=created["link"])
    alice.wait(lambda line: line.get("kind") == "joined")
    for number in range(COUNT):
        for speaker, hearer in ((alice, bob), (bob, alice)):
            text = f"{speaker.name} {number}"
            speaker.ask("saved", do="say", group=group, text=text)
            hearer.wait(_shown(text))
    before = _rows(bob, DELIVERY_EVENT)
    assert before, "it is read while it is written"
    bob.kill()
    killed = _rows(bob, DELIVERY_EVENT)
    assert killed[: len(before)] == before
    bob.start()
    bob.ask("saved", do="say", group=group, text="back")
    alice.wait(_shown("back"))
    for app in (alice, bob):
        assert app.stop() == 0

    order = [row["message_id"] for row in _rows(alice, LOG_SNAPSHOT)]
    assert order == [row["message_id"] for row in _rows(bob, LOG_SNAPSHOT)]
    assert len(order) >= 2 * COUNT + 1
    for app in (alice, bob):
        seqs = [row["seq"] for row in _rows(app, DELIVERY_EVENT)]
        assert seqs == list(range(1, len(seqs) + 1))
        assert {row["message_id"] for row in _rows(app, MESSAGE)} == set(order)
        assert max(Counter(_ids(app, "delivered")).values()) == 1
    kinds = {str(row["kind"]) for app in (alice, bob) for row in _rows(app, DELIVERY_EVENT)}
    assert {"sent", "published", "received", "delivered", "acked", "sync_sent"} <= kinds
    assert {"missing", "repair_sent", "duplicate", "retransmitted"} & kinds
    assert _ids(bob, "started") == [None, None]
