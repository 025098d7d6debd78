"""The figures that docs/sds.md names are those of the configuration."""

import re
from pathlib import Path

from engine.core.sds.config import DAY_MS, HOUR_MS, MIB, MINUTE_MS, SECOND_MS, SdsConfig
from engine.core.sds.vocabulary import MissingState, OutgoingState, SendPurpose

PAGE = Path(__file__).parents[3] / "docs" / "sds.md"


def number(value: int) -> str:
    return f"{value:,}".replace(",", " ")


def minutes(value_ms: int) -> str:
    return f"{value_ms // MINUTE_MS} minutes"


def mib(value: int) -> str:
    return f"{value // MIB} MiB"


def seconds(value_ms: int) -> str:
    return f"{value_ms / SECOND_MS:g} s"


WORDS = ("no", "one", "two", "three", "four")


def sentences() -> list[str]:
    ours, small, js = SdsConfig(), SdsConfig.for_small_group(), SdsConfig.js_defaults()
    flood, (soonest_ms, latest_ms) = ours.flood, small.prompt_sync_ms or (0, 0)
    of_sync = (
        f"{seconds(js.sync_interval_ms)}; {js.sync_multiplier_start:g}",
        f"{js.sync_multiplier_content_received:g}",
        f"{js.sync_multiplier_own_sync:g}",
        f"{js.sync_multiplier_repairs:g}",
    )
    return [
        f"dated more than {minutes(ours.max_ahead_ms)} ahead of our clock waits",
        f"At most {ours.max_held_ahead_per_sender} messages of one sender and",
        f"{ours.max_held_ahead} in all are held",
        f"every {ours.holdings_every}th content message",
        f"of more than {ours.holdings_max_instances} author instances",
        f"oldest first, at most {ours.push_per_claim} ({small.push_per_claim}) per claim",
        f"(within {seconds(ours.push_again_ms)}; {seconds(small.push_again_ms)} in small groups)",
        f"In groups of up to {ours.prompt_members}, news is acknowledged after",
        f"acknowledged after {seconds(soonest_ms)} to {seconds(latest_ms)}",
        f"speak again before all have had that time ({seconds(ours.sync_gap_ms)};",
        f"that time ({seconds(ours.sync_gap_ms)}; in small groups {seconds(small.sync_gap_ms)})",
        f"older than {seconds(ours.answer_sync_after_ms)} ({seconds(small.answer_sync_after_ms)})",
        f"in {WORDS[ours.sync_patient_rounds]} rounds, and then ever more rarely, down to every",
        f"down to every {minutes(ours.sync_slowdown_max * ours.sync_interval_ms)}",
        f"js-waku's {seconds(js.repair_t_min_ms)} to {seconds(js.repair_t_max_ms)} are made for",
        f"with what it holds, up to {ours.bloom_capacity} ids",
        f"{ours.repair_answers_per_sweep} every {ours.sweep_spacing_ms} ms for each member",
        f"or {ours.answer_bytes_per_minute // 1024} KiB if that is more",
        f"waits twice as long each time, up to {minutes(ours.answer_again_longest_ms)}",
        f"Once {ours.requests_in_vain} messages named by one member were requested in vain",
        f"for each 4 more, up to {minutes(ours.namer_backoff_max_ms)}",
        f"{ours.max_missing_named_by_syncs} messages per sender are looked for",
        f"only after {ours.fail_after_attempts} attempts while online",
        f"{mib(flood.bytes_per_day)} of signed parts",
        f"{number(flood.messages_per_day)} messages of one verified author",
        f"the bytes of {mib(flood.waiting_bytes)} and {number(flood.waiting_messages)} messages",
        f"beyond that it keeps {number(flood.bare_ids)} ids",
        f"{ours.max_waiting_per_sender} waiting messages",
        f"{mib(ours.max_waiting_bytes_per_sender)} per sender",
        f"{number(ours.max_waiting)} and {mib(ours.max_waiting_bytes)} per channel",
        f"{number(ours.max_missing_per_sender)} dependencies looked for per sender",
        f"{number(ours.max_missing)} per channel",
        f"or for {ours.review_holders_ms // DAY_MS} days",
        # js-waku's scheduling surface
        f"| {js.causal_history_size} | `causal_history_size`, {ours.causal_history_size} |",
        f"| {' / '.join(of_sync)} |",
        f"| {seconds(js.resend_unacknowledged_ms[0])}, {js.fail_after_attempts} |",
        f"`fail_after_attempts` {ours.fail_after_attempts}",
        f"| {seconds(js.repair_t_min_ms)}, {seconds(js.repair_t_max_ms)}, ",
        f", {number(js.repair_buffer)}, {js.repair_group_size} |",
        f"`lost_after_ms`, {ours.lost_after_ms // HOUR_MS} h online",
        f"| {seconds(js.store_query_interval_ms)} | `store_query_interval_ms`",
        f"`store_query_longest_ms`, {ours.store_query_longest_ms // MINUTE_MS} min",
        f"after {js.query_on_connect_after_ms // MINUTE_MS} min; since the last success,",
        f"last success, {js.query_on_connect_longest_ms // DAY_MS} days at most",
    ]


def test_what_the_page_says_is_what_is_configured() -> None:
    page = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8")).lower()
    assert [one for one in sentences() if one.lower() not in page] == []


def test_a_day_has_24_hours_of_60_minutes_of_60_seconds() -> None:
    assert (SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS) == (1_000, 60_000, 3_600_000, 86_400_000)


def test_codes_are_their_names() -> None:
    codes = [*OutgoingState, *MissingState, *SendPurpose]
    assert [code.value for code in codes] == [code.name.lower() for code in codes]


def test_js_waku_has_no_jitter_no_doubling_and_never_slows_down() -> None:
    js = SdsConfig.js_defaults()
    assert js.resend_jitter == 0.0
    assert set(js.resend_unacknowledged_ms) == set(js.resend_possibly_ms)
    assert len(set(js.resend_possibly_ms)) == 1
    assert js.store_query_longest_ms == js.store_query_interval_ms
    assert (js.sync_gap_ms, js.sync_slowdown_max, js.prompt_sync_ms) == (0, 1, None)
    assert js.max_missing_named_by_syncs == js.causal_history_size


def test_an_open_channel_has_js_wakus_filter_and_its_rounds() -> None:
    ours, js = SdsConfig.for_open_channel(), SdsConfig.js_defaults()
    assert ours.open_bloom
    assert ours.bloom_capacity == js.bloom_capacity
    assert ours.sync_slowdown_max == js.sync_slowdown_max
    assert ours.max_missing_named_by_syncs == js.max_missing_named_by_syncs
