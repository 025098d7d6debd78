"""Which admissions can be given to somebody, whatever they are made of."""

from random import Random

from engine.codec.joining import encode_admission
from engine.core.admin_log.acts import MAX_PASSED_ON, EntryId
from engine.core.governed import Admission
from engine.core.joining import MAX_ADMISSION_BYTES, MAX_PACKED_BYTES, AdmissionParts
from engine.runtime.governing.passing_on import SPARE_BYTES, SPARE_ENTRIES, is_passable

KIB = 1024


def admission(*entries: bytes) -> Admission:
    return Admission(
        group_id=bytes(32),
        group_name="Walks",
        first_entry=EntryId("first"),
        entries=entries,
        epoch_keys=(),
        admin_public_key=bytes(32),
        roles={},
    )


def test_what_has_no_repetitions_has_the_bound_of_the_wire() -> None:
    random = Random(1)
    entries = [random.randbytes(32 * KIB) for _ in range(MAX_PACKED_BYTES // (32 * KIB))]
    spare = SPARE_BYTES // (32 * KIB) + 1
    assert is_passable(admission(*entries[spare:]))
    assert encode_admission(AdmissionParts(entries=tuple(entries[spare:])))
    assert not is_passable(admission(*entries))


def test_what_repeats_itself_may_be_larger_up_to_a_bound() -> None:
    said = Random(1).randbytes(32 * KIB)
    number = (MAX_ADMISSION_BYTES - SPARE_BYTES) // len(said)
    assert is_passable(admission(*[said] * number))
    assert not is_passable(admission(*[said] * (number + 1)))


def test_the_number_of_entries_has_a_bound() -> None:
    assert is_passable(admission(*[b"x"] * (MAX_PASSED_ON - SPARE_ENTRIES)))
    assert not is_passable(admission(*[b"x"] * (MAX_PASSED_ON - SPARE_ENTRIES + 1)))
