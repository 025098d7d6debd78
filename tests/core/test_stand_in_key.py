"""A key that stands for one that was lost tells so; no other does."""

from hypothesis import given
from hypothesis import strategies as st

from engine.core.stand_in_key import STAND_IN_SEED_BYTES, is_stand_in, stand_in_key

KEY_BYTES = 32


@given(seed=st.binary(min_size=STAND_IN_SEED_BYTES, max_size=STAND_IN_SEED_BYTES))
def test_it_tells_so_until_any_bit_is_another(seed: bytes) -> None:
    key = stand_in_key(seed)
    assert len(key) == KEY_BYTES
    assert is_stand_in(key)
    for place in range(KEY_BYTES):
        assert not is_stand_in(key[:place] + bytes([key[place] ^ 1]) + key[place + 1 :])


@given(key=st.binary(max_size=2 * KEY_BYTES))
def test_no_true_key_does(key: bytes) -> None:
    assert not is_stand_in(key)
