"""The turns of those who name missing messages, by themselves."""

from engine.core.ids import MessageId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.request_turns import RequestTurns
from tests.core.sds.sds_bench import BOB, NOW, after

CONFIG = SdsConfig.for_small_group()


def in_vain(number: int) -> tuple[RequestTurns, dict[MessageId, UnixMs]]:
    """Bob named twice as many messages, and this many were requested at once, in vain."""
    wanted = {MessageId(f"{each:03}"): NOW for each in range(2 * number)}
    turns = RequestTurns(CONFIG, wanted.get)
    for message_id, at_ms in wanted.items():
        turns.schedule(message_id, (BOB,), at_ms)
    for message_id in turns.take(number, NOW):
        del wanted[message_id]
    assert turns.asked_in_vain(BOB) == number
    return turns, wanted


def test_up_to_the_limit_the_next_turn_is_at_once() -> None:
    turns, _ = in_vain(CONFIG.requests_in_vain)
    assert turns.next_ms() == NOW


def test_beyond_it_waits_double_for_each_four_more() -> None:
    for beyond, doubled in ((1, 0), (3, 0), (4, 1), (7, 1), (8, 2), (12, 3)):
        turns, _ = in_vain(CONFIG.requests_in_vain + beyond)
        assert turns.next_ms() == after(CONFIG.repair_t_max_ms << doubled)
    turns, _ = in_vain(CONFIG.requests_in_vain + 100)
    assert turns.next_ms() == after(CONFIG.namer_backoff_max_ms)


def test_what_is_found_makes_up_for_sixteen_and_ends_the_wait() -> None:
    turns, _ = in_vain(CONFIG.requests_in_vain + 20)
    turns.found((BOB,))
    assert turns.asked_in_vain(BOB) == CONFIG.requests_in_vain + 4
    assert turns.next_ms() == after(CONFIG.repair_t_max_ms << 5)
    turns.found((BOB,))
    assert turns.next_ms() == NOW


def test_a_namer_of_whom_nothing_is_left_is_forgotten() -> None:
    turns, wanted = in_vain(1)
    wanted.clear()
    assert turns.next_ms() is None
    turns.found((BOB,))
    assert turns.asked_in_vain(BOB) == 0


def test_a_namer_who_comes_back_has_no_turn_left_from_before() -> None:
    wanted = {MessageId("x"): after(10), MessageId("y"): NOW}
    turns = RequestTurns(CONFIG, wanted.get)
    turns.schedule(MessageId("x"), (BOB,), after(10))
    wanted[MessageId("x")] = NOW  # Its turn moves forward, and the later one is outdated.
    turns.schedule(MessageId("x"), (BOB,), NOW)
    assert turns.take(1, NOW) == ["x"]
    wanted.clear()
    turns.found((BOB,))
    turns.schedule(MessageId("gone"), (BOB,), NOW)
    assert turns.next_ms() is None


def test_the_users_wish_gives_everybody_a_turn() -> None:
    turns, _ = in_vain(CONFIG.requests_in_vain + 20)
    turns.begin_anew()
    assert turns.next_ms() == NOW
    assert turns.asked_in_vain(BOB) == 0
