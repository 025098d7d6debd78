"""Parts of the window that show much at once get frames of their own."""

import asyncio

from ui.own_frame import ms_to_own_frame, own_frame


def test_of_those_that_ask_together_each_waits_for_the_one_before() -> None:
    waits = [ms_to_own_frame() for _ in range(4)]
    assert waits == sorted(waits)
    assert len({wait // 10 for wait in waits}) == 4, "none of them falls into the frame of another"


def test_one_who_asks_after_very_many_waits_a_second_at_most() -> None:
    assert max(ms_to_own_frame() for _ in range(100)) <= 1_000


def test_one_waits_for_a_frame_of_its_own() -> None:
    async def scenario() -> None:
        order: list[int] = []

        async def show(number: int) -> None:
            await own_frame()
            order.append(number)

        await asyncio.gather(*(show(number) for number in range(3)))
        assert order == [0, 1, 2]

    asyncio.run(scenario())
