"""The table of holders by itself."""

from engine.core.ids import AuthorSequence, HolderSource, MessageId, ParticipantId, UnixMs
from engine.core.sds.holders import HoldersTable
from engine.core.sds.vocabulary import HolderEntry, SequenceRange
from engine.sim.channel_participant import instance_of
from tests.core.sds.sds_bench import ALICE, BOB, CAROL, MEMBERS, NOW

MINE = MessageId("mine")


def entry(who: ParticipantId, source: HolderSource = HolderSource.CAUSAL) -> HolderEntry:
    return HolderEntry(MINE, who, source, NOW)


def test_what_all_hold_since_before_a_restart_is_reviewed_no_more() -> None:
    table = HoldersTable(ALICE, members=MEMBERS, holders=[entry(BOB), entry(CAROL)])
    table.track(MINE, NOW, None)
    assert len(table) == 0


def test_what_some_hold_or_may_hold_since_before_is() -> None:
    for others in ([entry(BOB)], [entry(BOB), entry(CAROL, HolderSource.BLOOM)]):
        table = HoldersTable(ALICE, members=MEMBERS, holders=others)
        table.track(MINE, NOW, None)
        assert list(table.entries()) == others


def test_holders_are_told_in_the_order_of_their_ids_whoever_was_first() -> None:
    for source, told in ((HolderSource.CAUSAL, "certain"), (HolderSource.BLOOM, "maybe")):
        table = HoldersTable(ALICE, members=MEMBERS, holders=[])
        table.track(MINE, NOW, None)
        for number, who in enumerate((CAROL, BOB)):
            table.note(MINE, who, source, UnixMs(NOW + number))
        (event,) = table.take_events([MINE])
        assert [each.participant_id for each in getattr(event, told)] == [BOB, CAROL]


def test_numbers_of_what_is_reviewed_no_more_are_forgotten_and_others_found() -> None:
    table = HoldersTable(ALICE, members=MEMBERS)
    instance_id = instance_of(ALICE)
    for number in range(1, 200):
        message_id = MessageId(f"{number}")
        table.track(message_id, NOW, AuthorSequence(instance_id, number))
        if number % 50:
            table.untrack(message_id)
        found = table.within(instance_id, SequenceRange(first=1, last=1_000))
        assert found == [f"{each}" for each in range(50, number + 1, 50)]
