"""What waits for a slow network: what was written first, and nothing twice."""

import asyncio

import pytest
from msgspec.structs import replace

from engine.core.counters import Counters
from engine.core.ids import ContentTopic, MessageId
from engine.core.sds.vocabulary import SendPurpose
from engine.core.waku import WakuMessage
from engine.runtime.publish_queue import MAX_TAKEN, OUTBOX_SIZE, PublishQueue
from engine.session.transitions import Load, LoadForRepair, Publish

CONTENT, SYNC = SendPurpose.CONTENT, SendPurpose.SYNC
AGAIN = SendPurpose.RETRANSMISSION


def send(
    text: str, purpose: SendPurpose, *, own: str = "", repairs: str = "", says_all: bool = False
) -> Publish:
    return Publish(
        message=WakuMessage(
            payload=text.encode(), content_topic=ContentTopic("/causerie/1/outbox/proto")
        ),
        purpose=purpose,
        message_ids=(MessageId(own),) if own else (),
        repairs=MessageId(repairs) if repairs else None,
        says_all=says_all,
    )


def texts(outbox: PublishQueue) -> list[str]:
    """In the order in which they would be sent."""
    sent: list[str] = []
    while not outbox.empty():
        each = outbox.get_nowait()
        sent.append(each.message.payload.decode() if isinstance(each, Publish) else "load")
        outbox.task_done()
    return sent


def filled(*sends: Publish | Load) -> PublishQueue:
    outbox = PublishQueue(Counters(), alone=lambda: False)
    for each in sends:
        outbox.put_nowait(each)
    return outbox


def test_what_was_written_goes_first_and_all_else_in_order() -> None:
    outbox = filled(
        send("sync", SYNC),
        send("again", AGAIN, own="x"),
        LoadForRepair(message_id=MessageId("y")),
        send("one", CONTENT, own="1"),
        send("two", CONTENT, own="2"),
        send("typing", SendPurpose.EPHEMERAL),
    )
    assert texts(outbox) == ["one", "two", "sync", "again", "load", "typing"]


async def test_a_text_is_not_followed_by_the_word_that_its_author_types() -> None:
    """It would be believed for seconds after the text."""
    outbox = filled(
        send("sync", SYNC),
        replace(send("typing", SendPurpose.EPHEMERAL), says_typing=True),
        send("of two people", SendPurpose.EPHEMERAL),
        send("one", CONTENT, own="1"),
        replace(send("typing again", SendPurpose.EPHEMERAL), says_typing=True),
    )
    assert texts(outbox) == ["one", "sync", "of two people", "typing again"]
    await asyncio.wait_for(outbox.join(), 1)


def test_a_newer_statement_takes_the_place_of_one_that_waits() -> None:
    outbox = filled(
        send("old", SYNC, says_all=True),
        send("again", AGAIN, own="x"),
        send("new", SYNC, says_all=True),
    )
    assert texts(outbox) == ["new", "again"]


def test_acknowledgements_of_a_pair_are_all_sent() -> None:
    assert texts(filled(send("first", SYNC), send("second", SYNC))) == ["first", "second"]


def test_a_statement_in_hand_is_not_the_one_that_waits() -> None:
    outbox = filled(send("old", SYNC, says_all=True))
    outbox.get_nowait()
    outbox.put_nowait(send("new", SYNC, says_all=True))
    assert texts(outbox) == ["new"]


@pytest.mark.parametrize("first", [CONTENT, AGAIN])
def test_a_message_that_waits_is_not_sent_again(first: SendPurpose) -> None:
    outbox = filled(
        send("one", first, own="1"), send("again", AGAIN, own="1"), send("other", AGAIN, own="2")
    )
    assert texts(outbox) == ["one", "other"]


def test_a_message_in_hand_is_not_sent_again_until_it_is_done() -> None:
    outbox = filled(send("one", CONTENT, own="1"))
    outbox.get_nowait()
    outbox.put_nowait(send("again", AGAIN, own="1"))
    assert outbox.empty()
    outbox.task_done()
    outbox.put_nowait(send("later", AGAIN, own="1"))
    assert texts(outbox) == ["later"]


def test_somebodys_message_is_repaired_once() -> None:
    outbox = filled(
        send("one", AGAIN, repairs="1"),
        send("same", AGAIN, repairs="1"),
        send("two", AGAIN, repairs="2"),
    )
    assert texts(outbox) == ["one", "two"]


async def test_it_is_bounded_and_waits_for_all_that_it_took() -> None:
    outbox = filled(*(send(str(number), CONTENT) for number in range(OUTBOX_SIZE)))
    with pytest.raises(asyncio.QueueFull):
        outbox.put_nowait(send("more", SYNC))
    assert len(texts(outbox)) == OUTBOX_SIZE
    await outbox.join()


async def test_what_is_spared_is_counted_and_not_waited_for() -> None:
    counters = Counters()
    outbox = PublishQueue(counters, alone=lambda: False)
    for each in (send("one", CONTENT, own="1"), send("again", AGAIN, own="1")):
        outbox.put_nowait(each)
    assert texts(outbox) == ["one"]
    await outbox.join()
    assert counters.snapshot() == {"runner.outbox_spared": 1}


async def test_alone_what_the_network_has_is_not_sent_again_until_somebody_comes() -> None:
    counters, alone = Counters(), True
    outbox = PublishQueue(counters, alone=lambda: alone)
    outbox.taken([MessageId("1")])
    for each in (
        send("again", AGAIN, own="1"),
        send("not taken yet", AGAIN, own="2"),
        send("written", CONTENT, own="1"),
        send("repair", AGAIN, repairs="1"),
    ):
        outbox.put_nowait(each)
    assert texts(outbox) == ["written", "not taken yet", "repair"]
    assert counters.snapshot() == {"runner.sent_to_nobody_again": 1}
    alone = False
    outbox.put_nowait(send("again", AGAIN, own="1"))
    assert texts(outbox) == ["again"]
    outbox.taken([MessageId("3")])
    alone = True  # Everybody left, and what they had taken is taken no longer.
    outbox.put_nowait(send("again", AGAIN, own="1"))
    assert texts(outbox) == ["again"]


def test_what_was_taken_is_remembered_within_bounds() -> None:
    outbox = PublishQueue(Counters(), alone=lambda: True)
    outbox.taken([MessageId(str(number)) for number in range(MAX_TAKEN + 1)])
    outbox.put_nowait(send("oldest", AGAIN, own="0"))
    outbox.put_nowait(send("newest", AGAIN, own=str(MAX_TAKEN)))
    assert texts(outbox) == ["oldest"]
