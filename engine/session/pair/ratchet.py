"""The Olm sessions of one pair on one device, sans-I/O: which is used, and when a new one begins.

Each step leaves a new ``state``.  Whoever uses this writes it in one transaction with what it goes
with, the outgoing row or the delivered message, and only then sends or shows: a device that dies
goes on from the last one, so no key of the ratchet encrypts twice.  What cannot be decrypted is
encrypted afresh by whoever sent it, which MVDS does anyway: it repeats what is not acknowledged.

Both may begin a session at once, and any number may be under way.  The one with the highest
generation is used; of those with the same, one in which something came, and then the one with the
smallest id, so that both sides soon use the same.  Three envelopes in a row that the other proved
to have made, that are newer than all that opened, and that open in no session, make a new one, at
most one a minute: the other's state went back, or ours.  What nobody proved counts for nothing, or
anybody could force new sessions; nor does what is older, or a Store could with copies of what was
read long ago.
"""

from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace as replace_struct

from engine.codec.olm import (
    MAX_GENERATION,
    PRE_KEY,
    OlmEnvelope,
    OlmPlaintext,
    decode_olm_envelope,
    decode_olm_plaintext,
    encode_olm_envelope,
    encode_olm_plaintext,
)
from engine.codec.padding import pad, unpad
from engine.core.errors import CryptoError, LocalProtocolError
from engine.core.ids import InstanceId, UnixMs
from engine.core.ratchet import (
    MAX_ONE_TIME_KEYS,
    KeptSession,
    KeyBundle,
    KeyNumbers,
    RatchetState,
)
from engine.crypto.keys import require_encryption_key
from engine.crypto.olm import OlmAccount, OlmSession, olm_message
from engine.crypto.pair_proof import StaticProof

MAX_SESSIONS: Final = 5
ONE_TIME_KEYS: Final = 5
MAX_REMEMBERED: Final = 256
"""Hashes of ciphertexts that were decrypted, to drop copies before they cost anything."""
FAILURES: Final = 3
RENEW_EVERY_MS: Final = 60_000
MAX_UNANSWERED: Final = 1_000
"""Then a new session begins: the other may have heard none of these, and bridges a gap of 2 000."""
ROTATE_EVERY_MS: Final = 7 * 24 * 3_600_000
"""The age at which our bundle, and with it the fallback key, has a successor.  The fallback key
before it stays good until the next successor, so a stolen device has those of two weeks."""
_HASH_BYTES: Final = 16


class Opened(Struct, frozen=True, kw_only=True):
    payload: bytes | None
    """None if the message only begins a session."""
    sent_ms: UnixMs
    """By the other's clock."""


class PairRatchet:
    def __init__(self, proof: StaticProof, state: RatchetState) -> None:
        """``state``: the last one that was written, or a ``new_state``.

        Raises LocalProtocolError if it is no use.
        """
        self._proof = proof
        self._key = state.pickle_key
        self._account = OlmAccount.from_pickle(state.account, state.pickle_key)
        self._state = state
        self._sessions = {
            kept.session_id: OlmSession.from_pickle(kept.pickle, self._key)
            for kept in state.sessions
        }

    @property
    def state(self) -> RatchetState:
        """To be written before anything that the last step returned is sent or shown."""
        return self._state

    # --- keys ---------------------------------------------------------------------------------

    def take_bundle(self, bundle: KeyBundle) -> bool:
        """The other's newest keys, authenticated; False for older ones than we have.

        With another identity key the other began anew, so the sessions that we had are of no use.
        Raises CryptoError for keys that cannot be genuine.
        """
        for key in (bundle.identity_key, *bundle.one_time_keys, bundle.fallback_key):
            require_encryption_key(key)
        before = self._state.theirs
        is_same = before is not None and bundle.identity_key == before.identity_key
        if before is not None and bundle.number < before.number + is_same:
            return False
        if before is not None and is_same:
            one_time = (*before.one_time_keys, *bundle.one_time_keys)[-MAX_ONE_TIME_KEYS:]
            self._change(theirs=replace_struct(bundle, one_time_keys=one_time))
            return True
        self._sessions.clear()
        self._change(
            theirs=bundle,
            sessions=(),
            told=0,
            heard_ms=UnixMs(0),
            since_ms=None,
            failures=0,
            must_renew=before is not None,
        )
        return True

    def rotate(self, numbers: KeyNumbers, *, clock_ms: UnixMs) -> None:
        """Give our keys a successor if it is time and the other has the present ones."""
        state = self._state
        if state.told < state.ours.number or clock_ms - state.ours.number < ROTATE_EVERY_MS:
            return
        fresh = min(state.answered, ONE_TIME_KEYS)
        ours = self._account.new_bundle(fresh, number=numbers.next(clock_ms))
        self._change(ours=ours, answered=0, account=self._account.pickle(self._key))

    def other_has_no_keys(self) -> None:
        """The other seems to have lost ours: they have to be told again."""
        self._change(told=0)

    @property
    def has_to_tell(self) -> bool:
        """Whether the other has not said yet that it has our newest keys."""
        return self._state.told < self._state.ours.number

    @property
    def can_seal(self) -> bool:
        return self._state.theirs is not None

    @property
    def wants_hello(self) -> bool:
        """Whether an empty message should tell the other of a new session."""
        return self._state.must_renew and self.can_seal

    # --- messages -----------------------------------------------------------------------------

    def seal(self, payload: bytes, *, now_ms: UnixMs, clock_ms: UnixMs) -> bytes:
        """An envelope, different each time; an empty payload only begins a session.

        ``now_ms`` never goes back; ``clock_ms`` is what the other is told.  Raises
        LocalProtocolError if the other's keys are not known.
        """
        theirs = self._state.theirs
        if theirs is None:
            raise LocalProtocolError("the other's keys are not known")
        state = self._state
        if state.must_renew or not state.sessions or state.unanswered >= MAX_UNANSWERED:
            self._begin(theirs, now_ms)
        kept = self._state.sessions[0]
        sent_ms = UnixMs(max(clock_ms, state.sent_ms + 1))
        self._change(sent_ms=sent_ms, unanswered=self._state.unanswered + 1)
        plaintext = encode_olm_plaintext(OlmPlaintext(known=theirs.number, payload=payload))
        kind, ciphertext = self._sessions[kept.session_id].encrypt(pad(plaintext))
        self._keep(kept.generation, kept.session_id, heard=kept.heard)
        return encode_olm_envelope(
            self._proof.prove(kind, kept.generation, ciphertext, sent_ms=sent_ms)
        )

    def open(self, sealed: bytes, *, now_ms: UnixMs, clock_ms: UnixMs) -> Opened:
        """Raises RemoteProtocolError, or CryptoError for what proves nothing or opens nowhere.

        ``repeated`` is a copy of what was opened; after ``not_decrypted`` see ``wants_hello``.
        """
        envelope = decode_olm_envelope(sealed)
        self._proof.check(envelope)
        return self.open_proved(envelope, now_ms=now_ms, clock_ms=clock_ms)

    def open_proved(self, envelope: OlmEnvelope, *, now_ms: UnixMs, clock_ms: UnixMs) -> Opened:
        """Do the rest of ``open``."""
        copy = sha256(envelope.ciphertext).digest()[:_HASH_BYTES]
        if copy in self._state.heard:
            raise CryptoError("repeated")
        is_newest = envelope.sent_ms > self._state.heard_ms
        self._change(highest=max(self._state.highest, envelope.generation))
        try:
            padded = self._decrypt(envelope)
        except CryptoError:
            if is_newest:
                self._failed(now_ms)
            raise
        self._change(heard=(*self._state.heard, copy)[-MAX_REMEMBERED:], failures=0, unanswered=0)
        plaintext = decode_olm_plaintext(unpad(padded))
        if is_newest:
            self._change(heard_ms=envelope.sent_ms, told=plaintext.known)
        if self._state.since_ms is None:
            self._change(since_ms=clock_ms)
        return Opened(payload=plaintext.payload or None, sent_ms=envelope.sent_ms)

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
            self._keep(kept.generation, kept.session_id, heard=True)
            return padded
        theirs = self._state.theirs
        if not may_begin or theirs is None:
            raise CryptoError("not_decrypted", "no session")
        session, padded = self._account.answer(theirs.identity_key, message)
        self._change(account=self._account.pickle(self._key), answered=self._state.answered + 1)
        self._add(envelope.generation, session, heard=True)
        return padded

    def _begin(self, theirs: KeyBundle, now_ms: UnixMs) -> None:
        """A session of a generation above all; with a one-time key while there are any."""
        one_time, *others = (*theirs.one_time_keys, theirs.fallback_key)
        session = self._account.begin(theirs.identity_key, one_time)
        generation = min(self._state.highest + 1, MAX_GENERATION)
        self._change(
            theirs=replace_struct(theirs, one_time_keys=tuple(others[:-1])),
            highest=generation,
            must_renew=False,
            unanswered=0,
            failures=0,
            renewed_ms=now_ms,
        )
        self._add(generation, session, heard=False)

    def _failed(self, now_ms: UnixMs) -> None:
        """The other has not our state, perhaps not even our keys."""
        state = self._state
        failures, since = state.failures + 1, state.renewed_ms
        if failures < FAILURES or (since is not None and now_ms - since < RENEW_EVERY_MS):
            self._change(failures=failures)
        else:
            self._change(failures=failures, must_renew=True, told=0)

    def _add(self, generation: int, session: OlmSession, *, heard: bool) -> None:
        self._sessions[session.session_id] = session
        self._keep(generation, session.session_id, heard=heard)

    def _keep(self, generation: int, session_id: str, *, heard: bool) -> None:
        """Pickle a session that was used, and forget the worst if there are too many."""
        used = KeptSession(
            generation=generation,
            session_id=session_id,
            pickle=self._sessions[session_id].pickle(self._key),
            heard=heard,
        )
        others = (kept for kept in self._state.sessions if kept.session_id != session_id)
        ranked = sorted((used, *others), key=_by_rank)
        for worst in ranked[MAX_SESSIONS:]:
            del self._sessions[worst.session_id]
        self._change(sessions=tuple(ranked[:MAX_SESSIONS]))

    def _change(self, **fields: Any) -> None:  # noqa: ANN401 - fields of a state
        self._state = replace(self._state, **fields)


def _by_rank(kept: KeptSession) -> tuple[int, bool, str]:
    return -kept.generation, not kept.heard, kept.session_id


def new_state(
    *,
    stay: InstanceId,
    pickle_key: bytes,
    number: int,
    before: RatchetState | None = None,
) -> RatchetState:
    """A ratchet without sessions.

    ``before``: what this profile had when the backup was made from which it came.  All of that may
    have been used since, but the other's identity and fallback key.
    """
    account = OlmAccount()
    ours = account.new_bundle(ONE_TIME_KEYS, number=number)
    state = RatchetState(
        stay=stay, pickle_key=pickle_key, account=account.pickle(pickle_key), ours=ours
    )
    if before is None or before.theirs is None:
        return state
    return replace(
        state,
        theirs=replace_struct(before.theirs, one_time_keys=()),
        highest=before.highest,
        sent_ms=before.sent_ms,
        must_renew=True,
    )
