"""The table of holders by itself."""

from engine.core.ids import HolderSource, MessageId, ParticipantId, UnixMs
from engine.core.sds.holders import HoldersTable
from engine.core.sds.vocabulary import HolderEntry
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
