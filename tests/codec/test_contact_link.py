"""Contact links: signed by their owner, over some day, and every refusal is a sentence."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.tuples import tuple_bytes
from engine.core.contacts import CONTACT_PREFIX, ContactLink
from engine.core.errors import InviteError, LocalProtocolError
from engine.core.ids import UnixMs
from engine.core.invite import MAX_LINK_CHARACTERS, MAX_NODE_ADDRESSES, Invite
from engine.crypto.identity import Identity
from engine.crypto.links import encode_contact_link, encode_invite, parse_contact_link, parse_invite
from proto import contact_pb2
from ui.error_words import error_words

NOW = UnixMs(1_700_000_000_000)
EXPIRES = UnixMs(1_707_776_000_000)  # 12 February 2024, 22:13 UTC
ZOE = Identity(signing_key=bytes(range(32)), encryption_key=bytes(range(1, 33)))
MALLORY = Identity(signing_key=bytes(range(2, 34)), encryption_key=bytes(range(3, 35)))
ADDRESS = "/ip4/192.0.2.7/tcp/60000/p2p/12D3KooWPjceQrSwdWXPyLLeABRXmuqt69Rg3sBYbU1Nft9HyQ6X"
LINK = encode_contact_link(ZOE, name="Zoë", expires_ms=EXPIRES, node_addresses=(ADDRESS,))
CONTACT = ContactLink(
    public_key=ZOE.public_key,
    encryption_key=ZOE.encryption_public_key,
    name="Zoë",
    expires_ms=EXPIRES,
    node_addresses=(ADDRESS,),
)
DOMAIN = "causerie/1/contact-link"


def pack(encoded: bytes) -> str:
    """A link whose checksum is right, whatever is in it."""
    checksum = sha256(tuple_bytes("causerie/1/contact", encoded)).digest()[:4]
    return CONTACT_PREFIX + urlsafe_b64encode(checksum + encoded).decode().rstrip("=")


def wire_of(link: str) -> contact_pb2.ContactLink:
    payload = link.removeprefix(CONTACT_PREFIX)
    packed = urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    return contact_pb2.ContactLink.FromString(packed[4:])


def signed(wire: contact_pb2.ContactLink, identity: Identity = ZOE) -> str:
    """What the owner of a key can make of any fields."""
    wire.signature = identity.sign(
        tuple_bytes(
            DOMAIN,
            wire.version,
            wire.public_key,
            wire.encryption_key,
            wire.name,
            wire.expires_ms,
            len(wire.node_addresses),
            *wire.node_addresses,
        )
    )
    return pack(wire.SerializeToString())


def refusal(link: str, now_ms: int = NOW) -> str:
    with pytest.raises(InviteError) as error:
        parse_contact_link(link, now_ms=UnixMs(now_ms))
    return error_words(error.value)


def test_who_it_is_about_comes_back() -> None:
    assert parse_contact_link(LINK, now_ms=NOW) == CONTACT
    assert LINK.startswith("causerie:contact/")
    assert len(LINK) < 400


def test_it_holds_no_secret() -> None:
    packed = urlsafe_b64decode(LINK.removeprefix(CONTACT_PREFIX) + "==")
    assert ZOE.signing_key not in packed
    assert ZOE.encryption_key not in packed


def test_the_two_kinds_of_link_are_told_apart() -> None:
    invite = encode_invite(
        Invite(
            group_id=bytes(32),
            group_name="Les amis",
            epoch_key=bytes(32),
            admin_public_key=ZOE.public_key,
            inviter_name="Zoë",
        )
    )
    assert "invitation, not a contact link" in refusal(invite)
    with pytest.raises(InviteError) as error:
        parse_invite(LINK)
    assert "no invitation to a group" in error_words(error.value)


def test_a_newer_version_is_called_so_whatever_else_is_in_it() -> None:
    wire = wire_of(LINK)
    wire.version = 2
    wire.signature = b"of another length by then"
    wire.expires_ms = 1
    assert "newer version" in refusal(pack(wire.SerializeToString()))


def test_a_link_has_one_form() -> None:
    """The signature covers the fields, not what could be hung on to them."""
    encoded = wire_of(LINK).SerializeToString()
    for other in (
        encoded + b"\x7a\x01x",
        encoded[2:] + encoded[:2],
        b"\x08\x01" + encoded,
        b"\x08\x81\x00" + encoded[2:],
    ):
        assert contact_pb2.ContactLink.FromString(other).public_key == ZOE.public_key
        assert "does not belong there" in refusal(pack(other))
    assert parse_contact_link(pack(encoded), now_ms=NOW).public_key == ZOE.public_key


def test_it_expires_at_a_moment_that_is_named() -> None:
    assert parse_contact_link(LINK, now_ms=UnixMs(EXPIRES - 1)) == CONTACT
    expected = "This contact link expired on 12 February 2024. Ask for a new one."
    assert refusal(LINK, EXPIRES) == expected
    assert refusal(LINK, 2**60) == expected


def test_any_day_that_is_over_has_a_name() -> None:
    for expires_ms in (1, 253_402_300_799_999):
        link = encode_contact_link(
            ZOE, name="Zoë", expires_ms=UnixMs(expires_ms), node_addresses=()
        )
        assert "expired on" in refusal(link, expires_ms)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Zoe"),
        ("expires_ms", EXPIRES + 1),
        ("encryption_key", MALLORY.encryption_public_key),
        ("public_key", MALLORY.public_key),
        ("signature", bytes(64)),
    ],
)
def test_no_field_can_be_changed_by_another(field: str, value: object) -> None:
    wire = wire_of(LINK)
    setattr(wire, field, value)
    assert "not signed by the person it names" in refusal(pack(wire.SerializeToString()))


def test_no_address_can_be_added_moved_or_taken_away() -> None:
    for addresses in ([], [ADDRESS, "/x"], ["/x", ADDRESS], [ADDRESS[:-1]]):
        wire = wire_of(LINK)
        del wire.node_addresses[:]
        wire.node_addresses.extend(addresses)
        assert "not signed" in refusal(pack(wire.SerializeToString()))


def test_only_the_owner_of_the_key_can_sign() -> None:
    assert "not signed" in refusal(signed(wire_of(LINK), MALLORY))


def test_a_signature_made_for_something_else_does_not_count() -> None:
    wire = wire_of(LINK)
    wire.signature = ZOE.sign(tuple_bytes("causerie/1/join", wire.public_key))
    assert "not signed" in refusal(pack(wire.SerializeToString()))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("version", 0, "missing"),
        ("expires_ms", 0, "missing"),
        ("expires_ms", 253_402_300_800_000, "missing"),
        ("expires_ms", 2**64 - 1, "missing"),
        ("public_key", b"", "cannot be genuine"),
        ("public_key", (1).to_bytes(32, "little"), "cannot be genuine"),
        ("public_key", b"\xff" * 32, "cannot be genuine"),
        ("encryption_key", b"", "cannot be genuine"),
        ("encryption_key", bytes(32), "cannot be genuine"),
        ("name", "", "name"),
        ("name", "\u202e", "name"),
        ("name", "x" * 65, "name"),
    ],
)
def test_bad_fields_are_refused_in_words_although_signed(
    field: str, value: object, words: str
) -> None:
    wire = wire_of(LINK)
    setattr(wire, field, value)
    assert words in refusal(signed(wire))


def test_an_unsigned_link_lacks_something() -> None:
    wire = wire_of(LINK)
    wire.signature = b""
    assert "missing" in refusal(pack(wire.SerializeToString()))


@pytest.mark.parametrize("address", ["", "ip4/192.0.2.7", "/ip4/1 2", "/x" * 129, "/a\n", "/<b>"])
def test_bad_addresses_are_refused_from_others_and_left_out_of_our_own(address: str) -> None:
    wire = wire_of(LINK)
    wire.node_addresses.append(address)
    assert "address" in refusal(signed(wire))
    ours = encode_contact_link(
        ZOE, name="Zoë", expires_ms=EXPIRES, node_addresses=(address, ADDRESS)
    )
    assert parse_contact_link(ours, now_ms=NOW) == CONTACT


def test_addresses_that_do_not_fit_are_left_out_first_come_first_served() -> None:
    addresses = [f"/dns4/{'h' * 200}{number}.example/tcp/443/wss" for number in range(20)]
    link = encode_contact_link(
        ZOE, name="\U0001f600" * 64, expires_ms=EXPIRES, node_addresses=addresses
    )
    assert len(link) <= MAX_LINK_CHARACTERS
    kept = parse_contact_link(link, now_ms=NOW).node_addresses
    assert kept == tuple(addresses[: len(kept)])
    assert len(kept) >= 3
    small = [f"/x{number % 40}" for number in range(80)]
    many = encode_contact_link(ZOE, name="Zoë", expires_ms=EXPIRES, node_addresses=small)
    kept = parse_contact_link(many, now_ms=NOW).node_addresses
    assert kept == tuple(small[:MAX_NODE_ADDRESSES])


@pytest.mark.parametrize(
    ("name", "expires_ms"),
    [
        (" ", EXPIRES),
        ("x" * 65, EXPIRES),
        ("\ud800", EXPIRES),
        ("Zoë", 0),
        ("Zoë", -1),
        ("Zoë", 2**53),
        ("Zoë", 2**64),
    ],
)
def test_links_that_nobody_could_use_are_never_made(name: str, expires_ms: int) -> None:
    with pytest.raises(LocalProtocolError):
        encode_contact_link(ZOE, name=name, expires_ms=UnixMs(expires_ms), node_addresses=())


def test_names_are_cleaned_after_the_signature_was_checked() -> None:
    wire = wire_of(LINK)
    wire.name = "Zoë\u202e\n  B."
    assert parse_contact_link(signed(wire), now_ms=NOW).name == "Zoë B."


@given(
    st.builds(
        contact_pb2.ContactLink,
        version=st.integers(0, 2),
        public_key=st.just(ZOE.public_key) | st.binary(max_size=33),
        encryption_key=st.just(ZOE.encryption_public_key) | st.binary(max_size=33),
        name=st.text(st.characters(exclude_categories=["Cs"]), max_size=70),
        expires_ms=st.integers(0, 2**64 - 1),
        node_addresses=st.lists(st.text("/ab", max_size=5), max_size=3),
    )
)
def test_what_is_signed_is_accepted_as_it_is_or_refused_in_words(
    wire: contact_pb2.ContactLink,
) -> None:
    try:
        contact = parse_contact_link(signed(wire), now_ms=NOW)
    except InviteError as error:
        words = error_words(error)
    else:
        assert contact.public_key == wire.public_key
        assert contact.encryption_key == wire.encryption_key
        assert contact.expires_ms == wire.expires_ms > NOW
        assert contact.node_addresses == tuple(wire.node_addresses)
        return
    assert words.endswith(".")
