"""Every interval, limit and policy of an MVDS node.

2/MVDS leaves nearly all of them to the implementation: the length of an epoch, the function that
raises ``send_epoch``, which mode, when to give up.  Ours are the defaults.  ``spec_model`` is the
plain reading of the specification, one payload per peer and epoch and nothing ahead of time; it
repeats the specification's recorded traces.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from engine.core.entropy import RandomUnit
from engine.core.mvds.vocabulary import WireGeneration

SECOND_MS: Final = 1_000
DAY_MS: Final = 24 * 3_600 * SECOND_MS
KIB: Final = 1_024

FIRST_BACK_OFF: Final = 4
LOWER_BACK_OFF: Final = 60
UPPER_BACK_OFF: Final = 3_600
JITTER: Final = 0.25

BackOff: TypeAlias = Callable[[int, RandomUnit], int]
"""(send_count after this send, random) → epochs until the record may be sent again, at least 1."""


class Mode(StrEnum):
    BATCH = "batch"
    """Send messages at once: low latency, but every repeat is a whole message."""
    INTERACTIVE = "interactive"
    """Offer messages and send them on request: more latency, less traffic."""
    MIXED = "mixed"
    """Send small messages at once; offer large ones and everything that is repeated."""


def back_off(send_count: int, random_unit: RandomUnit) -> int:
    """4 epochs, doubling to 3 600, then from 60 to 3 600 over and over; varied by a quarter."""
    if send_count <= len(_FIRST_WAITS):
        wait = _FIRST_WAITS[send_count - 1]
    else:
        wait = _LATER_WAITS[(send_count - len(_FIRST_WAITS) - 1) % len(_LATER_WAITS)]
    return int(wait * (1 - JITTER + 2 * JITTER * random_unit()) + 0.5)


def _doubling(lowest: int) -> tuple[int, ...]:
    waits = [lowest]
    while waits[-1] < UPPER_BACK_OFF:
        waits.append(min(2 * waits[-1], UPPER_BACK_OFF))
    return tuple(waits)


_FIRST_WAITS: Final = _doubling(FIRST_BACK_OFF)
_LATER_WAITS: Final = _doubling(LOWER_BACK_OFF)


def linear_back_off(send_count: int, _random_unit: RandomUnit) -> int:
    """The reference's function: the n-th wait is 2 n epochs."""
    return 2 * send_count


class MvdsConfig(Struct, frozen=True, kw_only=True):
    """The behaviour of one node; peers need not agree."""

    mode: Mode = Mode.MIXED
    batch_up_to_bytes: int = 4 * KIB
    """Mixed mode: a larger body is offered from the start."""
    heard_lately_ms: int = 60 * SECOND_MS
    heard_repeats: int = 20
    """To a peer heard lately: this often a record is repeated within ``heard_retry_epochs``, and in
    mixed mode a small message is repeated whole."""
    heard_retry_epochs: int = 3
    offers_unanswered: tuple[int, int] = (1, 7)
    """After this many unanswered OFFERs to a peer heard lately, and to another, a message is sent
    whole, as a peer may ignore an OFFER of what it holds.  To another it is next sent whole after
    twice as many, and so on.  0 = never."""
    generation: WireGeneration = WireGeneration.RFC
    """The field numbers to start with; a peer is answered in those that it used last."""
    epoch_ms: int = SECOND_MS
    backoff: BackOff = back_off
    at_once_per_epoch: int = 8
    """Payloads per peer and epoch that may go ahead of the next epoch, with only new things: a
    record, an answer, an acknowledgement. 0 = strictly one per peer and epoch."""
    request_again: bool = True
    """A repeated OFFER brings our REQUEST forward: the first REQUEST got lost."""
    give_up_after_ms: int = 30 * DAY_MS
    """Total time spent waiting between attempts, not calendar time."""
    seen_again_ms: int = 30 * SECOND_MS
    """A peer seen again within this time does not bring its records forward again."""
    seen_spares_epochs: int = 3
    """Records sent within this time are not brought forward: the answer may be on its way."""
    seen_retry_epochs: int = 8
    """Records brought forward are repeated within this time, as the peer is online."""

    # --- bounds ---
    max_payload_bytes: int = 104 * KIB
    """The limit of the encoding, before encryption; the rest goes in the next epoch."""
    max_body_bytes: int = 100 * KIB
    """The limit of our own messages: one fits beside ``acks_beside_records`` acknowledgements."""
    acks_beside_records: int = 100
    """Room kept for this many acknowledgements while records wait too."""
    max_live: int = 2_000_000
    max_requests_per_peer: int = 4_096
    """A peer can offer anything; it offers the rest again later."""
    load_records: int = 20_000
    """How many records to load at a time when only a part is in memory."""
    max_wanted_ids: int = 10_000
    """Ids acknowledged, requested or resent that wait to be looked up on disk."""

    @classmethod
    def spec_model(cls, mode: Mode) -> "MvdsConfig":
        """Pure batch or interactive mode, as in the recorded traces: "epoch + 2*count"."""
        return cls(
            mode=mode,
            backoff=linear_back_off,
            at_once_per_epoch=0,
            request_again=False,
            heard_repeats=0,
            offers_unanswered=(0, 0),
        )
