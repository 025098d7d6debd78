from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import RemoteProtocolError
from engine.network.waku.framing import FrameDecoder, encode_frame


@given(st.lists(st.binary(max_size=400), max_size=8), st.integers(1, 50))
def test_frames_survive_any_cutting(payloads: list[bytes], step: int) -> None:
    stream = b"".join(map(encode_frame, payloads))
    decoder = FrameDecoder(400)
    frames = [
        frame
        for start in range(0, len(stream), step)
        for frame in decoder.feed(stream[start : start + step])
    ]
    assert frames == payloads
    assert decoder.pending_bytes == 0


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_any_bytes_are_framed_or_refused_and_never_pile_up(chunks: list[bytes]) -> None:
    decoder = FrameDecoder(100)
    with suppress(RemoteProtocolError):
        for chunk in chunks:
            assert all(len(frame) <= 100 for frame in decoder.feed(chunk))
            assert decoder.pending_bytes <= 101


def test_a_frame_beyond_the_limit_is_refused_at_its_prefix() -> None:
    with pytest.raises(RemoteProtocolError, match="frame_oversized"):
        list(FrameDecoder(127).feed(b"\x80\x01"))
    assert list(FrameDecoder(128).feed(b"\x80\x01" + b"x" * 128)) == [b"x" * 128]


def test_an_endless_prefix_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="frame_prefix_malformed"):
        list(FrameDecoder(2**40).feed(b"\xff" * 5))


def test_frames_before_a_bad_one_are_not_lost() -> None:
    frames = FrameDecoder(10).feed(encode_frame(b"good") + encode_frame(b"x" * 11))
    assert next(frames) == b"good"
    with pytest.raises(RemoteProtocolError):
        next(frames)
