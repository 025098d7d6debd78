"""Every interval and limit of a channel, with ours and js-waku's defaults.

The specification leaves nearly all of them to the implementation ("a set period", "a predefined
capacity").  Ours are the dataclass defaults; ``js_defaults`` gives those of ``@waku/sds`` and its
``ReliableChannel``, for channels open to js-waku and for comparison.  Nothing here decides
anything.
"""

from dataclasses import dataclass, field, replace

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FloodLimits:
    """What one author may send in a day, and how much of what is beyond is kept."""

    bytes_per_day: int = 64 * MIB
    """Of signed parts."""
    messages_per_day: int = 20_000
    fetched_days: int = 8
    """So many days' quotas may be fetched of one author in a day."""
    waiting_bytes: int = 64 * MIB
    """Of a channel: what may be shown on demand, over all authors."""
    waiting_messages: int = 20_000
    bare_ids: int = 20_000
    """Of a channel: beyond that, so many ids are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SdsConfig:
    """How one channel behaves; all members of a channel need not agree, but do better if so."""

    # --- messages ---
    max_content_bytes: int = 100 * 1024
    """Of our own messages; 150 KiB in all is what a receiver takes, history and filter included."""
    causal_history_size: int = 10
    """js 200, nim 10; the specification recommends 2."""
    open_bloom: bool = False
    """Always the 18 752-byte filter that js-waku insists on; else sized to what it holds."""
    bloom_capacity: int = 32
    """Rolled over past this many ids.  js 10 000.  In sealed channels holdings say the same with
    certainty in a few bytes, so the filter covers the recent past only."""
    holdings_every: int = 20
    """Every n-th content message carries holdings; sync messages always do."""
    holdings_max_instances: int = 64
    holdings_max_ranges: int = 32
    max_ahead_ms: int = 5 * MINUTE_MS
    """A content message whose Lamport timestamp is further ahead of our clock is held aside."""
    max_held_ahead_per_sender: int = 32
    """So that one wrong clock does not take everybody's room."""
    max_held_ahead: int = 256
    held_event_entries: int = 64
    held_claim_entries: int = 64
    """Of those held aside, so many are named in what we claim: their senders learn why."""

    # --- outgoing sweep ---
    resend_unacknowledged_ms: tuple[int, int] = (10 * SECOND_MS, 10 * MINUTE_MS)
    """First period and the bound of its doubling.  js: 30 s, constant, 10 times."""
    resend_possibly_ms: tuple[int, int] = (30 * SECOND_MS, 30 * MINUTE_MS)
    resend_jitter: float = 0.2
    """A period is multiplied by 1 ± this."""
    online_jitter_ms: int = 500
    """After becoming online, what is due waits this long at most: not everybody at once."""
    sweep_batch: int = 32
    """Rebroadcasts per deadline; the next slice follows after ``sweep_spacing_ms``."""
    sweep_spacing_ms: int = 100
    fail_after_attempts: int = 10
    """Attempts while online without any copy ever accepted, after which a message is FAILED
    (about 40 minutes with the periods above)."""
    max_outgoing: int = 10_000

    # --- incoming sweep ---
    show_waiting_ms: int = MINUTE_MS
    lost_after_ms: int = DAY_MS
    """Of online time."""
    longest_tick_ms: int = 15 * MINUTE_MS
    """More time than this between two calls is sleep, not searching."""
    max_waiting_per_sender: int = 200
    max_waiting_bytes_per_sender: int = 2 * MIB
    max_waiting: int = 5_000
    max_waiting_bytes: int = 32 * MIB
    max_missing: int = 10_000
    max_missing_per_sender: int = 1_000
    """Dependencies that we look for because one sender named them."""
    max_missing_named_by_syncs: int = 16
    """Of those, so many that nothing waits for: a sync message names our newest ten."""
    lost_if_old_after_ms: int = HOUR_MS
    """Of online time, for what is missing before a message that came when it was older than
    ``lost_after_ms``: whoever has it has had that time."""
    gap_event_entries: int = 64

    # --- repair (SDS-R) ---
    repair_t_min_ms: int = 30 * SECOND_MS
    repair_t_max_ms: int = 120 * SECOND_MS
    repair_requests_per_message: int = 3
    repair_backoff_max_ms: int = 10 * MINUTE_MS
    """js asks once and never again."""
    requests_in_vain: int = 24
    """Of what one member named, so many are asked for without finding any; from then on we wait,
    twice as long for each 4 more, up to ``namer_backoff_max_ms``."""
    namer_backoff_max_ms: int = 10 * MINUTE_MS
    repair_buffer: int = 1_000
    repair_answers_per_sweep: int = 8
    """Answers every ``sweep_spacing_ms``, however many are asked for: a request costs its sender
    some bytes for each, an answer costs us up to a whole message."""
    answer_bytes_per_minute: int = 256 * 1024
    """What a member is answered with in a minute at most; the rest waits for the next ones."""
    answer_bytes_factor: int = 8
    """Or so many times what came from it in that minute, if that is more."""
    answer_overhead_bytes: int = 1_024
    """What an answer has around the message: a signature, who both are, the envelope."""
    answer_again_longest_ms: int = 10 * MINUTE_MS
    """Whoever asks for the same again and again waits twice as long each time, up to this."""
    push_again_longest_ms: int = HOUR_MS
    """The same for what a member is sent unasked: it may lack it on purpose."""
    repair_group_size: int = 128
    """Members per response group."""
    push_per_claim: int = 16
    """Messages that a member's holdings lack, sent again unasked, per such claim."""
    push_again_ms: int = 15 * SECOND_MS
    """A claim does not make us push what was sent so short a time ago, by us or within our hearing:
    the copy and the claim may have crossed."""
    # --- sync ---
    sync_interval_ms: int = 30 * SECOND_MS
    sync_multiplier_start: float = 1.0
    sync_multiplier_sync_received: float = 1.0
    sync_multiplier_content_sent: float = 1.0
    sync_multiplier_content_received: float = 0.5
    sync_multiplier_own_sync: float = 2.0
    sync_gap_ms: int = 20 * SECOND_MS
    """No round by the timer alone follows our own sync or content sooner: first everybody has the
    time (interval x ``sync_multiplier_content_received``) to say what it holds.  js 0."""
    sync_multiplier_repairs: float = 0.3
    sync_slowdown_max: int = 20
    """While nothing but a silent member keeps us from being level, rounds double up to this
    multiple (10 minutes on average).  js never slows down: 1."""
    sync_patient_rounds: int = 3
    """Rounds before they slow down: an answer may well have been lost."""
    prompt_sync_ms: tuple[int, int] | None = (300, 2_000)
    """In a small group: acknowledge after a random delay in this range.  None: js's timer only."""
    prompt_members: int = 16
    """What counts as a small group."""
    answer_sync_after_ms: int = 20 * SECOND_MS
    """Who syncs without having news is answered if our last own sync is older than this; the wait
    doubles while all that is said is the same."""
    answer_sync_longest_ms: int = HOUR_MS
    """Where that ends: while one member is away, the others would answer one another in vain."""

    # --- Store ---
    store_query_interval_ms: int = 10 * SECOND_MS
    """How soon Stores are asked for dependencies that are missing; js 10 s."""
    store_query_longest_ms: int = 10 * MINUTE_MS
    """The wait for one that no Store had doubles up to this.  js: no doubling."""
    query_on_connect: bool = True
    """Ask for all that was said meanwhile when a Store can be reached: the first time, after having
    been offline, and if the last success is older than ``query_on_connect_after_ms``.  js the
    same, with the same times."""
    query_on_connect_after_ms: int = 5 * MINUTE_MS
    query_on_connect_longest_ms: int = 30 * DAY_MS
    """No further back than this without the user's asking."""

    # --- holders ---
    review_holders_ms: int = 30 * DAY_MS
    bloom_review_messages: int = 64
    """Newest own messages whose holders are reviewed with a received filter, besides the outgoing
    buffer: filters show nothing certain, so they may not cost more than a little."""
    bloom_max_fill: float = 0.55

    # --- flooding ---
    flood: FloodLimits = field(default_factory=FloodLimits)

    @classmethod
    def for_small_group(cls) -> "SdsConfig":
        """For sealed groups of up to 16 members.

        js's repair times (30 s to 120 s) are made for crowds, where many hear one request and the
        wait lets one answer silence the others.  In a group of sixteen a duplicate answer costs
        next to nothing, and a gap that stays open for a minute costs the conversation.
        """
        return cls(
            repair_t_min_ms=400,
            repair_t_max_ms=1_800,
            prompt_sync_ms=(200, 1_000),
            repair_backoff_max_ms=2 * MINUTE_MS,
            push_per_claim=32,
            push_again_ms=2_000,
            answer_sync_after_ms=5 * SECOND_MS,
            sync_gap_ms=5 * SECOND_MS,
        )

    @classmethod
    def js_defaults(cls) -> "SdsConfig":
        """What ``@waku/sds`` 0.0.8 with ``ReliableChannel`` does, as far as we can be told to."""
        return cls(
            causal_history_size=200,
            open_bloom=True,
            bloom_capacity=10_000,
            max_missing_named_by_syncs=200,
            resend_unacknowledged_ms=(30 * SECOND_MS, 30 * SECOND_MS),
            resend_possibly_ms=(30 * SECOND_MS, 30 * SECOND_MS),
            resend_jitter=0.0,
            sync_gap_ms=0,
            sync_slowdown_max=1,
            prompt_sync_ms=None,
            store_query_longest_ms=10 * SECOND_MS,
        )

    @classmethod
    def for_open_channel(cls) -> "SdsConfig":
        """Ours, in a channel that js-waku can read: its filter, its repair and sync times."""
        return replace(
            cls(),
            open_bloom=True,
            bloom_capacity=10_000,
            max_missing_named_by_syncs=200,
            sync_slowdown_max=1,
        )
