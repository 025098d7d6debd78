"""A channel with a shared key: an open channel's session, whose payloads are sealed."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.open_content import message_id_of_content
from engine.codec.sds import decode_message, encode_message
from engine.core.content import Text
from engine.core.ids import ParticipantId, UnixMs, WakuHash
from engine.core.sds.inputs import DeadlineReached
from engine.core.sds.vocabulary import SendPurpose
from engine.crypto.shared_key import WAKU_VERSION, open_payload, seal_payload
from engine.runtime.views import message_view
from engine.session.inputs import CopiesAccepted, Say
from engine.session.open.factory import conversation_id_of, name_of
from tests.session.open_stage import NAME, NOW, OpenStage, said, sync

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
DRAWN = Random(11)


def sealed(raw: bytes, key: bytes = KEY) -> bytes:
    return seal_payload(key, raw, DRAWN.randbytes)


def counted(stage: OpenStage) -> dict[str, int]:
    return {
        name: number
        for name, number in stage.counters.snapshot().items()
        if name.startswith("open.")
    }


def test_what_we_say_is_sealed_and_each_copy_anew() -> None:
    stage = OpenStage(key=KEY)
    own = stage.handle(Say(Text(text="between us"))).message_id
    assert own == message_id_of_content(b"between us")
    stage.handle(CopiesAccepted(message_ids=(own,), peers=1, waku_hash=WakuHash(bytes(32))))
    while not [each for each in stage.published if each.purpose is SendPurpose.RETRANSMISSION]:
        stage.now_ms = UnixMs(stage.now_ms + 1_000)
        stage.handle(DeadlineReached())
    copies = [each.message for each in stage.published if each.purpose is not SendPurpose.SYNC]
    assert len({copy.payload for copy in copies}) == len(copies) == 2
    for copy in copies:
        assert copy.version == WAKU_VERSION
        assert b"between us" not in copy.payload
        message = decode_message(open_payload(KEY, copy.payload))
        assert (message.content, message.sender_id) == (b"between us", stage.record.sender_id)


def test_it_hears_who_has_the_key_and_nobody_else() -> None:
    stage = OpenStage(key=KEY)
    assert stage.hear(sealed(said("hello")), version=1)
    assert not stage.hear(sealed(said("not for us"), OTHER), version=1)
    assert not stage.hear(sealed(said("not for us"))[:-1], version=1)
    assert not stage.hear(b"", version=1)
    assert not stage.hear(said("in the clear"))
    assert not stage.hear(sealed(said("says it is not sealed")), version=0)
    assert not stage.hear(sealed(said("of another channel", channel_id="another")), version=1)
    assert not stage.hear(sealed(b"no SDS"), version=1)
    stage.fetch(sealed(said("not for us"), OTHER), version=1)
    stage.fetch(sealed(said("from a Store")), version=1)
    assert sorted(stage.texts()) == ["from a Store", "hello"]
    assert counted(stage) == {
        "open.other_key": 4,
        "open.other_version": 2,
        "open.wrong_channel": 1,
        "open.sds_undecodable": 1,
    }


def test_an_open_channel_takes_no_sealed_message() -> None:
    stage = OpenStage()
    assert not stage.hear(sealed(said("hello")), version=1)
    assert stage.hear(said("in the clear"), version=0)
    assert counted(stage) == {"open.other_version": 1}


def test_a_holder_is_never_more_than_maybe_and_our_name_proves_nothing() -> None:
    stage = OpenStage(key=KEY)
    stage.handle(Say(Text(text="mine")))
    stage.hear(sealed(sync("mine", sender="whoever has the key")), version=1)
    stage.hear(sealed(said("not mine", sender=stage.record.sender_id, lamport=NOW + 1)), version=1)
    assert stage.session.claimed_by(message_id_of_content(b"mine")) == frozenset()
    assert [(row.text, row.is_own) for row in stage.rows()] == [("mine", True), ("not mine", False)]
    page = stage.store.latest_page(stage.record.conversation_id, limit=2)
    delivery = message_view(page.messages[0], {}, ParticipantId("me"), stage.record).delivery
    assert delivery is not None
    assert (delivery.held_by, delivery.maybe_held_by) == ((), ("whoever has the key",))


def test_what_somebody_asks_for_is_sealed_again_from_what_was_kept() -> None:
    stage = OpenStage(key=KEY)
    stage.hear(sealed(said("worth keeping")), version=1)
    stage.restart()
    stage.hear(sealed(sync(sender="late", lamport=NOW + 1, requests=["worth keeping"])), version=1)
    while not [each for each in stage.published if each.repairs is not None]:
        stage.now_ms = UnixMs(stage.now_ms + 1_000)
        stage.handle(DeadlineReached())
    (repair,) = [each for each in stage.published if each.repairs is not None]
    assert open_payload(KEY, repair.message.payload) == said("worth keeping")


def test_the_same_names_with_another_key_are_another_channel() -> None:
    keys = (b"", KEY, OTHER)
    assert len({conversation_id_of(replace(NAME, key=key)) for key in keys}) == 3
    assert name_of(OpenStage(key=KEY).record) == replace(NAME, key=KEY)


@given(
    heard=st.lists(
        st.tuples(
            st.one_of(
                st.binary(max_size=300),
                st.binary(max_size=300).map(sealed),
                st.builds(lambda text: sealed(said(text)), st.text(min_size=1, max_size=20)),
                st.builds(lambda text: sealed(said(text), OTHER), st.text(min_size=1, max_size=9)),
            ),
            st.sampled_from([None, 0, 1, 2, 2**32 - 1]),
        ),
        max_size=8,
    )
)
@settings(max_examples=40)
def test_nothing_that_comes_raises(heard: list[tuple[bytes, int | None]]) -> None:
    stage = OpenStage(key=KEY)
    for payload, version in heard:
        stage.hear(payload, version=version)
        stage.fetch(payload, version=version)
    stage.handle(Say(Text(text="still here")))
    stage.restart()
    assert "still here" in [text.strip() for text in stage.texts()]


def test_the_longest_message_of_others_can_be_repaired() -> None:
    """Its SDS bytes are as many as a sealed payload has room for."""
    message = decode_message(said("x"))
    room = 149 * 1024 - len(encode_message(replace(message, content=b"", message_id="")))
    content = bytes(room - 100)
    stage = OpenStage(key=KEY)
    assert stage.hear(sealed(said(content)), version=1)
