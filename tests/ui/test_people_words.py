"""What is said about people, in every state that two can be in."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from engine.core.contacts import CONTACT_PREFIX, ContactState
from engine.core.ids import DeliveryState, UnixMs
from engine.core.problems import FailureReason
from engine.events import ConversationView, DeliveryView, GapPlace, MessageKind
from tests.ui.scripted_engine import START_MS, ScriptedEngine, member
from tests.ui.scripted_people import PERSON_FINGERPRINT, SAFETY_NUMBER, pair_id
from ui.conversation_words import is_group, kind_words
from ui.desktop.notification_words import message_line
from ui.glyphs import Glyph, count_of, delivery_words, glyph_of
from ui.list.model import ConversationModel
from ui.list.preview import Tone, preview_of, row_sentence
from ui.people import (
    JOIN_PREFIX,
    Answer,
    adding_words,
    cannot_write_words,
    digit_groups,
    groups_with,
    known_words,
    misplaced_link_words,
    only_opens,
    person_line,
    picture_of,
    seen_words,
    standing_of,
)
from ui.timeline.row_words import gap_cause, gap_details

pytestmark = pytest.mark.usefixtures("qapp")
NOW = datetime.fromtimestamp(START_MS / 1000, tz=UTC)


def person(state: ContactState, name: str = "Bob") -> ConversationView:
    engine = ScriptedEngine()
    return engine.views[engine.add_person(name, state)]


@pytest.mark.parametrize("state", list(ContactState))
def test_every_state_says_why_one_cannot_write_or_lets_one(state: ContactState) -> None:
    view = person(state)
    standing = standing_of(view)
    if state is ContactState.ACCEPTED:
        assert standing is None
        assert cannot_write_words(view) == ""
        return
    assert standing is not None
    assert "Bob" in standing.title
    assert "Bob" in cannot_write_words(view)
    shows_proof = state is not ContactState.BLOCKED
    assert standing.fingerprint == (PERSON_FINGERPRINT if shows_proof else "")


def test_a_group_is_shared_as_long_as_both_are_in_it() -> None:
    engine = ScriptedEngine()
    group = engine.views[engine.add_group("Tide Gauge", ("Maya",))]
    us, maya = group.members
    assert groups_with(maya.participant_id, [group]) == (group,)
    they_left = replace(group, members=(us, replace(maya, has_left=True)))
    we_left = replace(group, members=(replace(us, has_left=True), maya))
    assert groups_with(maya.participant_id, [they_left, we_left]) == ()


@pytest.mark.parametrize("state", list(ContactState))
def test_a_strangers_picture_is_neither_shown_nor_decoded(state: ContactState) -> None:
    view = person(state)
    assert view.contact is not None
    view = replace(view, contact=replace(view.contact, picture=b"a picture"))
    assert picture_of(view) == (b"a picture" if state is ContactState.ACCEPTED else b"")


def test_answers_fit_the_state_and_the_wanted_one_comes_last() -> None:
    answers = {s: standing.answers for s in ContactState if (standing := standing_of(person(s)))}
    assert answers == {
        ContactState.ASKING: (Answer.BLOCK, Answer.DECLINE, Answer.ACCEPT),
        ContactState.ASKED: (Answer.WITHDRAW,),
        ContactState.DECLINED: (Answer.ASK_AGAIN,),
        ContactState.BLOCKED: (Answer.UNBLOCK,),
    }


def test_who_declined_is_said() -> None:
    engine = ScriptedEngine()
    pair = engine.add_person("Bob", ContactState.DECLINED)
    for own, title, line in ((False, "Bob declined", "Declined"), (True, "You declined Bob", "")):
        engine.narrate(pair, MessageKind.DECLINED, own=own)
        standing = standing_of(engine.views[pair])
        assert standing is not None
        assert standing.title == title
        assert preview_of(engine.views[pair]).prefix == line or line == ""


def test_who_withdrew_is_said() -> None:
    engine = ScriptedEngine()
    pair = engine.add_person("Bob", ContactState.DECLINED)
    for own, title, row in (
        (True, "You withdrew your request to Bob", "You withdrew the request"),
        (False, "Bob asks no longer", "Bob withdrew the request"),
    ):
        engine.narrate(pair, MessageKind.WITHDRAWN, own=own)
        view = engine.views[pair]
        standing = standing_of(view)
        assert standing is not None
        assert (standing.title, standing.answers) == (title, (Answer.ASK_AGAIN,))
        assert view.last_message is not None
        assert kind_words(view.last_message) == row


def test_a_group_has_no_standing() -> None:
    engine = ScriptedEngine()
    view = engine.views[engine.add_group("Tide")]
    assert standing_of(view) is None
    assert cannot_write_words(view) == ""
    assert is_group(view)
    assert not is_group(person(ContactState.ACCEPTED))


def test_last_seen_is_said_only_of_who_is_not_there() -> None:
    contact = person(ContactState.ACCEPTED).contact
    assert contact is not None
    assert seen_words(contact, NOW) == "Not seen yet"
    earlier = replace(contact, last_seen_ms=UnixMs(START_MS - 26 * 3_600_000))
    assert seen_words(earlier, NOW).startswith("Last seen ")
    assert seen_words(replace(earlier, is_online=True), NOW) == "Online"


def test_a_renamed_person_keeps_their_own_name_in_sight() -> None:
    view = person(ContactState.ACCEPTED)
    assert view.contact is not None
    contact = replace(view.contact, local_name="Robert", is_online=True)
    renamed = replace(view, name="Robert", contact=contact)
    assert person_line(renamed, contact, NOW) == "Online · calls themselves Bob"


def test_a_row_reads_online_requests_and_standing() -> None:
    engine = ScriptedEngine()
    luc = engine.views[engine.add_person("Luc", online=True)]
    assert row_sentence(luc, NOW).startswith("Luc, online, ")
    bob = engine.views[engine.add_person("Bob", ContactState.ASKING)]
    assert row_sentence(bob, NOW).startswith("Bob, new request, Wants to talk to you")
    assert preview_of(bob).prefix_tone is Tone.TYPING
    asked = replace(engine.contact(luc.conversation_id), state=ContactState.BLOCKED)
    blocked = replace(luc, contact=asked)
    assert "online" not in row_sentence(blocked, NOW)
    assert preview_of(blocked).prefix == "Blocked"


def test_a_person_is_found_by_both_names() -> None:
    engine = ScriptedEngine()
    view = engine.views[engine.add_person("Bob")]
    assert view.contact is not None
    renamed = replace(view, name="Uncle", contact=replace(view.contact, local_name="Uncle"))
    model = ConversationModel(lambda: NOW)
    model.reset([renamed, engine.views[engine.add_group("Tide")]])
    for text, rows in (("unc", 1), ("BOB", 1), ("tide", 1), ("bobt", 0), ("", 2)):
        model.set_filter(text)
        assert model.rowCount() == rows, text


def test_of_two_a_message_is_delivered_or_not_and_nothing_is_counted() -> None:
    bob = member("Bob").participant_id
    held = DeliveryView(state=DeliveryState.HELD, held_by=(bob,), of=1)
    sent = DeliveryView(state=DeliveryState.SENT, of=1)
    saved = DeliveryView(state=DeliveryState.SAVED, of=1)
    failed = DeliveryView(state=DeliveryState.FAILED, of=1, failure=FailureReason.NOT_REACHED)

    def said(delivery: DeliveryView) -> str:
        return delivery_words(delivery, (bob,), lambda _who: "Bob", pair=True)

    assert (glyph_of(held), count_of(held), said(held)) == (Glyph.HELD, "", "Delivered.")
    assert said(sent) == "Sent. Their device has not said yet that it has it."
    assert said(saved) == "Saved on this device, waiting for the network."
    assert said(failed) == "Not delivered: They could not be reached for 30 days."


def test_a_failure_in_a_pair_is_not_delivered_in_the_list() -> None:
    preview = preview_of(replace(person(ContactState.ACCEPTED), failed=1))
    assert preview.prefix == "Not delivered: "


def test_links_of_the_other_kind_are_sent_to_where_they_belong() -> None:
    assert "Join with an invitation" in misplaced_link_words(
        f"{JOIN_PREFIX}x", wanted=CONTACT_PREFIX
    )
    assert "Add a person" in misplaced_link_words(f"{CONTACT_PREFIX}x", wanted=JOIN_PREFIX)
    assert misplaced_link_words(f"{CONTACT_PREFIX}x", wanted=CONTACT_PREFIX) == ""
    assert misplaced_link_words("hello", wanted=JOIN_PREFIX) == ""


@pytest.mark.parametrize(
    ("known", "button", "opens"),
    [
        (None, "Ask Bob", False),
        (ContactState.ASKED, "Open Bob", True),
        (ContactState.ASKING, "Accept Bob", False),
        (ContactState.ACCEPTED, "Open Bob", True),
        (ContactState.DECLINED, "Ask Bob", False),
        (ContactState.BLOCKED, "Open Bob", True),
    ],
)
def test_adding_says_what_it_will_do(known: ContactState | None, button: str, opens: bool) -> None:
    preview = replace(ScriptedEngine().preview_contact(f"{CONTACT_PREFIX}Bob"), known=known)
    assert adding_words(preview) == button
    assert only_opens(preview) is opens
    assert known_words(preview).endswith(".")


def test_a_safety_number_is_twelve_groups_however_it_is_written() -> None:
    groups = digit_groups(SAFETY_NUMBER)
    assert len(groups) == 12
    assert digit_groups("".join(groups)) == groups
    assert digit_groups("\n".join(groups) + "99999") == groups
    assert digit_groups("") == ()


def test_rows_say_who_asked_accepted_and_declined() -> None:
    engine = ScriptedEngine()
    pair = engine.add_person("Bob")
    said = []
    for kind in (MessageKind.ASKED, MessageKind.ACCEPTED, MessageKind.DECLINED):
        for own in (True, False):
            engine.narrate(pair, kind, own=own)
            last = engine.views[pair].last_message
            assert last is not None
            said.append(kind_words(last))
    assert said == [
        "You asked to talk",
        "Bob asked to talk",
        "You accepted",
        "Bob accepted",
        "You declined",
        "Bob declined",
    ]


def test_a_gap_between_two_is_filled_by_who_wrote_it() -> None:
    gap = GapPlace(missing=1, waiting=2, since_ms=UnixMs(START_MS))
    details = gap_details(gap, START_MS, pair=True)
    assert details == "It comes again by itself · 2 messages wait behind"
    more = gap_details(replace(gap, missing=2), START_MS, pair=True)
    assert more.startswith("They come again by themselves")
    assert "Who wrote it sends it again and again until it arrives" in gap_cause(gap, pair=True)
    assert "members of the group" in gap_cause(gap)


def test_a_notification_of_a_person_does_not_say_the_name_twice() -> None:
    engine = ScriptedEngine()
    view = engine.views[engine.add_person("Bob")]
    row = engine.row(pair_id("Bob"), member("Bob"), "low water")
    assert message_line(view, row, show_text=True) == "low water"
    assert message_line(view, row, show_text=False) == "New message"
