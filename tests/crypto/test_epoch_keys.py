"""Epoch keys on their way to members: one key for all, for those named, and not for ever.

Frozen wraps are opened a second time by HPKE from the standard library's HMAC up.
"""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TypedDict

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.epochs import (
    MAX_EARLIER_KEYS,
    MAX_RECORDS,
    MAX_WRAPS_BYTES,
    WrapRecord,
    decode_earlier_keys,
    decode_prekey,
    decode_wraps,
    encode_wraps,
)
from engine.codec.message_id import id_text
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import ParticipantId, UnixMs
from engine.core.prekeys import (
    MAX_OWN_PREKEYS,
    PREKEY_EVERY_MS,
    PREKEY_KEPT_MS,
    OwnPrekey,
    TheirPrekey,
    is_prekey_due,
    newer,
    next_number,
    prekeys_to_forget,
)
from engine.crypto.epochs import (
    EpochKey,
    WrapOpener,
    make_prekey,
    seal_earlier_keys,
    sign_prekey,
    verify_prekey,
    wrap_epoch_key,
)
from engine.crypto.identity import Identity
from engine.crypto.sealed import epoch_commitment
from proto import epochs_pb2
from tests.crypto.test_frozen_formats import tuple_of
from tests.crypto.test_pair_frozen_format import schedule_of

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "crypto" / "epochs.json"
GROUP, OTHER_GROUP = bytes(range(32)), bytes(32)
NOW = UnixMs(1_700_000_000_000)
WEEK = PREKEY_EVERY_MS
ANNA, BEN, EVE = (
    Identity(signing_key=bytes([n] * 32), encryption_key=bytes([n + 1] * 32)) for n in (2, 4, 6)
)
KEY, OTHER_KEY = b"k" * 32, b"o" * 32
COMMITMENT = epoch_commitment(GROUP, KEY)
SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


def opener(identity: Identity, group_id: bytes = GROUP, *more: bytes) -> WrapOpener:
    keys = (identity.encryption_key, *more)
    return WrapOpener(identity.participant_id, keys, group_id=group_id)


def wrapped(*people: Identity, key: bytes = KEY, group_id: bytes = GROUP) -> bytes:
    (chunk,) = wrap_epoch_key(
        key,
        {one.participant_id: one.encryption_public_key for one in people},
        group_id=group_id,
    )
    return chunk


def reason_of(action: Callable[[], object]) -> str:
    with pytest.raises(RemoteProtocolError) as refusal:
        action()
    return refusal.value.reason


# --- wraps ----------------------------------------------------------------------------------------


def test_all_who_are_named_get_the_key_and_nobody_else_does() -> None:
    chunk = wrapped(ANNA, BEN)
    expected = EpochKey(commitment=COMMITMENT, key=KEY)
    for one in (ANNA, BEN):
        assert opener(one).open(chunk, wanted={COMMITMENT}) == expected
    assert opener(EVE).open(chunk, wanted={COMMITMENT}) is None


def test_a_wrap_for_somebody_else_opens_for_nobody() -> None:
    """Eve says that Ben's record is hers, or opens hers with his name on it."""
    chunk = decode_wraps(wrapped(ANNA, BEN))
    bens = chunk.find(decode_wraps(wrapped(BEN)).records[:16])
    assert bens is not None
    eves_id = decode_wraps(wrapped(EVE)).records[:16]
    (relabelled,) = encode_wraps(COMMITMENT, [bens._replace(recipient=eves_id)])
    assert reason_of(lambda: opener(EVE).open(relabelled, wanted={COMMITMENT})) == (
        "wrap_unknown_prekey"
    )
    with_bens_keys = opener(EVE, GROUP, BEN.encryption_key)
    assert reason_of(lambda: with_bens_keys.open(relabelled, wanted={COMMITMENT})) == "bad_wrap"


def test_two_members_cannot_be_given_two_keys() -> None:
    """The author of an epoch wraps another key under its commitment."""
    record = decode_wraps(wrapped(ANNA, key=OTHER_KEY)).records
    forged = epochs_pb2.Wraps(commitment=COMMITMENT, records=record).SerializeToString()
    assert reason_of(lambda: opener(ANNA).open(forged, wanted={COMMITMENT})) == "bad_wrap"
    # With the commitment in the seal, too, as whoever makes wraps may do.
    info = tuple_of("causerie/2/epoch-wrap", GROUP, COMMITMENT, ANNA.participant_id)
    sealed = SUITE.encrypt(OTHER_KEY, ANNA.decryption_key.public_key(), info)
    liar = WrapRecord(record[:16], record[16:20], sealed)
    (chunk,) = encode_wraps(COMMITMENT, [liar])
    assert reason_of(lambda: opener(ANNA).open(chunk, wanted={COMMITMENT})) == "wrap_other_key"


def test_a_wrap_is_for_one_group_and_one_epoch() -> None:
    chunk = wrapped(ANNA, group_id=OTHER_GROUP)
    there = decode_wraps(chunk).commitment
    assert reason_of(lambda: opener(ANNA).open(chunk, wanted={there})) == "bad_wrap"


def test_what_is_not_wanted_is_not_even_opened() -> None:
    """A replay, or an epoch that the log does not say we were given."""
    chunk = wrapped(ANNA)
    assert opener(ANNA).open(chunk, wanted=()) is None
    assert WrapOpener(ANNA.participant_id, (), group_id=GROUP).open(chunk, wanted=()) is None


@given(st.data())
def test_no_bit_of_a_wrap_can_be_changed(data: st.DataObject) -> None:
    """What is in the record of somebody else is for them to refuse."""
    chunk = bytearray(wrapped(ANNA))
    at = data.draw(st.integers(0, len(chunk) - 1))
    chunk[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        opened = opener(ANNA).open(bytes(chunk), wanted={COMMITMENT})
    except RemoteProtocolError:
        return
    assert opened is None


def test_a_thousand_wraps_are_cut_into_chunks_that_fit() -> None:
    crowd = {
        ParticipantId(id_text(sha256(bytes([n % 256, n // 256])).digest()[:16])): BEN
        for n in range(999)
    } | {ANNA.participant_id: ANNA}
    keys = {who: one.encryption_public_key for who, one in crowd.items()}
    chunks = wrap_epoch_key(KEY, keys, group_id=GROUP)
    assert [len(chunk) <= MAX_WRAPS_BYTES for chunk in chunks] == [True] * (1_000 // MAX_RECORDS)
    assert sum(map(len, chunks)) < 101_000
    opened = [opener(ANNA).open(chunk, wanted={COMMITMENT}) for chunk in chunks]
    assert sorted(opened, key=bool) == [None, EpochKey(commitment=COMMITMENT, key=KEY)]


# --- what a newcomer may read ---------------------------------------------------------------------


def test_earlier_keys_are_taken_as_far_as_the_log_says() -> None:
    keys = [bytes([n]) * 32 for n in range(3)]
    sealed = seal_earlier_keys(
        keys, ANNA.participant_id, ANNA.encryption_public_key, group_id=GROUP
    )
    named = [epoch_commitment(GROUP, key) for key in keys]
    opened = opener(ANNA).open_earlier(sealed, wanted=set(named[1:]))
    assert [(one.commitment, one.key) for one in opened] == list(zip(named, keys, strict=True))[1:]
    assert opener(BEN).open_earlier(sealed, wanted=set(named)) == ()
    elsewhere = opener(ANNA, OTHER_GROUP)
    assert reason_of(lambda: elsewhere.open_earlier(sealed, wanted=())) == "bad_wrap"


@pytest.mark.parametrize("count", [0, MAX_EARLIER_KEYS + 1])
def test_no_more_and_no_fewer_earlier_keys_than_others_take(count: int) -> None:
    with pytest.raises(LocalProtocolError):
        seal_earlier_keys(
            [KEY] * count, ANNA.participant_id, ANNA.encryption_public_key, group_id=GROUP
        )


# --- prekeys --------------------------------------------------------------------------------------


def prekeys_of(weeks: int) -> list[OwnPrekey]:
    """As a program keeps them that runs for so many weeks."""
    own: list[OwnPrekey] = []
    for week in range(weeks + 1):
        now_ms = UnixMs(NOW + week * WEEK)
        assert is_prekey_due(own, now_ms=now_ms)
        own.append(make_prekey(own, now_ms=now_ms, random_bytes=Random(week).randbytes))
        gone = prekeys_to_forget(own, now_ms=now_ms, is_history_complete=True)
        own = [one for one in own if one not in gone]
        assert not is_prekey_due(own, now_ms=UnixMs(now_ms + WEEK - 1))
    return own


def test_a_device_stolen_today_opens_no_wrap_older_than_its_prekeys() -> None:
    chunks: list[bytes] = []
    for week in range(12):
        newest = prekeys_of(week)[-1]
        public = verify_prekey(sign_prekey(ANNA, newest, group_id=GROUP), group_id=GROUP)
        chunks += wrap_epoch_key(KEY, {ANNA.participant_id: public.key}, group_id=GROUP)
    stolen = opener(ANNA, GROUP, *(one.private_key for one in prekeys_of(11)))
    for chunk in chunks[:6]:
        with pytest.raises(RemoteProtocolError, match="wrap_unknown_prekey"):
            stolen.open(chunk, wanted={COMMITMENT})
    # The prekey of week 6 was followed by that of week 7, which is 28 days old.
    assert all(stolen.open(chunk, wanted={COMMITMENT}) for chunk in chunks[6:])


def test_private_halves_stay_for_history_that_is_missing_but_not_for_ever() -> None:
    own = [
        OwnPrekey(number=n, private_key=bytes(32), made_ms=UnixMs(NOW + n * WEEK))
        for n in range(MAX_OWN_PREKEYS + 2)
    ]
    late = UnixMs(own[-1].made_ms + PREKEY_KEPT_MS)
    assert prekeys_to_forget(own, now_ms=late, is_history_complete=False) == tuple(own[:2])
    assert prekeys_to_forget(own, now_ms=late, is_history_complete=True) == tuple(own[:-1])


def test_a_clock_that_was_ahead_and_a_restored_backup_do_no_harm() -> None:
    ahead = [make_prekey([], now_ms=UnixMs(NOW + 100 * WEEK), random_bytes=bytes)]
    assert is_prekey_due(ahead, now_ms=NOW)
    after = make_prekey(ahead, now_ms=NOW, random_bytes=bytes)
    assert after.number > ahead[0].number
    assert next_number(prekeys_of(1)[:1], now_ms=UnixMs(NOW + 9 * WEEK)) > prekeys_of(8)[-1].number


def test_the_newest_prekey_is_used_whichever_came_first() -> None:
    one, two, twin = (
        TheirPrekey(author=ANNA.participant_id, number=n, key=bytes([k] * 32), signed=b"")
        for n, k in ((1, 9), (2, 1), (2, 2))
    )
    assert newer(None, one) == one
    assert newer(one, two) == newer(two, one) == two
    assert newer(two, twin) == newer(twin, two) == twin


def test_a_prekey_is_its_authors_and_of_one_group() -> None:
    (prekey,) = prekeys_of(0)
    statement = sign_prekey(ANNA, prekey, group_id=GROUP)
    assert verify_prekey(statement, group_id=GROUP).author == ANNA.participant_id
    assert reason_of(lambda: verify_prekey(statement, group_id=OTHER_GROUP)) == "bad_signature"
    for at in range(len(statement)):
        changed = bytearray(statement)
        changed[at] ^= 1
        with pytest.raises(RemoteProtocolError):
            verify_prekey(bytes(changed), group_id=GROUP)


def test_no_key_is_shown_by_accident() -> None:
    (prekey,) = prekeys_of(0)
    shown = repr((prekey, EpochKey(commitment=COMMITMENT, key=KEY)))
    assert "private_key" not in shown
    assert repr(KEY)[2:-1] not in shown


# --- shapes ---------------------------------------------------------------------------------------

RECORD = bytes(100)


@pytest.mark.parametrize(
    ("commitment", "records"),
    [
        (bytes(31), RECORD),
        (COMMITMENT, b""),
        (COMMITMENT, RECORD[:-1]),
        (COMMITMENT, RECORD * 2),
        (COMMITMENT, b"".join(bytes([n // 256, n % 256]) + RECORD[2:] for n in range(501))),
    ],
    ids=["commitment", "none", "cut", "twice", "many"],
)
def test_a_chunk_out_of_bounds_is_refused(commitment: bytes, records: bytes) -> None:
    chunk = epochs_pb2.Wraps(commitment=commitment, records=records).SerializeToString()
    assert reason_of(lambda: decode_wraps(chunk)) == "bad_wraps"


def test_nothing_has_another_form() -> None:
    sealed = seal_earlier_keys(
        [KEY], ANNA.participant_id, ANNA.encryption_public_key, group_id=GROUP
    )
    statement = sign_prekey(ANNA, prekeys_of(0)[0], group_id=GROUP)
    for decode, data in (
        (decode_wraps, wrapped(ANNA)),
        (decode_earlier_keys, sealed),
        (decode_prekey, statement),
    ):
        decode(data)
        assert reason_of(lambda: decode(data + b"\x7a\x00")) == "not_canonical"  # noqa: B023


# --- frozen ---------------------------------------------------------------------------------------


class EpochsVector(TypedDict):
    group_id: str
    epoch_key: str
    commitment: str
    prekey_private: str
    prekey: str
    wraps: str
    earlier_keys: list[str]
    earlier: str


FROZEN: EpochsVector = json.loads(VECTORS.read_text("utf-8"))


def unhex(name: str) -> bytes:
    return bytes.fromhex(str(FROZEN[name]))  # type: ignore[literal-required]


def by_the_book(sealed: bytes, info: bytes) -> bytes:
    schedule = schedule_of(unhex("prekey_private"), sealed[:32], info, aead_id=2)
    return AESGCM(schedule.key).decrypt(schedule.base_nonce, sealed[32:], b"")


def test_frozen_wraps_open_today_and_by_the_book() -> None:
    mine = opener(ANNA, GROUP, unhex("prekey_private"))
    opened = mine.open(unhex("wraps"), wanted={COMMITMENT})
    assert opened == EpochKey(commitment=unhex("commitment"), key=unhex("epoch_key"))
    record = epochs_pb2.Wraps.FromString(unhex("wraps")).records
    info = tuple_of("causerie/2/epoch-wrap", GROUP, COMMITMENT, ANNA.participant_id)
    assert by_the_book(record[20:100], info) == KEY
    public = verify_prekey(unhex("prekey"), group_id=GROUP).key
    assert record[16:20] == sha256(public).digest()[:4]


def test_frozen_earlier_keys_open_today_and_by_the_book() -> None:
    keys = [bytes.fromhex(key) for key in FROZEN["earlier_keys"]]
    wanted = {epoch_commitment(GROUP, key) for key in keys}
    mine = opener(ANNA, GROUP, unhex("prekey_private"))
    assert [one.key for one in mine.open_earlier(unhex("earlier"), wanted=wanted)] == keys
    sealed = epochs_pb2.EarlierKeys.FromString(unhex("earlier")).sealed
    info = tuple_of("causerie/2/earlier-keys", GROUP, ANNA.participant_id)
    assert by_the_book(sealed, info) == b"".join(keys)


def test_frozen_prekeys_are_signed_again_alike() -> None:
    prekey = OwnPrekey(number=NOW, private_key=unhex("prekey_private"), made_ms=NOW)
    assert sign_prekey(ANNA, prekey, group_id=GROUP) == unhex("prekey")
