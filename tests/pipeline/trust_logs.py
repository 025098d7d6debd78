"""The logs of the cases that a trustworthy verdict must get right: one function for each oddity.

Each makes logs of a conversation that went well, and changes what it is named after; without a word
more they are whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from engine.delivery.contract import DELIVERY_EVENT, LOG_SNAPSHOT, MESSAGE
from tests.pipeline.log_files import name_of
from tests.pipeline.told_groups import (
    OTHER_KEY,
    START_MS,
    STEP_MS,
    Log,
    Sent,
    Story,
    digest,
    event_row,
    held_by,
    log_of,
    logs_of,
    message_row,
    messages_of,
    names,
    snapshot_rows,
)

AT_THE_END: Final = {"snapshot", "stopped"}


def whole(story: Story) -> Sequence[Log]:
    return list(logs_of(story).values())


def but(person: str, change: Callable[[Story, Log], Log]) -> Callable[[Story], Sequence[Log]]:
    """Everybody's log, one of them changed."""

    def made(story: Story) -> Sequence[Log]:
        logs = logs_of(story)
        return [*({**logs, person: change(story, logs[person])}).values()]

    return made


def without(*people: str) -> Callable[[Story], Sequence[Log]]:
    return lambda story: [log for name, log in logs_of(story).items() if name not in people]


# --- one log, twice -------------------------------------------------------------------------------


def exported_twice(story: Story) -> Sequence[Log]:
    """Bob's log as it was after 20 messages, with the order of then, and as it is now."""
    logs = logs_of(story)
    return [earlier(story, logs["bob"], 20), *logs.values()]


def exported_into_one(story: Story) -> Sequence[Log]:
    """Both in one file, the earlier one first, as somebody puts JSON lines together."""
    before, *logs = exported_twice(story)
    return [
        replace(log, rows={table: [*before.rows[table], *log.rows[table]] for table in log.rows})
        if log.person == before.person
        else log
        for log in logs
    ]


def earlier(story: Story, log: Log, count: int) -> Log:
    """The same log when only the first messages had been sent, its last row a snapshot."""
    at = count * STEP_MS - 1_000
    held = [each for each in held_by(story, log.person, messages_of(story)) if each.number < count]
    ids = {each.id for each in held}
    events = [dict(row) for row in log.rows[DELIVERY_EVENT] if row.get("message_id", "") in ids]
    events.insert(0, dict(log.rows[DELIVERY_EVENT][0]))
    rows = {
        **log.rows,
        DELIVERY_EVENT: events,
        LOG_SNAPSHOT: snapshot_rows(story, log.person, held, at=at),
        MESSAGE: [message_row(story, each) for each in held],
    }
    return replace(log, rows=rows)


# --- what a log says of itself --------------------------------------------------------------------


def clashing(_: Story, log: Log) -> Log:
    """Two messages at place 7 of the same snapshot, as no recorder writes it: in an export."""
    other = dict(log.rows[LOG_SNAPSHOT][8]) | {"position": 7}
    return replace(log, rows={**log.rows, LOG_SNAPSHOT: [*log.rows[LOG_SNAPSHOT], other]})


def with_gap(story: Story, log: Log) -> Log:
    """Rows of messages 10 to 12 were dropped; the final order was written afterwards."""
    return dropped(story, log, range(10, 13))


def dropped(story: Story, log: Log, numbers: range) -> Log:
    ids = {story.id_of(number) for number in numbers}
    rows = [dict(row) for row in log.rows[DELIVERY_EVENT] if row.get("message_id") not in ids]
    at = numbers.stop * STEP_MS - 1_000
    gap = event_row(story, log.person, 0, "gap", at) | {"amount": 2 * len(numbers)}
    before = sum(int(str(row["at_ms"])) < int(str(gap["at_ms"])) for row in rows)
    rows.insert(before, gap)
    numbered = [row | {"seq": seq} for seq, row in enumerate(rows, start=1)]
    return replace(log, rows={**log.rows, DELIVERY_EVENT: numbered})


def with_gap_at_the_end(story: Story, log: Log) -> Log:
    """The last rows were dropped, and the order after that was never written."""
    log = dropped(story, log, range(20, 23))
    held = [each for each in held_by(story, log.person, messages_of(story)) if each.number < 15]
    taken = 15 * STEP_MS - 1_000
    rows = [row for row in log.rows[DELIVERY_EVENT] if row["kind"] not in AT_THE_END]
    shot = event_row(story, log.person, 0, "snapshot", taken)
    shot |= {"channel": story.channel, "protocol": "sds", "amount": len(held)}
    before = sum(int(str(row["at_ms"])) < START_MS + taken for row in rows)
    rows = [*rows[:before], shot, *rows[before:]]
    numbered = [row | {"seq": seq} for seq, row in enumerate(rows, start=1)]
    order = snapshot_rows(story, log.person, held, at=taken)
    return replace(log, rows={**log.rows, DELIVERY_EVENT: numbered, LOG_SNAPSHOT: order})


def second_file(story: Story, log: Log) -> Log:
    """The file after the first 12 messages; the one before it was deleted to make room."""
    late = {story.id_of(number) for number in range(12, story.count)}
    rows = [row for row in log.rows[DELIVERY_EVENT] if row.get("message_id", "") in {"", *late}]
    numbered = [dict(row) | {"seq": seq} for seq, row in enumerate(rows, start=1)]
    known = [row for row in log.rows[MESSAGE] if row["message_id"] in late]
    log = replace(log, rows={**log.rows, DELIVERY_EVENT: numbered, MESSAGE: known})
    return log.headed(previous_log_id=name_of(f"first file of {story.name}"))


def first_rows_gone(story: Story, log: Log) -> Log:
    """The rows before message 12 were taken out of the one file that there is."""
    late = {story.id_of(number) for number in range(12, story.count)}
    return log.but(
        DELIVERY_EVENT,
        lambda row: row if row.get("message_id") in late or row["kind"] in AT_THE_END else None,
    )


def second_file_without_order(story: Story, log: Log) -> Log:
    """As above, and the program was killed before it wrote the order."""
    log = second_file(story, log)
    log = log.but(DELIVERY_EVENT, lambda row: None if row["kind"] in AT_THE_END else row)
    return log.but(LOG_SNAPSHOT, lambda _: None)


def never_observed(_: Story, log: Log) -> Log:
    """It was recorded, but nothing of this conversation."""
    log = log.but(DELIVERY_EVENT, lambda row: None if row.get("channel") else row)
    return log.but(LOG_SNAPSHOT, lambda _: None).but(MESSAGE, lambda _: None)


def stopped_early(story: Story, log: Log) -> Log:
    """Closed in order after message 19; the others went on."""
    return log_of(replace(story, until=20 * STEP_MS - 1_000), log.person, messages_of(story))


# --- what logs say of one another -----------------------------------------------------------------


def other_sender(story: Story, log: Log) -> Log:
    """Dan's log says that message 7 is eve's; it is cyd's."""
    return told(story, log, 7, sender=story.pseudonym("eve"))


def other_parents(story: Story, log: Log) -> Log:
    parents = messages_of(story)[3].id
    row = {"parents": [parents], "parent_mids": [names(story, messages_of(story)[3])["mid"]]}
    return told(story, log, 7, **row)


def other_content(story: Story, log: Log) -> Log:
    return told(story, log, 7, content=digest("something else"))


def other_content_under_a_wrong_number(story: Story, log: Log) -> Log:
    """Dan's log names message 7 by a ``mid`` that is not its id's: nobody else's has that."""
    return told(story, log, 7, content=digest("something else"), mid=7)


def told(story: Story, log: Log, number: int, **values: object) -> Log:
    wanted = story.id_of(number)
    return log.but(MESSAGE, lambda row: row | values if row["message_id"] == wanted else row)


def below_its_parent(story: Story) -> Sequence[Log]:
    """Message 9 has the Lamport timestamp of message 5, and everybody put it there."""
    sent = messages_of(story)
    sent[9] = replace(sent[9], lamport=sent[5].lamport)
    return list(logs_of(story, sent).values())


def live_order_wrong(story: Story, log: Log) -> Log:
    """Dan delivered 11 before its parent 10, though the final order is right."""
    rows = [dict(row) for row in log.rows[DELIVERY_EVENT]]
    kinds = {story.id_of(10): "delivered", story.id_of(11): "delivered"}
    at = [n for n, row in enumerate(rows) if kinds.get(str(row.get("message_id"))) == row["kind"]]
    first, second = (rows[n] for n in at)
    numbers = "seq", "at_ms", "mono_ns", "position"
    times = [{name: row[name] for name in numbers} for row in (first, second)]
    rows[at[0]], rows[at[1]] = second | times[0], first | times[1]
    rows[at[1]]["position"] = times[0]["position"]
    return replace(log, rows={**log.rows, DELIVERY_EVENT: rows})


def lost_parent(story: Story, log: Log) -> Log:
    """Dan gave up on 10, delivered 11, and got 10 afterwards: SDS allows that."""
    log = live_order_wrong(story, log)
    rows = [dict(row) for row in log.rows[DELIVERY_EVENT]]
    ids = [row.get("message_id") if row["kind"] == "delivered" else None for row in rows]
    before = ids.index(story.id_of(11))
    lost = {**rows[before], "kind": "lost", "position": None} | names(story, messages_of(story)[10])
    rows.insert(before, lost)
    numbered = [row | {"seq": seq} for seq, row in enumerate(rows, start=1)]
    return replace(log, rows={**log.rows, DELIVERY_EVENT: numbered})


def given_up_in_an_earlier_file(story: Story) -> Sequence[Log]:
    """Dan gave up on 10 and started anew: SDS remembers that, and nothing waited for 10 again."""
    logs = logs_of(story)
    dan = lost_parent(story, logs.pop("dan"))
    rows = dan.rows[DELIVERY_EVENT]
    cut = [row["kind"] for row in rows].index("lost") + 1
    first = name_of(f"first file of {story.name}")
    earlier_file = replace(
        dan, rows={**dan.rows, LOG_SNAPSHOT: [], MESSAGE: [], DELIVERY_EVENT: rows[:cut]}
    )
    numbered = [dict(row) | {"seq": seq} for seq, row in enumerate(rows[cut:], start=1)]
    later = replace(dan, rows={**dan.rows, DELIVERY_EVENT: numbered})
    return [*logs.values(), earlier_file.headed(log_id=first), later.headed(previous_log_id=first)]


def without_its_earlier_file(story: Story) -> Sequence[Log]:
    return [log for log in given_up_in_an_earlier_file(story) if len(log.rows[MESSAGE]) > 0]


def given_up_in_a_gap(story: Story, log: Log) -> Log:
    """As ``lost_parent``, but the recorder dropped that row."""
    gap = {"kind": "gap", "amount": 1, "lamport": None}
    gap |= dict.fromkeys(("channel", "protocol", "message_id", "mid", "peer"))
    return lost_parent(story, log).but(
        DELIVERY_EVENT, lambda row: row | gap if row["kind"] == "lost" else row
    )


def forged(story: Story, sender: str, number: int = 90) -> Sent:
    """A message that nobody sent, in somebody's name, dated between 14 and 15."""
    before = messages_of(story)[14]
    at, lamport = before.at + 3_000, before.lamport + 3_000
    return Sent(number, story.id_of(number), sender, at, lamport, (before.id,))


def forgers(*people: str, name: str) -> Callable[[Story], Sequence[Log]]:
    """These hold a message in the name of ``name``, as if it had come."""

    def made(story: Story) -> Sequence[Log]:
        sent, false = messages_of(story), forged(story, name)
        logs = {who: log_of(story, who, sent) for who in story.people}
        for who in people:
            logs[who] = log_of(story, who, [*sent, false])
        return list(logs.values())

    return made


def named_absent(story: Story) -> Sequence[Log]:
    made = forgers("eve", "fay", name="gus")(story)
    return [log for log in made if log.person != "gus"]


def anothers_log(story: Story) -> Sequence[Log]:
    """Eve hands in her own log and one that she made up in ada's name, without ada's message 5."""
    logs = logs_of(story)
    without_it = replace(story, lacks={"ada": frozenset({5})})
    made_up = log_of(without_it, "ada", messages_of(story))
    return [*logs.values(), made_up.headed(log_id=name_of(f"made up {story.name}"))]


def same_log_two_stories(story: Story) -> Sequence[Log]:
    """Bob's log twice under one id; a copy tells event 9 otherwise."""
    logs = logs_of(story)
    bent = logs["bob"].but(
        DELIVERY_EVENT, lambda row: row | {"lamport": 1} if row["seq"] == 9 else row
    )
    return [*logs.values(), bent]


def two_files(story: Story) -> Sequence[Log]:
    """Bob's recorder began a second file after message 14: no conflict, whatever comes first."""
    logs = logs_of(story)
    first = log_of(replace(story, until=15 * STEP_MS - 1_000), "bob", messages_of(story))
    first = first.headed(log_id=name_of(f"first {story.name}"))
    late = {story.id_of(number) for number in range(15, story.count)}
    rows = [
        row for row in logs["bob"].rows[DELIVERY_EVENT] if row.get("message_id", "") in {"", *late}
    ]
    begun = event_row(story, "bob", 1, "started", 15 * STEP_MS - 900)
    rows = [begun, *rows[1:]]
    numbered = [dict(row) | {"seq": seq} for seq, row in enumerate(rows, start=1)]
    second = replace(logs["bob"], rows={**logs["bob"].rows, DELIVERY_EVENT: numbered})
    return [second.headed(previous_log_id=first.header.log_id), *without("bob")(story), first]


def refused_place(_: Story, log: Log) -> Log:
    """Place 6 of the order cannot be read: its row breaks the contract."""
    return log.but(LOG_SNAPSHOT, lambda row: row | {"lamport": -1} if row["position"] == 6 else row)


# --- another key ----------------------------------------------------------------------------------


def under_another_key(story: Story) -> Story:
    """The same as whoever has that key tells it: channel and people have other names."""
    return replace(story, name=f"{story.name} otherwise")


def one_under_another_key(story: Story) -> Sequence[Log]:
    """Pseudonyms and all: what the key makes of ada's names, bob's log does not say."""
    other = under_another_key(story)
    bob = log_of(other, "bob", messages_of(other)).headed(key_id=OTHER_KEY)
    return [*without("bob")(story), bob]


def key_id_alone(story: Story) -> Sequence[Log]:
    """Only the key's id differs: who made the names is then unknown."""
    logs = logs_of(story)
    return [*without("bob")(story), logs["bob"].headed(key_id=OTHER_KEY)]
