"""The Olm sessions of one pair on one device, sans-I/O: which is used, and when a new one begins.

Nothing in the application uses it yet: pairs are sealed with HPKE (``engine.crypto.pair``).

Each step leaves a new ``state``.  Whoever uses this writes it in one transaction with what it goes
with, the outgoing row or the delivered message, and only then sends or shows: a device that dies
goes on from the last one, so no key of the ratchet encrypts twice.  What cannot be decrypted is
encrypted afresh by whoever sent it, which MVDS does anyway: it repeats what is not acknowledged.

Both may begin a session at once, and any number may be under way.  The one with the highest
generation is used, and of those with the same, the one with the smallest id; both sides see that
alike.  Three envelopes in a row that the other proved to have made, and that open in no session,
make a new one, at most one a minute: the other's state went back, or ours.  What nobody proved
counts for nothing, or anybody could force new sessions.
"""

from hashlib import sha256
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.codec.olm import (
    MAX_GENERATION,
    PRE_KEY,
    OlmEnvelope,
    decode_olm_envelope,
    encode_olm_envelope,
)
from engine.codec.padding import pad, unpad
from engine.core.errors import CryptoError, LocalProtocolError
from engine.core.ids import UnixMs
from engine.crypto.olm import KeyBundle, OlmAccount, OlmSession, StaticProof, olm_message

MAX_SESSIONS: Final = 5
ONE_TIME_KEYS: Final = 5
MAX_REMEMBERED: Final = 256
"""Hashes of ciphertexts that were decrypted, to drop copies before they cost anything."""
FAILURES: Final = 3
RENEW_EVERY_MS: Final = 60_000
_HASH_BYTES: Final = 16


class KeptSession(Struct, frozen=True, kw_only=True):
    generation: int
    session_id: str
    pickle: str


class RatchetState(Struct, frozen=True, kw_only=True):
    """What is kept of it; pickles are encrypted."""

    account: str
    sessions: tuple[KeptSession, ...] = ()
    """The best first."""
    theirs: KeyBundle | None = None
    """The other's keys, without the one-time keys that we used."""
    heard: tuple[bytes, ...] = ()
    """Oldest first."""
    highest: int = 0
    """The highest generation that the other proved, or that we began."""
    failures: int = 0
    renewed_ms: int | None = None
    must_renew: bool = False


class Opened(Struct, frozen=True, kw_only=True):
    payload: bytes | None
    """None if the message only begins a session."""


class PairRatchet:
    def __init__(
        self, proof: StaticProof, *, pickle_key: bytes, state: RatchetState | None = None
    ) -> None:
        """``state``: the last one that was written.  Raises LocalProtocolError if it is no use."""
        self._proof = proof
        self._key = pickle_key
        if state is None:
            self._account = OlmAccount()
            state = RatchetState(account=self._account.pickle(pickle_key))
        else:
            self._account = OlmAccount.from_pickle(state.account, pickle_key)
        self._state = state
        self._sessions = {
            kept.session_id: OlmSession.from_pickle(kept.pickle, pickle_key)
            for kept in state.sessions
        }

    @property
    def state(self) -> RatchetState:
        """To be written before anything that the last step returned is sent or shown."""
        return self._state

    # --- keys ---------------------------------------------------------------------------------

    def new_bundle(self) -> KeyBundle:
        """Our keys for the other, who has to know that they are ours."""
        bundle = self._account.new_bundle(ONE_TIME_KEYS)
        self._change(account=self._account.pickle(self._key))
        return bundle

    def take_bundle(self, bundle: KeyBundle) -> None:
        """The other's keys, in place of those we had."""
        self._change(theirs=bundle)

    def renew(self) -> None:
        """Begin a new session with the next message: this profile came from a backup."""
        self._change(must_renew=True)

    @property
    def wants_hello(self) -> bool:
        """Whether an empty message should tell the other of a new session."""
        return self._state.must_renew

    # --- messages -----------------------------------------------------------------------------

    def seal(self, payload: bytes, *, now_ms: UnixMs) -> bytes:
        """An envelope, different each time; an empty payload only begins a session.

        Raises LocalProtocolError if there is no session and the other's keys are not known, and
        CryptoError ``bad_olm_key`` if they are none.
        """
        if self._state.must_renew or not self._state.sessions:
            self._begin(now_ms)
        kept = self._state.sessions[0]
        kind, ciphertext = self._sessions[kept.session_id].encrypt(pad(payload))
        self._keep(kept.generation, kept.session_id)
        return encode_olm_envelope(self._proof.prove(kind, kept.generation, ciphertext))

    def open(self, sealed: bytes, *, now_ms: UnixMs) -> Opened:
        """Raises RemoteProtocolError, or CryptoError for what proves nothing or opens nowhere.

        ``repeated`` is a copy of what was opened; after ``not_decrypted`` see ``wants_hello``.
        """
        envelope = decode_olm_envelope(sealed)
        self._proof.check(envelope)
        copy = sha256(envelope.ciphertext).digest()[:_HASH_BYTES]
        if copy in self._state.heard:
            raise CryptoError("repeated")
        self._change(highest=max(self._state.highest, envelope.generation))
        try:
            padded = self._decrypt(envelope)
        except CryptoError:
            self._failed(now_ms)
            raise
        heard = (*self._state.heard, copy)[-MAX_REMEMBERED:]
        self._change(heard=heard, failures=0)
        payload = unpad(padded)
        return Opened(payload=payload or None)

    # --- internals ----------------------------------------------------------------------------

    def _decrypt(self, envelope: OlmEnvelope) -> bytes:
        message = olm_message(envelope.kind, envelope.ciphertext)
        may_begin = envelope.kind == PRE_KEY
        for kept in self._state.sessions:
            session = self._sessions[kept.session_id]
            if envelope.kind == PRE_KEY:
                if not session.began_with(message):
                    continue
                may_begin = False  # Begun anew, it would take the place of the one that went on.
            elif envelope.generation != kept.generation:
                continue
            try:
                padded = session.decrypt(message)
            except CryptoError:
                continue
            self._keep(kept.generation, kept.session_id)
            return padded
        theirs = self._state.theirs
        if not may_begin or theirs is None:
            raise CryptoError("not_decrypted", "no session")
        session, padded = self._account.answer(theirs.identity_key, message)
        self._change(account=self._account.pickle(self._key))
        self._add(envelope.generation, session)
        return padded

    def _begin(self, now_ms: UnixMs) -> None:
        """A session of a generation above all; with a one-time key while there are any."""
        theirs = self._state.theirs
        if theirs is None:
            raise LocalProtocolError("the other's keys are not known")
        if self._state.highest >= MAX_GENERATION:
            raise LocalProtocolError("there is no generation left")
        one_time, *others = (*theirs.one_time_keys, theirs.fallback_key)
        session = self._account.begin(theirs.identity_key, one_time)
        generation = self._state.highest + 1
        self._change(
            theirs=replace(theirs, one_time_keys=tuple(others[:-1])),
            highest=generation,
            must_renew=False,
            failures=0,
            renewed_ms=now_ms,
        )
        self._add(generation, session)

    def _failed(self, now_ms: UnixMs) -> None:
        failures, since = self._state.failures + 1, self._state.renewed_ms
        may_renew = since is None or now_ms - since >= RENEW_EVERY_MS
        must_renew = self._state.must_renew or (failures >= FAILURES and may_renew)
        self._change(failures=failures, must_renew=must_renew)

    def _add(self, generation: int, session: OlmSession) -> None:
        self._sessions[session.session_id] = session
        self._keep(generation, session.session_id)

    def _keep(self, generation: int, session_id: str) -> None:
        """Pickle a session that was used, and forget the worst if there are too many."""
        used = KeptSession(
            generation=generation,
            session_id=session_id,
            pickle=self._sessions[session_id].pickle(self._key),
        )
        others = (kept for kept in self._state.sessions if kept.session_id != session_id)
        ranked = sorted((used, *others), key=lambda kept: (-kept.generation, kept.session_id))
        for worst in ranked[MAX_SESSIONS:]:
            del self._sessions[worst.session_id]
        self._change(sessions=tuple(ranked[:MAX_SESSIONS]))

    def _change(self, **fields: object) -> None:
        self._state = replace(self._state, **fields)
