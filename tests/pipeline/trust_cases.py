"""The cases that a trustworthy verdict must get right, and what is right in each: plain data.

Written from the contract and from what a tester may ask of an audit, before the pipeline was looked
at.  Each case is a conversation of its own, so that one run judges all that can be in one input.
``verdicts`` names only those who are not ``identical``, ``problems`` only those whose coverage is
not whole, ``witnesses`` every anomaly: whose log, what, and which message.  ``code`` is the exit
code that an audit of this case alone has.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.pipeline.told_groups import Log, Story
from tests.pipeline.trust_logs import (
    anothers_log,
    below_its_parent,
    but,
    clashing,
    exported_into_one,
    exported_twice,
    first_rows_gone,
    forgers,
    given_up_in_a_gap,
    given_up_in_an_earlier_file,
    key_id_alone,
    live_order_wrong,
    lost_parent,
    named_absent,
    never_observed,
    one_under_another_key,
    other_content,
    other_content_under_a_wrong_number,
    other_parents,
    other_sender,
    refused_place,
    same_log_two_stories,
    second_file,
    second_file_without_order,
    stopped_early,
    two_files,
    whole,
    with_gap,
    with_gap_at_the_end,
    without,
    without_its_earlier_file,
)

DAY_MS: Final = 86_400_000
YEAR_MS: Final = 365 * DAY_MS
AGES_MS: Final = 2**62
"""More than any calendar has."""
Witness = tuple[str, str, int]


@dataclass(frozen=True)
class Case:
    story: Story
    logs: Callable[[Story], Sequence[Log]]
    verdicts: Mapping[str, str] = field(default_factory=dict)
    witnesses: frozenset[Witness] = frozenset()
    problems: Mapping[str, frozenset[str]] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    """Members whose log is not there, or does not count."""
    clocks: Mapping[str, int] = field(default_factory=dict)
    """Whose clock is named as off, and by how much."""
    conflicts: frozenset[tuple[int, str]] = frozenset()
    """Number of the message about which logs disagree, and in what."""
    code: int = 0
    forms: tuple[str, ...] = ("sqlite",)
    """Of the files, in turn: which log comes in which form."""

    @property
    def name(self) -> str:
        return self.story.name


def missing(person: str, *numbers: int) -> frozenset[Witness]:
    return frozenset((person, "missing", number) for number in numbers)


AWAY: Final = ((-60_000, 100_000), (200_000, None))
"""There for messages 0 to 9 and from 20 on."""
SIX: Final = ("ada", "bob", "cyd", "dan", "eve", "fay")
JOINS_LATE: Final = ((148_000, None),)
"""There from message 15 on."""


def set_of(*words: str) -> frozenset[str]:
    return frozenset(words)


TWICE: Final = (
    ("sqlite", "sqlite", "sqlite"),
    ("jsonl", "parquet", "sqlite"),
    ("parquet", "sqlite", "jsonl"),
    ("parquet", "parquet", "parquet"),
)
TOGETHER: Final = (
    Case(Story("agree"), whole),
    Case(
        Story("lacks one", lacks={"cyd": frozenset({8})}),
        whole,
        verdicts={"cyd": "missing"},
        witnesses=missing("cyd", 8),
        code=1,
    ),
    Case(
        Story("behind", lacks={"cyd": frozenset({28, 29})}),
        whole,
        verdicts={"cyd": "prefix"},
        witnesses=missing("cyd", 28, 29),
        code=1,
    ),
    Case(Story("late", late={"dan": frozenset({6, 17})}), whole),
    # One log, twice.
    *(Case(Story(f"twice {'+'.join(forms)}"), exported_twice, forms=forms) for forms in TWICE),
    Case(Story("twice in one"), exported_into_one, forms=("jsonl",)),
    Case(Story("two files"), two_files),
    # What a log says of itself.
    Case(
        Story("clash"),
        but("bob", clashing),
        forms=("jsonl",),
        verdicts={"bob": "not comparable"},
        problems={"bob": set_of("clash")},
        code=3,
    ),
    Case(Story("gap"), but("bob", with_gap), problems={"bob": set_of("gap")}, code=3),
    Case(
        Story("gap at the end"),
        but("bob", with_gap_at_the_end),
        verdicts={"bob": "not observed"},
        problems={"bob": set_of("gap")},
        code=3,
    ),
    Case(
        Story("first file gone"),
        but("bob", second_file),
        problems={"bob": set_of("first file")},
        code=3,
    ),
    Case(
        Story("first rows gone"),
        but("bob", first_rows_gone),
        problems={"bob": set_of("first file")},
        code=3,
    ),
    Case(
        Story("first file gone, no order"),
        but("bob", second_file_without_order),
        verdicts={"bob": "not observed"},
        problems={"bob": set_of("first file")},
        code=3,
    ),
    Case(
        Story("nothing of it"),
        but("bob", never_observed),
        verdicts={"bob": "not observed"},
        problems={"bob": set_of("nothing")},
        code=3,
    ),
    Case(
        Story("stopped early"),
        but("bob", stopped_early),
        verdicts={"bob": "not observed"},
        problems={"bob": set_of("ends early")},
        code=3,
    ),
    Case(
        Story("refused row"),
        but("bob", refused_place),
        verdicts={"bob": "not observed"},
        problems={"bob": set_of("refused")},
        code=3,
    ),
    # What logs say of one another.
    Case(
        Story("other sender"),
        but("dan", other_sender),
        verdicts={"dan": "conflict"},
        witnesses=frozenset({("dan", "conflict", 7)}),
        conflicts=frozenset({(7, "sender")}),
        code=1,
    ),
    Case(
        Story("other parents"),
        but("dan", other_parents),
        verdicts={"dan": "conflict"},
        witnesses=frozenset({("dan", "conflict", 7)}),
        conflicts=frozenset({(7, "parents")}),
        code=1,
    ),
    Case(
        Story("other content"),
        but("dan", other_content),
        verdicts={"dan": "conflict"},
        witnesses=frozenset({("dan", "conflict", 7)}),
        conflicts=frozenset({(7, "content")}),
        code=1,
    ),
    Case(
        Story("other content, wrong number"),
        but("dan", other_content_under_a_wrong_number),
        verdicts={"dan": "conflict"},
        witnesses=frozenset({("dan", "conflict", 7)}),
        conflicts=frozenset({(7, "content"), (7, "mid")}),
        code=1,
    ),
    Case(Story("lost parent"), but("dan", lost_parent)),
    Case(
        Story("two of six", people=SIX),
        forgers("eve", "fay", name="ada"),
        verdicts={"eve": "extra", "fay": "extra"},
        witnesses=frozenset({("eve", "extra", 90), ("fay", "extra", 90)}),
        code=1,
    ),
    Case(
        Story("two of six, absent", people=(*SIX, "gus")),
        named_absent,
        verdicts={"eve": "unconfirmed", "fay": "unconfirmed"},
        witnesses=frozenset({("eve", "unconfirmed", 90), ("fay", "unconfirmed", 90)}),
        absent=frozenset({"gus"}),
        code=1,
    ),
    Case(
        Story("another's log"),
        anothers_log,
        verdicts={"ada": "not comparable"},
        problems={"ada": set_of("overlap", "two beginnings")},
        code=3,
    ),
    Case(
        Story("two stories"),
        same_log_two_stories,
        forms=("sqlite", "sqlite", "parquet"),
        verdicts={"bob": "not comparable"},
        problems={"bob": set_of("clash")},
        code=3,
    ),
    # Who is a member, and when.
    Case(Story("rejoined", stays={"dan": AWAY}), whole),
    Case(
        Story("absent members"),
        without("dan", "eve"),
        absent=frozenset({"dan", "eve"}),
        code=3,
    ),
    Case(
        Story(
            "absent sender, others came later",
            people=(*SIX, "gus"),
            stays=dict.fromkeys(("dan", "eve", "fay"), JOINS_LATE),
        ),
        without("gus"),
        absent=frozenset({"gus"}),
        code=3,
    ),
    # Clocks.
    Case(
        Story("a day ahead", clocks={"bob": DAY_MS}, stays={"eve": JOINS_LATE}),
        whole,
        clocks={"bob": DAY_MS},
        code=3,
    ),
    Case(
        Story("15 s behind", clocks={"eve": -15_000}, stays={"eve": JOINS_LATE}),
        whole,
        clocks={"eve": -15_000},
        code=3,
    ),
    Case(
        Story(
            "years", clocks={"bob": -30 * YEAR_MS, "cyd": 12 * YEAR_MS}, stays={"eve": JOINS_LATE}
        ),
        whole,
        clocks={"bob": -30 * YEAR_MS, "cyd": 12 * YEAR_MS},
        code=3,
    ),
    Case(
        Story("ages", clocks={"bob": AGES_MS}, stays={"eve": JOINS_LATE}),
        whole,
        clocks={"bob": AGES_MS},
        code=3,
    ),
)
"""All in one input, in one run."""

OF_THE_AUDIT: Final = (
    Case(
        Story("below its parent"),
        below_its_parent,
        verdicts=dict.fromkeys(Story("").people, "causal violation"),
        witnesses=frozenset((who, "causal", 9) for who in Story("").people),
        code=1,
    ),
    Case(
        Story("live order"),
        but("dan", live_order_wrong),
        verdicts={"dan": "causal violation"},
        witnesses=frozenset({("dan", "early", 11)}),
        code=1,
    ),
    Case(Story("given up, started anew"), given_up_in_an_earlier_file),
    Case(
        Story("given up before what is here"),
        without_its_earlier_file,
        verdicts={"dan": "not observed"},
        problems={"dan": set_of("first file")},
        code=3,
    ),
    Case(
        Story("given up in a gap"),
        but("dan", given_up_in_a_gap),
        verdicts={"dan": "not observed"},
        problems={"dan": set_of("gap")},
        code=3,
    ),
    Case(
        Story("gap in an earlier stay", stays={"dan": AWAY}, lacks={"dan": frozenset({4})}),
        whole,
        verdicts={"dan": "missing"},
        witnesses=missing("dan", 4),
        code=1,
    ),
)


WRONG_KEY: Final = Case(
    Story("wrong key"), one_under_another_key, absent=frozenset({"bob"}), code=3
)
WRONG_KEY_ID: Final = Case(Story("wrong key id"), key_id_alone, absent=frozenset({"bob"}), code=3)
OTHER_KEYS: Final = (WRONG_KEY, WRONG_KEY_ID)
"""In one input with others that are under the key which most have."""
