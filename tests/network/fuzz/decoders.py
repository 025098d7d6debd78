"""Every decoder of bytes from outside, in one table, and what is no decoder.

``test_every_decoder.py`` looks through ``engine/codec`` and ``engine/network`` for whatever takes
bytes, and fails for what is in neither list: a new decoder cannot be forgotten.  Seeds are in
``tests/corpus/network.json``, under the same names.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from websockets.client import ClientProtocol
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from engine.codec.admin_entry import MAX_ENTRY_BYTES, decode_entry
from engine.codec.backup import (
    ENTRY_BYTES,
    HEADER_BYTES,
    decode_backup_entry,
    decode_backup_header,
)
from engine.codec.blobs import (
    MAX_BLOB_ANSWER_BYTES,
    MAX_BLOB_REQUEST_BYTES,
    decode_blob_request,
    decode_chunk_answer,
    decode_holdings,
    decode_put_answer,
)
from engine.codec.content import (
    decode_content,
    decode_ephemeral,
    decode_pair_content,
    decode_pair_ephemeral,
)
from engine.codec.envelope import (
    decode_envelope,
    decode_header,
    decode_plaintext,
    decode_signed_part,
    sds_sender_of,
)
from engine.codec.epochs import (
    MAX_EARLIER_BYTES,
    MAX_WRAPS_BYTES,
    decode_earlier_keys,
    decode_prekey,
    decode_wraps,
)
from engine.codec.gossipsub import MAX_RPC_BYTES, decode_rpc
from engine.codec.holdings import decode_claim
from engine.codec.join import decode_join, signed_join
from engine.codec.joining import MAX_JOINING_BYTES, decode_admission, decode_joining
from engine.codec.key_bundle import decode_key_bundle
from engine.codec.key_header import MAX_HEADER_BYTES, decode_key_header
from engine.codec.libp2p import decode_identify, decode_noise_payload, decode_public_key
from engine.codec.mvds import decode_payload
from engine.codec.olm import decode_olm_envelope, decode_olm_plaintext
from engine.codec.open_content import decode_open_content
from engine.codec.packing import unpack
from engine.codec.padding import unpad
from engine.codec.pair import (
    decode_any_pair_envelope,
    decode_pair_envelope,
    decode_pair_plaintext,
)
from engine.codec.release_manifest import parse_release, take_apart
from engine.codec.sds import decode_message
from engine.codec.waku import decode_waku_message
from engine.codec.waku_filter import (
    decode_filter_request,
    decode_filter_response,
    decode_message_push,
)
from engine.codec.waku_history import decode_history_query, decode_history_response
from engine.codec.waku_lightpush import (
    decode_legacy_request,
    decode_legacy_response,
    decode_push_request,
    decode_push_response,
)
from engine.codec.waku_metadata import decode_metadata
from engine.codec.waku_payload import decode_waku_payload
from engine.codec.waku_store import decode_store_request, decode_store_response, request_id_of
from engine.core.errors import TransportError
from engine.core.releases import MAX_MANIFEST_BYTES
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES
from engine.network.discovery.announcement import Scope, read_txt
from engine.network.https import HttpsAnswer
from engine.network.libp2p.handshake import NOISE, SecuredPipe, SecureHandshake
from engine.network.libp2p.identify import IDENTIFY, receive_identify, remote_peer
from engine.network.libp2p.keys import IdentityKey
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.mplex import Mplex
from engine.network.libp2p.multiaddr import Layer, multiaddr_from_bytes, parse_multiaddr
from engine.network.libp2p.multistream import Initiator, Responder
from engine.network.libp2p.muxer import DataReceived, Muxer
from engine.network.libp2p.peer_id import peer_id_from_bytes
from engine.network.libp2p.pipe import PipeSink
from engine.network.libp2p.ports import PeerId, ProtocolId
from engine.network.libp2p.proxy import parse_proxy
from engine.network.libp2p.socks import SocksRequest
from engine.network.libp2p.upgrade import MPLEX, YAMUX
from engine.network.libp2p.varint import decode_varint
from engine.network.libp2p.websocket import MAX_FRAME_BYTES, WebSocketPipe
from engine.network.libp2p.yamux import Yamux
from engine.network.waku.framing import FrameDecoder

Decode = Callable[[bytes], object]
KIB, MIB = 1024, 1024 * 1024
CORPUS = Path(__file__).parents[2] / "corpus" / "network.json"
SEEDS: Mapping[str, list[str]] = json.loads(CORPUS.read_text("utf-8"))["inputs"]
NEAR = parse_multiaddr("/ip4/127.0.0.1/tcp/9")
SOMEBODY = PeerId("12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA")
LIMITS = HostLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """``covers`` says what it runs, as ``module.name``."""

    name: str
    decode: Decode
    covers: tuple[str, ...]
    largest: int = 64 * KIB
    """Bytes of one input, as far as whoever calls it lets them come."""

    @property
    def seeds(self) -> list[bytes]:
        return [bytes.fromhex(each) for each in SEEDS[self.name]]


# --- machines that are fed in pieces --------------------------------------------------------------


def _pieces(data: bytes) -> list[bytes]:
    """Cut at a place that the data itself chooses, for no decoder may depend on where."""
    cut = sum(data[:16]) % (len(data) + 1)
    return [piece for piece in (data[:cut], data[cut:]) if piece]


def _negotiated(machine: Initiator | Responder, data: bytes) -> None:
    offset = 0
    while machine.needed and offset + machine.needed <= len(data):
        needed = machine.needed
        machine.receive(data[offset : offset + needed])
        offset += needed
        machine.take_output()


def _handshake(*, initiator: bool, messages: int) -> tuple[SecureHandshake, SecureHandshake]:
    """Who reads next, and the other side, after so many right messages."""
    first, second = (
        SecureHandshake(
            initiator=is_first,
            identity=IdentityKey(bytes([65 + is_first]) * 32),
            static_private_key=bytes([1 + is_first]) * 32,
            ephemeral_private_key=bytes([3 + is_first]) * 32,
        )
        for is_first in (True, False)
    )
    sides = {True: (first, second), False: (second, first)}
    for number in range(messages):
        writer, reader = sides[number % 2 == 0]
        reader.read_message(writer.write_message())
    return (first, second) if initiator else (second, first)


def _noise_message(number: int) -> Decode:
    def decode(data: bytes) -> None:
        reader, _ = _handshake(initiator=number == 2, messages=number - 1)
        reader.read_message(data)

    return decode


def _muxed(machine: Muxer, data: bytes) -> None:
    """What comes is read at once, so that windows move as well."""
    for piece in _pieces(data):
        events = list(machine.receive(piece))
        while machine.has_unhandled:
            events += machine.receive(b"")
        for event in events:
            if isinstance(event, DataReceived):
                machine.consumed(event.stream_id, len(event.data))
        machine.take_output()


def _yamux(data: bytes) -> None:
    _muxed(
        Yamux(
            client=False,
            max_inbound=LIMITS.max_inbound_streams,
            max_outbound=LIMITS.max_outbound_streams,
        ),
        data,
    )


def _mplex(data: bytes) -> None:
    _muxed(
        Mplex(
            max_inbound=LIMITS.max_inbound_streams,
            max_outbound=LIMITS.max_outbound_streams,
            max_unread=LIMITS.max_unread_bytes_per_stream,
            now=lambda: 0.0,
        ),
        data,
    )


def _frames(data: bytes) -> None:
    frames = FrameDecoder(MAX_RPC_BYTES)
    for piece in _pieces(data):
        for _ in frames.feed(piece):
            pass


def _identify(data: bytes) -> None:
    remote_peer(decode_identify(data), peer_id=SOMEBODY, seen_at=NEAR, outbound=True)


class _Holding:
    """A stream that holds so many bytes and then ends."""

    peer_id = SOMEBODY
    protocol = IDENTIFY
    returns_window = False

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read_some(self, limit: int) -> bytes:
        taken, self._data = self._data[:limit], self._data[limit:]
        return taken

    async def read_exactly(self, count: int) -> bytes:
        if len(self._data) < count:
            raise TransportError("the stream ended")
        return await self.read_some(count)

    async def write(self, data: bytes) -> None: ...
    async def confirm(self) -> None: ...
    async def close_write(self) -> None: ...
    async def reset(self) -> None: ...


def _identify_stream(data: bytes) -> None:
    with suppress(StopIteration):  # it never waits
        receive_identify(_Holding(data)).send(None)


def _socks(data: bytes) -> None:
    request = SocksRequest(parse_proxy("socks5://user:secret@127.0.0.1:9050"), NEAR)
    offset = 0
    while 0 < request.wanted <= len(data) - offset:
        wanted = request.wanted
        request.received(data[offset : offset + wanted])
        offset += wanted


# --- pipes, which need a loop ---------------------------------------------------------------------


class Wire:
    """The pipe below: keeps the last bytes written, and whether it was closed."""

    remote_address = NEAR
    queued_bytes = 0

    def __init__(self) -> None:
        self.written = b""
        self.is_reading = True
        self.is_closed = False
        self.sink: PipeSink | None = None

    async def read_exactly(self, count: int) -> bytes:
        raise NotImplementedError(f"{count} bytes of a wire that is attached")

    def write(self, data: bytes) -> None:
        self.written = (self.written + data)[-4_096:]

    def attach(self, sink: PipeSink) -> None:
        self.sink = sink

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    async def wait_closed(self) -> None:
        return


class Ears:
    """A sink that keeps why it ended."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def bytes_received(self, data: bytes) -> None: ...

    def pipe_lost(self, error: Exception | None) -> None:
        self.error = self.error or error

    def writing_paused(self) -> None: ...

    def writing_resumed(self) -> None: ...


def _piped(make: Callable[[Wire], SecuredPipe | WebSocketPipe]) -> Decode:
    """Feed a pipe, let it have its turns, and raise what it told its owner."""

    async def feed(data: bytes) -> None:
        wire, ears = Wire(), Ears()
        pipe = make(wire)
        pipe.attach(ears)
        for piece in _pieces(data):
            pipe.bytes_received(piece)
            while not wire.is_reading and not wire.is_closed:
                await _turn()
        pipe.pipe_lost(None)
        await _turn()
        if ears.error is not None:
            raise ears.error

    return lambda data: asyncio.run(feed(data))


async def _turn() -> None:
    await asyncio.sleep(0)


def _web_server(data: bytes) -> None:
    async def feed() -> None:
        answer = HttpsAnswer(MAX_MANIFEST_BYTES)
        for piece in _pieces(data):
            answer.bytes_received(piece)
        answer.pipe_lost(None)
        await answer.done

    asyncio.run(feed())


def _secured(wire: Wire) -> SecuredPipe:
    reader, _ = _handshake(initiator=False, messages=3)
    return SecuredPipe(wire, reader.session())


def _websocket_server(wire: Wire) -> WebSocketPipe:
    frames = ServerProtocol(max_size=(None, MAX_FRAME_BYTES))
    return WebSocketPipe(wire, frames, layer=Layer.WS)


def _websocket_client(wire: Wire) -> WebSocketPipe:
    frames = ClientProtocol(parse_uri("ws://x/"), max_size=(None, MAX_FRAME_BYTES))
    return WebSocketPipe(wire, frames, layer=Layer.WS)


def _open_server(wire: Wire) -> WebSocketPipe:
    pipe = _websocket_server(wire)
    other = Wire()
    _websocket_client(other)
    pipe.bytes_received(other.written)
    return pipe


def _open_client(wire: Wire) -> WebSocketPipe:
    pipe = _websocket_client(wire)
    other = Wire()
    _websocket_server(other).bytes_received(wire.written)
    pipe.bytes_received(other.written)
    return pipe


# --- the table ------------------------------------------------------------------------------------

_PIPE = "network.libp2p.pipe.bytes_received"


def _plain(name: str, decode: Decode, module: str, largest: int = 64 * KIB) -> Decoder:
    covers = (f"{module}.{getattr(decode, '__name__', '')}",)
    return Decoder(name=name, decode=decode, covers=covers, largest=largest)


DECODERS: tuple[Decoder, ...] = (
    # libp2p
    Decoder(
        name="multistream responder",
        decode=lambda data: _negotiated(Responder({NOISE}), data),
        covers=("network.libp2p.multistream.receive",),
    ),
    Decoder(
        name="multistream initiator",
        decode=lambda data: _negotiated(Initiator([YAMUX, MPLEX, ProtocolId("/x")]), data),
        covers=("network.libp2p.multistream.receive",),
    ),
    *(
        Decoder(
            name=f"noise message {number}",
            decode=_noise_message(number),
            covers=(
                "network.libp2p.handshake.read_message",
                "network.libp2p.noise.read_message",
                "network.libp2p.noise.decrypt",
                "network.libp2p.noise.decrypt_and_hash",
            ),
        )
        for number in (1, 2, 3)
    ),
    Decoder(
        name="secured frames",
        decode=_piped(_secured),
        covers=(_PIPE, "network.libp2p.noise.decrypt"),
    ),
    _plain("noise payload", decode_noise_payload, "codec.libp2p"),
    _plain("public key", decode_public_key, "codec.libp2p"),
    _plain("peer id", peer_id_from_bytes, "network.libp2p.peer_id"),
    _plain("multiaddr", multiaddr_from_bytes, "network.libp2p.multiaddr"),
    _plain("varint", decode_varint, "network.libp2p.varint"),
    Decoder(
        name="identify",
        decode=_identify,
        covers=("codec.libp2p.decode_identify",),
    ),
    Decoder(name="identify stream", decode=_identify_stream, covers=()),
    Decoder(name="yamux", decode=_yamux, covers=("network.libp2p.yamux.receive",)),
    Decoder(
        name="mplex", decode=_mplex, covers=("network.libp2p.mplex.receive",), largest=32 * KIB
    ),
    Decoder(name="websocket server upgrade", decode=_piped(_websocket_server), covers=(_PIPE,)),
    Decoder(name="websocket client upgrade", decode=_piped(_websocket_client), covers=(_PIPE,)),
    # Handled in turns: more bytes at once take more turns, not longer ones.
    Decoder(
        name="websocket server frames",
        decode=_piped(_open_server),
        covers=(_PIPE,),
        largest=32 * KIB,
    ),
    Decoder(
        name="websocket client frames",
        decode=_piped(_open_client),
        covers=(_PIPE,),
        largest=32 * KIB,
    ),
    Decoder(name="socks", decode=_socks, covers=("network.libp2p.socks.received",), largest=KIB),
    # Waku
    Decoder(name="frames", decode=_frames, covers=("network.waku.framing.feed",), largest=32 * KIB),
    _plain("gossipsub", decode_rpc, "codec.gossipsub", MAX_RPC_BYTES),
    _plain("waku message", decode_waku_message, "codec.waku", MAX_WAKU_MESSAGE_BYTES),
    _plain("metadata", decode_metadata, "codec.waku_metadata"),
    _plain("filter request", decode_filter_request, "codec.waku_filter"),
    _plain("filter response", decode_filter_response, "codec.waku_filter"),
    _plain("filter push", decode_message_push, "codec.waku_filter", 152 * KIB),
    _plain("lightpush 3 request", decode_push_request, "codec.waku_lightpush", 304 * KIB),
    _plain("lightpush 3 response", decode_push_response, "codec.waku_lightpush"),
    _plain("lightpush 2 request", decode_legacy_request, "codec.waku_lightpush", 304 * KIB),
    _plain("lightpush 2 response", decode_legacy_response, "codec.waku_lightpush"),
    Decoder(
        name="store 3 request",
        decode=lambda data: (request_id_of(data), decode_store_request(data)),
        covers=("codec.waku_store.decode_store_request", "codec.waku_store.request_id_of"),
    ),
    Decoder(
        name="store 3 response",
        decode=decode_store_response,
        covers=("codec.waku_store.decode_store_response", "codec.waku_rpc.refuse_many_fields"),
        largest=8 * MIB,
    ),
    _plain("store 2 request", decode_history_query, "codec.waku_history"),
    _plain("store 2 response", decode_history_response, "codec.waku_history", 8 * MIB),
    Decoder(
        name="announcement",
        decode=lambda data: read_txt(data, Scope.LOCAL_NETWORK),
        covers=("network.discovery.announcement.read_txt",),
        largest=9_000,
    ),
    # Files
    _plain("blob request", decode_blob_request, "codec.blobs", MAX_BLOB_REQUEST_BYTES),
    _plain("blob chunk", decode_chunk_answer, "codec.blobs", MAX_BLOB_ANSWER_BYTES),
    _plain("blob put answer", decode_put_answer, "codec.blobs"),
    Decoder(
        name="blob holdings",
        decode=lambda data: decode_holdings(data, 9),
        covers=("codec.blobs.decode_holdings",),
    ),
    # What peers seal for us
    _plain("sds message", decode_message, "codec.sds", 150 * KIB),
    _plain("mvds payload", decode_payload, "codec.mvds", 150 * KIB),
    _plain("envelope", decode_envelope, "codec.envelope", 150 * KIB),
    _plain("envelope header", decode_header, "codec.envelope", 150 * KIB),
    _plain("padding", unpad, "codec.padding", 150 * KIB),
    _plain("envelope plaintext", decode_plaintext, "codec.envelope", 150 * KIB),
    _plain("signed part", decode_signed_part, "codec.envelope", 150 * KIB),
    _plain("sds of an envelope", sds_sender_of, "codec.envelope", 150 * KIB),
    _plain("claim", decode_claim, "codec.holdings", 150 * KIB),
    _plain("prekey", decode_prekey, "codec.epochs"),
    _plain("epoch wraps", decode_wraps, "codec.epochs", MAX_WRAPS_BYTES),
    _plain("earlier keys", decode_earlier_keys, "codec.epochs", MAX_EARLIER_BYTES),
    _plain("admin entry", decode_entry, "codec.admin_entry", MAX_ENTRY_BYTES),
    Decoder(
        name="join",
        decode=lambda data: (decode_join(data), signed_join(data, group_id=bytes(32))),
        covers=("codec.join.decode_join", "codec.join.signed_join"),
        largest=150 * KIB,
    ),
    _plain("waku payload", decode_waku_payload, "codec.waku_payload", 150 * KIB),
    _plain("open content", decode_open_content, "codec.open_content", 150 * KIB),
    _plain("content", decode_content, "codec.content", 150 * KIB),
    _plain("ephemeral", decode_ephemeral, "codec.content", 150 * KIB),
    _plain("pair envelope", decode_pair_envelope, "codec.pair", 150 * KIB),
    _plain("any pair envelope", decode_any_pair_envelope, "codec.pair", 150 * KIB),
    _plain("olm envelope", decode_olm_envelope, "codec.olm", 150 * KIB),
    _plain("olm plaintext", decode_olm_plaintext, "codec.olm", 150 * KIB),
    _plain("key bundle", decode_key_bundle, "codec.key_bundle"),
    _plain("joining", decode_joining, "codec.joining", MAX_JOINING_BYTES),
    _plain("admission", decode_admission, "codec.joining", MIB),
    Decoder(
        name="packed",
        decode=lambda data: unpack(data, MIB),
        covers=("codec.packing.unpack",),
        largest=MIB,
    ),
    _plain("pair plaintext", decode_pair_plaintext, "codec.pair", 150 * KIB),
    _plain("pair content", decode_pair_content, "codec.content", 150 * KIB),
    _plain("pair ephemeral", decode_pair_ephemeral, "codec.content", 150 * KIB),
    # From the page of releases
    Decoder(
        name="release announcement",
        decode=lambda data: parse_release(take_apart(data).content),
        covers=("codec.release_manifest.take_apart", "codec.release_manifest.parse_release"),
        largest=MAX_MANIFEST_BYTES,
    ),
    Decoder(
        name="answer of a web server",
        decode=_web_server,
        covers=("network.https.bytes_received",),
    ),
    # A file that the user chose
    _plain("backup header", decode_backup_header, "codec.backup", HEADER_BYTES),
    _plain("backup entry", decode_backup_entry, "codec.backup", ENTRY_BYTES),
    _plain("key header", decode_key_header, "codec.key_header", MAX_HEADER_BYTES),
)

NO_DECODERS: Mapping[str, str] = {
    "add": "a key of a cache, whose length was checked",
    "add_control": "our own bytes, on their way out",
    "add_message": "our own bytes, on their way out",
    "base58btc_encode": "writes",
    "connection.bytes_received": "hands on to a muxer, which is in the table",
    "deliver": "hands on",
    "edge_key": "our own key",
    "encode_": "writes",
    "packing.pack": "writes",
    "entry_id_from": "32 bytes of what was decoded",
    "entry_id_of": "a hash",
    "encrypt": "writes",
    "encrypt_and_hash": "writes",
    "find": "a key, looked up in what was decoded",
    "get": "a key of a cache, whose length was checked",
    "id_text": "writes",
    "keep": "a key of a cache, whose length was checked",
    "memory.arrive": "the network of tests, which hands on",
    "message_id_in": "a hash of our own bytes",
    "message_id_of": "a hash",
    "message_id_of_content": "a hash",
    "mix_hash": "a hash",
    "mix_key": "a hash",
    "muxer.receive": "says what yamux and mplex do",
    "padding.pad": "writes",
    "peer_id_of_key": "a hash of a key that was decoded",
    "pipe.feed": "keeps",
    "port.take": "keeps what was decoded before",
    "push": "bytes that were decoded before",
    "put": "a key of a cache, whose length was checked",
    "put_together": "writes",
    "refuse": "answers without reading",
    "sign": "writes",
    "signed_bytes": "writes",
    "signed_part": "writes",
    "signed_prekey": "writes",
    "stream.data_received": "keeps",
    "tcp.data_received": "hands on",
    "write": "writes",
    "write_message": "writes",
}
"""By a name's end, or its beginning if it ends in ``_``."""
