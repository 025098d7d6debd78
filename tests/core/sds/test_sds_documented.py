"""The figures that docs/sds.md names are those of the configuration."""

import re
from pathlib import Path

from engine.core.sds.config import DAY_MS, HOUR_MS, MIB, MINUTE_MS, SECOND_MS, SdsConfig
from engine.core.sds.vocabulary import MissingState, OutgoingState, SendPurpose

PAGE = Path(__file__).parents[3] / "docs" / "sds.md"
OURS, SMALL, JS = SdsConfig(), SdsConfig.for_small_group(), SdsConfig.js_defaults()
FLOOD = OURS.flood
SOONEST_MS, LATEST_MS = SMALL.prompt_sync_ms or (0, 0)


def number(value: int) -> str:
    return f"{value:,}".replace(",", " ")


def minutes(value_ms: int) -> str:
    return f"{value_ms // MINUTE_MS} minutes"


def mib(value: int) -> str:
    return f"{value // MIB} MiB"


def seconds(value_ms: int) -> str:
    return f"{value_ms / SECOND_MS:g} s"


OF_SYNC = (
    f"{seconds(JS.sync_interval_ms)}; {JS.sync_multiplier_start:g}",
    f"{JS.sync_multiplier_content_received:g}",
    f"{JS.sync_multiplier_own_sync:g}",
    f"{JS.sync_multiplier_repairs:g}",
)
WORDS = ("no", "one", "two", "three", "four")
SENTENCES = [
    f"dated more than {minutes(OURS.max_ahead_ms)} ahead of our clock waits",
    f"At most {OURS.max_held_ahead_per_sender} messages of one sender and",
    f"{OURS.max_held_ahead} in all are held",
    f"every {OURS.holdings_every}th content message",
    f"of more than {OURS.holdings_max_instances} author instances",
    f"oldest first, at most {OURS.push_per_claim} ({SMALL.push_per_claim}) per claim",
    f"(within {seconds(OURS.push_again_ms)}; {seconds(SMALL.push_again_ms)} in small groups)",
    f"In groups of up to {OURS.prompt_members}, news is acknowledged after",
    f"acknowledged after {seconds(SOONEST_MS)} to {seconds(LATEST_MS)}",
    f"speak again before all have had that time ({seconds(OURS.sync_gap_ms)};",
    f"that time ({seconds(OURS.sync_gap_ms)}; in small groups {seconds(SMALL.sync_gap_ms)})",
    f"older than {seconds(OURS.answer_sync_after_ms)} ({seconds(SMALL.answer_sync_after_ms)})",
    f"in {WORDS[OURS.sync_patient_rounds]} rounds, and then ever more rarely, down to every",
    f"down to every {minutes(OURS.sync_slowdown_max * OURS.sync_interval_ms)}",
    f"js-waku's {seconds(OURS.repair_t_min_ms)} to {seconds(OURS.repair_t_max_ms)} are made for",
    f"with what it holds, up to {OURS.bloom_capacity} ids",
    f"{OURS.repair_answers_per_sweep} every {OURS.sweep_spacing_ms} ms for each member",
    f"or {OURS.answer_bytes_per_minute // 1024} KiB if that is more",
    f"waits twice as long each time, up to {minutes(OURS.answer_again_longest_ms)}",
    f"Once {OURS.requests_in_vain} messages named by one member were requested in vain",
    f"for each 4 more, up to {minutes(OURS.namer_backoff_max_ms)}",
    f"{OURS.max_missing_named_by_syncs} messages per sender are looked for",
    f"only after {OURS.fail_after_attempts} attempts while online",
    f"{mib(FLOOD.bytes_per_day)} of signed parts",
    f"{number(FLOOD.messages_per_day)} messages of one verified author",
    f"the bytes of {mib(FLOOD.waiting_bytes)} and {number(FLOOD.waiting_messages)} messages",
    f"beyond that it keeps {number(FLOOD.bare_ids)} ids",
    f"{OURS.max_waiting_per_sender} waiting messages",
    f"{mib(OURS.max_waiting_bytes_per_sender)} per sender",
    f"{number(OURS.max_waiting)} and {mib(OURS.max_waiting_bytes)} per channel",
    f"{number(OURS.max_missing_per_sender)} dependencies looked for per sender",
    f"{number(OURS.max_missing)} per channel",
    f"or for {OURS.review_holders_ms // DAY_MS} days",
    # js-waku's scheduling surface
    f"| {JS.causal_history_size} | `causal_history_size`, {OURS.causal_history_size} |",
    f"| {' / '.join(OF_SYNC)} |",
    f"| {seconds(JS.resend_unacknowledged_ms[0])}, {JS.fail_after_attempts} |",
    f"`fail_after_attempts` {OURS.fail_after_attempts}",
    f"| {seconds(JS.repair_t_min_ms)}, {seconds(JS.repair_t_max_ms)}, {number(JS.repair_buffer)},",
    f"{number(JS.repair_buffer)}, {JS.repair_group_size} |",
    f"`lost_after_ms`, {OURS.lost_after_ms // HOUR_MS} h online",
    f"| {seconds(JS.store_query_interval_ms)} | `store_query_interval_ms`",
    f"`store_query_longest_ms`, {OURS.store_query_longest_ms // MINUTE_MS} min",
    f"after {JS.query_on_connect_after_ms // MINUTE_MS} min; since the last success,",
    f"last success, {JS.query_on_connect_longest_ms // DAY_MS} days at most",
]


def test_what_the_page_says_is_what_is_configured() -> None:
    page = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8")).lower()
    assert [one for one in SENTENCES if one.lower() not in page] == []


def test_a_day_has_24_hours_of_60_minutes_of_60_seconds() -> None:
    assert (SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS) == (1_000, 60_000, 3_600_000, 86_400_000)


def test_codes_are_their_names() -> None:
    codes = [*OutgoingState, *MissingState, *SendPurpose]
    assert [code.value for code in codes] == [code.name.lower() for code in codes]


def test_js_waku_has_no_jitter_no_doubling_and_never_slows_down() -> None:
    assert JS.resend_jitter == 0.0
    assert set(JS.resend_unacknowledged_ms) == set(JS.resend_possibly_ms)
    assert len(set(JS.resend_possibly_ms)) == 1
    assert JS.store_query_longest_ms == JS.store_query_interval_ms
    assert (JS.sync_gap_ms, JS.sync_slowdown_max, JS.prompt_sync_ms) == (0, 1, None)
    assert JS.max_missing_named_by_syncs == JS.causal_history_size


def test_an_open_channel_has_js_wakus_filter_and_its_rounds() -> None:
    ours = SdsConfig.for_open_channel()
    assert ours.open_bloom
    assert ours.bloom_capacity == JS.bloom_capacity
    assert ours.sync_slowdown_max == JS.sync_slowdown_max
    assert ours.max_missing_named_by_syncs == JS.max_missing_named_by_syncs
