"""Open channels are full of strangers, who may send anything under any name.

What they do costs the channel at most its day: not another conversation, not our clock, and no more
disk or traffic than its bounds.
"""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.open_content import message_id_of_content
from engine.codec.sds import MAX_MESSAGE_BYTES, decode_message
from engine.core.content import Text
from engine.core.ids import DeliveryState, MessageId, ParticipantId, UnixMs
from engine.core.records import DeliveryRecord
from engine.core.sds.config import FloodLimits
from engine.core.sds.inputs import DeadlineReached, ShowSetAside
from engine.core.sds.shared_state import ANYBODY
from engine.runtime.views import message_view
from engine.session.inputs import Say
from engine.session.transitions import HeldAside
from tests.runtime.history.history_stage import Person
from tests.runtime.test_open_channels import from_stranger, join, meet, publish
from tests.session.open_stage import NOW, OpenStage, said, sync

DAY_MS = 86_400_000


def counted(stage: OpenStage, name: str) -> int:
    return stage.counters.snapshot().get(name, 0)


# --- who said it ----------------------------------------------------------------------------------


def test_a_stranger_under_our_name_is_shown_as_somebody_else_and_acknowledges_nothing() -> None:
    stage = OpenStage()
    stage.handle(Say(Text(text="mine")))
    name = stage.record.sender_id
    stage.hear(said("not mine", "mine", sender=name, lamport=NOW + 1))
    assert [(row.text, row.is_own) for row in stage.rows()] == [("mine", True), ("not mine", False)]
    page = stage.store.latest_page(stage.record.conversation_id, limit=10)
    assert page.messages[0].delivery == DeliveryRecord(state=DeliveryState.SAVED)
    assert page.messages[0].holders == ()


def test_any_number_of_names_that_hold_it_is_a_maybe_and_bounded() -> None:
    stage = OpenStage()
    stage.handle(Say(Text(text="mine")))
    for number in range(600):
        stage.hear(sync("mine", sender=f"name {number}"))
    page = stage.store.latest_page(stage.record.conversation_id, limit=10)
    view = message_view(page.messages[0], {}, ParticipantId("me"), stage.session.record)
    assert view.delivery is not None
    assert view.delivery.state is DeliveryState.POSSIBLY_HELD
    assert view.delivery.held_by == ()
    assert len(view.delivery.maybe_held_by) == 256


def test_a_name_made_to_mislead_is_shown_without_its_tricks() -> None:
    stage = OpenStage()
    stage.hear(said("hello", sender="\u202eEvil\u0000\n" + "x" * 90))
    (row,) = stage.rows()
    assert row.sender_id == "Evil " + "x" * 57


def test_a_content_under_the_id_of_another_is_refused() -> None:
    """Else the message that others wait for would find its place taken."""
    stage = OpenStage()
    forged = said("forged", message_id=message_id_of_content(b"the real one"))
    assert not stage.hear(forged)
    assert counted(stage, "open.id_mismatch") == 1
    stage.hear(said("the real one"))
    assert stage.texts() == ["the real one"]


# --- when it was said -----------------------------------------------------------------------------


@pytest.mark.parametrize("lamport", [NOW + DAY_MS, NOW * 1_000, 2**53, 2**63 - 1])
def test_a_jump_of_the_clock_moves_ours_nowhere_and_holds_nothing_up(lamport: int) -> None:
    stage = OpenStage()
    stage.hear(said("from the future", lamport=lamport))
    stage.hear(said("names it", "from the future", lamport=NOW))
    stage.handle(Say(Text(text="ours")))
    assert sorted(stage.texts()) == ["from the future", "names it", "ours"]
    ours = decode_message(stage.published[-1].message.payload)
    assert ours.lamport_timestamp == NOW + 1
    assert stage.session.held_aside() == HeldAside()
    stage.restart()
    stage.handle(Say(Text(text="after a restart")))
    assert decode_message(stage.published[-1].message.payload).lamport_timestamp == NOW + 2


def test_a_thousand_messages_from_the_future_leave_half_of_our_history() -> None:
    stage = OpenStage()
    for number in range(150):
        stage.hear(said(f"honest {number}", lamport=NOW - 1_000 + number))
    for number in range(1_000):
        stage.hear(said(f"future {number}", lamport=NOW + DAY_MS + number))
    stage.handle(Say(Text(text="ours")))
    ours = decode_message(stage.published[-1].message.payload)
    named = {entry.message_id for entry in ours.causal_history}
    honest = {message_id_of_content(f"honest {number}".encode()) for number in range(50, 150)}
    assert len(named) == 200
    assert honest <= named


# --- what it names --------------------------------------------------------------------------------


def test_what_never_existed_holds_up_its_names_only_within_bounds() -> None:
    """One name may want a thousand; any number of names may want ten thousand."""
    stage = OpenStage()
    for number in range(70):
        invented = [f"{number}/{each}" for each in range(200)]
        stage.hear(said(f"waits {number}", *invented, sender=f"n{number}", lamport=NOW + number))
    snapshot = stage.session.channel.snapshot()
    assert len(snapshot.missing) <= 10_000
    assert counted(stage, "sds.missing_overflow") > 0
    stage.hear(said("honest", lamport=NOW))
    assert stage.texts() == ["honest"]


def test_messages_that_wait_for_each_other_wait_a_minute() -> None:
    stage = OpenStage()
    texts = [f"{number}" for number in range(100)]
    for number, text in enumerate(texts):
        stage.hear(said(text, *texts, sender=f"n{number}", lamport=NOW + number))
    stage.now_ms = UnixMs(NOW + 60_000)
    stage.handle(DeadlineReached())
    assert sorted(stage.texts()) == sorted(texts)
    assert stage.session.gap() is None


def test_messages_of_another_channel_on_the_same_content_topic_are_not_taken() -> None:
    stage = OpenStage()
    assert not stage.hear(said("elsewhere", channel_id="another"))
    stage.fetch(said("elsewhere", channel_id="another"))
    assert stage.texts() == []
    assert counted(stage, "open.wrong_channel") == 2


# --- how much -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 8, 18_744, 18_752, 18_760, 100_000])
def test_a_filter_of_any_size_is_read_or_ignored(size: int) -> None:
    stage = OpenStage()
    stage.handle(Say(Text(text="mine")))
    stage.hear(said("with a filter", lamport=NOW + 5, bloom_filter=b"\xff" * size))
    assert stage.texts() == ["mine", "with a filter"]
    page = stage.store.latest_page(stage.record.conversation_id, limit=10)
    assert page.messages[0].holders == (), "a full filter says nothing"


def test_what_is_larger_than_any_message_is_refused_before_it_takes_a_place() -> None:
    stage = OpenStage()
    assert not stage.hear(said("x" * MAX_MESSAGE_BYTES))
    assert counted(stage, "open.sds_oversized") == 1


def test_the_same_copy_again_costs_a_look_up() -> None:
    stage = OpenStage()
    payload = said("once")
    assert stage.hear(payload, at_ns=NOW * 1_000_000)
    assert not stage.hear(payload, at_ns=NOW * 1_000_000)
    assert counted(stage, "open.replayed") == 1


def test_a_flood_under_many_names_fills_one_quota_and_can_be_shown() -> None:
    """The quota of four authors, for everybody together."""
    stage = OpenStage(flood=FloodLimits(messages_per_day=25))
    for number in range(150):
        stage.hear(said(f"{number}", sender=f"name {number}", lamport=NOW + number))
    assert len(stage.texts()) == 100
    (aside,) = stage.session.set_aside()
    assert (aside.sender_id, aside.waiting) == (ANYBODY, 50)
    stage.restart()
    stage.handle(ShowSetAside(sender_id=ANYBODY))
    assert len(stage.texts()) == 150


def test_a_flood_does_not_keep_us_from_talking() -> None:
    stage = OpenStage(flood=FloodLimits(messages_per_day=1))
    for number in range(20):
        stage.hear(said(f"{number}", sender=f"name {number}", lamport=NOW + number))
    stage.handle(Say(Text(text="still here")))
    assert "still here" in stage.texts()


def test_requests_under_many_names_share_one_budget() -> None:
    """Sixty names ask for three megabytes: no more than two are sent within a minute."""
    stage = OpenStage()
    texts = [f"{number} " + "x" * 50_000 for number in range(60)]
    for number, text in enumerate(texts):
        stage.hear(said(text, sender="author", lamport=NOW + number))
    for number, text in enumerate(texts):
        stage.hear(sync(sender=f"n{number}", lamport=NOW + number, requests=[text]))
    before = len(stage.published)
    sent = {1: 0, 5: 0}
    for minute in sent:
        while stage.now_ms < NOW + minute * 60_000:
            stage.now_ms = UnixMs(stage.now_ms + 250)
            stage.handle(DeadlineReached())
        sizes = (len(e.message.payload) for e in stage.published[before:] if e.repairs is not None)
        sent[minute] = sum(sizes)
    assert 0 < sent[1] <= 2 * 1024 * 1024 < sent[5], "the rest follows in later minutes"


@given(
    payloads=st.lists(
        st.one_of(
            st.binary(max_size=300),
            st.builds(
                lambda text, sender, lamport: said(text, sender=sender or "x", lamport=lamport),
                st.text(min_size=1, max_size=20),
                st.text(max_size=20),
                st.integers(0, 2**64 - 1),
            ),
        ),
        max_size=12,
    )
)
@settings(max_examples=60)
def test_nothing_that_comes_raises(payloads: list[bytes]) -> None:
    stage = OpenStage()
    for payload in payloads:
        stage.hear(payload)
        stage.fetch(payload)
    stage.handle(Say(Text(text="still here")))
    stage.restart()
    assert "still here" in [text.strip() for text in stage.texts()]


# --- beyond the channel ---------------------------------------------------------------------------


async def test_a_flooded_channel_leaves_a_group_of_the_same_people_alone(tmp_path: Path) -> None:
    met = await meet(tmp_path)
    ann, bob = met.ann, met.bob
    group = await ann.engine.groups.create("Friends")
    assert await bob.engine.groups.join(await ann.engine.groups.make_invite_link(group)) == group
    for number in range(300):
        content = f"flood {number}".encode()
        message = from_stranger(content, sender=f"n{number}", lamport=ann.now_ms() + number)
        await publish(met, replace(message, message_id=MessageId(message.message_id)))
    await ann.engine.timeline.send_text(group, "among friends")
    await bob.until(lambda: "among friends" in bob.texts(group))
    assert all(not text.startswith("flood") for text in bob.texts(group))
    await met.stop()


async def test_our_name_in_a_channel_is_not_who_we_are(tmp_path: Path) -> None:
    ann = await Person("Ann", tmp_path).start()
    await join(ann)
    (view,) = await ann.engine.conversations()
    identity = ann.engine.identity()
    assert identity is not None
    assert view.open_channel is not None
    assert identity.participant_id not in view.open_channel.sender_id
    await ann.stop()
