"""Signed echoes of our own words: delays and recordings are no evidence against a right clock."""

from base64 import urlsafe_b64encode

from hypothesis import given
from hypothesis import strategies as st

from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, UnixMs
from engine.core.sds.log import head_of
from engine.core.sds.vocabulary import Holdings, SequenceRange
from engine.session.group.clock_echoes import FRESH_MS, MAX_RECENT, ClockEchoes

BOB = ParticipantId("b" * 32)
OURS = InstanceId(b"i" * 16)
START = UnixMs(1_795_000_000_000)
YEAR_MS = 365 * 24 * 3_600_000
DELAYS = st.integers(0, 3 * FRESH_MS)


def id_of(number: int) -> MessageId:
    return MessageId(urlsafe_b64encode(2 * number.to_bytes(8, "big")).decode().rstrip("="))


def author(sequence: int) -> AuthorSequence:
    return AuthorSequence(instance_id=OURS, sequence=sequence)


def said(*at_ms: int) -> ClockEchoes:
    echoes = ClockEchoes()
    for number, when_ms in enumerate(at_ms, start=1):
        echoes.said(id_of(number), author(number), UnixMs(when_ms))
    return echoes


def offset_heard(  # noqa: PLR0913 - one argument per fact
    echoes: ClockEchoes,
    *,
    signed_ms: int,
    now_ms: int,
    named: tuple[MessageId, ...] = (id_of(1),),
    holdings: Holdings | None = None,
    clock_offset_ms: int = 0,
) -> int | None:
    echo = echoes.heard(
        BOB,
        UnixMs(signed_ms),
        named=named,
        holdings=holdings or {},
        clock_offset_ms=clock_offset_ms,
        now_ms=UnixMs(now_ms),
    )
    return None if echo is None else echo.offset_ms


@given(DELAYS, DELAYS, st.integers(-YEAR_MS, YEAR_MS))
def test_two_right_clocks_never_disagree_however_long_a_relay_keeps_words_back(
    there_ms: int, back_ms: int, clock_offset_ms: int
) -> None:
    """Steady time starts anywhere: only our clock, ``clock_offset_ms`` ahead of it, is right."""
    signed_ms = START + there_ms + clock_offset_ms
    heard = offset_heard(
        said(START),
        signed_ms=signed_ms,
        now_ms=START + there_ms + back_ms,
        clock_offset_ms=clock_offset_ms,
    )
    assert heard == (0 if there_ms + back_ms < FRESH_MS else None)


@given(DELAYS, DELAYS, st.integers(-YEAR_MS, YEAR_MS))
def test_a_clock_that_is_wrong_is_never_said_to_be_wrong_by_more_or_the_other_way(
    there_ms: int, back_ms: int, theirs_ahead_ms: int
) -> None:
    heard = offset_heard(
        said(START),
        signed_ms=START + there_ms + theirs_ahead_ms,
        now_ms=START + there_ms + back_ms,
    )
    if heard is not None:
        assert min(theirs_ahead_ms, 0) <= heard <= max(theirs_ahead_ms, 0)
        assert abs(theirs_ahead_ms - heard) <= there_ms + back_ms


@given(st.integers(1, 50), st.integers(0, YEAR_MS))
def test_what_was_recorded_before_names_nothing_that_we_say_now(
    number: int, replayed_after_ms: int
) -> None:
    """Yesterday's words name yesterday's messages: they are no evidence, whenever they come."""
    echoes = said(*(START + one for one in range(number)))
    signed_ms = START + number
    now_ms = START + FRESH_MS + number + replayed_after_ms
    echoes.said(id_of(1_000), author(1_000), UnixMs(now_ms))
    old = tuple(map(id_of, range(1, number + 1)))
    holdings: Holdings = {OURS: (SequenceRange(first=1, last=number, head=head_of(id_of(number))),)}
    assert (
        offset_heard(echoes, signed_ms=signed_ms, now_ms=now_ms, named=old, holdings=holdings)
        is None
    )


def test_a_replay_of_what_said_that_we_were_wrong_says_nothing_once_we_are_right() -> None:
    echoes = said(START)
    hour_ms = 3_600_000
    assert offset_heard(echoes, signed_ms=START + hour_ms + 5, now_ms=START + 10) == hour_ms - 5
    again = offset_heard(
        echoes, signed_ms=START + hour_ms + 5, now_ms=START + 400_000, clock_offset_ms=hour_ms
    )
    assert again == 0


def test_holdings_are_an_echo_only_if_they_name_the_very_message() -> None:
    hour_ms = 3_600_000
    signed_ms, now_ms = START + hour_ms, START + 100

    def by(*ranges: SequenceRange) -> int | None:
        return offset_heard(
            said(START), signed_ms=signed_ms, now_ms=now_ms, named=(), holdings={OURS: ranges}
        )

    named = SequenceRange(first=1, last=1, head=head_of(id_of(1)))
    assert by(named) == hour_ms - 100
    assert by(SequenceRange(first=1, last=1)) is None
    assert by(SequenceRange(first=1, last=1, head=head_of(id_of(2)))) is None
    assert by(SequenceRange(first=1, last=2, head=head_of(id_of(1)))) is None


def test_the_newest_message_named_is_the_tightest_evidence_that_we_are_ahead() -> None:
    echoes = said(START, START + 300_000)
    both = (id_of(1), id_of(2))
    signed_ms = START + 301_000 - 60_000
    assert offset_heard(echoes, signed_ms=signed_ms, now_ms=START + 302_000, named=both) == -59_000


def test_it_remembers_no_more_than_a_few() -> None:
    echoes = said(*(START + one for one in range(MAX_RECENT + 1)))
    now_ms = START + 1_000
    assert offset_heard(echoes, signed_ms=now_ms, now_ms=now_ms, named=(id_of(1),)) is None
    assert offset_heard(echoes, signed_ms=now_ms, now_ms=now_ms, named=(id_of(2),)) == 0
