"""Strong invitations: no key in them, signed as a whole, strictly read."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.codec.admin_entry import entry_id_from
from engine.codec.tuples import tuple_bytes
from engine.core.admin_log.acts import EntryId
from engine.core.errors import InviteError, LinkFlaw, LocalProtocolError
from engine.core.ids import UnixMs
from engine.core.invite import INVITE_PREFIX, MAX_LINK_CHARACTERS, MAX_SERVICE_NODES, StrongInvite
from engine.crypto.identity import Identity
from engine.crypto.links import encode_strong_invite, parse_any_invite, parse_invite
from proto import invite_pb2
from tests.codec.test_invite_link import INVITE as SIMPLE
from tests.codec.test_invite_link import LINK as SIMPLE_LINK
from ui.error_words import error_words

NOW = UnixMs(1_700_000_000_000)
OLGA = Identity(signing_key=bytes(range(32)), encryption_key=bytes(range(32)))
EVE = Identity(signing_key=bytes(range(1, 33)), encryption_key=bytes(range(1, 33)))
ADDRESS = "/ip4/192.0.2.7/tcp/60000/p2p/12D3KooWPjceQrSwdWXPyLLeABRXmuqt69Rg3sBYbU1Nft9HyQ6X"
INVITE = StrongInvite(
    group_id=bytes(range(32)),
    first_entry=entry_id_from(bytes([7] * 32)),
    group_name="Les amis",
    inviter_name="Zoë",
    public_key=OLGA.public_key,
    encryption_key=OLGA.encryption_public_key,
    invitation_id=entry_id_from(bytes([9] * 32)),
    token=bytes(range(16)),
    expires_ms=UnixMs(NOW + 1),
    node_addresses=(ADDRESS,),
    service_nodes=(ADDRESS,),
)
LINK = encode_strong_invite(OLGA, INVITE)


def encoded_in(link: str) -> bytes:
    packed = link.removeprefix(INVITE_PREFIX)
    return urlsafe_b64decode(packed + "=" * (-len(packed) % 4))[4:]


def packed(encoded: bytes) -> str:
    """With a checksum that is right, whatever is in it."""
    checksum = sha256(tuple_bytes("causerie/1/invite", encoded)).digest()[:4]
    return INVITE_PREFIX + urlsafe_b64encode(checksum + encoded).decode().rstrip("=")


def flaw(link: str, now_ms: UnixMs | None = NOW) -> LinkFlaw:
    with pytest.raises(InviteError) as error:
        parse_any_invite(link, now_ms=now_ms)
    assert error_words(error.value)
    return error.value.flaw


def test_what_was_invited_to_comes_back_and_simple_ones_are_told_apart() -> None:
    assert parse_any_invite(LINK, now_ms=NOW) == INVITE
    assert parse_any_invite(SIMPLE_LINK, now_ms=NOW) == SIMPLE
    with pytest.raises(InviteError) as error:
        parse_invite(LINK)
    assert error.value.flaw is LinkFlaw.NEWER, "what a program says that knows only simple ones"


def test_the_token_appears_in_no_representation() -> None:
    assert repr(INVITE.token) not in repr(INVITE)


def test_an_expired_one_is_refused_but_where_it_was_taken_before() -> None:
    assert flaw(LINK, UnixMs(NOW + 1)) is LinkFlaw.EXPIRED
    assert parse_any_invite(LINK, now_ms=None) == INVITE


@given(st.integers(0, 8 * len(encoded_in(LINK)) - 1))
def test_whatever_bit_is_changed_it_is_refused(bit: int) -> None:
    changed = bytearray(encoded_in(LINK))
    changed[bit // 8] ^= 1 << bit % 8
    flaw(packed(bytes(changed)))


def test_nobody_can_sign_for_another_or_put_their_own_key_into_it() -> None:
    wire = invite_pb2.StrongInvite.FromString(encoded_in(LINK))
    wire.public_key, wire.encryption_key = EVE.public_key, EVE.encryption_public_key
    assert flaw(packed(wire.SerializeToString())) is LinkFlaw.BAD_SIGNATURE
    assert flaw(encode_strong_invite(EVE, INVITE)) is LinkFlaw.BAD_SIGNATURE


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("version", 4, LinkFlaw.NEWER),
        ("group_id", bytes(31), LinkFlaw.INCOMPLETE),
        ("first_entry", bytes(33), LinkFlaw.INCOMPLETE),
        ("invitation", b"", LinkFlaw.INCOMPLETE),
        ("token", bytes(15), LinkFlaw.INCOMPLETE),
        ("signature", bytes(63), LinkFlaw.INCOMPLETE),
        ("expires_ms", 0, LinkFlaw.INCOMPLETE),
        ("expires_ms", 2**63, LinkFlaw.INCOMPLETE),
        ("public_key", (1).to_bytes(32, "little"), LinkFlaw.BAD_KEY),
        ("public_key", b"", LinkFlaw.BAD_KEY),
        ("encryption_key", bytes(32), LinkFlaw.BAD_KEY),
        ("group_name", "\u202e", LinkFlaw.BAD_NAME),
        ("inviter_name", "x" * 65, LinkFlaw.BAD_NAME),
        ("node_addresses", ["ip4/192.0.2.7"], LinkFlaw.BAD_ADDRESS),
        ("node_addresses", ["/x"] * 17, LinkFlaw.BAD_ADDRESS),
        ("service_nodes", ["/ip4/192.0.2.7/tcp/1"], LinkFlaw.BAD_SERVICE_NODE),
        ("service_nodes", [ADDRESS] * 5, LinkFlaw.BAD_SERVICE_NODE),
    ],
)
def test_bad_fields_are_refused(field: str, value: object, expected: LinkFlaw) -> None:
    wire = invite_pb2.StrongInvite.FromString(encoded_in(LINK))
    if isinstance(value, list):
        wire.ClearField(field)  # type: ignore[arg-type]
        getattr(wire, field).extend(value)
    else:
        setattr(wire, field, value)
    assert flaw(packed(wire.SerializeToString())) is expected


def test_it_has_one_form() -> None:
    encoded = encoded_in(LINK)
    for other in (encoded + b"\xfa\x01\x01x", b"\x08\x03" + encoded):
        assert flaw(packed(other)) is LinkFlaw.NOT_CANONICAL
    assert flaw(packed(b"\x08\x03\xff\xff")) in {LinkFlaw.UNREADABLE, LinkFlaw.INCOMPLETE}


def test_addresses_that_do_not_fit_are_left_out_and_service_nodes_come_first() -> None:
    long = tuple(f"/dns4/{'h' * 180}{number}.example/tcp/1/p2p/x" for number in range(9))
    crowded = replace(
        INVITE,
        group_name="\U0001f600" * 64,
        inviter_name="\U0001f600" * 64,
        service_nodes=("/no/peer/id", *long),
        node_addresses=("no address", *long),
    )
    link = encode_strong_invite(OLGA, crowded)
    assert len(link) <= MAX_LINK_CHARACTERS
    read = parse_any_invite(link, now_ms=NOW)
    assert 1 <= len(read.service_nodes) <= MAX_SERVICE_NODES
    assert read.service_nodes == long[: len(read.service_nodes)]


def test_ones_that_nobody_could_use_are_never_made() -> None:
    for broken in (
        replace(INVITE, group_id=bytes(31)),
        replace(INVITE, token=b""),
        replace(INVITE, group_name=" "),
        replace(INVITE, first_entry=EntryId("short")),
    ):
        with pytest.raises(LocalProtocolError):
            encode_strong_invite(OLGA, broken)


@example(encoded_in(LINK))
@given(st.binary(max_size=200))
def test_whatever_comes_is_read_or_refused(encoded: bytes) -> None:
    with suppress(InviteError):
        parse_any_invite(packed(b"\x08\x03" + encoded), now_ms=NOW)
