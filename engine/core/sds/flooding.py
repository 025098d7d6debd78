"""The daily quota of each author, and what happens beyond it.

Anyone with a group's key can sign any number of messages, and every other member would have to keep
them.  So each author has a *quota* per day, in messages and in bytes of signed parts.  Live
messages count for the day by our clock.  What a Store or another member brings counts for the day
of its Lamport timestamp, so a newcomer can fetch months at once.  The author chooses that
timestamp, so it also counts for the day of arrival, with a quota of several days.

What is beyond is *set aside*: not delivered, not claimed, and no longer looked for; messages that
name it do not wait for it.  Up to a bound its bytes are kept until the user wants to see them.  Of
the rest only the id is kept.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.config import DAY_MS, FloodLimits
from engine.core.sds.floods import (
    ForgetSetAside,
    PutSetAside,
    PutSpent,
    RemoveSetAside,
    SetAside,
    SetAsideOf,
    Spent,
)
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.step import Step

_ACCOUNTS_KEPT: Final = 10_000
"""Limit on other days' accounts.  An author who fills them is still bound by the quota for arrivals
in a day."""
_SAVED_STEPS: Final = 16
"""An account is saved whenever another sixteenth is spent: rarely, for most authors.  So a restart
forgives less than that."""

_Key: TypeAlias = tuple[ParticipantId, int, bool]


@dataclass(slots=True)
class Account:
    """What one author spent of one day's quota; ``fetched``: all arrivals on it, of any day."""

    sender_id: ParticipantId
    day: int
    fetched: bool
    max_messages: int
    max_bytes: int
    messages: int = 0
    size: int = 0
    lifted: bool = False
    saved_step: int = field(default=0, init=False)

    def has_room(self, size: int) -> bool:
        return self.messages < self.max_messages and self.size + size <= self.max_bytes

    def spend(self, size: int, step: Step) -> None:
        self.messages += 1
        self.size += size
        spent_step = self._spent_step()
        if spent_step != self.saved_step:
            self.saved_step = spent_step
            self.save(step)

    def note_saved(self) -> None:
        self.saved_step = self._spent_step()

    def save(self, step: Step) -> None:
        spent = Spent(
            sender_id=self.sender_id,
            day=self.day,
            fetched=self.fetched,
            messages=self.messages,
            size=self.size,
            lifted=self.lifted,
        )
        step.writes.append(PutSpent(spent=spent))

    def _spent_step(self) -> int:
        by_messages = self.messages * _SAVED_STEPS // self.max_messages
        return max(by_messages, self.size * _SAVED_STEPS // self.max_bytes)


class Quotas:
    """The accounts of all authors: today's, and those of other days for fetched messages."""

    def __init__(self, limits: FloodLimits, spent: Iterable[Spent] = ()) -> None:
        self._limits = limits
        self._day = -1
        self._today: dict[tuple[ParticipantId, bool], Account] = {}
        """At most two per member."""
        self._others: dict[_Key, Account] = {}
        for one in spent:
            account = self._new(one.sender_id, one.day, fetched=one.fetched)
            account.messages, account.size, account.lifted = one.messages, one.size, one.lifted
            account.note_saved()
            self._keep(account)

    def accounts(
        self, sender_id: ParticipantId, lamport_timestamp: int, clock_ms: UnixMs, *, live: bool
    ) -> tuple[Account, ...]:
        """The accounts to which a message that arrives now is charged."""
        today = clock_ms // DAY_MS
        if today != self._day:
            self._begin(today)
        if live:
            return (self._of(sender_id, today),)
        day = lamport_timestamp // DAY_MS
        return self._of(sender_id, day), self._of(sender_id, today, fetched=True)

    def have_room(self, accounts: tuple[Account, ...], size: int) -> bool:
        """Whether all accounts have room for it, or the author's quota is lifted today."""
        for account in accounts:
            if not account.has_room(size):
                return self._of(account.sender_id, self._day).lifted
        return True

    def lift(self, sender_id: ParticipantId, clock_ms: UnixMs, step: Step) -> None:
        """Lift the quota: the user wants to see all that this author sends today."""
        (account,) = self.accounts(sender_id, 0, clock_ms, live=True)
        account.lifted = True
        account.save(step)

    def _begin(self, today: int) -> None:
        for account in self._today.values():
            self._keep(account)
        self._today.clear()
        self._day = today

    def _keep(self, account: Account) -> None:
        self._others[account.sender_id, account.day, account.fetched] = account
        if len(self._others) > _ACCOUNTS_KEPT:
            del self._others[next(iter(self._others))]

    def _of(self, sender_id: ParticipantId, day: int, *, fetched: bool = False) -> Account:
        if day == self._day:
            account = self._today.get((sender_id, fetched))
            if account is None:
                account = self._others.pop((sender_id, day, fetched), None)
                account = account or self._new(sender_id, day, fetched=fetched)
                self._today[sender_id, fetched] = account
            return account
        account = self._others.get((sender_id, day, fetched))
        if account is None:
            account = self._new(sender_id, day, fetched=fetched)
            self._keep(account)
        return account

    def _new(self, sender_id: ParticipantId, day: int, *, fetched: bool) -> Account:
        limits, days = self._limits, self._limits.fetched_days if fetched else 1
        return Account(
            sender_id, day, fetched, days * limits.messages_per_day, days * limits.bytes_per_day
        )


class SetAsideTable:
    """Messages set aside, by id: with their bytes on disk while there is room, or the id alone.

    If there is no room, the author with most bytes kept gives way, the newest message first.
    """

    def __init__(self, limits: FloodLimits, entries: Iterable[SetAside] = ()) -> None:
        self._limits = limits
        self._kept: dict[ParticipantId, dict[MessageId, SetAside]] = {}
        """By author, in order of arrival."""
        self._sizes: dict[ParticipantId, int] = {}
        self._of: dict[MessageId, ParticipantId] = {}
        """The author of each of those."""
        self._bare: dict[MessageId, ParticipantId] = {}
        """Ids kept alone, oldest first."""
        self._bare_counts: dict[ParticipantId, int] = {}
        for entry in entries:
            if entry.size:
                self._keep(entry)
            else:
                self._note_bare(entry.message_id, entry.sender_id)

    def __len__(self) -> int:
        return len(self._of) + len(self._bare)

    def __contains__(self, message_id: MessageId) -> bool:
        return message_id in self._of or message_id in self._bare

    def keeps(self, message_id: MessageId) -> bool:
        """Whether its bytes are kept, too."""
        return message_id in self._of

    def is_flooding(self, sender_id: ParticipantId) -> bool:
        """Whether anything of this author is set aside."""
        return sender_id in self._kept or sender_id in self._bare_counts

    def waiting(self, sender_id: ParticipantId) -> int:
        """How many can be shown."""
        return len(self._kept.get(sender_id, ()))

    def tell(self) -> tuple[SetAsideOf, ...]:
        """The state per author, in the order of their ids."""
        return tuple(
            SetAsideOf(
                sender_id=sender_id,
                waiting=self.waiting(sender_id),
                size=self._sizes.get(sender_id, 0),
                bare=self._bare_counts.get(sender_id, 0),
            )
            for sender_id in sorted(self._kept.keys() | self._bare_counts.keys())
        )

    def entries(self) -> Iterator[SetAside]:
        for kept in self._kept.values():
            yield from kept.values()
        for message_id, sender_id in self._bare.items():
            yield SetAside(message_id=message_id, sender_id=sender_id)

    def add(self, received: MessageReceived, payer: ParticipantId, step: Step) -> None:
        """``payer``: whose quota is spent, and as whose the message can be shown later."""
        message, raw, hint = received.message, received.raw, received.retrieval_hint
        entry = SetAside(
            message_id=message.message_id,
            sender_id=payer,
            lamport_timestamp=message.lamport_timestamp or 0,
            size=len(raw),
        )
        if not self.is_flooding(entry.sender_id):
            step.set_aside_changed = True
        if self._make_room(entry, step):
            self._keep(entry)
            step.writes.append(PutSetAside(entry=entry, raw=raw, retrieval_hint=hint))
        else:
            self._add_bare(entry.message_id, entry.sender_id, step)

    def remove(self, message_id: MessageId, step: Step) -> None:
        """Remove a message that is about to be shown."""
        if message_id in self._of:
            sender_id = self._of[message_id]
            self._let_go(message_id)
        else:
            sender_id = self._bare[message_id]
            self._forget_bare(message_id)
        step.writes.append(RemoveSetAside(message_id=message_id))
        if not self.is_flooding(sender_id):
            step.set_aside_changed = True

    def forget_bare(self, sender_id: ParticipantId, step: Step) -> None:
        """Forget ids kept alone, so that the messages may come again."""
        for message_id in [each for each, whose in self._bare.items() if whose == sender_id]:
            self._forget_bare(message_id)
        step.writes.append(ForgetSetAside(sender_id=sender_id))
        step.set_aside_changed = True

    def _make_room(self, entry: SetAside, step: Step) -> bool:
        limits, sizes = self._limits, self._sizes
        while (
            len(self._of) >= limits.waiting_messages
            or sum(sizes.values()) + entry.size > limits.waiting_bytes
        ):
            most = max(sizes, key=sizes.__getitem__, default=entry.sender_id)
            if most == entry.sender_id or sizes[most] <= sizes.get(entry.sender_id, 0) + entry.size:
                return False
            newest = next(reversed(self._kept[most]))
            self._let_go(newest)
            self._add_bare(newest, most, step)
        return True

    def _keep(self, entry: SetAside) -> None:
        sender_id = entry.sender_id
        self._kept.setdefault(sender_id, {})[entry.message_id] = entry
        self._sizes[sender_id] = self._sizes.get(sender_id, 0) + entry.size
        self._of[entry.message_id] = sender_id

    def _let_go(self, message_id: MessageId) -> None:
        sender_id = self._of.pop(message_id)
        kept = self._kept[sender_id]
        self._sizes[sender_id] -= kept.pop(message_id).size
        if not kept:
            del self._kept[sender_id], self._sizes[sender_id]

    def _add_bare(self, message_id: MessageId, sender_id: ParticipantId, step: Step) -> None:
        self._note_bare(message_id, sender_id)
        bare = SetAside(message_id=message_id, sender_id=sender_id)
        step.writes.append(PutSetAside(entry=bare, raw=b"", retrieval_hint=None))
        while len(self._bare) > self._limits.bare_ids:
            # If a member names it, we look for it, and then set it aside again.
            oldest = next(iter(self._bare))
            self._forget_bare(oldest)
            step.writes.append(RemoveSetAside(message_id=oldest))

    def _note_bare(self, message_id: MessageId, sender_id: ParticipantId) -> None:
        self._bare[message_id] = sender_id
        self._bare_counts[sender_id] = self._bare_counts.get(sender_id, 0) + 1

    def _forget_bare(self, message_id: MessageId) -> None:
        sender_id = self._bare.pop(message_id)
        self._bare_counts[sender_id] -= 1
        if not self._bare_counts[sender_id]:
            del self._bare_counts[sender_id]
