"""What a session did, for the recorder: each input of a state machine and its transition.

A session collects steps, sans-I/O, and forgets them with its transition.  If a recorder is active,
the runner passes them on once their writes are durable.
"""

from typing import NamedTuple, TypeAlias

from engine.core.ids import UnixMs, WakuHash
from engine.core.mvds.vocabulary import Input as MvdsInput
from engine.core.mvds.vocabulary import MvdsTransition
from engine.core.sds.inputs import Input as SdsInput
from engine.core.sds.vocabulary import Transition


class Arrived(NamedTuple):
    """A copy arrived; the steps after it are what it led to."""

    at_ms: UnixMs
    waku_hash: WakuHash
    wire_bytes: int
    from_store: bool = False


class Refused(NamedTuple):
    """The copy that arrived last failed a check."""

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
