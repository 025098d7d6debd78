"""Who was removed reads nothing that is written by people who have heard of it.

The log, the keys and the seals are the real ones; no session carries them yet, so the test is the
network.  The removed keep every key and record everything, and put together what they have.
"""

import os
from collections.abc import Iterable
from dataclasses import replace

import pytest

from engine.codec.admin_entry import id_bytes_of
from engine.codec.epochs import decode_wraps, encode_wraps
from engine.core.admin_log.acts import Act, Add, Create, EntryId, MakeEpoch, Promote, Remove
from engine.core.admin_log.log import AdminLog
from engine.core.epochs import MakeThenSend, SendIn, Step, step_to_send
from engine.core.errors import RemoteProtocolError
from engine.core.ids import UnixMs
from engine.crypto.admin_entry import sign_entry, verify_entry
from engine.crypto.epochs import WrapOpener, wrap_epoch_key
from engine.crypto.identity import Identity
from engine.crypto.sealed import SealedGroup, epoch_commitment
from proto import sds_pb2

GROUP = bytes(range(32))
NOW = UnixMs(1_700_000_000_000)
OWNER, ANNA, BEN, CEM = (
    Identity(signing_key=bytes([n] * 32), encryption_key=bytes([n + 1] * 32)) for n in (2, 4, 6, 8)
)


class Recorded:
    """Everything that was ever sent: entries, wraps, messages."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.chunks: list[bytes] = []
        self.first = self.write(OWNER, Create(name="Walks"), ())
        last = self.first
        for act in (Promote(member=ANNA.participant_id), *map(added, (BEN, CEM))):
            last = self.write(OWNER, act, (last,))
        self.begun = last

    @property
    def log(self) -> AdminLog:
        return AdminLog(self.first, (verify_entry(one, group_id=GROUP) for one in self.entries))

    def write(self, author: Identity, act: Act, heads: Iterable[EntryId]) -> EntryId:
        made = sign_entry(
            author,
            act,
            group_id=GROUP,
            lamport_timestamp=NOW + len(self.entries),
            sent_ms=NOW,
            heads=heads,
        )
        self.entries.append(made.data)
        return made.entry.entry_id

    def make(self, author: Identity, key: bytes, to: Iterable[Identity], after: EntryId) -> EntryId:
        keys = {one.participant_id: one.encryption_public_key for one in to}
        self.chunks += wrap_epoch_key(key, keys, group_id=GROUP)
        act = MakeEpoch(commitment=epoch_commitment(GROUP, key), recipients=frozenset(keys))
        return self.write(author, act, (after,))

    def step(self, who: Identity, keys: Iterable[bytes]) -> Step:
        state = self.log.state
        held = {epoch_commitment(GROUP, key) for key in keys}
        return step_to_send(
            state.epochs,
            members=state.roles.keys(),
            own_id=who.participant_id,
            held=held,
        )


def added(who: Identity) -> Act:
    return Add(member=who.participant_id)


def test_two_who_were_removed_on_two_branches_read_nothing_together() -> None:
    """Each was given the key that was made when the other was removed."""
    recorded = Recorded()
    old, without_cem, without_ben, fresh = (bytes([n] * 32) for n in (11, 12, 13, 14))
    all_know = recorded.make(OWNER, old, (OWNER, ANNA, BEN, CEM), recorded.begun)
    one = recorded.write(OWNER, Remove(member=CEM.participant_id), (all_know,))
    one = recorded.make(OWNER, without_cem, (OWNER, ANNA, BEN), one)
    other = recorded.write(ANNA, Remove(member=BEN.participant_id), (all_know,))
    other = recorded.make(ANNA, without_ben, (OWNER, ANNA, CEM), other)
    keys = (old, without_cem, without_ben)
    assert recorded.step(ANNA, keys) == MakeThenSend(
        recipients=frozenset({OWNER.participant_id, ANNA.participant_id})
    )
    both = recorded.write(ANNA, Remove(member=CEM.participant_id), (one, other))
    recorded.make(ANNA, fresh, (OWNER, ANNA), both)
    step = recorded.step(ANNA, (*keys, fresh))
    assert isinstance(step, SendIn)
    assert step.epoch.commitment == epoch_commitment(GROUP, fresh)
    group = SealedGroup(group_id=GROUP, epoch_keys=(*keys, fresh))
    said = sds_pb2.Message(sender_id=ANNA.participant_id, message_id="x", content=b"Bonjour")
    signed = group.sign(ANNA, said.SerializeToString(), None, NOW)
    payload = group.seal(signed, random_bytes=os.urandom)
    # What the two have: three keys, both devices, every entry and every wrap.
    theirs = replace(group, epoch_keys=keys)
    with pytest.raises(RemoteProtocolError, match="unknown_epoch"):
        theirs.open(payload)
    wanted = {step.epoch.commitment}
    private_keys = (BEN.encryption_key, CEM.encryption_key)
    for who in (BEN, CEM):
        thief = WrapOpener(who.participant_id, private_keys, group_id=GROUP)
        assert [thief.open(chunk, wanted=wanted) for chunk in recorded.chunks] == [None] * 4
    # They put their own names on what was wrapped for the others.
    newest = decode_wraps(recorded.chunks[-1])
    bens = decode_wraps(recorded.chunks[0]).find(id_bytes_of(BEN.participant_id))
    assert bens is not None
    for who in (OWNER, ANNA):
        record = newest.find(id_bytes_of(who.participant_id))
        assert record is not None
        (bent,) = encode_wraps(newest.commitment, [bens._replace(sealed=record.sealed)])
        thief = WrapOpener(BEN.participant_id, private_keys, group_id=GROUP)
        with pytest.raises(RemoteProtocolError, match="bad_wrap"):
            thief.open(bent, wanted=wanted)
