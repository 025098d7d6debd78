"""Every interval and limit of a channel, with our defaults and js-waku's.

The specification leaves nearly all of them to the implementation ("a set period", "a predefined
capacity").  Ours are the dataclass defaults.  ``js_defaults`` gives those of ``@waku/sds`` and its
``ReliableChannel``, for channels open to js-waku and for comparison.
"""

from msgspec import Struct, field
from msgspec.structs import replace

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
MIB = 1024 * 1024


class FloodLimits(Struct, frozen=True, kw_only=True):
    """The quota of one author per day, and how much beyond it is kept."""

    bytes_per_day: int = 64 * MIB
    """Of signed parts."""
    messages_per_day: int = 20_000
    fetched_days: int = 8
    """How many days' quotas of one author may be fetched in a day."""
    waiting_bytes: int = 64 * MIB
    """Per channel, over all authors: messages that can be shown on demand."""
    waiting_messages: int = 20_000
    bare_ids: int = 20_000
    """Per channel: how many ids are kept of messages beyond that."""


class SdsConfig(Struct, frozen=True, kw_only=True):
    """The behaviour of one channel.  Members need not agree, but do better if they do."""

    # --- messages ---
    max_content_bytes: int = 100 * 1024
    """The limit of our own messages.  A receiver takes 150 KiB in all, with history and filter."""
    causal_history_size: int = 10
    """js 200, nim 10; the specification recommends 2."""
    is_open: bool = False
    """Nobody proves who sent a message, and anybody may send: one quota and one answer budget for
    all senders together, a message from the future is delivered and not adopted, and our own
    sender_id is anybody's."""
    max_lamport: int = 2**53
    """A Lamport timestamp from here on is malformed.  A stranger's jump stays with js-waku's
    members for good, so an open channel takes all that the log can keep."""
    open_bloom: bool = False
    """Always use the 18 752-byte filter that js-waku requires; otherwise size it to its content."""
    bloom_capacity: int = 32
    """Roll over past this many ids; js 10 000.  In sealed channels holdings state the same with
    certainty in a few bytes, so the filter covers only the recent past."""
    holdings_every: int = 20
    """Every n-th content message carries holdings; sync messages always do."""
    holdings_max_instances: int = 64
    holdings_max_ranges: int = 32
    max_ahead_ms: int = 5 * MINUTE_MS
    """A content message whose Lamport timestamp is further ahead of our clock is held aside."""
    max_held_ahead_per_sender: int = 32
    """Keeps one wrong clock from taking everyone's room."""
    max_held_ahead: int = 256
    held_event_entries: int = 64
    held_claim_entries: int = 64
    """How many messages held aside our claim names, so that their senders learn why."""

    # --- outgoing sweep ---
    resend_unacknowledged_ms: tuple[int, int] = (10 * SECOND_MS, 10 * MINUTE_MS)
    """The first period, and the bound of its doubling.  js: 30 s, constant, 10 times."""
    resend_possibly_ms: tuple[int, int] = (30 * SECOND_MS, 30 * MINUTE_MS)
    resend_jitter: float = 0.2
    """A period is multiplied by 1 ± this."""
    online_jitter_ms: int = 500
    """After coming online, due messages wait at most this long, so that not all members send
    together."""
    sweep_batch: int = 32
    """Rebroadcasts per deadline; the next batch follows after ``sweep_spacing_ms``."""
    sweep_spacing_ms: int = 100
    fail_after_attempts: int = 10
    """Attempts while online without any copy ever accepted, after which a message is FAILED
    (about 40 minutes with the periods above)."""
    resend_attempts: int | None = None
    """How often a message that the network took is sent in all, unless the user asks; None: until
    it is acknowledged.  js 11: once, and ten retries."""
    max_outgoing: int = 10_000

    # --- incoming sweep ---
    show_waiting_ms: int = MINUTE_MS
    lost_after_ms: int = DAY_MS
    """Of online time."""
    longest_tick_ms: int = 15 * MINUTE_MS
    """A longer time between two calls counts as sleep, not as searching."""
    max_waiting_per_sender: int = 200
    max_waiting_bytes_per_sender: int = 2 * MIB
    max_waiting: int = 5_000
    max_waiting_bytes: int = 32 * MIB
    max_missing: int = 10_000
    max_missing_per_sender: int = 1_000
    """Dependencies that we look for because one sender named them."""
    max_missing_named_by_syncs: int = 16
    """How many of those may be ones that no message waits for: a sync message names our newest
    ten."""
    lost_if_old_after_ms: int = HOUR_MS
    """Online time for dependencies of a message that was older than ``lost_after_ms`` when it came:
    anyone who has them had that time already."""
    max_gaps: int = 64
    """How many gaps are told apart; the last ones are merged."""

    # --- repair (SDS-R) ---
    repair_t_min_ms: int = 30 * SECOND_MS
    repair_t_max_ms: int = 120 * SECOND_MS
    repair_requests_per_message: int = 3
    repair_backoff_max_ms: int = 10 * MINUTE_MS
    """js asks once and never again."""
    requests_in_vain: int = 24
    """After this many fruitless requests for what one member named, we wait before the next ones:
    twice as long for each 4 more, up to ``namer_backoff_max_ms``."""
    namer_backoff_max_ms: int = 10 * MINUTE_MS
    repair_buffer: int = 1_000
    repair_answers_per_sweep: int = 8
    """Answers per ``sweep_spacing_ms``, however many are requested: each request costs its sender a
    few bytes, and an answer costs us up to a whole message."""
    answer_bytes_per_minute: int = 256 * 1024
    """The most bytes that a member is sent in answers per minute; the rest waits."""
    answer_bytes_factor: int = 8
    """Or this many times the bytes that came from it in that minute, if that is more."""
    answer_overhead_bytes: int = 1_024
    """The overhead of an answer: a signature, both ids, the envelope."""
    answer_again_longest_ms: int = 10 * MINUTE_MS
    """A member that asks for the same message again waits twice as long each time, up to this."""
    push_again_longest_ms: int = HOUR_MS
    """The same for unasked pushes: a member may leave the message out on purpose."""
    repair_group_size: int = 128
    """Members per response group."""
    push_per_claim: int = 16
    """Messages missing from a member's holdings that we push per claim."""
    push_again_ms: int = 15 * SECOND_MS
    """A claim does not make us push what was sent this short a time ago, by us or another member:
    the copy and the claim may have crossed."""
    # --- sync ---
    sync_interval_ms: int = 30 * SECOND_MS
    sync_multiplier_start: float = 1.0
    sync_multiplier_sync_received: float = 1.0
    sync_multiplier_content_sent: float = 1.0
    sync_multiplier_content_received: float = 0.5
    sync_multiplier_own_sync: float = 2.0
    sync_gap_ms: int = 20 * SECOND_MS
    """A timed round waits this long after our own sync or content.  First every member gets the
    time (interval x ``sync_multiplier_content_received``) to tell what it holds.  js 0."""
    sync_multiplier_repairs: float = 0.3
    sync_slowdown_max: int = 20
    """While only a silent member keeps us from being level, rounds double up to this multiple (10
    minutes on average).  js never slows down: 1."""
    sync_patient_rounds: int = 3
    """Rounds before they slow down: an answer may have been lost."""
    prompt_sync_ms: tuple[int, int] | None = (300, 2_000)
    """In a small group, acknowledge after a random delay in this range.  None: only js's timer."""
    prompt_members: int = 16
    """The largest group that counts as small."""
    answer_sync_after_ms: int = 20 * SECOND_MS
    """A member that syncs without news is answered if our last sync is older than this.  The wait
    doubles while all repeat the same."""
    answer_sync_longest_ms: int = HOUR_MS
    """The bound of that wait: while one member is away, the others would keep answering each
    other."""

    # --- Store ---
    store_query_interval_ms: int = 10 * SECOND_MS
    """The delay before Stores are asked for missing dependencies; js 10 s."""
    store_query_longest_ms: int = 10 * MINUTE_MS
    """The wait for a dependency that no Store had doubles up to this.  js: no doubling."""
    time_search_rounds: int = 7
    """What Stores do not find by its hint is asked for by time, this often."""
    time_search_margin_ms: tuple[int, int] = (MINUTE_MS, 4 * HOUR_MS)
    """Asked for before and after the neighbours of a missing message: four times as much in each
    round, up to a bound."""
    time_search_back_factor: int = 60
    """This many margins before, if no earlier neighbour is here."""
    time_search_longest_ms: int = 7 * DAY_MS
    time_search_wait_ms: tuple[int, int] = (10 * SECOND_MS, 10 * MINUTE_MS)
    """The wait between two rounds; it doubles up to a bound."""
    query_on_connect: bool = True
    """Ask for everything sent in the meantime when a Store can be reached: the first time, after
    having been offline, and if the last success is older than ``query_on_connect_after_ms``. js
    does the same, with the same times."""
    query_on_connect_after_ms: int = 5 * MINUTE_MS
    query_on_connect_longest_ms: int = 30 * DAY_MS
    """The farthest back to ask unless the user asks for more."""

    # --- holders ---
    review_holders_ms: int = 30 * DAY_MS
    bloom_review_messages: int = 64
    """How many of our newest messages to review with a received filter, besides the outgoing
    buffer.  Filters prove nothing, so they must cost little."""
    bloom_max_fill: float = 0.55

    # --- flooding ---
    flood: FloodLimits = field(default_factory=FloodLimits)

    @classmethod
    def for_small_group(cls) -> "SdsConfig":
        """For sealed groups of up to 16 members.

        js's repair times (30 s to 120 s) suit crowds, where many hear one request and the wait lets
        one answer silence the others.  In a group of sixteen a duplicate answer costs next to
        nothing, and a gap that stays open for a minute harms the conversation.
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
        """The behaviour of ``@waku/sds`` 0.0.8 with ``ReliableChannel``, as near as possible."""
        return cls(
            causal_history_size=200,
            open_bloom=True,
            bloom_capacity=10_000,
            max_missing_named_by_syncs=200,
            resend_unacknowledged_ms=(30 * SECOND_MS, 30 * SECOND_MS),
            resend_possibly_ms=(30 * SECOND_MS, 30 * SECOND_MS),
            resend_jitter=0.0,
            resend_attempts=11,
            sync_gap_ms=0,
            sync_slowdown_max=1,
            prompt_sync_ms=None,
            store_query_longest_ms=10 * SECOND_MS,
        )

    @classmethod
    def for_open_channel(cls) -> "SdsConfig":
        """For a channel that js-waku can read: with its filter, and our history and retries."""
        return _in_the_open(
            cls(
                open_bloom=True,
                bloom_capacity=10_000,
                max_missing_named_by_syncs=200,
                sync_slowdown_max=1,
            )
        )

    @classmethod
    def as_js_in_open_channel(cls) -> "SdsConfig":
        """The same with js-waku's numbers: history 200, retry 30 s ten times, sync 30 s."""
        return _in_the_open(cls.js_defaults())


def _in_the_open(config: SdsConfig) -> SdsConfig:
    """With the rules and bounds of a channel of strangers.

    A message of js-waku's takes about 45 KiB: its filter, and 200 entries of history.
    """
    return replace(
        config,
        is_open=True,
        max_lamport=2**63,
        answer_bytes_per_minute=2 * MIB,
        max_waiting_bytes_per_sender=8 * MIB,
        max_waiting_bytes=64 * MIB,
    )
