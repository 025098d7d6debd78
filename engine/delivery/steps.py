"""What a session did, as the recorder is told: each input of a state machine and what came of it.

A session notes steps as it takes them, sans-I/O like itself, and forgets them with its transition;
only where somebody records does the runner hand them on, once what they wrote is durable.
"""

from typing import NamedTuple, TypeAlias

from engine.core.ids import UnixMs, WakuHash
from engine.core.mvds.types import Input as MvdsInput
from engine.core.mvds.types import MvdsTransition
from engine.core.sds.inputs import Input as SdsInput
from engine.core.sds.types import Transition


class Arrived(NamedTuple):
    """A copy came; the steps after it are what it led to."""

    at_ms: UnixMs
    waku_hash: WakuHash
    wire_bytes: int
    from_store: bool = False


class Refused(NamedTuple):
    """The copy that arrived last did not check out."""

    at_ms: UnixMs
    reason: str


class SdsStep(NamedTuple):
    at_ms: UnixMs
    input: SdsInput
    transition: Transition


class MvdsStep(NamedTuple):
    at_ms: UnixMs
    input: MvdsInput
    transition: MvdsTransition


Step: TypeAlias = SdsStep | MvdsStep | Arrived | Refused
