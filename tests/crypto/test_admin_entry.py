"""Entries of the admin log as bytes: one form, one author, one group, and nothing that is guessed.

The golden ones are made again by a second implementation of the tuple, from the standard library.
"""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypedDict

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import example, given
from hypothesis import strategies as st

from engine.codec.admin_entry import MAX_ENTRY_BYTES, decode_entry, encode_body, encode_entry
from engine.codec.message_id import id_text
from engine.core.admin_log.acts import (
    MAX_HEADS,
    MAX_LAST_MESSAGES,
    MAX_RECIPIENTS,
    MAX_TOPIC_CHARACTERS,
    MAX_USES,
    Act,
    Add,
    Create,
    DeleteMessage,
    Demote,
    EndLink,
    Entry,
    EntryId,
    Invite,
    LastMessage,
    Left,
    MakeEpoch,
    Promote,
    Remove,
    Rename,
    Revoke,
    Role,
    SetInviters,
    SetPicture,
    SetTopic,
    Unsupported,
)
from engine.core.admin_log.judging import Verdict
from engine.core.admin_log.log import AdminLog
from engine.core.content import MAX_SAFE_INTEGER
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import InstanceId, ParticipantId, UnixMs
from engine.crypto.admin_entry import (
    SignedEntry,
    link_create,
    link_create_id,
    read_entry,
    sign_entry,
    sign_link_create,
    verify_entry,
)
from engine.crypto.identity import Identity
from proto import admin_pb2
from tests.crypto.test_frozen_formats import tuple_of

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "crypto" / "admin_entries.json"
GROUP, OTHER_GROUP = bytes(range(32)), bytes(32)
NOW = UnixMs(1_700_000_000_000)
ANNA = Identity(signing_key=bytes([2] * 32), encryption_key=bytes([3] * 32))
EVE = Identity(signing_key=bytes([4] * 32), encryption_key=bytes([5] * 32))
PNG = b"\x89PNG\r\n\x1a\n"


def entry_id(seed: int) -> EntryId:
    return EntryId(urlsafe_b64encode(sha256(bytes([seed])).digest()).decode().rstrip("="))


def person(seed: int) -> ParticipantId:
    return ParticipantId(id_text(sha256(seed.to_bytes(2, "big")).digest()[:16]))


def signed(
    act: Act,
    *,
    heads: tuple[EntryId, ...] = (entry_id(1), entry_id(2)),
    lamport_timestamp: int = NOW,
) -> SignedEntry:
    return sign_entry(
        ANNA,
        act,
        group_id=GROUP,
        lamport_timestamp=lamport_timestamp,
        sent_ms=NOW,
        heads=heads,
    )


ACTS: tuple[Act, ...] = (
    Create(name="Les amis"),
    Add(member=person(1)),
    Add(member=person(1), invitation=entry_id(3), reads_from=1),
    Remove(member=person(1)),
    Remove(
        member=person(1),
        last_messages=(
            LastMessage(InstanceId(bytes(16)), 7, id_text(bytes(16))),
            LastMessage(InstanceId(bytes([1] * 16)), MAX_SAFE_INTEGER, id_text(bytes([9] * 16))),
        ),
    ),
    Promote(member=person(1)),
    Demote(member=person(2)),
    Rename(name="Ça va"),
    SetPicture(picture=PNG),
    SetPicture(picture=b""),
    SetTopic(topic="Tours in June 👟"),
    SetTopic(topic=""),
    SetInviters(least=Role.MEMBER),
    SetInviters(least=Role.ADMIN),
    Invite(token_hash=bytes(range(32)), uses=MAX_USES, expires_ms=NOW),
    Revoke(invitation=entry_id(3)),
    DeleteMessage(message_id=id_text(bytes([7] * 16)), author=person(3)),
    MakeEpoch(commitment=bytes(range(32)), recipients=frozenset(map(person, range(3)))),
    EndLink(
        name="Walks",
        members=frozenset(map(person, range(3))),
        left=(
            Left(person(4), (LastMessage(InstanceId(bytes(16)), 7, id_text(bytes(16))),)),
            Left(person(3)),
        ),
        topic_name=bytes(range(16)),
        create_signature=bytes(range(64)),
        key_commitment=bytes(range(32)),
    ),
)


class EntryVector(TypedDict):
    kind: str
    data: str
    entry_id: str


class EntriesVector(TypedDict):
    group_id: str
    entries: list[EntryVector]


def vectors() -> EntriesVector:
    entries = [
        EntryVector(kind=type(act).__name__, data=one.data.hex(), entry_id=one.entry.entry_id)
        for act in ACTS
        for one in [signed(act, heads=() if isinstance(act, Create) else (entry_id(1),))]
    ]
    return EntriesVector(group_id=GROUP.hex(), entries=entries)


GOLDEN: EntriesVector = json.loads(VECTORS.read_text("utf-8"))


def reason_of(action: Callable[[], object]) -> str:
    with pytest.raises(RemoteProtocolError) as refusal:
        action()
    return refusal.value.reason


def wrapped(body: bytes, *, by: Identity = ANNA) -> bytes:
    """Signed as it is, by the book."""
    signature = by.sign(tuple_of("causerie/2/admin-entry", GROUP, by.public_key, body))
    return encode_entry(author_key=by.public_key, body=body, signature=signature)


def carrying(act: admin_pb2.Act | bytes) -> Act:
    encoded = act if isinstance(act, bytes) else act.SerializeToString(deterministic=True)
    body = admin_pb2.Body(lamport_timestamp=1, act=encoded).SerializeToString(deterministic=True)
    return verify_entry(wrapped(body), group_id=GROUP).act


# --- formats --------------------------------------------------------------------------------------


def test_golden_entries_stay() -> None:
    assert vectors() == GOLDEN
    for vector, act in zip(GOLDEN["entries"], ACTS, strict=True):
        entry = verify_entry(bytes.fromhex(vector["data"]), group_id=GROUP)
        assert entry.act == act
        assert entry.entry_id == vector["entry_id"]


def test_golden_entries_are_what_is_documented() -> None:
    for vector in GOLDEN["entries"]:
        wire = admin_pb2.Entry.FromString(bytes.fromhex(vector["data"]))
        said = tuple_of("causerie/2/admin-entry", GROUP, wire.author, wire.body)
        Ed25519PublicKey.from_public_bytes(wire.author).verify(wire.signature, said)
        hashed = tuple_of("causerie/2/admin-entry-id", GROUP, wire.author, wire.body)
        name = urlsafe_b64encode(sha256(hashed).digest()).decode().rstrip("=")
        assert name == vector["entry_id"]


ids = st.binary(min_size=16, max_size=16)
people = st.builds(ParticipantId, ids.map(id_text))
names = st.integers(0, 255).map(entry_id)
acts = st.one_of(
    st.sampled_from(ACTS),
    st.builds(
        Add,
        member=people,
        invitation=st.none() | names,
        reads_from=st.none() | st.integers(1, MAX_SAFE_INTEGER),
    ),
    st.builds(
        Remove,
        member=people,
        last_messages=st.dictionaries(ids, st.integers(1, MAX_SAFE_INTEGER), max_size=5).map(
            lambda named: tuple(
                LastMessage(InstanceId(one), named[one], id_text(one)) for one in sorted(named)
            )
        ),
    ),
    st.builds(
        MakeEpoch,
        commitment=st.binary(min_size=32, max_size=32),
        recipients=st.frozensets(people, min_size=1, max_size=40),
    ),
)


@given(
    acts,
    st.integers(1, MAX_SAFE_INTEGER),
    st.integers(0, MAX_SAFE_INTEGER),
    st.sets(names, max_size=MAX_HEADS),
)
def test_what_goes_in_comes_out(act: Act, lamport: int, sent_ms: int, heads: set[EntryId]) -> None:
    made = sign_entry(
        ANNA,
        act,
        group_id=GROUP,
        lamport_timestamp=lamport,
        sent_ms=UnixMs(sent_ms),
        heads=heads,
    )
    entry = verify_entry(made.data, group_id=GROUP)
    assert entry == made.entry == read_entry(made.data, group_id=GROUP)
    assert (entry.act, entry.author) == (act, ANNA.participant_id)
    assert (entry.lamport_timestamp, entry.sent_ms) == (lamport, sent_ms)
    assert set(entry.heads) == heads


@given(st.data(), st.sampled_from(GOLDEN["entries"]))
def test_nobody_else_changes_a_bit_of_it(data: st.DataObject, vector: EntryVector) -> None:
    entry = bytearray.fromhex(vector["data"])
    at = data.draw(st.integers(0, len(entry) - 1))
    entry[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(RemoteProtocolError):
        verify_entry(bytes(entry), group_id=GROUP)


def test_it_counts_in_one_group_and_for_one_author() -> None:
    made = signed(Rename(name="Walks"))
    assert reason_of(lambda: verify_entry(made.data, group_id=OTHER_GROUP)) == "bad_signature"
    wire = admin_pb2.Entry.FromString(made.data)
    stolen = encode_entry(author_key=EVE.public_key, body=wire.body, signature=wire.signature)
    assert reason_of(lambda: verify_entry(stolen, group_id=GROUP)) == "bad_signature"
    again = verify_entry(wrapped(wire.body, by=EVE), group_id=GROUP)
    assert again.author == EVE.participant_id
    assert again.entry_id != made.entry.entry_id


def test_keys_that_fit_any_signature_are_refused() -> None:
    body = admin_pb2.Entry.FromString(signed(Rename(name="Walks")).data).body
    identity_element = bytes([1]) + bytes(31)
    forged = encode_entry(author_key=identity_element, body=body, signature=bytes(64))
    assert reason_of(lambda: verify_entry(forged, group_id=GROUP)) == "small_order_key"


# --- bounds ---------------------------------------------------------------------------------------

BODY = admin_pb2.Body.FromString(admin_pb2.Entry.FromString(signed(Rename(name="Walks")).data).body)
ONE, TWO = sorted(BODY.heads)


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("entry_bad_time", {"lamport_timestamp": 0}),
        ("entry_bad_time", {"lamport_timestamp": MAX_SAFE_INTEGER + 1}),
        ("entry_bad_time", {"sent_ms": MAX_SAFE_INTEGER + 1}),
        ("entry_bad_heads", {"heads": [TWO, ONE]}),
        ("entry_bad_heads", {"heads": [ONE, ONE]}),
        ("entry_bad_heads", {"heads": [ONE[:31]]}),
        ("entry_bad_heads", {"heads": [bytes([n] * 32) for n in range(MAX_HEADS + 1)]}),
    ],
)
def test_a_frame_out_of_bounds_is_refused(reason: str, changes: dict[str, object]) -> None:
    kept = {field.name: value for field, value in BODY.ListFields()}
    body = admin_pb2.Body(**{**kept, **changes}).SerializeToString(deterministic=True)
    assert reason_of(lambda: decode_entry(wrapped(body))) == reason


def test_a_frame_in_another_form_is_refused() -> None:
    data = signed(Rename(name="Walks")).data
    wire = admin_pb2.Entry.FromString(data)
    assert reason_of(lambda: decode_entry(data + b"\x22\x00")) == "not_canonical"
    assert reason_of(lambda: decode_entry(wrapped(wire.body + b"\x2a\x00"))) == "not_canonical"
    assert reason_of(lambda: decode_entry(data[:-1])) == "entry_malformed"
    assert reason_of(lambda: decode_entry(bytes(MAX_ENTRY_BYTES + 1))) == "entry_oversized"
    no_author = encode_entry(author_key=b"", body=wire.body, signature=wire.signature)
    assert reason_of(lambda: decode_entry(no_author)) == "entry_bad_key"
    unsigned = encode_entry(author_key=wire.author, body=wire.body, signature=b"")
    assert reason_of(lambda: decode_entry(unsigned)) == "entry_bad_signature"


PERSON = bytes(16)
TOO_MANY = [
    admin_pb2.LastMessage(instance_id=bytes([n] * 16)) for n in range(MAX_LAST_MESSAGES + 1)
]


def end_of_link(
    *,
    members: bytes = PERSON,
    left: Sequence[admin_pb2.Left] = (),
    topic_name: bytes = PERSON,
    create_signature: bytes = bytes(64),
    key_commitment: bytes = bytes(32),
) -> admin_pb2.Act:
    return admin_pb2.Act(
        end_link=admin_pb2.EndLink(
            name="Walks",
            members=members,
            left=left,
            topic_name=topic_name,
            create_signature=create_signature,
            key_commitment=key_commitment,
        )
    )


UNUSABLE: dict[str, admin_pb2.Act | bytes] = {
    "nothing": b"",
    "of a newer version": b"\xa2\x06\x01x",
    "with more than we know": b"\x22\x15\x0a\x10" + bytes(16) + b"\x12\x01x",
    "no name": admin_pb2.Act(create=admin_pb2.Create()),
    "a long name": admin_pb2.Act(rename=admin_pb2.Text(text="x" * 65)),
    "a long topic": admin_pb2.Act(set_topic=admin_pb2.Text(text="x" * (MAX_TOPIC_CHARACTERS + 1))),
    "nobody": admin_pb2.Act(add=admin_pb2.Add()),
    "half a person": admin_pb2.Act(promote=admin_pb2.About(member=PERSON[:15])),
    "half an invitation": admin_pb2.Act(add=admin_pb2.Add(member=PERSON, invitation=PERSON)),
    "too late": admin_pb2.Act(add=admin_pb2.Add(member=PERSON, reads_from=MAX_SAFE_INTEGER + 1)),
    "no picture": admin_pb2.Act(set_picture=admin_pb2.Picture(picture=b"GIF89a")),
    "no use": admin_pb2.Act(invite=admin_pb2.Invite(token_hash=bytes(32))),
    "many uses": admin_pb2.Act(invite=admin_pb2.Invite(token_hash=bytes(32), uses=MAX_USES + 1)),
    "no token": admin_pb2.Act(invite=admin_pb2.Invite(uses=1)),
    "no invitation": admin_pb2.Act(revoke=admin_pb2.Revoke()),
    "too many instances": admin_pb2.Act(
        remove=admin_pb2.Remove(member=PERSON, last_messages=TOO_MANY)
    ),
    "instances twice": admin_pb2.Act(
        remove=admin_pb2.Remove(
            member=PERSON,
            last_messages=[
                admin_pb2.LastMessage(instance_id=PERSON, sequence=n, message_id=PERSON)
                for n in (1, 2)
            ],
        )
    ),
    "message number none": admin_pb2.Act(
        remove=admin_pb2.Remove(
            member=PERSON,
            last_messages=[admin_pb2.LastMessage(instance_id=PERSON, message_id=PERSON)],
        )
    ),
    "a short message id": admin_pb2.Act(delete_message=admin_pb2.DeleteMessage(author=PERSON)),
    "an epoch for nobody": admin_pb2.Act(make_epoch=admin_pb2.MakeEpoch(commitment=bytes(32))),
    "an epoch for one and a half": admin_pb2.Act(
        make_epoch=admin_pb2.MakeEpoch(commitment=bytes(32), recipients=bytes(24))
    ),
    "an epoch for one twice": admin_pb2.Act(
        make_epoch=admin_pb2.MakeEpoch(commitment=bytes(32), recipients=bytes(32))
    ),
    "an end without a topic": end_of_link(topic_name=b""),
    "an end without a beginning": end_of_link(create_signature=bytes(63)),
    "an end without a key": end_of_link(key_commitment=b""),
    "an end for one twice": end_of_link(members=bytes(32)),
    "an end for more than there may be": end_of_link(
        members=b"".join(n.to_bytes(16, "big") for n in range(MAX_RECIPIENTS + 1))
    ),
    "left twice": end_of_link(left=[admin_pb2.Left(member=PERSON)] * 2),
    "nobody left": end_of_link(left=[admin_pb2.Left()]),
    "left with too many instances": end_of_link(
        left=[admin_pb2.Left(member=PERSON, last_messages=TOO_MANY)]
    ),
    "an epoch without a key": admin_pb2.Act(make_epoch=admin_pb2.MakeEpoch(recipients=PERSON)),
}


@pytest.mark.parametrize("act", UNUSABLE.values(), ids=UNUSABLE)
def test_an_act_that_breaks_a_bound_keeps_its_place_and_does_nothing(
    act: admin_pb2.Act | bytes,
) -> None:
    assert isinstance(carrying(act), Unsupported)


@given(st.binary(max_size=80))
@example(b"\x0a\x03\x0a\x01x\x0a\x03\x0a\x01x")
def test_no_act_has_two_forms(encoded: bytes) -> None:
    """Whatever is understood is what we would write, and the rest does nothing."""
    act = carrying(encoded)
    if isinstance(act, Unsupported | Create | Rename | SetTopic):  # texts are cleaned
        return
    body = encode_body(act, lamport_timestamp=1, sent_ms=UnixMs(0), heads=())
    assert admin_pb2.Body.FromString(body).act == encoded


def test_the_end_of_a_link_in_the_tests_above_is_usable_otherwise() -> None:
    assert isinstance(carrying(end_of_link()), EndLink)


def test_everybody_can_compute_how_the_log_of_a_link_begins() -> None:
    """And only the creator can sign that."""
    first = link_create_id(ANNA.public_key, group_id=GROUP)
    made = link_create(ANNA.public_key, sign_link_create(ANNA, group_id=GROUP), group_id=GROUP)
    assert made.entry == verify_entry(made.data, group_id=GROUP)
    assert (made.entry.entry_id, made.entry.author) == (first, ANNA.participant_id)
    assert AdminLog(first, (made.entry,)).state.roles == {ANNA.participant_id: Role.OWNER}
    assert link_create_id(EVE.public_key, group_id=GROUP) != first
    assert link_create_id(ANNA.public_key, group_id=OTHER_GROUP) != first
    body = admin_pb2.Body(
        lamport_timestamp=1,
        act=admin_pb2.Act(create=admin_pb2.Create(name="link")).SerializeToString(),
    ).SerializeToString()
    hashed = tuple_of("causerie/2/admin-entry-id", GROUP, ANNA.public_key, body)
    assert urlsafe_b64encode(sha256(hashed).digest()).decode().rstrip("=") == first
    for signature in (
        sign_link_create(EVE, group_id=GROUP),
        sign_link_create(ANNA, group_id=OTHER_GROUP),
        bytes(64),
    ):
        forged = partial(link_create, ANNA.public_key, signature, group_id=GROUP)
        assert reason_of(forged) == "bad_signature"


def test_the_largest_epoch_fits() -> None:
    everybody = frozenset(map(person, range(MAX_RECIPIENTS)))
    heads = tuple(entry_id(n) for n in range(MAX_HEADS))
    made = signed(MakeEpoch(commitment=bytes(32), recipients=everybody), heads=heads)
    assert verify_entry(made.data, group_id=GROUP).act == made.entry.act
    with pytest.raises(LocalProtocolError):
        signed(MakeEpoch(commitment=bytes(32), recipients=everybody | {person(9_999)}))


@pytest.mark.parametrize(
    "act",
    [
        Unsupported(kind="vote"),
        Rename(name="\u202e"),
        SetTopic(topic="two\nlines"),
        SetPicture(picture=b"GIF89a"),
        Add(member=ParticipantId("Anna")),
        Add(member=person(1), reads_from=0),
        SetInviters(least=Role.OWNER),
        MakeEpoch(commitment=b"k", recipients=frozenset({person(1)})),
    ],
)
def test_what_others_would_not_understand_is_not_signed(act: Act) -> None:
    with pytest.raises(LocalProtocolError):
        signed(act)


def test_entries_make_a_log() -> None:
    """An act of a newer version has its place among them, and does nothing."""
    first = signed(Create(name="Walks"), heads=(), lamport_timestamp=5)
    new = admin_pb2.Body(
        lamport_timestamp=6, heads=[decoded(first.entry)], act=b"\xa2\x06\x01x"
    ).SerializeToString(deterministic=True)
    unknown = verify_entry(wrapped(new), group_id=GROUP)
    renamed = signed(Rename(name="Hikes"), heads=(unknown.entry_id,), lamport_timestamp=7)
    log = AdminLog(first.entry.entry_id, (renamed.entry, first.entry, unknown))
    assert log.state.name == "Hikes"
    assert log.state.verdicts[unknown.entry_id] is Verdict.UNSUPPORTED
    assert log.state.roles == {ANNA.participant_id: Role.OWNER}


def decoded(entry: Entry) -> bytes:
    body = encode_body(Rename(name="x"), lamport_timestamp=9, sent_ms=NOW, heads=(entry.entry_id,))
    return admin_pb2.Body.FromString(body).heads[0]
