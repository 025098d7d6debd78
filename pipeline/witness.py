"""A witness explains itself: who wrote the message, who holds it, what the log in question says.

The audit names a message and a place.  ``pipeline.evidence`` fetches what else is known; here it
becomes sentences, the same ones for terminal, page and machines: what happened at the receiver's,
why that is wrong, and since when.  Times are shown in the reader's zone, as the clock of the device
told them that recorded them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

from engine.core.message_link import message_link
from engine.delivery.contract import Kind

MOST_HOLDERS: Final = 8
"""Named; the others are counted."""
AGREEING: Final = ("identical", "unknown", "not observed", "not comparable")
COUNTED: Final = ("missing", "extra", "reordered", "causal", "early", "unconfirmed", "conflict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a log says of an id, events of one kind together; times by its own clock."""

    kind: str
    first_ms: int
    last_ms: int
    times: int = 1
    via: str = ""
    """Of the first."""
    peer: str = ""
    detail: str = ""

    @property
    def is_on_purpose(self) -> bool:
        """Somebody tried a bad network."""
        return self.kind == Kind.FAULT.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What the log's owner did when the message was written."""

    presence: str = ""
    """The last of ``online``, ``offline``, ``started`` and ``stopped`` before; "": nobody says."""
    presence_ms: int = 0
    dropped_rows: int = 0
    """That the recorder could not write, in all."""
    tries_faults: bool = False
    tells_all: bool = True
    """No rows of the log are left out or refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """An anomaly, with all that is known of it."""

    channel: str
    participant: str
    kind: str
    message_id: str
    mid: int
    place: int | None = None
    position: int | None = None
    expected_position: int | None = None
    lamport: int | None = None
    parent_message_id: str = ""
    sender: str = ""
    """Empty: no log tells."""
    sent_ms: int | None = None
    is_canonical: bool = True
    sender_has_log: bool = False
    holders: Sequence[str] = ()
    """Whose final logs hold it, at most ``MOST_HOLDERS``."""
    holding: int = 0
    """How many do."""
    logs: int = 0
    """How many logs of the channel there are."""
    steps: Sequence[Step] = ()
    snapshot_ms: int | None = None
    """When the log's last snapshot was taken."""
    device: Device = Device()

    @property
    def link(self) -> str:
        """Opens it in the application; empty if no link can hold the id."""
        return message_link(self.message_id)

    def step(self, kind: Kind) -> Step | None:
        return next((step for step in self.steps if step.kind == kind.value), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A log that differs, and its first witnesses."""

    channel: str
    participant: str
    verdict: str
    counts: Mapping[str, int]
    """expected, held and what is wrong, as in the table of verdicts."""
    witnesses: Sequence[Witness] = ()
    total: int = 0
    """How many witnesses there are."""
    first_place: int | None = None

    @property
    def left_out(self) -> int:
        return self.total - len(self.witnesses)


# --- times ----------------------------------------------------------------------------------------


class Times:
    """Times in words; the day is named where it is not that of ``first_ms``."""

    def __init__(self, first_ms: int | None, zone: tzinfo | None = None) -> None:
        """``zone``: default is this machine's."""
        self._zone = zone
        self._day = None if first_ms is None else self._at(first_ms).date()

    def __call__(self, at_ms: int) -> str:
        at = self._at(at_ms)
        return f"{at:%H:%M:%S}" if at.date() == self._day else f"{at:%Y-%m-%d %H:%M:%S}"

    def whole(self, at_ms: int) -> str:
        """Day, time and zone."""
        return f"{self._at(at_ms):%Y-%m-%d %H:%M:%S %Z}"

    def _at(self, at_ms: int) -> datetime:
        """Clocks may be off by anything; what no calendar has is the beginning of time."""
        try:
            return datetime.fromtimestamp(at_ms / 1_000, tz=UTC).astimezone(self._zone)
        except (OverflowError, ValueError, OSError):
            return datetime.fromtimestamp(0, tz=UTC)


def short(name: str) -> str:
    """Enough of a pseudonym to tell people apart."""
    return name[:12]


# --- sentences ------------------------------------------------------------------------------------


def origin(witness: Witness, times: Times) -> str:
    """Who wrote it and when, and who holds it."""
    who = f"written by {short(witness.sender)}" if witness.sender else "nobody says who wrote it"
    if witness.sent_ms is not None:
        who += f", {times.whole(witness.sent_ms)} by that clock"
    return f"{who}; {held(witness)}"


def held(witness: Witness) -> str:
    names = ", ".join(map(short, witness.holders))
    more = witness.holding - len(witness.holders)
    if not names:
        return f"in none of {witness.logs} logs"
    rest = f" and {more} more" if more else ""
    return f"in {witness.holding} of {witness.logs} logs ({names}{rest})"


_STEP_TEXTS: Final[Mapping[str, str]] = {
    Kind.SENT.value: "written",
    Kind.RECEIVED.value: "received",
    Kind.DELIVERED.value: "delivered",
    Kind.MISSING.value: "known to be missing",
    Kind.LOST.value: "given up",
    Kind.REPAIR_REQUESTED.value: "others asked for it",
    Kind.STORE_HIT.value: "found at a Store",
    Kind.REJECTED.value: "refused",
}
_FAULT_TEXTS: Final[Mapping[str, str]] = {
    "lost_in": "a copy for it was thrown away",
    "lost_out": "a copy was thrown away before it was sent",
    "delayed_in": "a copy for it was delayed",
    "delayed_out": "a copy was sent late",
    "doubled_in": "a copy for it was doubled",
    "doubled_out": "a copy was sent twice",
    "held_in": "a copy for it was held back",
    "held_out": "a copy was held back before it was sent",
    "overflowed_in": "a copy for it was thrown away, too many were held",
    "overflowed_out": "a copy was thrown away before it was sent, too many were held",
}


_TRIED_TEXTS: Final[Mapping[str, str]] = {
    "lost": "thrown away",
    "delayed": "delayed",
    "doubled": "doubled",
    "held": "held back",
    "overflowed": "thrown away because too many were held back",
}
_WAY_TEXTS: Final[Mapping[str, str]] = {"in": "incoming copies", "out": "outgoing copies"}
_BENCH_TEXTS: Final[Mapping[str, str]] = {
    "begun": "begun",
    "changed": "changed",
    "ended": "ended",
    "clock_ahead": "clock put ahead",
    "clock_back": "clock put back",
    "peer_cut_off": "peers cut off",
    "peer_let_back": "peers let back",
}


def tried_text(detail: str) -> str:
    """What was done on purpose, to be followed by how often."""
    of_peer = detail.removeprefix("peer_")
    what, _, way = of_peer.rpartition("_")
    if what in _TRIED_TEXTS and way in _WAY_TEXTS:
        whose = " of one peer" if of_peer != detail else ""
        return f"{_WAY_TEXTS[way]}{whose} {_TRIED_TEXTS[what]}"
    return _BENCH_TEXTS.get(detail, detail)


def step_text(step: Step) -> str:
    """Without its time."""
    if step.is_on_purpose:
        done = _FAULT_TEXTS.get(step.detail, step.detail or "something was done to it")
        return f"{done} (tried on purpose)"
    text = _STEP_TEXTS.get(step.kind, step.kind.replace("_", " "))
    if step.kind == Kind.RECEIVED.value and step.via:
        text += f" by {step.via}"
    return f"{text}: {step.detail}" if step.detail else text


def happened(witness: Witness, times: Times) -> str:
    """The participant's own events of this id: ``received 12:03:07 by relay, delivered …``."""
    parts = []
    for step in witness.steps:
        text = f"{step_text(step)} {times(step.first_ms)}"
        if step.times > 1:
            text += f" and {step.times - 1} times more until {times(step.last_ms)}"
        parts.append(text)
    told = ", ".join(parts) or "nothing about it"
    if witness.kind == "missing" and witness.step(Kind.DELIVERED) and witness.snapshot_ms:
        told += f", gone in the snapshot of {times(witness.snapshot_ms)}"
    return told


def why(witness: Witness, times: Times) -> str:
    """What is wrong, and since when, as far as anybody knows."""
    reasons: Mapping[str, Callable[[Witness, Times], str]] = {
        "missing": _why_missing,
        "extra": _why_extra,
        "reordered": _why_reordered,
        "causal": _why_causal,
        "early": _why_early,
        "unconfirmed": lambda *_: (
            "few hold it and its sender's log is not here: they have it falsely, or the others lack"
            " it"
        ),
        "conflict": lambda *_: (
            "this log tells of it otherwise than most: its place, sender, parents or content"
        ),
    }
    explain = reasons.get(witness.kind)
    return witness.kind if explain is None else explain(witness, times)


def since_ms(witness: Witness) -> int | None:
    """When it went wrong, or the earliest time at which it may have; None: nobody knows."""
    kinds = (Kind.DELIVERED, Kind.RECEIVED, Kind.MISSING)
    for kind in kinds if witness.kind == "missing" else kinds[:1]:
        if (step := witness.step(kind)) is not None:
            return step.first_ms
    return witness.sent_ms


def _why_missing(witness: Witness, times: Times) -> str:
    delivered, received = witness.step(Kind.DELIVERED), witness.step(Kind.RECEIVED)
    if delivered is not None:
        until = f" and before {times(witness.snapshot_ms)}" if witness.snapshot_ms else ""
        return (
            f"it was there and is gone since after {times(delivered.first_ms)}{until}: the log was"
            " changed, or brought back from an older copy"
        )
    lost, missing = witness.step(Kind.LOST), witness.step(Kind.MISSING)
    if received is not None:
        return (
            f"it came {times(received.first_ms)} and was never delivered: what it depends on is"
            " not there"
        )
    if lost is not None:
        return f"it never came; it was looked for and given up {times(lost.first_ms)}"
    if missing is not None:
        return f"known to be missing since {times(missing.first_ms)}, and it never came"
    thrown = next((step for step in witness.steps if step.is_on_purpose), None)
    if thrown is not None:
        return f"no copy came; {step_text(thrown)} {times(thrown.first_ms)}"
    return _why_unnoticed(witness, times)


def _why_unnoticed(witness: Witness, times: Times) -> str:
    device = witness.device
    if device.dropped_rows:
        return (
            f"this log says nothing of it, and {device.dropped_rows} of its rows could not be"
            " written: what happened is not known"
        )
    if not device.tells_all:
        return "this log says nothing of it, and lacks rows: what happened is not known"
    if device.presence == Kind.OFFLINE.value:
        return f"its device was offline since {times(device.presence_ms)}; nothing named it later"
    if device.presence == Kind.STOPPED.value:
        return f"the program had ended {times(device.presence_ms)}; nothing named it later"
    if device.tries_faults:
        return "no copy came while a bad network was tried on purpose; nothing named it later"
    return "no copy came, and nothing that came later named it"


def _why_extra(witness: Witness, times: Times) -> str:
    del times
    if witness.is_canonical:
        return "the log has it more than once"
    if witness.sender == witness.participant:
        return "its own, and nobody else has it"
    if witness.sender_has_log:
        return f"nobody else has it, and the log of {short(witness.sender)} does not know it"
    if witness.sender:
        return f"nobody else has it, and the log of {short(witness.sender)} is not here"
    return "nobody else has it, and no log says who wrote it"


def _why_reordered(witness: Witness, times: Times) -> str:
    stands = "" if witness.position is None else f"it stands at place {witness.position}"
    belongs = witness.expected_position if witness.expected_position is not None else witness.place
    text = f"{stands or 'it does not stand'}{' and belongs' if stands else ''} at place {belongs}"
    delivered = witness.step(Kind.DELIVERED)
    return text + (f", since {times(delivered.first_ms)}" if delivered else "")


def _why_causal(witness: Witness, times: Times) -> str:
    text = f"it stands before {witness.parent_message_id or 'a message'}, which it depends on"
    delivered = witness.step(Kind.DELIVERED)
    return text + (f", since {times(delivered.first_ms)}" if delivered else "")


def _why_early(witness: Witness, times: Times) -> str:
    delivered = witness.step(Kind.DELIVERED)
    when = f" {times(delivered.first_ms)}," if delivered else ""
    parent = witness.parent_message_id or "a message"
    return f"it was delivered{when} before {parent}, which it depends on and nobody had given up"


def times_of(witness: Witness, zone: tzinfo | None = None) -> Times:
    """The day of its sending, or of its first event, goes without saying."""
    first = witness.steps[0].first_ms if witness.steps else None
    return Times(first if witness.sent_ms is None else witness.sent_ms, zone)
