"""An open channel's session: what it says, shows, keeps and switches off."""

import pytest

from engine.codec.open_content import encode_toy_chat, message_id_of_content
from engine.codec.sds import decode_message
from engine.core.content import MAX_TEXT_BYTES, Leave, Text
from engine.core.errors import LocalProtocolError
from engine.core.ids import UnixMs, WakuHash
from engine.core.records import OpenFormat, OpenPace
from engine.core.sds.bloom import JS_BYTES
from engine.core.sds.inputs import (
    DeadlineReached,
    ResendRequested,
    StoreChanged,
    WindowAnswered,
)
from engine.core.sds.vocabulary import AskStore, SendPurpose
from engine.session.inputs import CopiesAccepted, Say, SetLabel, TypeNow
from engine.session.rows import TEXT, UNSUPPORTED
from tests.session.open_stage import NOW, OpenStage, said, sync


def test_what_we_say_is_what_js_waku_would() -> None:
    stage = OpenStage()
    for number in range(3):
        stage.hear(said(f"{number}", lamport=NOW - 10 + number))
    transition = stage.handle(Say(Text(text="hello")))
    assert transition.message_id == message_id_of_content(b"hello")
    message = decode_message(stage.published[-1].message.payload)
    assert message.channel_id == "general"
    assert message.sender_id == stage.record.sender_id
    assert message.content == b"hello"
    assert len(message.bloom_filter or b"") == JS_BYTES
    named = [entry.message_id for entry in message.causal_history]
    assert named == [message_id_of_content(each) for each in (b"0", b"1", b"2")]


@pytest.mark.parametrize(("pace", "history"), [(OpenPace.JS_WAKU, 200), (OpenPace.CAUSERIE, 10)])
def test_the_pace_says_how_long_histories_are(pace: OpenPace, history: int) -> None:
    stage = OpenStage(pace=pace)
    for number in range(210):
        stage.hear(said(f"{number}", lamport=NOW - 300 + number))
    stage.handle(Say(Text(text="hello")))
    message = decode_message(stage.published[-1].message.payload)
    assert len(message.causal_history) == history


def test_at_js_wakus_pace_it_is_sent_again_every_thirty_seconds_ten_times() -> None:
    stage = OpenStage()
    own = stage.handle(Say(Text(text="hello"))).message_id
    assert own is not None
    stage.handle(CopiesAccepted(message_ids=(own,), peers=1, waku_hash=WakuHash(bytes(32))))
    again = []
    for seconds in range(1, 900):
        stage.now_ms = UnixMs(NOW + seconds * 1_000)
        before = len(stage.published)
        stage.handle(DeadlineReached())
        purposes = [each.purpose for each in stage.published[before:]]
        again += [seconds] * purposes.count(SendPurpose.RETRANSMISSION)
    assert again == [30 * number for number in range(1, 11)]
    stage.handle(ResendRequested(message_id=own))
    assert stage.published[-1].message.payload == stage.published[0].message.payload


def test_a_second_equal_text_gets_a_space() -> None:
    stage = OpenStage()
    stage.hear(said("ok"))
    ids = [stage.handle(Say(Text(text="ok"))).message_id for _ in range(2)]
    assert ids == [message_id_of_content(b"ok "), message_id_of_content(b"ok  ")]
    for _ in range(61):
        stage.handle(Say(Text(text="ok")))
    with pytest.raises(LocalProtocolError):
        stage.handle(Say(Text(text="ok")))


@pytest.mark.parametrize("format_", [OpenFormat.TEXT, OpenFormat.TOY_CHAT])
def test_a_text_is_said_without_what_would_make_it_binary_content(format_: OpenFormat) -> None:
    stage = OpenStage(format_=format_)
    stage.handle(Say(Text(text="\x08page 1\x0cpage\t2\r\n\x1b")))
    (row,) = stage.rows()
    assert (row.kind, row.text) == (TEXT, "page 1page\t2\r\n")
    with pytest.raises(LocalProtocolError):
        stage.handle(Say(Text(text="\x0c \x1b")))
    assert len(stage.rows()) == 1


def test_the_longest_text_is_said_once_and_not_as_one_that_nobody_can_read() -> None:
    stage = OpenStage(format_=OpenFormat.TEXT)
    longest = Text(text="x" * MAX_TEXT_BYTES)
    stage.handle(Say(longest))
    with pytest.raises(LocalProtocolError):
        stage.handle(Say(longest))
    assert [row.kind for row in stage.rows()] == [TEXT]


def test_toy_chat_is_learned_from_the_first_message_that_can_be_read() -> None:
    stage = OpenStage()
    stage.hear(said(b"\x00\x01"))
    stage.hear(said(encode_toy_chat("hei", "Kari", NOW)))
    stage.hear(said("plain text, later"))
    stage.restart()
    stage.handle(Say(Text(text="hei hei")))
    content = decode_message(stage.published[-1].message.payload).content
    assert content == encode_toy_chat("hei hei", "Ines", NOW)
    assert [row.sender_id for row in stage.rows() if row.text == "hei"] == ["Kari"]


@pytest.mark.parametrize("format_", [OpenFormat.TEXT, OpenFormat.TOY_CHAT])
def test_a_format_that_was_chosen_stays(format_: OpenFormat) -> None:
    stage = OpenStage(format_=format_)
    other = said("text") if format_ is OpenFormat.TOY_CHAT else said(encode_toy_chat("a", "b", NOW))
    stage.hear(other)
    assert stage.session.record.format is format_


def test_toy_chat_said_twice_in_a_second_is_two_messages() -> None:
    stage = OpenStage(format_=OpenFormat.TOY_CHAT)
    first, second = (stage.handle(Say(Text(text="ok"))).message_id for _ in range(2))
    assert first != second
    assert stage.texts() == ["ok", "ok"]


def test_other_kinds_of_content_are_switched_off() -> None:
    stage = OpenStage()
    with pytest.raises(LocalProtocolError):
        stage.handle(Say(Leave()))
    assert stage.handle(TypeNow(active=True)).sends == ()
    assert stage.session.members() == {}


def test_a_label_is_kept() -> None:
    stage = OpenStage()
    stage.handle(SetLabel("The room"))
    stage.restart()
    assert stage.session.record.name == "The room"


def test_rows_bear_times_that_can_be_and_a_place_by_lamport_timestamp() -> None:
    stage = OpenStage()
    stage.hear(said("counted", lamport=3))
    stage.hear(said("on time", lamport=NOW - 1_000))
    stage.hear(said("2099", lamport=NOW * 2))
    assert stage.texts() == ["counted", "on time", "2099"]
    assert [row.sent_ms for row in stage.rows()] == [NOW, NOW - 1_000, NOW]


def test_binary_content_is_a_row_and_no_gap() -> None:
    stage = OpenStage()
    stage.hear(said(b"\xff\x00"))
    stage.hear(said("after it", b"\xff\x00", lamport=NOW + 1))
    assert next(row.kind for row in stage.rows()) == UNSUPPORTED
    assert stage.session.gap() is None
    assert stage.texts()[1] == "after it"


def test_it_comes_back_whole_after_a_restart() -> None:
    stage = OpenStage()
    stage.hear(said("first"))
    stage.hear(said("third", "second", lamport=NOW + 2))
    before = stage.session.channel.snapshot()
    stage.restart()
    assert stage.session.channel.snapshot() == before
    stage.fetch(said("second", "first", lamport=NOW + 1))
    assert stage.texts() == ["first", "second", "third"]


def test_syncs_are_counted_both_ways() -> None:
    stage = OpenStage()
    stage.hear(said("news"))
    stage.hear(sync("news"))
    stage.now_ms = UnixMs(NOW + 60_000)
    stage.handle(DeadlineReached())
    counted = stage.counters.snapshot()
    assert (counted["sds.sync_received"], counted["sds.sync_sent"]) == (1, 1)


def test_what_stores_do_not_have_at_its_time_is_searched_for_again_and_then_lost() -> None:
    stage = OpenStage()
    stage.handle(StoreChanged(reachable=True))
    two_days_ms = 2 * 24 * 3_600_000
    stage.hear(said("answer", "nobody has this", lamport=NOW - two_days_ms))
    searched = 0
    for minutes in range(60 * 26):
        stage.now_ms = UnixMs(NOW + minutes * 60_000)
        for send in stage.handle(DeadlineReached()).sends:
            windows = send.windows if isinstance(send, AskStore) else ()
            searched += len(windows)
            for window in windows:
                stage.handle(WindowAnswered(window=window))
        if stage.texts():
            break
    assert searched > 0
    assert stage.texts() == ["answer"]
    gap = stage.session.gap()
    assert gap is not None
    assert gap.lost_total == 1
