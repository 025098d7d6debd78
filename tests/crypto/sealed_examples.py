"""What the tests of the sealed group share: times, claims, and what a member can do."""

import os

import pytest

from engine.codec.envelope import SignedPart, encode_signed_part
from engine.core.errors import RemoteProtocolError
from engine.core.ids import InstanceId, UnixMs
from engine.core.sds.vocabulary import Claim, SequenceRange
from engine.crypto.sealed import SealedGroup

NOW = UnixMs(1_700_000_000_000)
LATER = UnixMs(1_700_000_060_000)
HEAD = b"the last"
CLAIM = Claim({InstanceId(bytes(range(16))): (SequenceRange(first=1, last=7, head=HEAD),)})
MORE_CLAIMED = Claim({InstanceId(bytes(range(16))): (SequenceRange(first=1, last=9, head=HEAD),)})


def reason_of(group: SealedGroup, payload: bytes) -> str:
    with pytest.raises(RemoteProtocolError) as refusal:
        group.open(payload)
    return refusal.value.reason


def forge(group: SealedGroup, part: SignedPart) -> bytes:
    """What a member, who has the epoch key, can make of any signed part."""
    return group.seal(encode_signed_part(part), random_bytes=os.urandom)
