"""Asking to be let into a governed group, and what makes an admission genuine."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_

from engine.codec.admin_entry import entry_id_from
from engine.codec.joining import (
    decode_admission,
    decode_joining,
    encode_admission,
    encode_joining,
)
from engine.codec.message_id import id_text
from engine.codec.packing import pack, unpack
from engine.core.admin_log.acts import (
    MAX_PASSED_ON,
    Act,
    Add,
    Create,
    EntryId,
    Invite,
    MakeEpoch,
    Remove,
    Role,
)
from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from engine.core.governed import MAX_BEFORE, Admission
from engine.core.ids import UnixMs
from engine.core.invite import StrongInvite
from engine.core.joining import (
    CHUNK_BYTES,
    MAX_ADMISSION_BYTES,
    MAX_PACKED_BYTES,
    AdmissionParts,
    Ask,
    Chunk,
    Joining,
    Reason,
    Refusal,
)
from engine.core.membership.members import MAX_MEMBERS
from engine.core.prekeys import OwnPrekey
from engine.crypto.admin_entry import SignedEntry, sign_entry
from engine.crypto.epochs import seal_earlier_keys, sign_prekey
from engine.crypto.identity import Identity
from engine.crypto.join import build_join
from engine.crypto.joining import (
    check_ask,
    check_proof,
    make_ask,
    open_admission,
    public_answer_key,
    seal_admission,
    token_hash_of,
)
from engine.crypto.sealed import epoch_commitment

GROUP, OTHER_GROUP = bytes(range(32)), bytes(32)
NOW = UnixMs(1_700_000_000_000)
OLGA, ANNA, EVE = (
    Identity(signing_key=bytes([n] * 32), encryption_key=bytes([n + 1] * 32)) for n in (2, 4, 6)
)
TOKEN, ANSWER_KEY, OTHER_ANSWER_KEY = bytes(range(16)), bytes([11] * 32), bytes([12] * 32)
OLD_KEY, NEW_KEY = bytes([21] * 32), bytes([22] * 32)


def refused(reason: str) -> "pytest.RaisesExc[RemoteProtocolError]":
    return pytest.raises(RemoteProtocolError, match=f"^{reason}")


class Log:
    """Olga's group with two epochs: the older one is not for Anna."""

    def __init__(self, *, group_id: bytes = GROUP, owner: Identity = OLGA) -> None:
        self.group_id = group_id
        self.entries: list[SignedEntry] = []
        self.first = self.write(owner, Create(name="Walks"))
        self.write(owner, self.epoch(OLD_KEY, owner))
        self.invitation = self.write(
            owner,
            Invite(token_hash=token_hash_of(TOKEN), uses=1, expires_ms=UnixMs(NOW + 99)),
        )

    def epoch(self, key: bytes, *to: Identity) -> Act:
        people = frozenset(one.participant_id for one in to)
        return MakeEpoch(commitment=epoch_commitment(self.group_id, key), recipients=people)

    def add(self, by: Identity = OLGA) -> "Log":
        self.write(by, Add(member=ANNA.participant_id, invitation=self.invitation))
        return self

    def fresh(self) -> "Log":
        self.write(OLGA, self.epoch(NEW_KEY, OLGA, ANNA))
        return self

    def write(self, author: Identity, act: Act) -> EntryId:
        heads = [self.entries[-1].entry.entry_id] if self.entries else []
        made = sign_entry(
            author,
            act,
            group_id=self.group_id,
            lamport_timestamp=len(self.entries) + 1,
            sent_ms=NOW,
            heads=heads,
        )
        self.entries.append(made)
        return made.entry.entry_id

    @property
    def data(self) -> tuple[bytes, ...]:
        return tuple(each.data for each in self.entries)


LOG = Log().add().fresh()
INVITE = StrongInvite(
    group_id=GROUP,
    first_entry=LOG.first,
    group_name="What the link says",
    inviter_name="Olga",
    public_key=OLGA.public_key,
    encryption_key=OLGA.encryption_public_key,
    invitation_id=LOG.invitation,
    token=TOKEN,
    expires_ms=UnixMs(NOW + 99),
)


BEFORE = (id_text(bytes(range(16))), id_text(bytes(16)))


def statement_of(who: Identity, group_id: bytes = GROUP) -> bytes:
    return build_join(who, group_id=group_id, name="Somebody", joined_ms=NOW).statement


def prekey_of(who: Identity, number: int = 1, group_id: bytes = GROUP) -> bytes:
    made = OwnPrekey(number=number, private_key=bytes([number] * 32), made_ms=NOW)
    return sign_prekey(who, made, group_id=group_id)


def whole(
    entries: Sequence[bytes],
    keys: Sequence[bytes] = (NEW_KEY,),
    answer_key: bytes = ANSWER_KEY,
    statements: Sequence[bytes] = (),
    prekeys: Sequence[bytes] = (),
) -> bytes:
    sealed = seal_earlier_keys(
        keys, ANNA.participant_id, public_answer_key(answer_key), group_id=GROUP
    )
    parts = AdmissionParts(
        entries=tuple(entries),
        statements=tuple(statements),
        prekeys=tuple(prekeys),
        keys=sealed,
        before=BEFORE,
    )
    return packed_of(parts)


def packed_of(parts: AdmissionParts) -> bytes:
    return b"".join(chunk.part for chunk in encode_admission(parts))


def bytes_of(parts: AdmissionParts) -> bytes:
    return unpack(packed_of(parts), MAX_ADMISSION_BYTES)


def opened(packed: bytes, who: Identity = ANNA) -> Admission:
    return open_admission(packed, INVITE, who.participant_id, ANSWER_KEY)


# --- asking ---------------------------------------------------------------------------------------


def ask_of(who: Identity = ANNA, group_id: bytes = GROUP) -> Ask:
    join = build_join(who, group_id=group_id, name="Anna", joined_ms=NOW)
    return make_ask(who, with_token(TOKEN), ANSWER_KEY, join.statement)


def with_token(token: bytes) -> StrongInvite:
    return replace(INVITE, token=token)


def proves(
    ask: Ask,
    *,
    token: bytes = TOKEN,
    group_id: bytes = GROUP,
    invitation_id: EntryId = LOG.invitation,
    who: Identity = ANNA,
) -> None:
    check_proof(
        ask,
        token=token,
        group_id=group_id,
        invitation_id=invitation_id,
        public_key=who.public_key,
    )


def test_an_ask_proves_that_its_author_has_the_token_for_this_invitation_and_for_nobody_else() -> (
    None
):
    ask = ask_of()
    proves(ask)
    join = check_ask(
        ask, group_id=GROUP, public_key=ANNA.public_key, encryption_key=ANNA.encryption_public_key
    )
    assert join.name == "Anna"
    attempts: list[Callable[[], None]] = [
        partial(proves, ask, token=bytes(16)),
        partial(proves, ask, group_id=OTHER_GROUP),
        partial(proves, ask, invitation_id=LOG.first),
        partial(proves, ask, who=EVE),
        partial(proves, replace(ask, answer_key=public_answer_key(OTHER_ANSWER_KEY))),
        partial(proves, replace(ask, proof=bytes(32))),
    ]
    for attempt in attempts:
        with refused("join_bad_proof"):
            attempt()


def test_the_statement_has_to_be_the_askers_own_for_this_group() -> None:
    def check(ask: Ask) -> None:
        keys = {"public_key": ANNA.public_key, "encryption_key": ANNA.encryption_public_key}
        check_ask(ask, group_id=GROUP, **keys)

    with refused("foreign_join"):
        check(replace(ask_of(), statement=ask_of(EVE).statement))
    with refused("bad_signature"):
        check(ask_of(group_id=OTHER_GROUP))
    with refused("small_order_key"):
        check(replace(ask_of(), answer_key=bytes(32)))


# --- admissions -----------------------------------------------------------------------------------


def test_a_genuine_admission_opens_and_goes_by_the_log_not_by_the_link() -> None:
    olgas = statement_of(OLGA)
    admission = opened(whole(LOG.data, statements=(olgas, statement_of(EVE), olgas)))
    assert admission.group_name == "Walks"
    assert admission.statements == (olgas,), "of members, each once"
    assert admission.roles[OLGA.participant_id] is Role.OWNER
    assert admission.entries == LOG.data
    assert admission.epoch_keys == (NEW_KEY,)
    assert admission.before == BEFORE
    assert admission.admin_public_key == OLGA.public_key
    older, newest, eves = prekey_of(OLGA, 1), prekey_of(OLGA, 2), prekey_of(EVE)
    told, otherwise = (older, newest, eves), (eves, newest, older, newest)
    with_prekeys = opened(whole(LOG.data, statements=(olgas,), prekeys=told))
    assert with_prekeys.prekeys == (newest,), "of members, the newest of each"
    assert opened(whole(LOG.data, prekeys=otherwise)).prekeys == (newest,)
    shuffled = opened(whole((*reversed(LOG.data), LOG.data[0])))
    assert sorted(shuffled.entries) == sorted(LOG.data), "in any order, and each once"
    again = seal_admission(with_prekeys, ANNA.participant_id, public_answer_key(ANSWER_KEY))
    assert opened(packed_of(again)) == with_prekeys


def test_keys_that_the_log_does_not_give_us_are_not_taken() -> None:
    assert opened(whole(LOG.data, (OLD_KEY, NEW_KEY, bytes(32)))).epoch_keys == (NEW_KEY,)
    for keys in ((OLD_KEY,), (bytes(32),)):
        with refused("join_no_key"):
            opened(whole(LOG.data, keys))


def test_a_forged_admission_is_refused_whoever_made_it() -> None:
    spoiled = bytearray(LOG.data[3])
    spoiled[-1] ^= 1
    eves = Log(owner=EVE).add(by=EVE)
    stranger = Log().add(by=EVE).fresh()
    removed = Log().add()
    removed.write(OLGA, Remove(member=ANNA.participant_id))
    removed.write(OLGA, removed.epoch(NEW_KEY, OLGA, ANNA))
    for entries, reason in (
        (eves.data, "join_other_log"),
        (LOG.data[1:], "join_other_log"),
        (Log(group_id=OTHER_GROUP).add().data, "bad_signature"),
        ((*LOG.data[:3], bytes(spoiled)), "bad_signature"),
        ((*LOG.data, b"noise"), "entry_malformed"),
        (LOG.data[:3], "join_not_admitted"),
        (stranger.data, "join_not_admitted"),
        (removed.data, "join_not_admitted"),
    ):
        with refused(reason):
            opened(whole(entries))
    with refused("join_not_admitted"):
        opened(whole(LOG.data), who=EVE)
    for statement, reason in (
        (statement_of(OLGA, OTHER_GROUP), "bad_signature"),
        (b"noise", "join_malformed"),
    ):
        with refused(reason):
            opened(whole(LOG.data, statements=(statement,)))
    for prekey, reason in (
        (prekey_of(OLGA, group_id=OTHER_GROUP), "bad_signature"),
        (prekey_of(OLGA)[:-1] + b"\0", "bad_signature"),
        (b"noise", "bad_prekey"),
    ):
        with refused(reason):
            opened(whole(LOG.data, prekeys=(prekey,)))


def test_the_admission_of_an_earlier_ask_opens_nothing() -> None:
    with refused("wrap_unknown_prekey"):
        opened(whole(LOG.data, answer_key=OTHER_ANSWER_KEY))


# --- bytes ----------------------------------------------------------------------------------------

ids = st.binary(min_size=32, max_size=32)
kinds = (
    st.builds(Ask, proof=ids, statement=st.binary(min_size=1, max_size=1024), answer_key=ids)
    | st.builds(Refusal, reason=st.sampled_from(Reason), answer_key=ids)
    | st.integers(1, 256).flatmap(
        lambda count: st.builds(
            Chunk,
            digest=ids,
            number=st.just(count - 1),
            count=st.just(count),
            part=st.binary(min_size=1, max_size=99),
        )
    )
)


@given(st.builds(Joining, group_id=ids, invitation_id=ids.map(entry_id_from), kind=kinds))
def test_what_is_said_comes_back(joining: Joining) -> None:
    assert decode_joining(encode_joining(joining)) == joining


@given(st.binary(max_size=300))
def test_whatever_else_comes_is_refused_or_has_that_one_form(data: bytes) -> None:
    with suppress(RemoteProtocolError):
        assert encode_joining(decode_joining(data)) == data
    with suppress(RemoteProtocolError):
        assert bytes_of(decode_admission(data)) == data


def test_bounds_of_what_is_said() -> None:
    chunk = Chunk(digest=bytes(32), number=0, count=1, part=b"x")
    for wrong in (
        replace(chunk, digest=bytes(31)),
        replace(chunk, number=1),
        replace(chunk, count=257),
        replace(chunk, count=2),
        replace(chunk, part=b""),
        replace(chunk, part=bytes(CHUNK_BYTES + 1)),
        replace(ask_of(), statement=bytes(1025)),
        replace(ask_of(), answer_key=bytes(31)),
        replace(ask_of(), proof=bytes(33)),
        Refusal(reason=Reason.SPENT, answer_key=b""),
    ):
        joining = Joining(group_id=GROUP, invitation_id=LOG.first, kind=wrong)
        with refused("joining_malformed"):
            decode_joining(encode_joining(joining))


def test_bounds_of_an_admission() -> None:
    many = AdmissionParts(entries=(b"x",) * MAX_PASSED_ON, keys=b"k")
    packed = bytes_of(many)
    assert decode_admission(packed) == many
    with pytest.raises(LocalProtocolError):
        encode_admission(replace(many, entries=(b"x",) * (MAX_PASSED_ON + 1)))
    with pytest.raises(LocalProtocolError):
        encode_admission(replace(many, entries=(bytes(40_000),) * 3_360))
    with pytest.raises(LocalProtocolError):
        encode_admission(replace(many, statements=(b"x",) * (MAX_MEMBERS + 1)))
    with pytest.raises(LocalProtocolError):
        encode_admission(replace(many, prekeys=(b"x",) * (MAX_MEMBERS + 1)))
    one, none = (1).to_bytes(4, "big") + b"x", bytes(4)
    two_empty = (8).to_bytes(4, "big") + bytes(8)
    cut_off = (4).to_bytes(4, "big") + b"\0\0\0\1"
    assert decode_admission(one + none + none + none + one).entries == (b"x",)
    told = replace(many, entries=(b"x",), before=(id_text(bytes(range(16))),) * MAX_BEFORE)
    assert decode_admission(bytes_of(told)) == told
    for wrong in (
        bytes_of(replace(told, before=told.before * 2)),
        one + one + none + none + one,
        one + none + one + none + one,
        one + none + none + one + one,
        one + none + none + none + none,
        one + none + two_empty + none + one,
        one + none + none + two_empty + one,
        one + none + cut_off + none + one,
        one + none + none + cut_off + one,
        one + none + none + none,
        packed + one,
        packed + bytes(4),
        packed[:-1],
        one,
        b"",
        bytes(MAX_ADMISSION_BYTES + 1),
        one + (1 << 31).to_bytes(4, "big") + b"x",
    ):
        with refused("joining_malformed"):
            decode_admission(wrong)


def test_lists_of_readers_take_nearly_no_room_and_what_has_no_repetitions_has_a_bound() -> None:
    """1 500 people who came one by one, each with a fresh key: 18 MB of ids."""
    random = Random(1)
    people = [random.randbytes(16) for _ in range(1_500)]
    entries = (
        random.randbytes(150) + b"".join(sorted(people[:number])) for number in range(1, 1_501)
    )
    parts = AdmissionParts(entries=tuple(entries), keys=b"k")
    assert sum(map(len, parts.entries)) > MAX_PACKED_BYTES
    assert len(packed_of(parts)) < 400_000
    assert decode_admission(bytes_of(parts)) == parts
    invented = tuple(random.randbytes(40_000) for _ in range(420))
    with pytest.raises(LocalProtocolError):
        encode_admission(replace(parts, entries=invented))


def test_a_packed_admission_that_is_too_large_or_none_is_refused() -> None:
    with refused("packing_oversized"):
        opened(pack(bytes(MAX_ADMISSION_BYTES + 1)))
    with refused("packing_malformed"):
        opened(whole(LOG.data)[:-1])
    assert opened(whole(LOG.data)).epoch_keys == (NEW_KEY,)


def test_secrets_appear_in_no_representation() -> None:
    admission = opened(whole(LOG.data))
    assert repr(NEW_KEY) not in repr(admission)
    assert repr(TOKEN) not in repr(INVITE)
    with pytest.raises(LocalProtocolError):
        seal_admission(with_(admission, epoch_keys=()), ANNA.participant_id, bytes(32))
    assert issubclass(CryptoError, RemoteProtocolError)
