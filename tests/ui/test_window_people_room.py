"""The bar of a contact finds room: large letters, narrow windows, every standing and appearance.

Measured in the real layout: no button is cut off and none is out of sight.  What the buttons do
is said in test_window_people_requests.
"""

import pytest

from engine.core.contacts import ContactState
from tests.ui.driving import play, stage, turn, until
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.scripted_people import picture_bytes
from ui.people import Answer


def test_large_letters_in_a_narrow_window_leave_every_answer_in_sight() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", ContactState.ASKING)
        async with stage(
            engine, opening=bob, stored={"text_percent": "200"}, size=(420, 720)
        ) as it:
            pane = it.window.pane
            await until(lambda: pane.contact_bar.is_column)
            await turn()
            assert not pane.composer.isVisible(), "it could only repeat what the bar says"
            for answer in (Answer.BLOCK, Answer.DECLINE, Answer.ACCEPT):
                button = pane.contact_bar.buttons[answer]
                assert button.width() >= button.sizeHint().width()
                corner = button.mapTo(pane, button.rect().bottomRight())
                assert pane.rect().contains(corner)
            engine.set_state(bob, ContactState.ACCEPTED)
            assert pane.composer.isVisible()

    play(scenario)


def test_a_bar_that_became_narrow_is_as_high_as_one_that_was_opened_so() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc, bob = engine.add_person("Luc"), engine.add_person("Bob", ContactState.ASKING)
        async with stage(engine, opening=bob, size=(420, 720)) as it:
            await turn()
            opened_narrow = it.window.pane.contact_bar.height()
            it.window.open_conversation(luc)
            it.window.resize(1280, 820)
            await turn()
            it.window.open_conversation(bob)
            await turn()
            it.window.resize(420, 720)
            await until(lambda: it.window.pane.contact_bar.height() == opened_narrow)

    play(scenario)


@pytest.mark.parametrize("appearance", ["light", "dark", "high_contrast"])
@pytest.mark.parametrize("size", [(1280, 820), (860, 700), (380, 640)])
def test_every_standing_fits_its_window_in_every_appearance(
    appearance: str, size: tuple[int, int]
) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        people = [
            engine.add_person(
                f"Somebody with a long name {n}", state, online=True, picture=picture_bytes()
            )
            for n, state in enumerate(ContactState)
        ]
        async with stage(engine, stored={"appearance": appearance}, size=size) as it:
            for person in people:
                it.window.open_conversation(person)
                await turn()
                it.window.grab()
                bar = it.window.pane.contact_bar
                for button in bar.buttons.values():
                    if button.isVisible():
                        corner = button.mapTo(bar, button.rect().bottomRight())
                        assert bar.rect().contains(corner)
                assert it.window.width() == size[0]

    play(scenario)
