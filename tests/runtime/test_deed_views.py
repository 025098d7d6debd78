"""What a window is told of a row that says what was done in a governed group."""

from msgspec.structs import replace

from engine.core.ids import ParticipantId
from engine.core.stored import StoredMessage
from engine.events import MessageKind
from engine.governance_views import DeedKind, DeedView
from engine.runtime.views import message_view
from engine.session.group.deeds import DEED, Deed, text_of
from tests.persistence.store_examples import ALICE, BOB, GROUP, ME, member, row

MEMBERS = {one.member.participant_id: one.member for one in (member(ALICE), member(BOB))}


def stored(deed: Deed) -> StoredMessage:
    record = replace(row(5, "m").message, kind=DEED, text=text_of(deed))
    return StoredMessage(record=record, delivery=None, holders=())


def test_a_deed_has_the_name_of_whom_it_is_about() -> None:
    view = message_view(stored(Deed(DeedKind.ADDED, BOB)), MEMBERS, ME)
    assert (view.kind, view.text, view.conversation_id) == (MessageKind.DEED, "", GROUP)
    assert view.deed == DeedView(
        kind=DeedKind.ADDED, about=BOB, about_name=MEMBERS[BOB].name, about_self=False
    )
    mine = message_view(stored(Deed(DeedKind.REMOVED, ME)), MEMBERS, ME)
    assert mine.deed is not None
    assert mine.deed.about_self
    stranger = message_view(stored(Deed(DeedKind.ADDED, ParticipantId("somebody else"))), {}, ME)
    assert stranger.deed is not None
    assert stranger.deed.about_name == "somebody"


def test_a_text_of_several_lines_comes_back_whole() -> None:
    view = message_view(stored(Deed(DeedKind.TOPIC_SET, None, "one\ntwo")), MEMBERS, ME)
    assert view.deed == DeedView(kind=DeedKind.TOPIC_SET, text="one\ntwo")


def test_a_message_that_an_admin_deleted_names_the_admin() -> None:
    said = StoredMessage(
        record=row(5, "m").message, delivery=None, holders=(), retracted=True, deleted_by=BOB
    )
    assert message_view(said, MEMBERS, ME).retracted_by == MEMBERS[BOB].name
