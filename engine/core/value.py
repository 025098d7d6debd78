"""Values of the channel: frozen for the type checker, plain slots at run time.

A frozen dataclass sets every field through ``object.__setattr__``, which makes one cost four times
as much as a plain one, and a channel makes three dozen values per message.  So the type checker is
shown ``dataclass`` itself, and refuses whoever assigns to a field of a frozen value; at run time
the values are not frozen, and hashed by their fields as frozen ones are.

Fields given by keyword cost as much again as the value itself.  So the values that every message
makes are not ``kw_only``, and the channel's own steps give their fields in order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:

    def value(
        *, frozen: bool, slots: bool, kw_only: bool = False, order: bool = False
    ) -> Callable[[type], type]:
        return dataclass(slots=slots, kw_only=kw_only, unsafe_hash=frozen, order=order)


__all__ = ["value"]
