"""Drafts with those whom they mention, in the one text that is kept of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.content import MAX_MENTIONS, Mention
from engine.core.drafts import draft_mentions, draft_text, kept_draft
from engine.core.ids import ParticipantId

MAYA = Mention(participant_id=ParticipantId("a" * 64), start=4, length=5)
TEXTS = st.text(alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.just("\x1e")))
MENTIONS = st.lists(
    st.builds(
        Mention,
        participant_id=st.sampled_from([ParticipantId("a" * 64), ParticipantId("maya-too")]),
        start=st.integers(0, 65_536),
        length=st.integers(1, 99),
    ),
    max_size=4,
)


@given(TEXTS, MENTIONS)
def test_a_draft_is_read_as_it_was_kept(text: str, mentions: list[Mention]) -> None:
    kept = kept_draft(text, mentions)
    assert (draft_text(kept), draft_mentions(kept)) == (text, tuple(mentions))


def test_a_text_without_mentions_is_kept_as_earlier_versions_kept_it() -> None:
    assert kept_draft("half a thought", ()) == "half a thought"
    assert draft_mentions("half a thought") == ()


@pytest.mark.parametrize("listed", ["", ",,", "4 5", "x 5 a", "-1 5 a", "1e9 5 a", f"{10**12} 5 a"])
def test_what_is_no_mention_is_left_out(listed: str) -> None:
    kept = f"hey @Maya\x1e{listed},{kept_draft('', [MAYA])[1:]}"
    assert draft_text(kept) == "hey @Maya"
    assert draft_mentions(kept) == (MAYA,)


def test_no_more_are_read_than_a_message_may_have() -> None:
    kept = kept_draft("x", [MAYA] * (MAX_MENTIONS + 5))
    assert len(draft_mentions(kept)) == MAX_MENTIONS
