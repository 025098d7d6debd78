"""Values of the channel: frozen for the type checker, plain slots at run time.

A frozen dataclass sets every field through ``object.__setattr__`` and costs four times as much as a
plain one, and a channel creates three dozen values per message.  So the type checker sees
``dataclass`` itself and rejects assignment to a field of a frozen value.  At run time the values
are not frozen, but hashed by their fields as frozen ones are.

Passing fields by keyword doubles the cost.  So values that every message creates are not
``kw_only``, and the channel's own steps pass their fields in order.
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
