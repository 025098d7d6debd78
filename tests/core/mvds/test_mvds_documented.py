"""The figures that docs/mvds.md names are those of the configuration."""

import re
from pathlib import Path

from engine.core.mvds.config import KIB, MvdsConfig

PAGE = Path(__file__).parents[3] / "docs" / "mvds.md"
OURS = MvdsConfig()


def number(value: int) -> str:
    return f"{value:,}".replace(",", " ")


SENTENCES = [
    f"Up to {OURS.at_once_per_epoch} payloads per peer and epoch go ahead",
    f"a body of up to {OURS.batch_up_to_bytes // KIB} KiB goes as a MESSAGE at once",
    f"within {OURS.heard_retry_epochs} epochs, {OURS.heard_repeats} times at most",
    "After one OFFER that it left unanswered" if OURS.offers_unanswered[0] == 1 else "",
    "after seven, and then after twice as many" if OURS.offers_unanswered[1] == 7 else "",
    f"one payload ({OURS.max_payload_bytes // KIB} KiB) per epoch",
    "within the last three epochs is spared" if OURS.seen_spares_epochs == 3 else "",
    f"tried again within {OURS.seen_retry_epochs} epochs",
    f"at most once in {OURS.seen_again_ms // 1_000} seconds",
    f"after {OURS.give_up_after_ms // 86_400_000} days of waiting between attempts",
    f"starts with the {number(OURS.load_records)} records due soonest",
    f"bodies of {OURS.max_body_bytes // KIB} KiB received and sent",
    f"(leaving room for {OURS.acks_beside_records} acknowledgements",
    f"{number(OURS.max_requests_per_peer)} REQUESTs per peer",
    f"{number(OURS.max_wanted_ids)} ids to look for on disk",
    f"{OURS.max_live // 1_000_000} million live records",
]


def test_what_the_page_says_is_what_is_configured() -> None:
    page = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))
    assert [one for one in SENTENCES if not one or one not in page] == []
