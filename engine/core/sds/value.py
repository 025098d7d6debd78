"""Values of the channel: frozen for the type checker, plain slots at run time.

A frozen dataclass sets every field through ``object.__setattr__``, which makes one cost four times
as much as a plain one, and a channel makes a dozen values per message.  So the type checker is
shown ``dataclass`` itself, and refuses whoever assigns to a field of a frozen value; at run time
the values are not frozen, and hashed by their fields as frozen ones are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:

    def value(*, frozen: bool, slots: bool, kw_only: bool) -> Callable[[type], type]:
        return dataclass(slots=slots, kw_only=kw_only, unsafe_hash=frozen)


__all__ = ["value"]
