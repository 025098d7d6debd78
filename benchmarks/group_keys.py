"""What a group's admin log and its keys cost: a fresh key for 1 000 members, joining, loading.

CPU time of the pure code, without SDS, seals and disk: nothing carries it yet.  Who makes a key
signs the entry and wraps the key for everybody; a receiver verifies the entry and opens its chunk.
Joining is unpacking what the inviter packed, verifying every entry, finding what is in force, and
opening 500 earlier keys.
"""

import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Final, TypeVar

from benchmarks.report import Figure, Report, figure_of
from engine.codec.joining import decode_admission, encode_admission
from engine.codec.packing import unpack
from engine.core.admin_log.acts import Act, Add, Create, EntryId, MakeEpoch, Rename
from engine.core.admin_log.log import AdminLog
from engine.core.ids import ParticipantId, UnixMs
from engine.core.joining import MAX_ADMISSION_BYTES, AdmissionParts
from engine.core.prekeys import OwnPrekey
from engine.crypto.admin_entry import SignedEntry, read_entry, sign_entry, verify_entry
from engine.crypto.epochs import (
    WrapOpener,
    seal_earlier_keys,
    sign_prekey,
    verify_prekey,
    wrap_epoch_key,
)
from engine.crypto.identity import Identity
from engine.crypto.sealed import epoch_commitment

GROUP: Final = bytes(range(32))
NOW: Final = UnixMs(1_800_000_000_000)
MEMBERS: Final = 1_000
EPOCHS: Final = 500
ENTRIES: Final = 10_000
OWNER: Final = Identity(signing_key=bytes([2] * 32), encryption_key=bytes([3] * 32))
NEWCOMER: Final = Identity(signing_key=bytes([4] * 32), encryption_key=bytes([5] * 32))
_T = TypeVar("_T")


def run(quick: bool) -> Report:
    report = Report(name="group_keys")
    runs = 3 if quick else 7
    _fresh_key(report, runs)
    _joining(report, runs)
    _loading(report, runs)
    return report


def _people() -> list[ParticipantId]:
    hashes = (sha256(number.to_bytes(4, "big")).digest()[:16] for number in range(MEMBERS - 1))
    others = [ParticipantId(urlsafe_b64encode(each).decode().rstrip("=")) for each in hashes]
    return [NEWCOMER.participant_id, *others]


def _fresh_key(report: Report, runs: int) -> None:
    people = _people()
    key = bytes([7] * 32)
    commitment = epoch_commitment(GROUP, key)
    prekeys = dict.fromkeys(people, NEWCOMER.encryption_public_key)

    def make() -> tuple[SignedEntry, tuple[bytes, ...]]:
        act = MakeEpoch(commitment=commitment, recipients=frozenset(people))
        return _signed(act, 2, _first()), wrap_epoch_key(key, prekeys, group_id=GROUP)

    def take() -> None:
        verify_entry(entry.data, group_id=GROUP)
        for chunk in chunks:
            opener.open(chunk, wanted={commitment})

    opener = WrapOpener(NEWCOMER.participant_id, (NEWCOMER.encryption_key,), group_id=GROUP)
    entry, chunks = make()
    report.figures += [
        figure_of(f"a fresh key for {MEMBERS} members, CPU", _timed(make, runs), "s", 1.0),
        _size(f"its entry and {len(chunks)} chunks", (entry.data, *chunks), 150.0),
        figure_of("a receiver of it, CPU", [each * 1_000 for each in _timed(take, runs)], "ms", 5),
    ]


def _joining(report: Report, runs: int) -> None:
    people = _people()
    keys = [number.to_bytes(32, "big") for number in range(EPOCHS)]
    acts: list[Act] = [Add(member=who, reads_from=1) for who in people[1:]]
    recipients = frozenset({*people[1:], OWNER.participant_id})
    acts += [
        MakeEpoch(commitment=epoch_commitment(GROUP, key), recipients=recipients) for key in keys
    ]
    acts.append(Add(member=NEWCOMER.participant_id, reads_from=1))
    first, log = _chain(acts)
    earlier = seal_earlier_keys(
        keys, NEWCOMER.participant_id, NEWCOMER.encryption_public_key, group_id=GROUP
    )

    prekeys = [
        sign_prekey(
            OWNER,
            OwnPrekey(number=number, private_key=number.to_bytes(32, "big"), made_ms=NOW),
            group_id=GROUP,
        )
        for number in range(1, MEMBERS + 1)
    ]

    parts = AdmissionParts(entries=tuple(log), prekeys=tuple(prekeys), keys=earlier)
    packed = _packed(parts)

    def join() -> None:
        told = decode_admission(unpack(packed, MAX_ADMISSION_BYTES))
        for data in told.prekeys:
            verify_prekey(data, group_id=GROUP)
        entries = [verify_entry(data, group_id=GROUP) for data in told.entries]
        state = AdminLog(first, entries).state
        wanted = {one.commitment for one in state.epochs if NEWCOMER.participant_id in one.readers}
        opener = WrapOpener(NEWCOMER.participant_id, (NEWCOMER.encryption_key,), group_id=GROUP)
        if len(opener.open_earlier(earlier, wanted=wanted)) != EPOCHS:
            raise AssertionError("not all of them")

    report.figures += [
        figure_of(
            f"joining {MEMBERS} members with {EPOCHS} epochs, CPU", _timed(join, runs), "s", 1.0
        ),
        _size("their whole log", tuple(log), None),
        figure_of(
            "packing it for a newcomer, CPU", _timed(partial(_packed, parts), runs), "s", None
        ),
        _size("it and the members' prekeys, packed", (packed,), None),
    ]


def _packed(parts: AdmissionParts) -> bytes:
    return b"".join(chunk.part for chunk in encode_admission(parts))


def _loading(report: Report, runs: int) -> None:
    acts: list[Act] = [Rename(name=f"Walks {number}") for number in range(ENTRIES - 1)]
    first, log = _chain(acts)

    def load() -> None:
        entries = [read_entry(data, group_id=GROUP) for data in log]
        if AdminLog(first, entries).state.name != f"Walks {ENTRIES - 2}":
            raise AssertionError("another name")

    figure = f"loading {ENTRIES} entries that were verified before, CPU"
    report.figures.append(figure_of(figure, _timed(load, runs), "s", 0.5))


def _first() -> SignedEntry:
    return sign_entry(
        OWNER,
        Create(name="Walks"),
        group_id=GROUP,
        lamport_timestamp=1,
        sent_ms=NOW,
        heads=(),
    )


def _signed(act: Act, lamport: int, after: SignedEntry) -> SignedEntry:
    return sign_entry(
        OWNER,
        act,
        group_id=GROUP,
        lamport_timestamp=lamport,
        sent_ms=NOW,
        heads=(after.entry.entry_id,),
    )


def _chain(acts: list[Act]) -> tuple[EntryId, list[bytes]]:
    newest = _first()
    first, log = newest.entry.entry_id, [newest.data]
    for number, act in enumerate(acts):
        newest = _signed(act, number + 2, newest)
        log.append(newest.data)
    return first, log


def _timed(work: Callable[[], _T], runs: int) -> list[float]:
    """Seconds of CPU."""
    took = []
    for _ in range(runs):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return took


def _size(name: str, parts: tuple[bytes, ...], bar: float | None) -> Figure:
    kilobytes = sum(map(len, parts)) / 1_000
    return Figure(figure=name, value=kilobytes, unit="KB", spread=(kilobytes, kilobytes), bar=bar)
