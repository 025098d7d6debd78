"""multistream-select: agreement, refusal, and whatever else may arrive instead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import LocalProtocolError, RemoteProtocolError, TransportError
from engine.network.libp2p.multistream import (
    HEADER,
    MAX_PROPOSALS,
    Initiator,
    Responder,
    encode_message,
)
from engine.network.libp2p.ports import ProtocolId

A, B, C = ProtocolId("/a/1"), ProtocolId("/b/1"), ProtocolId("/c/1")


def feed(machine: Initiator | Responder, data: bytes) -> bytes:
    """What the machine left unread."""
    while machine.needed and len(data) >= machine.needed:
        head, data = data[: machine.needed], data[machine.needed :]
        machine.receive(head)
    return data


def talk(initiator: Initiator, responder: Responder) -> None:
    while initiator.selected is None:
        feed(responder, initiator.take_output())
        feed(initiator, responder.take_output())


def test_message_of_the_spec() -> None:
    assert encode_message("na").hex() == "036e610a"


def test_the_first_common_protocol_is_chosen() -> None:
    initiator, responder = Initiator([A, B, C]), Responder({B, C})
    talk(initiator, responder)
    assert initiator.selected == responder.selected == B


def test_nothing_after_the_agreement_is_swallowed() -> None:
    responder = Responder({A})
    rest = feed(responder, encode_message(HEADER) + encode_message(A) + b"early data")
    assert responder.selected == A
    assert rest == b"early data"


def test_no_common_protocol() -> None:
    with pytest.raises(TransportError, match="none of the proposed"):
        talk(Initiator([A, B]), Responder({C}))


def test_ls_is_not_available() -> None:
    responder = Responder({A})
    feed(responder, encode_message(HEADER) + encode_message("ls"))
    assert responder.take_output() == encode_message(HEADER) + encode_message("na")
    assert responder.selected is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\n" * 20, "multistream_no_newline"),
        (b"\x00", "multistream_empty_message"),
        (b"\xff\xff\xff", "multistream_message_too_long"),
        (b"\x80\x80\x01", "multistream_message_too_long"),
        (b"\x93\x00" + HEADER.encode() + b"\n", "multistream_length_not_minimal"),
        (b"\x03abc", "multistream_no_newline"),
        (b"\x02\xff\n", "multistream_not_utf8"),
        (encode_message("/multistream/2.0.0"), "multistream_bad_header"),
    ],
)
def test_bad_first_messages(data: bytes, reason: str) -> None:
    for machine in (Initiator([A]), Responder({A})):
        with pytest.raises(RemoteProtocolError, match=reason):
            feed(machine, data)


def test_an_answer_that_was_not_proposed() -> None:
    with pytest.raises(RemoteProtocolError, match="multistream_unexpected_answer"):
        feed(Initiator([A]), encode_message(HEADER) + encode_message(B))


def test_endless_proposals_are_cut_off() -> None:
    responder = Responder({A})
    data = encode_message(HEADER) + encode_message(B) * MAX_PROPOSALS
    assert feed(responder, data) == b""
    with pytest.raises(RemoteProtocolError, match="multistream_too_many_proposals"):
        feed(responder, encode_message(B))


@given(st.binary(max_size=200), st.booleans())
def test_only_refusals_come_out_of_garbage(data: bytes, after_header: bool) -> None:
    prefix = encode_message(HEADER) if after_header else b""
    for machine in (Initiator([A]), Responder({A})):
        try:
            feed(machine, prefix + data)
        except (RemoteProtocolError, TransportError):
            continue
        assert machine.needed <= 1_024


def test_local_mistakes() -> None:
    with pytest.raises(LocalProtocolError):
        Initiator([])
    with pytest.raises(LocalProtocolError):
        Initiator([ProtocolId("/" + "x" * 2_000)])
    with pytest.raises(LocalProtocolError):
        Responder({A}).receive(b"too much")
