"""Whether an admission can be given to anybody: looked at before an entry is written for nothing.

An admin log is passed on whole, and there is a bound to that (``engine.codec.joining``).  Honest
members do not come near it, whatever the group's size.  One who writes bytes without repetitions
does, within a day.  Then nobody can be let in any more, and the window says so.
"""

from itertools import chain
from typing import Final

from engine.codec.packing import pack
from engine.core.admin_log.acts import MAX_PASSED_ON
from engine.core.governed import Admission
from engine.core.joining import MAX_ADMISSION_BYTES, MAX_PACKED_BYTES

SPARE_ENTRIES: Final = 8
SPARE_BYTES: Final = 256 * 1024
"""For what an admission adds: its entry, that of a fresh key, and the keys, sealed."""


def is_passable(admission: Admission) -> bool:
    """Whether somebody who comes next can be given it.  Packs a large one: not on the loop."""
    if len(admission.entries) + SPARE_ENTRIES > MAX_PASSED_ON:
        return False
    parts = [*chain(admission.statements, admission.prekeys, admission.entries)]
    size = sum(map(len, parts)) + SPARE_BYTES
    if size <= MAX_PACKED_BYTES:
        return True
    return size <= MAX_ADMISSION_BYTES and (
        len(pack(b"".join(parts))) + SPARE_BYTES <= MAX_PACKED_BYTES
    )
