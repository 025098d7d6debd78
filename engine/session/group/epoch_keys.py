"""The keys of a governed group on this device: which one to write in, made, wrapped, asked for.

What to do is decided by ``engine.core.epochs`` from what the admin log says; here it is done.  What
has to be said first comes back as ``Saying``s, each with the epoch to say it in: an entry and its
wraps are sealed in an epoch that the members have already.  Times are our own clock's.
"""

from collections import deque
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Final, NamedTuple

from engine.codec.epochs import decode_wraps
from engine.core.admin_log.acts import MAX_RECIPIENTS, MakeEpoch
from engine.core.admin_log.epochs import EPOCH_ID_BYTES, Epoch
from engine.core.content import (
    AdminEntry,
    Governing,
    KeysWanted,
    KeyWraps,
    PrekeyTold,
)
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.epochs import (
    LATE_MS,
    GiveThenSend,
    MakeThenSend,
    MayNot,
    SendIn,
    due_after_return_ms,
    fresh_due_ms,
    keys_to_ask_for,
    may_wrap_for,
    step_to_send,
    wait_before_making_ms,
)
from engine.core.errors import CommandError, CommandRefusal, LocalProtocolError, RemoteProtocolError
from engine.core.governed import AddEpochKey, Admission, PutPrekey, SaveOwnPrekeys
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.invite import EPOCH_KEY_BYTES, group_id_of
from engine.core.prekeys import (
    PREKEY_EVERY_MS,
    TheirPrekey,
    is_prekey_due,
    newer,
    prekeys_to_forget,
)
from engine.crypto.epochs import (
    EpochKey,
    WrapOpener,
    make_prekey,
    read_prekey,
    sign_prekey,
    verify_prekey,
    wrap_epoch_key,
)
from engine.crypto.sealed import epoch_commitment
from engine.session.gap_book import GapBook
from engine.session.group.governance import Governance
from engine.session.group.key_questions import KeyQuestions
from engine.session.group.saved import SavedGroup
from engine.session.transitions import GovernanceNoted, TransitionBuilder

TRY_AGAIN_MS: Final = 3_600_000
"""After the log had no room for an entry of ours."""
CLOCKS_DIFFER_MS: Final = 5 * 60_000
MAX_CHUNKS: Final = 16
"""Wraps kept that came before the entry they belong to."""


class Saying(NamedTuple):
    """To be said in the epoch of this commitment."""

    commitment: bytes
    body: Governing


class EpochKeys:
    """``encryption_key_of``: the X25519 key of somebody's join statement, b"" if none is here."""

    def __init__(  # noqa: PLR0913 - everything that is injected
        self,
        seed: SavedGroup,
        governance: Governance,
        encryption_key_of: Callable[[ParticipantId], bytes],
        *,
        on_key: Callable[[bytes], None],
        entropy: Entropy,
        counters: Counters,
    ) -> None:
        self._on_key = on_key
        state = seed.governed
        if state is None:
            raise LocalProtocolError("not a governed group")
        self._conversation_id = seed.group.conversation_id
        self._group_id = group_id_of(seed.group.conversation_id)
        self._identity = seed.identity
        self._own_id = seed.identity.participant_id
        self._governance = governance
        self._encryption_key_of = encryption_key_of
        self._entropy = entropy
        self._counters = counters
        self._keys: dict[bytes, bytes] = {}
        self._known_ms: dict[bytes, UnixMs] = {}
        for key in seed.group.epoch_keys:
            self._keep(key, state.known_ms.get(key, seed.group.created_ms))
        self._prekeys = state.own_prekeys
        self._theirs: dict[ParticipantId, TheirPrekey] = {}
        for data in state.prekeys:
            prekey = verify_prekey(data, group_id=self._group_id)
            self._theirs[prekey.author] = prekey
        self._opener = self._make_opener()
        self._chunks: deque[bytes] = deque(maxlen=MAX_CHUNKS)
        self._questions = KeyQuestions(entropy, counters)
        self._fresh_after: tuple[bytes, UnixMs] | None = None
        self._no_room_until_ms = UnixMs(0)
        """No entry of ours had room in the log: a key is made by itself no sooner than this."""
        self._theirs_until_ms: UnixMs | None = None
        """How long the key of whoever removed somebody is waited for."""

    def _keep(self, key: bytes, known_ms: UnixMs) -> bytes:
        commitment = epoch_commitment(self._group_id, key)
        self._keys[commitment] = key
        self._known_ms[commitment] = known_ms
        return commitment

    def _make_opener(self) -> WrapOpener:
        private = [one.private_key for one in self._prekeys]
        return WrapOpener(
            self._own_id, (*private, self._identity.encryption_key), group_id=self._group_id
        )

    # --- which epoch ----------------------------------------------------------------------------

    @property
    def _epochs(self) -> tuple[Epoch, ...]:
        return self._governance.state.epochs

    @property
    def _members(self) -> frozenset[ParticipantId]:
        return frozenset(self._governance.state.roles)

    def _step(self) -> SendIn | GiveThenSend | MakeThenSend | MayNot:
        return step_to_send(
            self._epochs, members=self._members, own_id=self._own_id, held=self._keys.keys()
        )

    def sending(self) -> bytes | None:
        """Id of the epoch to write in; None if something has to be said first (``prepare``)."""
        step = self._step()
        return step.epoch.commitment[:EPOCH_ID_BYTES] if isinstance(step, SendIn) else None

    def waiting_in(self, now_ms: UnixMs) -> bytes | None:
        """While the key of whoever removed somebody is on its way: what to sign in until it comes.

        That is an epoch nobody writes in any more, so that what is signed in it is not sent, and
        is signed anew.  None if nobody is waited for.
        """
        is_due = self._theirs_until_ms is None or self._theirs_until_ms <= now_ms
        if is_due or not isinstance(self._step(), MakeThenSend):
            return None
        left = (one for one in self._epochs if not one.is_good and one.commitment in self._keys)
        return next((one.commitment[:EPOCH_ID_BYTES] for one in left), None)

    def newest_ms(self) -> UnixMs | None:
        """Since when we have the key of the epoch to write in; None if there is none."""
        step = self._step()
        return self._known_ms[step.epoch.commitment] if isinstance(step, SendIn) else None

    def prekeys(self) -> tuple[bytes, ...]:
        """The newest of each member, as far as it is known, signed by its owner."""
        theirs = [one.signed for who, one in self._theirs.items() if who in self._members]
        if not self._prekeys:
            return (*theirs,)
        return (*theirs, sign_prekey(self._identity, self._prekeys[-1], group_id=self._group_id))

    def without_prekey(self) -> frozenset[ParticipantId]:
        """Other members to whose join statement keys are sealed."""
        return frozenset(self._members) - self._theirs.keys() - {self._own_id}

    def is_good(self, epoch_id: bytes) -> bool:
        """Whether nobody who was removed, as far as we know, was given its key."""
        return any(
            epoch.is_good and epoch.commitment.startswith(epoch_id) for epoch in self._epochs
        )

    def is_withheld(self, message_id: MessageId, gaps: GapBook) -> bool:
        """Whether it was said before we came, and the log does not give us every key."""
        given_all = all(self._own_id in epoch.readers for epoch in self._epochs)
        return not given_all and gaps.is_from_before(message_id)

    def reads_since_ms(self, let_in_ms: UnixMs) -> UnixMs | None:
        """Nothing from before can be read here; None if the oldest key that we know of was given.

        Authors' clocks may say anything, so the earliest of what is known counts.
        """
        epochs = self._epochs
        given = [one for one in epochs if self._own_id in one.readers]
        if not epochs or given[-1:] == [*epochs[-1:]]:
            return None
        known = [let_in_ms, *(one.made_ms for one in given)]
        known += [at for one in given if (at := self._known_ms.get(one.commitment)) is not None]
        return UnixMs(max(min(known) - CLOCKS_DIFFER_MS, 0))

    def find(self, epoch_id: bytes) -> Epoch | None:
        """What the log says of an epoch that an envelope names; None if it knows none."""
        named = (one for one in self._epochs if one.commitment.startswith(epoch_id))
        return next(named, None)

    def _carrier(self) -> bytes:
        """What all members have: it need not be kept from those who were removed."""
        ours = [one for one in self._epochs if one.commitment in self._keys]
        for epoch in ours:
            if epoch.readers >= self._members:
                return epoch.commitment
        return (
            max(ours, key=lambda one: len(one.readers & self._members)).commitment
            if ours
            else (next(reversed(self._keys)))
        )

    def _carrier_for(self, commitment: bytes, asker: ParticipantId) -> bytes:
        """What is asked, and answered, about the key of an epoch is said in one that came before.

        Who lacks the key cannot read what is said in that epoch; and who made it apart from others
        lacks theirs.  The newest one that all members have, if there is any.
        """
        epochs = self._epochs
        asked = next((one for one in epochs if one.commitment == commitment), None)
        before = [
            one
            for one in epochs
            if asked is not None
            and one.commitment in self._keys
            and asker in one.readers
            and self._governance.knew(asked.entry_id, one.entry_id)
        ]
        all_have = [one for one in before if one.readers >= self._members]
        return next((one.commitment for one in (*all_have, *before)), None) or self._carrier()

    def keys_for(self, who: ParticipantId) -> tuple[bytes, ...]:
        """The keys that the log gives to somebody and that are here, oldest first."""
        given = [one.commitment for one in reversed(self._epochs) if who in one.readers]
        return tuple(self._keys[each] for each in given if each in self._keys)

    def written_in_at(self, clock_ms: UnixMs) -> int:
        """The Lamport timestamp of the epoch that was written in then; 1 if there was none yet.

        A newcomer has all earlier keys since today, so what the entry says counts, too; whoever
        dates one too late does not make others read further back, if we had its key by then.
        """
        for epoch in self._epochs:
            known_ms = self._known_ms.get(epoch.commitment, epoch.made_ms)
            if min(known_ms, epoch.made_ms) <= clock_ms:
                return epoch.lamport_timestamp
        return 1

    # --- what has to be said first --------------------------------------------------------------

    def prepare(
        self, builder: TransitionBuilder, *, clock_ms: UnixMs, fresh: bool = False
    ) -> list[Saying]:
        """So that ``sending`` names an epoch.  Raises CommandError if we are no member.

        ``fresh``: make one even if there is one to write in.
        """
        sayings: list[Saying] = []
        for _ in range(3):
            step = self._step()
            match step:
                case MayNot():
                    raise CommandError(CommandRefusal.NOT_IN_GROUP)
                case SendIn() if not fresh:
                    return sayings
                case GiveThenSend(epoch=epoch, to=to) if not fresh:
                    sayings += self._give(epoch.commitment, to, builder, clock_ms=clock_ms)
                case _:
                    fresh = False
                    sayings += self._make(builder, clock_ms=clock_ms)
        raise LocalProtocolError("no epoch to write in")

    def _make(self, builder: TransitionBuilder, *, clock_ms: UnixMs) -> list[Saying]:
        carrier, key = self._carrier(), self._entropy.random_bytes(EPOCH_KEY_BYTES)
        commitment = epoch_commitment(self._group_id, key)
        entries = self._entries(commitment, self._members, clock_ms=clock_ms)
        self._adopt(key, builder, clock_ms=clock_ms)
        return self._say_given(carrier, commitment, entries, self._members, builder)

    def _give(
        self,
        commitment: bytes,
        to: frozenset[ParticipantId],
        builder: TransitionBuilder,
        *,
        clock_ms: UnixMs,
    ) -> list[Saying]:
        entries = self._entries(commitment, to, clock_ms=clock_ms)
        return self._say_given(self._carrier(), commitment, entries, to, builder)

    def _entries(
        self, commitment: bytes, to: frozenset[ParticipantId], *, clock_ms: UnixMs
    ) -> list[AdminEntry]:
        """More than one if an entry cannot name all.  Raises CommandError, before any is taken."""
        people = sorted(to)
        parts = range(0, len(people), MAX_RECIPIENTS)
        return [
            self._governance.entry(
                MakeEpoch(
                    commitment=commitment,
                    recipients=frozenset(people[start : start + MAX_RECIPIENTS]),
                ),
                clock_ms=clock_ms,
            )
            for start in parts
        ]

    def _say_given(
        self,
        carrier: bytes,
        commitment: bytes,
        entries: Iterable[AdminEntry],
        to: Iterable[ParticipantId],
        builder: TransitionBuilder,
    ) -> list[Saying]:
        for entry in entries:
            self._governance.take(entry, self._own_id, builder)
        self._governance.settle()
        said = [Saying(carrier, entry) for entry in entries]
        return said + [Saying(carrier, KeyWraps(one)) for one in self._wraps(commitment, to)]

    def _wraps(self, commitment: bytes, to: Iterable[ParticipantId]) -> tuple[bytes, ...]:
        keys: dict[ParticipantId, bytes] = {}
        for who in to:
            theirs = self._theirs.get(who)
            key = self._encryption_key_of(who) if theirs is None else theirs.key
            if who != self._own_id and key:
                keys[who] = key
                if theirs is None:
                    self._counters.add("group.wrapped_without_prekey")
            elif who != self._own_id:
                self._counters.add("group.no_key_of_member")
        return wrap_epoch_key(self._keys[commitment], keys, group_id=self._group_id)

    def take_given(self, given: Admission, builder: TransitionBuilder, *, clock_ms: UnixMs) -> None:
        """Keys that fit what the log gives us, the oldest first, and what to seal others to."""
        for key in given.epoch_keys:
            if epoch_commitment(self._group_id, key) not in self._keys:
                self._adopt(key, builder, clock_ms=clock_ms)
        for prekey in map(read_prekey, given.prekeys):
            self._keep_prekey(prekey, builder)

    def _adopt(self, key: bytes, builder: TransitionBuilder, *, clock_ms: UnixMs) -> bytes:
        builder.writes.append(
            AddEpochKey(conversation_id=self._conversation_id, key=key, known_ms=clock_ms)
        )
        self._on_key(key)
        return self._keep(key, clock_ms)

    # --- what comes -----------------------------------------------------------------------------

    def take(
        self,
        who: ParticipantId,
        body: PrekeyTold | KeyWraps | KeysWanted,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
        clock_ms: UnixMs,
    ) -> None:
        """Raises RemoteProtocolError, CryptoError."""
        match body:
            case PrekeyTold(data=data):
                self._take_prekey(who, data, builder)
            case KeyWraps(data=data):
                self._questions.answered_by_others(data)
                self._open(data, builder, clock_ms=clock_ms)
            case KeysWanted(commitments=commitments):
                self._take_question(who, commitments, now_ms=now_ms)

    def _take_prekey(self, who: ParticipantId, data: bytes, builder: TransitionBuilder) -> None:
        prekey = verify_prekey(data, group_id=self._group_id)
        if prekey.author != who:
            raise RemoteProtocolError("foreign_prekey")
        self._keep_prekey(prekey, builder)

    def _keep_prekey(self, prekey: TheirPrekey, builder: TransitionBuilder) -> None:
        who = prekey.author
        if who == self._own_id or newer(self._theirs.get(who), prekey) is not prekey:
            return
        if who not in self._theirs:
            builder.notes.append(GovernanceNoted())
        self._theirs[who] = prekey
        put = PutPrekey(
            conversation_id=self._conversation_id, participant_id=who, data=prekey.signed
        )
        builder.writes.append(put)

    def _open(self, chunk: bytes, builder: TransitionBuilder, *, clock_ms: UnixMs) -> None:
        wanted = keys_to_ask_for(self._epochs, own_id=self._own_id, held=self._keys.keys())
        found: EpochKey | None = self._opener.open(chunk, wanted=wanted)
        if found is not None:
            self._adopt(found.key, builder, clock_ms=clock_ms)
            if not isinstance(self._step(), MakeThenSend):
                self._theirs_until_ms = None  # It is here.
        elif decode_wraps(chunk).commitment not in self._keys and chunk not in self._chunks:
            self._chunks.append(chunk)

    def wait_for_theirs(self, now_ms: UnixMs) -> None:
        """Another member removed somebody, and makes a fresh key."""
        wait_ms = wait_before_making_ms(
            is_ours=False,
            member_count=len(self._members),
            random_unit=self._entropy.random_unit(),
        )
        self._theirs_until_ms = UnixMs(now_ms + wait_ms) if wait_ms else None

    def make_none_until(self, until_ms: UnixMs) -> None:
        """Unless somebody wants to write: the link ended, and the creator's key is on its way."""
        self._no_room_until_ms = until_ms

    def follow(self, builder: TransitionBuilder, *, now_ms: UnixMs, clock_ms: UnixMs) -> None:
        """The log says something else: wraps may be wanted that were not, and keys lacking."""
        chunks = [*self._chunks]
        self._chunks.clear()
        for chunk in chunks:
            try:
                self._open(chunk, builder, clock_ms=clock_ms)
            except RemoteProtocolError as error:
                self._counters.add(f"group.{error.reason}")
        self._questions.follow(self._lacking(), now_ms=now_ms)

    # --- asking and answering -------------------------------------------------------------------

    def _lacking(self) -> tuple[bytes, ...]:
        if self._own_id not in self._members:
            return ()
        return keys_to_ask_for(self._epochs, own_id=self._own_id, held=self._keys.keys())

    def _take_question(
        self, who: ParticipantId, commitments: Iterable[bytes], *, now_ms: UnixMs
    ) -> None:
        by_commitment = {one.commitment: one for one in self._epochs}
        for commitment in commitments:
            epoch = by_commitment.get(commitment)
            if epoch is None or who == self._own_id or commitment not in self._keys:
                continue
            if may_wrap_for(epoch, who, members=self._members):
                self._questions.hear(who, commitment, now_ms=now_ms)
            else:
                self._counters.add("group.key_not_given")

    def _ask(self, *, now_ms: UnixMs) -> list[Saying]:
        asked = self._questions.to_ask(self._lacking(), now_ms=now_ms)
        by_carrier = groupby(asked, lambda one: self._carrier_for(one, self._own_id))
        return [Saying(carrier, KeysWanted(tuple(wanted))) for carrier, wanted in by_carrier]

    def _answer(self, *, now_ms: UnixMs) -> list[Saying]:
        return [
            Saying(self._carrier_for(commitment, who), KeyWraps(chunk))
            for who, commitment in self._questions.due_answers(now_ms=now_ms)
            for chunk in self._wraps(commitment, (who,))
        ]

    # --- time -----------------------------------------------------------------------------------

    def next_deadline(self, offset_ms: int) -> UnixMs | None:
        due = self._questions.deadlines()
        due += () if self._theirs_until_ms is None else (self._theirs_until_ms,)
        if self._own_id in self._members:
            prekey_ms = self._prekey_due_ms() - offset_ms
            prekey_ms = max(prekey_ms, self._no_room_until_ms)
            due.append(UnixMs(max(prekey_ms, self._theirs_until_ms or prekey_ms)))
            fresh_ms = self._fresh_due_ms()
            if fresh_ms is not None:
                due.append(UnixMs(max(fresh_ms - offset_ms, self._no_room_until_ms)))
        return min(due, default=None)

    def _prekey_due_ms(self) -> int:
        return self._prekeys[-1].made_ms + PREKEY_EVERY_MS if self._prekeys else 0

    def _fresh_due_ms(self) -> UnixMs | None:
        step = self._step()
        if not isinstance(step, SendIn):
            return None
        commitment = step.epoch.commitment
        if self._fresh_after is None or self._fresh_after[0] != commitment:
            due_ms = fresh_due_ms(self._known_ms[commitment], self._entropy.random_unit())
            self._fresh_after = commitment, due_ms
        return self._fresh_after[1]

    def _is_fresh_due(self, clock_ms: UnixMs) -> bool:
        if self._fresh_due_ms() is None or self._fresh_after is None:
            return False
        commitment, due_ms = self._fresh_after
        if clock_ms >= due_ms + LATE_MS:
            due_ms = due_after_return_ms(clock_ms, self._entropy.random_unit())
            self._fresh_after = commitment, due_ms
        return due_ms <= clock_ms

    def advance(
        self,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
        clock_ms: UnixMs,
        is_history_complete: bool,
    ) -> list[Saying]:
        """What is to be said now, in the epoch that ``sending`` names unless that is fresh."""
        if self._theirs_until_ms is not None and self._theirs_until_ms <= now_ms:
            self._theirs_until_ms = None
        if self._own_id not in self._members:
            self._questions.forget_answers()
            return []
        is_fresh_due = self._is_fresh_due(clock_ms)
        may_make = self.waiting_in(now_ms) is None and self._no_room_until_ms <= now_ms
        is_prekey_due_now = is_prekey_due(self._prekeys, now_ms=clock_ms)
        sayings: list[Saying] = []
        bodies: list[Governing] = []
        if may_make and (is_fresh_due or is_prekey_due_now):
            made = self._prepare_by_itself(
                builder, now_ms=now_ms, clock_ms=clock_ms, fresh=is_fresh_due
            )
            sayings += made or ()
            if made is not None and is_prekey_due_now:
                bodies.append(self._make_prekey(clock_ms=clock_ms))
        if bodies or self._forget(clock_ms=clock_ms, is_history_complete=is_history_complete):
            self._opener = self._make_opener()
            builder.writes.append(
                SaveOwnPrekeys(conversation_id=self._conversation_id, prekeys=self._prekeys)
            )
        sayings += self._ask(now_ms=now_ms)
        sayings += self._answer(now_ms=now_ms)
        step = self._step()
        if isinstance(step, SendIn):
            sayings += [Saying(step.epoch.commitment, body) for body in bodies]
        return sayings

    def _prepare_by_itself(
        self, builder: TransitionBuilder, *, now_ms: UnixMs, clock_ms: UnixMs, fresh: bool
    ) -> list[Saying] | None:
        """None if the log has no room for what we write; others may have, so it is tried again."""
        try:
            return self.prepare(builder, clock_ms=clock_ms, fresh=fresh)
        except CommandError:
            self._counters.add("group.no_room_for_a_key")
            self._no_room_until_ms = UnixMs(now_ms + TRY_AGAIN_MS)
            return None

    def _make_prekey(self, *, clock_ms: UnixMs) -> PrekeyTold:
        made = make_prekey(self._prekeys, now_ms=clock_ms, random_bytes=self._entropy.random_bytes)
        self._prekeys = (*self._prekeys, made)
        return PrekeyTold(sign_prekey(self._identity, made, group_id=self._group_id))

    def _forget(self, *, clock_ms: UnixMs, is_history_complete: bool) -> bool:
        gone = prekeys_to_forget(
            self._prekeys, now_ms=clock_ms, is_history_complete=is_history_complete
        )
        self._prekeys = tuple(one for one in self._prekeys if one not in gone)
        return bool(gone)
