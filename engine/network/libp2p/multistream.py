"""multistream-select 1.0.0: agrees on a protocol for a channel.

Messages are UTF-8 lines after a varint length.  Both machines say how many bytes they need next
(``needed``), so they never read beyond the negotiation.  The initiator sends the header and its
first proposal together, which saves a round trip and is accepted by every peer.  The long abandoned
"ls" is answered like any unknown protocol: "na".  Sans-I/O; ``negotiate`` drives a machine over
anything with reads and writes.
"""

from collections.abc import Awaitable, Callable, Container, Sequence
from typing import Protocol

from engine.core.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    TransportError,
    TransportFault,
)
from engine.network.libp2p.ports import ProtocolId
from engine.network.libp2p.varint import encode_varint

HEADER = "/multistream/1.0.0"
NOT_AVAILABLE = "na"
MAX_MESSAGE_BYTES = 1_024
MAX_PROPOSALS = 32
_CONTINUATION = 0x80


def encode_message(text: str) -> bytes:
    line = text.encode() + b"\n"
    if len(line) > MAX_MESSAGE_BYTES:
        raise LocalProtocolError("the protocol id is too long")
    return encode_varint(len(line)) + line


class _Negotiation:
    """Reads messages; subclasses answer them."""

    def __init__(self) -> None:
        self.selected: ProtocolId | None = None
        self._output = bytearray()
        self._length = 0
        self._length_bytes = 0
        self._reads_length = True
        self._header_seen = False

    @property
    def needed(self) -> int:
        """How many bytes to pass to ``receive``; 0 once a protocol is selected."""
        if self.selected is not None:
            return 0
        return 1 if self._reads_length else self._length

    def take_output(self) -> bytes:
        output = bytes(self._output)
        self._output.clear()
        return output

    def receive(self, data: bytes) -> None:
        """Exactly ``needed`` bytes.  Raises RemoteProtocolError, TransportError (no agreement)."""
        if len(data) != self.needed:
            raise LocalProtocolError("a negotiation is fed exactly what it needs")
        if self._reads_length:
            self._receive_length(data[0])
        else:
            self._length = self._length_bytes = 0
            self._reads_length = True
            self._receive_line(data)

    def _receive_length(self, byte: int) -> None:
        self._length |= (byte & 0x7F) << (7 * self._length_bytes)
        self._length_bytes += 1
        if self._length > MAX_MESSAGE_BYTES or self._length_bytes > 2:  # noqa: PLR2004 - 1 024 fits two
            raise RemoteProtocolError("multistream_message_too_long")
        if byte & _CONTINUATION:
            return
        if self._length == 0:
            raise RemoteProtocolError("multistream_empty_message")
        if byte == 0:  # of two bytes: the shortest form has one
            raise RemoteProtocolError("multistream_length_not_minimal")
        self._reads_length = False

    def _receive_line(self, line: bytes) -> None:
        if not line.endswith(b"\n"):
            raise RemoteProtocolError("multistream_no_newline")
        try:
            text = line[:-1].decode()
        except UnicodeDecodeError as error:
            raise RemoteProtocolError("multistream_not_utf8") from error
        if self._header_seen:
            self._receive_message(text)
        elif text == HEADER:
            self._header_seen = True
        else:
            raise RemoteProtocolError("multistream_bad_header")

    def _receive_message(self, text: str) -> None:
        raise NotImplementedError


class Initiator(_Negotiation):
    """Proposes ``protocols`` in turn."""

    def __init__(self, protocols: Sequence[ProtocolId]) -> None:
        super().__init__()
        if not protocols:
            raise LocalProtocolError("nothing to propose")
        self._left = list(protocols)
        self._output += encode_message(HEADER)
        self._propose()

    def _propose(self) -> None:
        self._proposed = self._left.pop(0)
        self._output += encode_message(self._proposed)

    def _receive_message(self, text: str) -> None:
        if text == self._proposed:
            self.selected = self._proposed
        elif text != NOT_AVAILABLE:
            raise RemoteProtocolError("multistream_unexpected_answer")
        elif self._left:
            self._propose()
        else:
            text = "the peer speaks none of the proposed protocols"
            raise TransportError(text, TransportFault.NO_PROTOCOL)


class Responder(_Negotiation):
    """Takes the first proposal that is among ``protocols``."""

    def __init__(self, protocols: Container[str]) -> None:
        super().__init__()
        self._protocols = protocols
        self._refusals = 0
        self._output += encode_message(HEADER)

    def _receive_message(self, text: str) -> None:
        if text in self._protocols:
            self.selected = ProtocolId(text)
            self._output += encode_message(text)
            return
        self._refusals += 1
        if self._refusals > MAX_PROPOSALS:
            raise RemoteProtocolError("multistream_too_many_proposals")
        self._output += encode_message(NOT_AVAILABLE)


class Channel(Protocol):
    """A pipe or a stream, to negotiate on."""

    async def read_exactly(self, count: int, /) -> bytes: ...


async def negotiate(
    machine: Initiator | Responder,
    channel: Channel,
    write: Callable[[bytes], Awaitable[None] | None],
) -> ProtocolId:
    """Run ``machine`` to its end.  Raises RemoteProtocolError, TransportError."""
    while True:
        output = machine.take_output()
        if output:
            written = write(output)
            if written is not None:
                await written
        if machine.selected is not None:
            return machine.selected
        machine.receive(await channel.read_exactly(machine.needed))
