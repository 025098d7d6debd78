"""Every interval, limit and policy of an MVDS node.

2/MVDS leaves nearly all of them to the implementation: the length of an epoch, the function that
raises ``send_epoch``, which mode, when to give up.  Ours are the defaults; ``spec_model`` is the
plain reading of the specification, one payload per peer and epoch and nothing ahead of its time,
in which its recorded traces can be repeated.  Nothing here decides anything.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from engine.core.entropy import RandomUnit

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
    """Messages go as they are: low latency, every retransmission is a whole message."""
    INTERACTIVE = "interactive"
    """Messages are offered, and go when requested: more latency, less traffic."""
    MIXED = "mixed"
    """Small messages go at once, large ones are offered; whatever has to be repeated is offered."""


def back_off(send_count: int, random_unit: RandomUnit) -> int:
    """4 epochs doubling to 3 600, then again and again from 60 to 3 600; a quarter more or less."""
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
    """The reference's: the n-th wait is 2 n epochs."""
    return 2 * send_count


@dataclass(frozen=True, slots=True, kw_only=True)
class MvdsConfig:
    """How one node behaves; peers need not agree."""

    mode: Mode = Mode.MIXED
    batch_up_to_bytes: int = 4 * KIB
    """Mixed mode: a larger body is offered from the start."""
    repeats_whole: int = 3
    """Mixed mode: so often a small message is repeated as it is to a peer who was heard lately."""
    heard_lately_ms: int = 60 * SECOND_MS
    epoch_ms: int = SECOND_MS
    backoff: BackOff = back_off
    at_once_per_epoch: int = 8
    """Payloads per peer and epoch that may go ahead of the next epoch, with nothing but what is
    new: a new record, an answer, an acknowledgement.  0 = strictly one per peer and epoch."""
    request_again: bool = True
    """An OFFER that is repeated brings our REQUEST forward: the first one got lost."""
    give_up_after_ms: int = 30 * DAY_MS
    """Of waiting between attempts, not by the calendar."""
    seen_again_ms: int = 30 * SECOND_MS
    """A peer that is seen so soon again does not bring its records forward again."""
    seen_spares_epochs: int = 3
    """What was sent so short a time ago is not brought forward: the answer may be on its way."""
    seen_retry_epochs: int = 8
    """What was brought forward is sent again so soon at the latest: the peer is there."""

    # --- bounds ---
    max_payload_bytes: int = 100 * KIB
    """Of the encoding, before encryption; the rest goes next epoch."""
    max_body_bytes: int = 96 * KIB
    """Of our own messages: one fits a payload beside ``acks_beside_records`` acknowledgements."""
    acks_beside_records: int = 100
    """So much room is kept for acknowledgements while records wait too."""
    max_live: int = 2_000_000
    max_requests_per_peer: int = 4_096
    """A peer can offer anything; what it offers beyond is offered again later."""
    load_records: int = 20_000
    """How many are asked for at a time when only a part of them is in memory."""
    max_wanted_ids: int = 10_000
    """Ids acknowledged, requested or resent that wait to be looked for on disk."""

    @classmethod
    def spec_model(cls, mode: Mode) -> "MvdsConfig":
        """Pure batch or interactive mode as the recorded traces have it: "epoch + 2*count"."""
        return cls(mode=mode, backoff=linear_back_off, at_once_per_epoch=0, request_again=False)
