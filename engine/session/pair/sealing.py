"""The two seals of a pair: which one a payload gets, and what is learned from what comes.

Signed (``engine.crypto.pair``) goes what comes before Olm: everything to the other's inbox, all
that is said before both agree to talk, and our keys for Olm.  Our keys go along with a request and,
once both agree, with whatever we send, until the other says that it has them; less and less often
if it does not, as its program may be older.  As soon as we have the other's keys, everything that
is said once both agree goes by Olm, and never without it again.

Once the other has spoken Olm to us, what it signed counts no more, but for requests and answers: a
thief of its long-term keys could otherwise go back to the old seal.  Typing and presence are sealed
with a key of the two and no ratchet.  vodozemac takes 30 ms to load, so it is loaded when needed.
"""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.codec.key_bundle import decode_key_bundle, encode_key_bundle
from engine.codec.olm import UNHELD, decode_olm_envelope, encode_olm_envelope
from engine.codec.pair import (
    OLM_VERSION,
    EphemeralPart,
    KeysPart,
    MvdsPart,
    PairBody,
    SealedPair,
    encode_pair_envelope,
)
from engine.core.entropy import RandomBytes
from engine.core.errors import CryptoError, RemoteProtocolError
from engine.core.ids import KEY_BYTES, InstanceId, UnixMs
from engine.core.ratchet import KeyNumbers, RatchetState
from engine.crypto.identity import Identity
from engine.crypto.pair import OpenedPair, PairSeal
from engine.crypto.pair_proof import SALT_BYTES, StaticProof

if TYPE_CHECKING:
    from engine.session.pair.ratchet import PairRatchet

FIRST_TOLD_AGAIN_MS: Final = 2_000
MOST_TOLD_AGAIN_MS: Final = 3_600_000


class RatchetSeed(Struct, frozen=True, kw_only=True):
    """What a pair's ratchet starts from."""

    stay: InstanceId
    """Of the profile now."""
    saved: RatchetState | None
    numbers: KeyNumbers
    """Of the profile's bundles."""
    used: bool = True
    """False: as a program does that does not know Olm, to compare with."""


class PairSealing:
    def __init__(
        self,
        identity: Identity,
        *,
        peer_public_key: bytes,
        peer_encryption_key: bytes,
        seed: RatchetSeed,
        random_bytes: RandomBytes,
    ) -> None:
        self.signed = PairSeal(
            identity, peer_public_key=peer_public_key, peer_encryption_key=peer_encryption_key
        )
        self._proof = StaticProof(
            identity, peer_public_key=peer_public_key, peer_encryption_key=peer_encryption_key
        )
        self._peer_keys = (peer_public_key, peer_encryption_key)
        self._stay = seed.stay
        self.numbers = seed.numbers
        self._random_bytes = random_bytes
        self._used = seed.used
        self._saved = seed.saved if seed.used else None
        self._ratchet: PairRatchet | None = None
        self._told_ms: UnixMs | None = None
        self._told_again_ms = FIRST_TOLD_AGAIN_MS
        self._below_olm: tuple[UnixMs, UnixMs] | None = None
        """When it was heard first, and the time of the newest by the other's clock."""

    # --- state --------------------------------------------------------------------------------

    @property
    def state(self) -> RatchetState | None:
        """What is to be kept; the same object as long as nothing changed."""
        return self._ratchet.state if self._ratchet else self._saved

    @property
    def saved(self) -> RatchetState | None:
        return self._saved

    def unsaved(self) -> RatchetState | None:
        """The state, if it is not the one that was given out before."""
        state = self.state
        if state is self._saved:
            return None
        self._saved = state
        return state

    @property
    def knows_keys(self) -> bool:
        """Whether what we send goes by Olm."""
        state = self.state
        return state is not None and state.theirs is not None

    @property
    def since_ms(self) -> UnixMs | None:
        """Since when both speak Olm, by our clock; None: not yet."""
        state = self.state
        return state.since_ms if state is not None else None

    def refused_signed(self, signed_ms: UnixMs, *, clock_ms: UnixMs) -> None:
        """The other, or a thief of its keys, signed what would count only by Olm."""
        began_ms, newest_ms = self._below_olm or (clock_ms, signed_ms)
        if self.below_olm_ms is None:
            began_ms = clock_ms
        self._below_olm = began_ms, max(newest_ms, signed_ms)

    @property
    def below_olm_ms(self) -> UnixMs | None:
        """Since when, by our clock, what comes in the other's name is signed instead; else None.

        As far as it was heard since the start, and is newer than all that came by Olm: what was
        recorded before says nothing.
        """
        state = self.state
        if self._below_olm is None or state is None or self._below_olm[1] <= state.heard_ms:
            return None
        return self._below_olm[0]

    def _begun(self, *, clock_ms: UnixMs) -> "PairRatchet":
        if self._ratchet is None:
            from engine.session.pair.ratchet import (  # noqa: PLC0415 - see above
                PairRatchet,
                new_state,
            )

            state = self._saved
            if state is None or state.stay != self._stay:
                state = new_state(
                    stay=self._stay,
                    pickle_key=self._random_bytes(KEY_BYTES),
                    number=self.numbers.next(clock_ms),
                    before=state,
                )
            self._ratchet = PairRatchet(self._proof, state)
        return self._ratchet

    # --- out ----------------------------------------------------------------------------------

    def seal(
        self, body: MvdsPart | EphemeralPart, *, by_olm: bool, now_ms: UnixMs, clock_ms: UnixMs
    ) -> bytes:
        """A Waku payload.  ``by_olm``: whether it may go so, see above."""
        if not (by_olm and self.knows_keys):
            return self.signed.seal(body, signed_ms=clock_ms)
        if isinstance(body, EphemeralPart):
            salt = self._random_bytes(SALT_BYTES)
            envelope = self._proof.seal_unheld(body.content, salt=salt, sent_ms=clock_ms)
            return encode_pair_envelope(encode_olm_envelope(envelope), OLM_VERSION)
        return self._by_olm(body.payload, now_ms=now_ms, clock_ms=clock_ms)

    def _by_olm(self, payload: bytes, *, now_ms: UnixMs, clock_ms: UnixMs) -> bytes:
        ratchet = self._begun(clock_ms=clock_ms)
        sealed = ratchet.seal(payload, now_ms=now_ms, clock_ms=clock_ms)
        return encode_pair_envelope(sealed, OLM_VERSION)

    def hello(self, *, now_ms: UnixMs, clock_ms: UnixMs) -> bytes | None:
        """A message that only tells the other of a new session, if it has to know."""
        state = self.state
        if state is None or not (state.must_renew or state.stay != self._stay):
            return None
        if not self._begun(clock_ms=clock_ms).wants_hello:
            return None
        return self._by_olm(b"", now_ms=now_ms, clock_ms=clock_ms)

    def keys_to_tell(self, *, now_ms: UnixMs, clock_ms: UnixMs) -> bytes | None:
        """Our keys, signed, if they have to go along with what is sent now."""
        if not self._used:
            return None
        ratchet = self._begun(clock_ms=clock_ms)
        ratchet.rotate(self.numbers, clock_ms=clock_ms)
        if not ratchet.has_to_tell:
            self._told_ms, self._told_again_ms = None, FIRST_TOLD_AGAIN_MS
            return None
        if self._told_ms is not None:
            if now_ms - self._told_ms < self._told_again_ms:
                return None
            self._told_again_ms = min(2 * self._told_again_ms, MOST_TOLD_AGAIN_MS)
        self._told_ms = now_ms
        keys = encode_key_bundle(ratchet.state.ours)
        return self.signed.seal(KeysPart(keys=keys), signed_ms=clock_ms)

    # --- in -----------------------------------------------------------------------------------

    def open(self, envelope: SealedPair, *, now_ms: UnixMs, clock_ms: UnixMs) -> OpenedPair | None:
        """None if it was for the seals alone.  Raises RemoteProtocolError."""
        if envelope.version != OLM_VERSION:
            return self._open_signed(envelope.sealed, clock_ms=clock_ms)
        if not self._used:
            raise RemoteProtocolError("unsupported_version")
        olm = decode_olm_envelope(envelope.sealed)
        self._proof.check(olm)
        body: PairBody
        if olm.kind == UNHELD:
            body = EphemeralPart(content=self._proof.open_unheld(olm))
            if not body.content:
                raise RemoteProtocolError("empty")
            return self._opened(body, sent_ms=olm.sent_ms)
        ratchet = self._begun(clock_ms=clock_ms)
        try:
            opened = ratchet.open_proved(olm, now_ms=now_ms, clock_ms=clock_ms)
        except CryptoError:
            if not ratchet.can_seal:
                ratchet.other_has_no_keys()  # It has keys of ours that we lost.
            raise
        if opened.payload is None:
            return None
        return self._opened(MvdsPart(payload=opened.payload), sent_ms=opened.sent_ms)

    def _opened(self, body: PairBody, *, sent_ms: UnixMs) -> OpenedPair:
        public_key, encryption_key = self._peer_keys
        return OpenedPair(
            sender_public_key=public_key,
            sender_encryption_key=encryption_key,
            signed_ms=sent_ms,
            body=body,
            by_olm=True,
        )

    def _open_signed(self, sealed: bytes, *, clock_ms: UnixMs) -> OpenedPair | None:
        opened = self.signed.open_sealed(sealed)
        if not isinstance(opened.body, KeysPart):
            return opened
        if not self._used:
            raise RemoteProtocolError("not_canonical")
        bundle = decode_key_bundle(opened.body.keys)
        if self._begun(clock_ms=clock_ms).take_bundle(bundle):
            self._told_ms, self._told_again_ms = None, FIRST_TOLD_AGAIN_MS
        return None
