"""What ``ProfileStore`` promises about the timeline that people read, of both stores alike.

Rows with their delivery and holders, their order, pages that meet without overlap, hidden rows, and
the summary with its counts of unread, waiting and failed.  A group and a pair do not differ in it.
"""

import pytest
from msgspec.structs import replace

from engine.core.errors import LocalProtocolError
from engine.core.ids import DeliveryState, HolderSource, MessageId
from engine.core.markup import find_spans
from engine.core.ports import (
    HideMessage,
    ProfileStore,
    PutMessage,
    SaveMemberMuted,
    SaveReadMark,
    StoreWrite,
)
from engine.core.records import SpanRecord
from engine.core.stored import StoredPage
from engine.persistence import ordinals
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    at,
    channel,
    delivery,
    held,
    logged,
    row,
)


def names(page: StoredPage) -> list[str]:
    return [stored.record.position.message_id for stored in page.messages]


@pytest.mark.parametrize("chance", [0.0, 5e-324, 1e-17, 0.001, 0.1 + 0.2, 1.0, None])
def test_the_chance_that_a_maybe_is_wrong_comes_back_exactly(
    with_group: ProfileStore, chance: float | None
) -> None:
    maybe = held("a", BOB, HolderSource.BLOOM, 3, chance)
    with_group.apply(
        [
            row(1, "a", is_own=True),
            channel(maybe, held("a", BOB, HolderSource.BLOOM, 4, 0.5)),
        ]
    )
    assert with_group.holders(GROUP, MessageId("a")) == [maybe.entry]
    assert with_group.channel_state(GROUP).holders == (maybe.entry,)
    stored = with_group.message(GROUP, MessageId("a"))
    assert stored is not None
    assert stored.holders == (maybe.entry,)
    certain = held("a", BOB, HolderSource.CAUSAL, 9)
    with_group.apply([channel(certain)])
    assert with_group.holders(GROUP, MessageId("a")) == [certain.entry]
    assert certain.entry != held("a", BOB, HolderSource.CAUSAL, 9, 0.5).entry


def test_a_row_comes_back_with_delivery_and_holders(with_group: ProfileStore) -> None:
    link = SpanRecord(kind="link", start=0, length=3, target='https://ä.example/?a="b"')
    spans = (link, *find_spans("> **😀** *b*\n- c\n```py\nd\n```"))
    assert len({span.kind for span in spans}) == 7
    record = replace(row(1, "a", is_own=True).message, spans=spans, late=True, text="é\0\n")
    with_group.apply(
        [
            PutMessage(message=record),
            delivery("a", DeliveryState.FAILED, failure="nobody took it"),
            channel(held("a", BOB, HolderSource.BLOOM), held("a", ALICE, HolderSource.CAUSAL)),
        ]
    )
    stored = with_group.message(GROUP, MessageId("a"))
    assert stored is not None
    assert stored.record == record
    assert stored.delivery == delivery("a", DeliveryState.FAILED, failure="nobody took it").delivery
    assert [h.participant_id for h in stored.holders] == [BOB, ALICE]
    assert with_group.latest_page(GROUP, limit=1).messages == (stored,)


def test_holders_come_in_the_order_in_which_they_were_put(with_group: ProfileStore) -> None:
    with_group.apply([row(1, "a", is_own=True), row(2, "b", is_own=True)])
    for name, who in (("b", BOB), ("a", ALICE), ("a", BOB), ("b", ALICE)):
        with_group.apply([channel(held(name, who, HolderSource.BLOOM))])
    with_group.apply([channel(held("b", BOB, HolderSource.CAUSAL, 9))])
    put = {"a": [ALICE, BOB], "b": [BOB, ALICE]}
    for stored in with_group.latest_page(GROUP, limit=2).messages:
        message_id = stored.record.position.message_id
        assert [one.participant_id for one in stored.holders] == put[message_id]
        assert with_group.holders(GROUP, message_id) == [*stored.holders]
    assert [
        (one.message_id, one.participant_id) for one in with_group.channel_state(GROUP).holders
    ] == [("b", BOB), ("a", ALICE), ("a", BOB), ("b", ALICE)]


def test_only_own_messages_have_a_delivery_and_holders(with_group: ProfileStore) -> None:
    told: list[StoreWrite] = [
        write
        for name in ("a", "b")
        for write in (
            delivery(name, DeliveryState.SENT),
            channel(held(name, BOB, HolderSource.CAUSAL)),
        )
    ]
    with_group.apply([*told, row(1, "a"), row(2, "b", is_own=True), row(3, "c", is_own=True)])
    others, own, untold = with_group.latest_page(GROUP, limit=9).messages
    assert (others.delivery, others.holders) == (None, ())
    assert own.delivery == delivery("b", DeliveryState.SENT).delivery
    assert own.holders == (held("b", BOB, HolderSource.CAUSAL).entry,)
    assert (untold.delivery, untold.holders) == (None, ())
    assert len(with_group.holders(GROUP, MessageId("a"))) == 1, "but it can be asked for"


def test_rows_are_ordered_by_lamport_then_id_by_byte_and_waiting_rows_stand_last(
    with_conversation: ProfileStore,
) -> None:
    with_conversation.apply(
        [
            row(3, "early", waiting=True),
            row(9, "é"),
            row(9, "a"),
            row(9, "Z"),
            row(1, "later", waiting=True),
            row(4, "x"),
        ]
    )
    page = with_conversation.latest_page(GROUP, limit=10)
    assert names(page) == ["x", "Z", "a", "é", "later", "early"]
    assert (page.has_older, page.has_newer, page.older_count, page.total) == (False, False, 0, 6)
    with_conversation.apply([row(3, "early")])
    assert names(with_conversation.latest_page(GROUP, limit=10)) == [
        "early",
        "x",
        "Z",
        "a",
        "é",
        "later",
    ]


def test_pages_meet_without_overlap_and_know_their_ordinals(
    with_conversation: ProfileStore,
) -> None:
    with_conversation.apply([row(n // 3, f"m{n:02}") for n in range(20)])
    with_conversation.apply([row(2, "w0", waiting=True), row(3, "w1", waiting=True)])
    every = [f"m{n:02}" for n in range(20)] + ["w0", "w1"]
    page = with_conversation.latest_page(GROUP, limit=6)
    seen = names(page)
    assert (page.older_count, page.total, page.has_newer) == (16, 22, False)
    while page.has_older:
        page = with_conversation.page_before(GROUP, page.messages[0].record.position, limit=6)
        seen = names(page) + seen
        assert page.older_count == every.index(names(page)[0])
        assert page.has_newer
    assert seen == every
    seen = names(page)
    while page.has_newer:
        page = with_conversation.page_after(GROUP, page.messages[-1].record.position, limit=4)
        seen += names(page)
        assert page.older_count == every.index(names(page)[0])
        assert page.has_older
    assert seen == every


def test_a_page_may_start_where_no_row_is(with_conversation: ProfileStore) -> None:
    with_conversation.apply([row(2, "b"), row(4, "d"), row(1, "w", waiting=True)])
    before = with_conversation.page_before(GROUP, at(3, "x"), limit=5)
    after = with_conversation.page_after(GROUP, at(3, "x"), limit=5)
    assert (names(before), before.older_count, before.has_newer) == (["b"], 0, True)
    assert (names(after), after.older_count, after.has_older) == (["d", "w"], 1, True)
    beyond = with_conversation.page_after(GROUP, at(1, "w"), limit=5)
    assert (names(beyond), beyond.older_count, beyond.has_older) == ([], 3, True)
    nothing = with_conversation.page_before(GROUP, at(0, ""), limit=5)
    assert (names(nothing), nothing.older_count, nothing.has_newer) == ([], 0, True)


def test_a_hidden_row_leaves_every_page_and_count_and_stays_hidden(
    with_group: ProfileStore,
) -> None:
    with_group.apply(
        [
            *(row(n, f"m{n}") for n in range(3)),
            row(3, "mine", is_own=True),
            delivery("mine", DeliveryState.FAILED),
            channel(logged(3, "mine")),
        ]
    )
    hide: list[StoreWrite] = [
        HideMessage(conversation_id=GROUP, message_id=MessageId(name)) for name in ("m1", "mine")
    ]
    with_group.apply(hide + hide)
    with_group.apply([row(1, "m1", text="edited"), delivery("mine", DeliveryState.FAILED)])
    page = with_group.latest_page(GROUP, limit=9)
    assert (names(page), page.total) == (["m0", "m2"], 2)
    assert with_group.message(GROUP, MessageId("m1")) is None
    summary = with_group.summary(GROUP)
    assert (summary.unread, summary.failed) == (2, 0)
    assert summary.last_message == page.messages[-1]
    assert with_group.raw(GROUP, MessageId("mine")) == b"raw", "others may still ask for it"
    around = with_group.page_after(GROUP, at(1, "m1"), limit=9)
    assert (names(around), around.older_count) == (["m2"], 1)


def test_rows_of_a_muted_member_leave_every_page_and_count_and_come_back(
    with_group: ProfileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordinals, "BLOCK_ROWS", 4)
    rows = [row(n, f"{n:02}", sender_id=ALICE if n % 3 else BOB) for n in range(30)]
    with_group.apply([*rows, row(40, "later", sender_id=ALICE, waiting=True)])
    deleted = HideMessage(conversation_id=GROUP, message_id=MessageId("01"))
    read = SaveReadMark(conversation_id=GROUP, up_to=at(11, "11"))
    with_group.apply([deleted, read])
    before = with_group.latest_page(GROUP, limit=50), with_group.summary(GROUP)

    def muted(*, muted: bool) -> list[StoreWrite]:
        return [SaveMemberMuted(conversation_id=GROUP, participant_id=ALICE, muted=muted)]

    with_group.apply(muted(muted=True))
    assert with_group.listed((GROUP,))[GROUP].muted == {ALICE}
    of_bob = [f"{n:02}" for n in range(0, 30, 3)]
    assert names(with_group.latest_page(GROUP, limit=50)) == of_bob
    assert with_group.page_before(GROUP, at(15), limit=2).older_count == 4
    assert with_group.summary(GROUP).unread == 6
    with_group.apply(
        [
            row(31, "31", sender_id=ALICE),
            row(40, "later", sender_id=ALICE),
            row(41, "41", sender_id=ALICE),
            HideMessage(conversation_id=GROUP, message_id=MessageId("41")),
        ]
    )
    assert names(with_group.latest_page(GROUP, limit=50)) == of_bob, "nor what comes then"
    with_group.apply(muted(muted=False))
    after = with_group.latest_page(GROUP, limit=50), with_group.summary(GROUP)
    assert names(after[0]) == [*names(before[0])[:-1], "31", "later"], "what was deleted stays it"
    assert after[1].unread == before[1].unread + 1
    assert after[0].total == before[0].total + 1
    assert not with_group.listed((GROUP,))[GROUP].muted


def test_hiding_what_is_not_there_yet_changes_nothing(with_conversation: ProfileStore) -> None:
    with_conversation.apply(
        [HideMessage(conversation_id=GROUP, message_id=MessageId("a")), row(1, "a")]
    )
    assert names(with_conversation.latest_page(GROUP, limit=9)) == ["a"]


def test_a_page_is_bounded_and_never_empty_by_request(with_conversation: ProfileStore) -> None:
    with_conversation.apply([row(n, f"m{n:04}") for n in range(1005)])
    page = with_conversation.latest_page(GROUP, limit=10**9)
    assert (len(page.messages), page.older_count, page.has_older) == (1000, 5, True)
    with pytest.raises(LocalProtocolError):
        with_conversation.latest_page(GROUP, limit=0)


def test_unread_are_visible_texts_of_others_after_the_mark(with_conversation: ProfileStore) -> None:
    with_conversation.apply(
        [
            row(1, "a"),
            row(2, "joined", kind="joined"),
            row(3, "mine", is_own=True),
            row(4, "b"),
            row(5, "c"),
            row(2, "w", waiting=True),
        ]
    )
    summary = with_conversation.summary(GROUP)
    assert (summary.unread, summary.first_unread) == (4, at(1, "a"))
    with_conversation.apply([SaveReadMark(conversation_id=GROUP, up_to=at(3, "mine"))])
    summary = with_conversation.summary(GROUP)
    assert (summary.unread, summary.first_unread) == (2, at(4, "b"))
    with_conversation.apply([row(2, "w"), row(3, "later than the mark's id", text="late")])
    assert with_conversation.summary(GROUP).unread == 2, (
        "what is placed before the mark counts as read"
    )
    with_conversation.apply([SaveReadMark(conversation_id=GROUP, up_to=at(1, "a"))])
    assert with_conversation.summary(GROUP).unread == 2, "the mark never moves backwards"
    with_conversation.apply([SaveReadMark(conversation_id=GROUP, up_to=at(5, "c"))])
    summary = with_conversation.summary(GROUP)
    assert (summary.unread, summary.first_unread) == (0, None)
    marks = [about.read_up_to for about in with_conversation.groups()]
    marks += [about.read_up_to for about in with_conversation.contacts()]
    assert marks == [at(5, "c")]


def test_the_first_unread_is_the_first_on_screen(with_conversation: ProfileStore) -> None:
    with_conversation.apply([row(1, "waiting", waiting=True), row(9, "placed")])
    assert with_conversation.summary(GROUP).first_unread == at(9, "placed")
    with_conversation.apply([SaveReadMark(conversation_id=GROUP, up_to=at(0))])
    with_conversation.apply([HideMessage(conversation_id=GROUP, message_id=MessageId("placed"))])
    assert with_conversation.summary(GROUP).first_unread == at(1, "waiting")


def test_the_summary_counts_what_is_only_saved_and_what_failed(
    with_conversation: ProfileStore,
) -> None:
    with_conversation.apply(
        [
            *(row(n, name, is_own=True) for n, name in enumerate("abcd")),
            row(0, "created", is_own=True, kind="created"),
            row(1, "joined", is_own=True, kind="joined"),
            delivery("created", DeliveryState.SAVED),
            delivery("joined", DeliveryState.FAILED),
            delivery("a", DeliveryState.SAVED),
            delivery("b", DeliveryState.SAVED),
            delivery("c", DeliveryState.FAILED, failure="nobody took it"),
            delivery("d", DeliveryState.HELD),
            delivery("not in the timeline", DeliveryState.SAVED),
        ]
    )
    summary = with_conversation.summary(GROUP)
    assert (summary.waiting_to_send, summary.failed) == (2, 1)
    with_conversation.apply([delivery("a", DeliveryState.SENT), delivery("c", DeliveryState.SAVED)])
    summary = with_conversation.summary(GROUP)
    assert (summary.waiting_to_send, summary.failed) == (2, 0)
    last = summary.last_message
    assert last is not None
    assert last.record.position == at(3, "d")
