"""Who is tried when: bounded whatever the local network says, and fair to those who are there."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from engine.core.counters import Counters
from engine.network.discovery.announcement import Announced
from engine.network.discovery.neighbours import (
    DIAL_BURST,
    DIAL_EVERY_MS,
    KEPT_MS,
    MAX_NEIGHBOURS,
    MAX_WAITING,
    RETRY_CAP_MS,
    RETRY_FIRST_MS,
    YIELD_MS,
    Neighbours,
)
from engine.network.libp2p.ports import PeerId


def node(name: str, host: str = "10.0.0.1") -> Announced:
    return Announced(peer_id=PeerId(name), addresses=(f"/ip4/{host}/tcp/1/p2p/{name}",))


def table(own: str = "m") -> tuple[Neighbours, Counters]:
    counters = Counters()
    return Neighbours(PeerId(own), random=Random(7), counters=counters), counters


def names(due: list[Announced]) -> list[str]:
    return [each.peer_id for each in due]


def test_the_smaller_peer_id_dials_first_and_the_other_follows() -> None:
    neighbours, _ = table("m")
    neighbours.heard("one", node("z"), now_ms=0)
    neighbours.heard("two", node("a"), now_ms=0)
    assert names(neighbours.take_due(now_ms=0)) == ["z"]
    assert not neighbours.take_due(now_ms=YIELD_MS - 1)
    assert names(neighbours.take_due(now_ms=YIELD_MS)) == ["a"]


def test_we_are_no_neighbour_of_ours() -> None:
    neighbours, counters = table("m")
    neighbours.heard("one", node("m"), now_ms=0)
    assert neighbours.next_due_ms() is None
    assert not counters.snapshot()


def test_a_neighbour_is_tried_ever_more_rarely_and_for_ever() -> None:
    neighbours, _ = table()
    neighbours.heard("one", node("z"), now_ms=0)
    waits, now_ms = [], 0
    for _ in range(12):
        assert names(neighbours.take_due(now_ms=now_ms)) == ["z"]
        neighbours.heard("one", node("z"), now_ms=now_ms)
        due_ms = neighbours.next_due_ms()
        assert due_ms is not None
        waits.append(due_ms - now_ms)
        now_ms = due_ms
    assert RETRY_FIRST_MS * 0.75 <= waits[0] <= RETRY_FIRST_MS * 1.25
    assert all(RETRY_CAP_MS * 0.75 <= wait <= RETRY_CAP_MS * 1.25 for wait in waits[-4:])


def test_who_moves_is_tried_at_the_new_address_but_not_more_often() -> None:
    neighbours, _ = table()
    neighbours.heard("one", node("z"), now_ms=0)
    tried = 0
    for now_ms in range(0, 10_000, 10):
        neighbours.heard("one", node("z", f"10.0.{now_ms % 200}.{now_ms % 7}"), now_ms=now_ms)
        tried += len(neighbours.take_due(now_ms=now_ms))
    assert tried <= 1
    neighbours, _ = table()
    neighbours.heard("one", node("z"), now_ms=0)
    neighbours.take_due(now_ms=0)
    neighbours.heard("one", node("z", "10.0.0.2"), now_ms=1)
    due_ms = neighbours.next_due_ms()
    assert due_ms is not None
    (again,) = neighbours.take_due(now_ms=due_ms)
    assert "10.0.0.2" in again.addresses[0]


def test_who_says_goodbye_or_nothing_is_forgotten() -> None:
    neighbours, _ = table()
    neighbours.heard("one", node("z"), now_ms=0)
    neighbours.heard("two", node("y"), now_ms=0)
    neighbours.gone("one")
    neighbours.gone("unknown")
    assert names(neighbours.take_due(now_ms=0)) == ["y"]
    assert not neighbours.take_due(now_ms=KEPT_MS + 1)
    assert len(neighbours) == 0


def test_a_flood_of_names_is_bounded() -> None:
    """A thousand names a second for a minute."""
    neighbours, counters = table()
    dials = 0
    for number in range(60_000):
        neighbours.heard(f"fake-{number}", node(f"z{number}"), now_ms=number)
        if number % 10 == 0:
            dials += len(neighbours.take_due(now_ms=number))
        assert len(neighbours) <= MAX_NEIGHBOURS
    assert dials <= DIAL_BURST + 60_000 / DIAL_EVERY_MS
    assert counters.snapshot()["discovery.too_many_neighbours"] > 0


def test_who_is_heard_once_among_many_is_tried_in_the_end() -> None:
    neighbours, _ = table()
    for number in range(MAX_NEIGHBOURS + MAX_WAITING // 2):
        neighbours.heard(f"fake-{number}", node(f"z{number}"), now_ms=0)
    neighbours.heard("real", node("zz"), now_ms=0)
    tried: list[str] = []
    now_ms = 0
    while "zz" not in tried:
        assert now_ms < 120_000
        now_ms = neighbours.next_due_ms() or now_ms
        tried += names(neighbours.take_due(now_ms=now_ms))
    for number in range(MAX_NEIGHBOURS + MAX_WAITING // 2):
        neighbours.gone(f"fake-{number}")
    again: list[str] = []
    while not again:
        assert now_ms < 300_000
        now_ms = neighbours.next_due_ms() or now_ms + 1_000
        again += names(neighbours.take_due(now_ms=now_ms))
    assert again == ["zz"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["heard", "gone", "due"]), st.integers(0, 200), st.integers(0, 5_000)
        ),
        max_size=300,
    )
)
def test_bounds_hold_in_any_order(steps: list[tuple[str, int, int]]) -> None:
    neighbours, _ = table()
    now_ms = dials = 0
    for step, number, pause_ms in steps:
        now_ms += pause_ms
        if step == "heard":
            neighbours.heard(f"n{number}", node(f"p{number % 50}"), now_ms=now_ms)
        elif step == "gone":
            neighbours.gone(f"n{number}")
        else:
            dials += len(neighbours.take_due(now_ms=now_ms))
        assert len(neighbours) <= MAX_NEIGHBOURS
        assert dials <= DIAL_BURST + now_ms / DIAL_EVERY_MS + 1
