"""Mentions: completed by name, and what list and notifications say of them and of reactions."""

import pytest
from msgspec.structs import replace
from PySide6.QtGui import QTextCursor

from engine.api import Mention
from engine.core.ids import ConversationId, DeliveryState, MessageId, ParticipantId, UnixMs
from engine.events import (
    AnnotationKind,
    AnnotationView,
    ConversationChanged,
    MessageAdded,
    MessageView,
    ReactionReceived,
)
from engine.file_views import FileView
from engine.text_spans import SpanKind, TextSpan
from tests.ui.driving import NOW, Key, Stage, group_stage, play, stage, until
from tests.ui.heard_notifications import listen_to
from tests.ui.on_messages import (
    last_row,
    own_held,
)
from tests.ui.scripted_engine import ScriptedEngine, member
from ui.conversation_words import annotation_words
from ui.list.preview import preview_of, row_sentence
from ui.times import spoken_time

pytestmark = pytest.mark.usefixtures("qapp")


def complete_maya(it: Stage) -> None:
    it.window.pane.composer.box.setFocus()
    it.write("@may")
    it.press(Key.Key_Tab)


@pytest.mark.parametrize("letters", ["@may", "@Maya"])
def test_at_mentions_a_member_by_id(letters: str) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            box = it.window.pane.composer.box
            box.setFocus()
            it.write("hey ")
            it.write(letters)
            assert [c.words for c in it.window.pane.composer.completions.candidates] == ["Maya"]
            it.press(Key.Key_Tab)
            assert it.window.pane.composer.text() == "hey @Maya "
            await it.send("come")
            maya = member("Maya").participant_id
            assert engine.called("mentions") == [(Mention(participant_id=maya, start=4, length=5),)]
            row = last_row(engine, group)
            assert row.spans[0].target == maya

    play(scenario)


def test_the_space_that_is_typed_behind_a_chosen_name_is_the_one_that_is_there() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            composer = it.window.pane.composer
            complete_maya(it)
            it.write(" come")
            assert composer.text() == "@Maya come"
            it.write("  ")
            assert composer.text() == "@Maya come  ", "spaces that one wants stay"
            composer.set_text("")
            complete_maya(it)
            it.press(Key.Key_Backspace)
            it.write(" come")
            assert composer.text() == "@Maya come", "the one that was there is gone"

    play(scenario)


def test_an_emoji_is_offered_behind_a_name_although_names_may_have_several_words() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            composer = it.window.pane.composer
            complete_maya(it)
            it.write("come :anch")
            assert composer.completions.candidates[0].words == ":anchor:"
            it.press(Key.Key_Tab)
            assert composer.text().startswith("@Maya come ⚓")

    play(scenario)


def test_two_of_one_name_are_told_apart_by_their_fingerprints() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            maya = replace(member("Maya"), fingerprint="01234 56789 01234 56789 01234 56789")
            other = replace(
                maya,
                participant_id=ParticipantId("maya-too"),
                name="M\u0430ya",  # with a Cyrillic letter
                fingerprint="98765 43210 98765 43210 98765 43210",
            )
            engine.change(group, members=(member("Ines", is_self=True), maya, other, member("Ari")))
            composer = it.window.pane.composer
            composer.box.setFocus()
            it.write("@")
            offered = [(c.words, c.detail) for c in composer.completions.candidates]
            assert offered == [
                ("Maya", "01234 56789"),
                ("M\u0430ya", "98765 43210"),
                ("Ari", ""),
            ]
            it.press(Key.Key_Down)
            it.press(Key.Key_Tab)
            await it.send("come")
            meant = Mention(participant_id=other.participant_id, start=0, length=5)
            assert engine.called("mentions") == [(meant,)]

    play(scenario)


def two_mayas(engine: ScriptedEngine, group: ConversationId) -> tuple[ParticipantId, ParticipantId]:
    maya = replace(member("Maya"), fingerprint="01234 56789 01234 56789 01234 56789")
    other = replace(
        maya,
        participant_id=ParticipantId("maya-too"),
        fingerprint="98765 43210 98765 43210 98765 43210",
    )
    engine.change(group, members=(member("Ines", is_self=True), maya, other, member("Ari")))
    return maya.participant_id, other.participant_id


def mention_both(it: Stage) -> None:
    """The second one first."""
    it.window.pane.composer.box.setFocus()
    it.write("@may")
    it.press(Key.Key_Down)
    it.press(Key.Key_Tab)
    it.write("and @may")
    it.press(Key.Key_Tab)


def test_each_of_two_equal_names_means_who_was_chosen_there() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            elsewhere = engine.add_group("Walks", ("Ari",))
            maya, other = two_mayas(engine, group)
            composer, sent = it.window.pane.composer, "@Maya and @Maya "
            chosen = (
                Mention(participant_id=other, start=0, length=5),
                Mention(participant_id=maya, start=10, length=5),
            )
            mention_both(it)
            assert composer.text() == sent
            await it.send("come")
            mention_both(it)
            it.window.open_conversation(elsewhere)
            it.window.open_conversation(group)
            await it.send("come")
            mention_both(it)
            it.window.pane.writing.edit(own_held(engine, group, "high water"))
            it.press(Key.Key_Escape)
            assert composer.text() == sent
            await it.send("come")
            assert engine.called("mentions") == [chosen] * 3

    play(scenario)


def test_equal_names_keep_their_people_when_the_message_is_edited() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            maya, other = two_mayas(engine, group)
            row = own_held(engine, group, "@Maya and @Maya")
            spans = tuple(
                TextSpan(kind=SpanKind.MENTION, start=start, length=5, target=who)
                for start, who in ((0, other), (10, maya))
            )
            it.window.pane.writing.edit(replace(row, spans=spans))
            composer = it.window.pane.composer
            composer.box.moveCursor(QTextCursor.MoveOperation.Start)
            it.write("hey ")
            composer.submit()
            await until(lambda: bool(engine.called("edit")))
            meant = (
                Mention(participant_id=other, start=4, length=5),
                Mention(participant_id=maya, start=14, length=5),
            )
            assert engine.called("edit") == [(row.message_id, "hey @Maya and @Maya", meant)]

    play(scenario)


def test_who_is_mentioned_in_a_draft_is_known_when_one_comes_back_to_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            elsewhere = engine.add_group("Walks", ("Ari",))
            complete_maya(it)
            it.window.open_conversation(elsewhere)
            it.window.open_conversation(group)
            assert it.window.pane.composer.text() == "@Maya "
            await it.send("come")
            maya = member("Maya").participant_id
            assert engine.called("mentions") == [(Mention(participant_id=maya, start=0, length=5),)]

    play(scenario)


def test_who_is_mentioned_in_a_draft_is_known_after_a_restart() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, opening=group) as it:
            complete_maya(it)
            it.write("and @Ari by word ")
        async with stage(engine, opening=group) as it:
            assert it.window.pane.composer.text() == "@Maya and @Ari by word "
            await it.send("come")
            maya = member("Maya").participant_id
            assert engine.called("mentions") == [(Mention(participant_id=maya, start=0, length=5),)]

    play(scenario)


def test_a_kept_mention_of_somebody_who_left_or_of_no_place_is_a_word() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        maya = member("Maya").participant_id
        kept = (
            Mention(participant_id=ParticipantId("gone"), start=0, length=5),
            Mention(participant_id=maya, start=60, length=5),
            Mention(participant_id=maya, start=6, length=50),
            Mention(participant_id=maya, start=1, length=4),
        )
        text = "@Jo_y and @Maya"
        engine.views[group] = replace(engine.views[group], draft=text, draft_mentions=kept)
        async with stage(engine, opening=group) as it:
            await it.send(" come")
            assert engine.called("mentions") == [()]

    play(scenario)


def test_a_name_that_was_only_typed_stays_a_word() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            box = it.window.pane.composer.box
            box.setFocus()
            it.write("hey @Maya")
            it.press(Key.Key_Escape)
            await it.send(" come")
            assert engine.called("mentions") == [()]

    play(scenario)


def test_a_name_within_a_longer_one_is_not_meant_there() -> None:
    """Of two members the one with the shorter name was chosen, the longer name was only typed."""

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            members = (member("Ines", is_self=True), member("Maya"), member("Mayana"))
            engine.change(group, members=members)
            composer = it.window.pane.composer
            complete_maya(it)
            it.write("and @Mayana")
            it.press(Key.Key_Escape)
            assert composer.text() == "@Maya and @Mayana"
            await it.send(" come")
            maya = member("Maya").participant_id
            assert engine.called("mentions") == [(Mention(participant_id=maya, start=0, length=5),)]
            it.write("@mayan")
            it.press(Key.Key_Tab)
            it.write("and @maya")
            it.press(Key.Key_Tab)
            await it.send("come")
            mayana = member("Mayana").participant_id
            assert engine.called("mentions")[1] == (
                Mention(participant_id=mayana, start=0, length=7),
                Mention(participant_id=maya, start=12, length=5),
            )

    play(scenario)


def annotation(row: MessageView) -> AnnotationView:
    """Maya's reaction to a message."""
    return AnnotationView(
        kind=AnnotationKind.REACTION,
        message_id=MessageId("reaction"),
        target_id=row.message_id,
        target_text=row.text,
        sender_id=member("Maya").participant_id,
        sender_name="Maya",
        is_own=False,
        sent_ms=row.sent_ms,
        emoji="🎉",
    )


def test_the_list_speaks_of_reactions_and_of_mentions() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine = own_held(engine, group, "Low water is 10:52")
            view = replace(
                engine.views[group],
                last_annotation=annotation(mine),
                mentions=2,
                unread=3,
            )
            engine.tell(ConversationChanged(conversation=view))
            assert preview_of(it.listed(group)).text == "Maya reacted 🎉 to: Low water is 10:52"
            said = row_sentence(it.listed(group), NOW)
            assert "3 unread, 2 messages mention you, Maya reacted 🎉" in said

    play(scenario)


def listed_ids(it: Stage) -> list[str]:
    shown = (it.window.model.at(row) for row in range(it.window.model.rowCount()))
    return [view.conversation_id for view in shown if view is not None]


@pytest.mark.parametrize("kind", AnnotationKind)
def test_time_and_place_in_the_list_are_those_of_what_its_words_tell(kind: AnnotationKind) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        here, there = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        old = own_held(engine, here, "Low water is 10:52")
        engine.receive(there, "Maya", "see you")
        said_ms = UnixMs(old.sent_ms + 3 * 86_400_000)
        later = replace(annotation(old), kind=kind, sent_ms=said_ms)
        async with stage(engine, opening=there) as it:
            assert listed_ids(it) == [there, here]
            view = replace(engine.views[here], last_annotation=later)
            engine.tell(ConversationChanged(conversation=view))
            await until(lambda: it.listed(here).last_annotation is not None)
            assert listed_ids(it) == [here, there]
            assert row_sentence(view, NOW).endswith(f", {spoken_time(said_ms, NOW)}")
            assert old.delivery is not None
            delivery = replace(old.delivery, state=DeliveryState.FAILED)
            failed = replace(view, failed=1, last_message=replace(old, delivery=delivery))
            assert preview_of(failed).text == "1 message", "the time is not that message's"
            failed = replace(failed, last_annotation=None)
            assert preview_of(failed).text == "Low water is 10:52"

    play(scenario)


@pytest.mark.parametrize(
    ("kind", "is_own", "words"),
    [
        (AnnotationKind.REACTION, True, "You reacted 🎉 to: hello"),
        (AnnotationKind.EDIT, False, "Maya edited: hello"),
        (AnnotationKind.RETRACTION, False, "Maya deleted a message"),
    ],
)
def test_what_was_said_about_a_message_in_words(
    kind: AnnotationKind, is_own: bool, words: str
) -> None:
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge")
    row = engine.row(group, member("Maya"), "hello")
    said = replace(annotation(row), kind=kind, is_own=is_own)
    assert annotation_words(said) == words
    unseen = replace(said, kind=AnnotationKind.REACTION, target_text="")
    assert annotation_words(unseen).endswith("reacted 🎉 to")
    photo = FileView(name="IMG_1.jpg", media_type="image/jpeg", size=9, width=4, height=3)
    bare = replace(unseen, target_text="IMG_1.jpg", target_file=photo)
    assert annotation_words(bare).endswith("reacted 🎉 to: Photo")
    assert annotation_words(replace(bare, target_text="dawn")).endswith("to: Photo: dawn")


def test_a_mention_is_told_although_muted_and_a_reaction_is_told_unless_muted() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine, opening=other) as it:
            heard = listen_to(it.window)
            row = engine.receive(group, "Maya", "hello")
            reaction = ReactionReceived(conversation_id=group, annotation=annotation(row))
            engine.tell(reaction)
            told = "Maya: hello\nMaya reacted 🎉 to: hello"
            await until(lambda: heard.on_screen[group].body == told)
            engine.change(group, muted=True)
            assert heard.on_screen == {}
            engine.tell(reaction)
            mention = replace(engine.row(group, member("Maya"), "@Ines come", 1), mentions_me=True)
            engine.tell(MessageAdded(message=mention, notify=True))
            engine.tell(MessageAdded(message=replace(mention, mentions_me=False), notify=True))
            await until(lambda: group in heard.on_screen)
            assert heard.on_screen[group].body == "Maya: @Ines come"
            assert heard.on_screen[group].title == "Tide Gauge"

    play(scenario)
