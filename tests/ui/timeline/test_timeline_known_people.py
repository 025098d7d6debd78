"""Members of a group whom one knows: their pictures, and the words about a new name."""

import pytest
from msgspec.structs import replace

from engine.core.contacts import ContactState
from engine.core.ids import ConversationId, ParticipantId
from engine.events import ContactView, ConversationView, MessageKind
from tests.ui.timeline.timeline_stage import (
    IDS,
    MemoryPages,
    conversation,
    message,
    run,
    settled,
    shown_view,
)
from ui.conversation_words import kind_words
from ui.people import faces_of

pytestmark = pytest.mark.usefixtures("qapp")
STRANGER = ParticipantId("f" * 32)


def known(
    who: ParticipantId, picture: bytes, state: ContactState = ContactState.ACCEPTED
) -> ConversationView:
    contact = ContactView(
        participant_id=who,
        name="as they say",
        local_name="",
        state=state,
        fingerprint="",
        safety_number="",
        picture=picture,
        last_seen_ms=None,
        is_online=False,
    )
    return replace(
        conversation(), conversation_id=ConversationId(f"with {who}"), members=(), contact=contact
    )


@pytest.mark.parametrize("state", list(ContactState))
def test_only_members_whom_one_talks_to_have_a_picture(state: ContactState) -> None:
    others = (
        conversation(),
        known(IDS["Maya"], b"maya", state),
        known(IDS["Jonas"], b""),
        known(STRANGER, b"not a member"),
    )
    wanted = {IDS["Maya"]: b"maya"} if state is ContactState.ACCEPTED else {}
    assert faces_of(conversation(), others) == wanted


def test_a_groups_timeline_shows_them_and_forgets_them_in_the_next_group() -> None:
    async def scenario() -> None:
        people = [known(IDS["Maya"], b"maya")]
        source = MemoryPages([message(10)])
        with shown_view(source, faces_of=lambda group: faces_of(group, people)) as view:
            view.open(conversation())
            await settled(view)
            assert view.scene.faces == {IDS["Maya"]: b"maya"}
            view.open(replace(conversation(), members=()))
            assert view.scene.faces == {}

    run(scenario)


@pytest.mark.parametrize(
    ("who", "text", "words"),
    [
        ("Maya", "Maya\nMargaret", "Maya is now called Margaret"),
        ("Ines", "Ines\nInessa", "You are now called Inessa"),
        ("Maya", "\nMargaret", "A member is now called Margaret"),
        ("Maya", "a\u202eb\nc\u202ed", "ab is now called cd"),
    ],
)
def test_a_new_name_is_said_with_the_old_one(who: str, text: str, words: str) -> None:
    assert kind_words(message(10, who, text, kind=MessageKind.RENAMED)) == words
