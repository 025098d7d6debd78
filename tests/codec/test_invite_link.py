"""Invitation links: what mail does to them is forgiven, everything else is refused in words."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.tuples import tuple_bytes
from engine.core.errors import InviteError, LocalProtocolError
from engine.core.ids import ConversationId
from engine.core.invite import (
    INVITE_PREFIX,
    MAX_LINK_CHARACTERS,
    MAX_NODE_ADDRESSES,
    MAX_SERVICE_NODES,
    Invite,
    conversation_id_of,
    group_id_of,
)
from engine.crypto.identity import Identity
from engine.crypto.links import encode_invite, parse_invite
from proto import invite_pb2
from ui.error_words import error_words

ADMIN = Identity(signing_key=bytes(range(32)), encryption_key=bytes(range(32)))
ADDRESS = "/ip4/192.0.2.7/tcp/60000/p2p/12D3KooWPjceQrSwdWXPyLLeABRXmuqt69Rg3sBYbU1Nft9HyQ6X"
INVITE = Invite(
    group_id=bytes(range(32)),
    group_name="Les amis",
    epoch_key=bytes(range(100, 132)),
    admin_public_key=ADMIN.public_key,
    inviter_name="Zoë",
    node_addresses=(ADDRESS,),
)
LINK = encode_invite(INVITE)


def link_of(wire: invite_pb2.Invite) -> str:
    """A link whose checksum is right, whatever is in it."""
    return pack(wire.SerializeToString())


def pack(encoded: bytes) -> str:
    checksum = sha256(tuple_bytes("causerie/1/invite", encoded)).digest()[:4]
    return INVITE_PREFIX + urlsafe_b64encode(checksum + encoded).decode().rstrip("=")


def wire_of(link: str) -> invite_pb2.Invite:
    payload = link.removeprefix(INVITE_PREFIX)
    packed = urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    return invite_pb2.Invite.FromString(packed[4:])


def refusal(link: str) -> str:
    with pytest.raises(InviteError) as error:
        parse_invite(link)
    return error_words(error.value)


def test_what_was_invited_to_comes_back() -> None:
    assert parse_invite(LINK) == INVITE
    assert LINK.startswith("causerie:join/")
    assert parse_invite(LINK).conversation_id == conversation_id_of(INVITE.group_id)


def test_the_key_appears_in_no_representation() -> None:
    assert repr(INVITE.epoch_key) not in repr(INVITE)


def test_a_newer_version_is_called_so() -> None:
    wire = wire_of(LINK)
    wire.version = 3
    wire.epoch_key = b"of another length by then"
    assert "newer version" in refusal(link_of(wire))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("group_id", bytes(31), "missing"),
        ("epoch_key", bytes(33), "missing"),
        ("version", 0, "missing"),
        ("admin_public_key", b"", "admin key"),
        ("admin_public_key", (1).to_bytes(32, "little"), "admin key"),
        ("admin_public_key", b"\xff" * 32, "admin key"),
        ("group_name", "", "name"),
        ("group_name", "\u202e", "name"),
        ("inviter_name", "x" * 65, "name"),
    ],
)
def test_bad_fields_are_refused_in_words(field: str, value: object, words: str) -> None:
    wire = wire_of(LINK)
    setattr(wire, field, value)
    assert words in refusal(link_of(wire))


@pytest.mark.parametrize(
    "address",
    ["", "ip4/192.0.2.7", "/ip4/1 2", "/dns4/ex\u0430mple.org", "/x" * 129, "/a\n", "/<b>"],
)
def test_bad_addresses_are_refused_from_others_and_left_out_of_our_own(address: str) -> None:
    wire = wire_of(LINK)
    wire.node_addresses.append(address)
    assert "address" in refusal(link_of(wire))
    ours = replace(INVITE, node_addresses=(address, ADDRESS))
    assert parse_invite(encode_invite(ours)).node_addresses == (ADDRESS,)


def test_too_many_addresses_are_refused() -> None:
    wire = wire_of(LINK)
    wire.node_addresses.extend(["/x"] * MAX_NODE_ADDRESSES)
    assert "address" in refusal(link_of(wire))


def test_service_nodes_travel_first_and_are_four_at_most() -> None:
    nodes = tuple(ADDRESS.replace("60000", str(port)) for port in range(7_000, 7_006))
    made = replace(INVITE, service_nodes=nodes, node_addresses=("/x" * 128,) * 2 + nodes * 3)
    link = encode_invite(made)
    assert len(link) <= MAX_LINK_CHARACTERS
    assert parse_invite(link).service_nodes == nodes[:MAX_SERVICE_NODES]
    long = tuple(f"/dns4/{'h' * 180}{number}.example/tcp/1/p2p/x" for number in range(9))
    crowded = replace(made, group_name="\U0001f600" * 64, service_nodes=long, node_addresses=long)
    link = encode_invite(crowded)
    assert len(link) <= MAX_LINK_CHARACTERS
    assert parse_invite(link).service_nodes == long[:MAX_SERVICE_NODES]


@pytest.mark.parametrize(
    "node", ["", "/ip4/192.0.2.7/tcp/60000", "/x/p2p/" + "y" * 250, "/a /p2p/x", "ip4/1/p2p/x"]
)
def test_bad_service_nodes_are_refused_from_others_and_left_out_of_our_own(node: str) -> None:
    wire = wire_of(LINK)
    wire.service_nodes.append(node)
    assert "unusable service node" in refusal(link_of(wire))
    ours = replace(INVITE, service_nodes=(node, ADDRESS))
    assert parse_invite(encode_invite(ours)).service_nodes == (ADDRESS,)


def test_too_many_service_nodes_are_refused() -> None:
    wire = wire_of(LINK)
    wire.service_nodes.extend([ADDRESS] * (MAX_SERVICE_NODES + 1))
    assert "unusable service node" in refusal(link_of(wire))


def test_an_invitation_without_service_nodes_is_the_one_it_always_was() -> None:
    """Older versions read it: nothing is in it that they do not know."""
    assert not wire_of(LINK).service_nodes
    assert encode_invite(replace(INVITE, service_nodes=())) == LINK


def test_checksummed_rubbish_is_refused() -> None:
    assert "cannot be read" in refusal(pack(b"\xff\xff"))


def test_a_link_has_one_form() -> None:
    encoded = wire_of(LINK).SerializeToString()
    for other in (
        encoded + b"\x7a\x01x",
        encoded[2:] + encoded[:2],
        b"\x08\x02" + encoded,
        b"\x08\x82\x00" + encoded[2:],
    ):
        assert invite_pb2.Invite.FromString(other).epoch_key == INVITE.epoch_key
        assert "does not belong there" in refusal(pack(other))
    assert parse_invite(pack(encoded)) == INVITE


def test_names_are_cleaned() -> None:
    wire = wire_of(LINK)
    wire.group_name = "Les\u202e amis"
    assert parse_invite(link_of(wire)).group_name == "Les amis"


def test_addresses_that_do_not_fit_are_left_out_first_come_first_served() -> None:
    long_name = "\U0001f600" * 64
    addresses = tuple(f"/dns4/{'h' * 200}{number}.example/tcp/443/wss" for number in range(20))
    generous = replace(
        INVITE, group_name=long_name, inviter_name=long_name, node_addresses=addresses
    )
    link = encode_invite(generous)
    assert len(link) <= MAX_LINK_CHARACTERS
    kept = parse_invite(link).node_addresses
    assert kept == addresses[: len(kept)]
    assert len(kept) >= 2
    many_small = replace(INVITE, node_addresses=tuple(f"/x{number}" for number in range(50)))
    assert parse_invite(encode_invite(many_small)).node_addresses == tuple(
        f"/x{number}" for number in range(MAX_NODE_ADDRESSES)
    )
    twice = replace(INVITE, node_addresses=(ADDRESS, ADDRESS))
    assert parse_invite(encode_invite(twice)).node_addresses == (ADDRESS,)


def test_invitations_that_nobody_could_use_are_never_made() -> None:
    for broken in (
        replace(INVITE, group_id=bytes(31)),
        replace(INVITE, epoch_key=b""),
        replace(INVITE, group_name=" "),
        replace(INVITE, inviter_name="x" * 65),
        replace(INVITE, admin_public_key=bytes(32)),
    ):
        with pytest.raises(LocalProtocolError):
            encode_invite(broken)


def test_conversation_ids_are_the_group_id_in_another_alphabet() -> None:
    assert group_id_of(conversation_id_of(INVITE.group_id)) == INVITE.group_id
    for wrong in ("", "AAAA", "!" * 43, "A" * 42 + "B", "é" * 43):
        with pytest.raises(LocalProtocolError):
            group_id_of(ConversationId(wrong))


@given(
    st.builds(
        invite_pb2.Invite,
        version=st.integers(0, 3),
        group_id=st.just(bytes(32)) | st.binary(max_size=40),
        group_name=st.text(st.characters(exclude_categories=["Cs"]), max_size=70),
        epoch_key=st.just(bytes(32)) | st.binary(max_size=33),
        admin_public_key=st.just(ADMIN.public_key) | st.binary(max_size=33),
        inviter_name=st.text(st.characters(exclude_categories=["Cs"]), max_size=70),
        node_addresses=st.lists(st.text("/ab", max_size=5), max_size=3),
        service_nodes=st.lists(st.text("/ab", max_size=5).map("{}/p2p/x".format), max_size=5),
    )
)
def test_what_is_accepted_can_be_passed_on(wire: invite_pb2.Invite) -> None:
    try:
        invite = parse_invite(link_of(wire))
    except InviteError:
        return
    again = parse_invite(encode_invite(invite))
    assert replace(again, node_addresses=()) == replace(invite, node_addresses=())
    assert again.node_addresses == tuple(dict.fromkeys(invite.node_addresses))
