"""A whole group on a bad network, with an admin who lies: what must hold of epochs, whoever acts.

Keys are names here, and who may hold one is written down when a wrap is made, whatever the log
says.  Entries, wraps and messages are lost, doubled and late; a partition is nothing else.
"""

from collections import defaultdict
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from engine.core.admin_log.acts import (
    Act,
    Add,
    Create,
    Demote,
    Entry,
    EntryId,
    LastMessage,
    MakeEpoch,
    Promote,
    Remove,
    Role,
)
from engine.core.admin_log.cuts import Written, void_messages
from engine.core.admin_log.log import AdminLog, AdminState
from engine.core.epochs import (
    GiveThenSend,
    MakeThenSend,
    MayNot,
    SendIn,
    keys_to_ask_for,
    may_wrap_for,
    step_to_send,
)
from engine.core.ids import InstanceId, MessageId, ParticipantId, UnixMs

OWNER, ANNA, BEN, CEM, DORA, EVE = (ParticipantId(name) for name in "OABCDE")
PEOPLE = (OWNER, ANNA, BEN, CEM, DORA, EVE)
LIAR = BEN
FIRST = EntryId("first")


class Wrap(Struct, frozen=True):
    commitment: bytes
    of: ParticipantId


Mail: TypeAlias = Entry | Wrap | Written


class Member:
    def __init__(self, name: ParticipantId) -> None:
        self.name = name
        self.log = AdminLog(FIRST)
        self.held: set[bytes] = set()
        self.read: dict[MessageId, Written] = {}
        self.said: list[Written] = []

    @property
    def state(self) -> AdminState:
        return self.log.state

    def take(self, mail: Mail) -> None:
        match mail:
            case Entry():
                self.log.add(mail)
            case Wrap():
                if mail.of == self.name:
                    self.held.add(mail.commitment)
            case Written():
                self.read[mail.message_id] = mail


class Group:
    def __init__(self) -> None:
        self.members = {name: Member(name) for name in PEOPLE}
        self.entries: dict[EntryId, Entry] = {}
        self.on_the_way: list[tuple[ParticipantId, Mail]] = []
        self.holders: defaultdict[bytes, set[ParticipantId]] = defaultdict(set)
        """Whom a wrap of a key was ever made for, by honest members."""
        self.messages: list[Written] = []
        self.write(OWNER, Create(name="Walks"))
        for member in (ANNA, BEN):
            self.write(OWNER, Promote(member=member))
        self.write(OWNER, Add(member=CEM))
        self.deliver_all()

    # --- what honest members do -------------------------------------------------------------------

    def write(
        self, author: ParticipantId, act: Act, heads: tuple[EntryId, ...] | None = None
    ) -> Entry:
        member = self.members[author]
        known = member.log.heads if heads is None else heads
        newest = max((self.entries[head].lamport_timestamp for head in known), default=0)
        entry = Entry(
            entry_id=EntryId(f"e{len(self.entries):03}") if self.entries else FIRST,
            author=author,
            lamport_timestamp=newest + 1,
            sent_ms=UnixMs(0),
            heads=known,
            act=act,
        )
        self.entries[entry.entry_id] = entry
        self.send(author, entry)
        return entry

    def send(self, sender: ParticipantId, mail: Mail) -> None:
        self.members[sender].take(mail)
        self.on_the_way += [(name, mail) for name in PEOPLE if name != sender]

    def admit_or_remove(self, author: ParticipantId, whom: ParticipantId, choice: int) -> None:
        """As a program does that offers nothing which one may not do."""
        member = self.members[author]
        state = member.state
        if state.roles.get(author, Role.NOBODY) < Role.ADMIN or author == whom:
            return
        if whom not in state.roles:
            reads_from = (None, 1, member_lamport(state))[choice % 3]
            self.write(author, Add(member=whom, reads_from=reads_from))
        elif choice % 3 == 0:
            said = [one for one in member.read.values() if one.author == whom]
            last = max(said, key=lambda one: one.sequence, default=None)
            named = () if last is None else (cut_after(last),)
            self.write(author, Remove(member=whom, last_messages=named))
            if author in member.state.roles:
                self.speak(author)
        else:
            self.write(author, (Promote if choice % 3 == 1 else Demote)(member=whom))

    def speak(self, who: ParticipantId) -> None:
        member = self.members[who]
        for _ in range(3):
            state = member.state
            step = step_to_send(
                state.epochs, members=state.roles.keys(), own_id=who, held=member.held
            )
            match step:
                case MayNot():
                    assert who not in state.roles
                    return
                case SendIn(epoch=epoch):
                    self.say(member, epoch.commitment)
                    return
                case GiveThenSend(epoch=epoch, to=to):
                    self.give(member, epoch.commitment, to)
                case MakeThenSend(recipients=recipients):
                    key = len(self.holders).to_bytes(8, "big") * 4
                    self.give(member, key, recipients)
        raise AssertionError("no epoch to send in")

    def give(self, member: Member, commitment: bytes, to: frozenset[ParticipantId]) -> None:
        self.write(member.name, MakeEpoch(commitment=commitment, recipients=to))
        member.held.add(commitment)
        self.holders[commitment] |= to | {member.name}
        for name in to - {member.name}:
            self.on_the_way.append((name, Wrap(commitment, name)))

    def say(self, member: Member, commitment: bytes) -> None:
        """Nobody who was removed, as far as one knows, was ever given the key."""
        assert self.holders[commitment] <= member.state.roles.keys()
        previous = member.said[-1].message_id if member.said else None
        written = Written(
            message_id=MessageId(f"{member.name}{len(member.said)}"),
            author=member.name,
            instance_id=InstanceId(member.name.encode() * 16),
            sequence=len(member.said) + 1,
            previous_id=previous,
        )
        member.said.append(written)
        self.messages.append(written)
        self.send(member.name, written)

    def ask(self, who: ParticipantId) -> None:
        """Whoever has the key wraps it again for somebody who was given it."""
        member = self.members[who]
        for commitment in keys_to_ask_for(member.state.epochs, own_id=who, held=member.held):
            for other in self.members.values():
                state = other.state
                found = [one for one in state.epochs if one.commitment == commitment]
                if (
                    other.name != LIAR
                    and commitment in other.held
                    and found
                    and may_wrap_for(found[0], who, members=state.roles.keys())
                ):
                    self.holders[commitment].add(who)
                    member.held.add(commitment)

    # --- the liar and the network -----------------------------------------------------------------

    def lie(self, whom: ParticipantId, choice: int) -> None:
        """Whatever rights the liar has, it pretends to know some entries and not others."""
        known = [name for name in self.entries if name in self.members[LIAR].state.verdicts]
        heads = (known[-1 - choice % min(4, len(known))],)
        keys = list(self.holders) or [b"none" * 8]
        act: Act = (
            Add(member=whom, reads_from=1),
            Remove(member=whom),
            Promote(member=whom),
            MakeEpoch(commitment=keys[choice % len(keys)], recipients=frozenset({whom})),
            MakeEpoch(commitment=b"liar" * 8, recipients=frozenset(PEOPLE[:4])),
        )[choice % 5]
        self.write(LIAR, act, heads)

    def arrive(self, number: int, *, is_lost: bool, is_doubled: bool) -> None:
        if self.on_the_way:
            at = number % len(self.on_the_way)
            name, mail = self.on_the_way[at]
            if not is_lost:
                self.members[name].take(mail)
            if not is_doubled:
                del self.on_the_way[at]

    def deliver_all(self) -> None:
        """The network heals: entries and messages are sent until they are there, wraps are not."""
        self.on_the_way.clear()
        for member in self.members.values():
            for entry in self.entries.values():
                member.take(entry)
            for written in self.messages:
                member.take(written)

    @property
    def honest(self) -> list[Member]:
        return [member for member in self.members.values() if member.name != LIAR]


def member_lamport(state: AdminState) -> int:
    """Of the newest epoch: who is let in reads from there on."""
    return state.epochs[0].lamport_timestamp if state.epochs else 1


def cut_after(last: Written) -> LastMessage:
    return LastMessage(last.instance_id, last.sequence, last.message_id)


names = st.sampled_from(PEOPLE)
steps = st.one_of(
    st.tuples(st.just("act"), st.sampled_from((OWNER, ANNA)), names, st.integers(0, 5)),
    st.tuples(st.just("speak"), st.sampled_from((OWNER, ANNA, CEM, DORA, EVE))),
    st.tuples(st.just("arrive"), st.integers(0, 200), st.sampled_from("....ld")),
    st.tuples(st.just("arrive"), st.integers(0, 200), st.sampled_from("....ld")),
    st.tuples(st.just("lie"), names, st.integers(0, 19)),
    st.tuples(st.just("ask"), names),
)


@settings(max_examples=50)
@given(st.lists(steps, min_size=8, max_size=40))
def test_nobody_removed_reads_on_and_everybody_else_does(plan: list[tuple[object, ...]]) -> None:
    group = Group()
    for step in plan:
        match step:
            case ("act", str() as author, str() as whom, int() as choice):
                group.admit_or_remove(ParticipantId(author), ParticipantId(whom), choice)
            case ("speak", str() as who):
                group.speak(ParticipantId(who))
            case ("arrive", int() as number, str() as how):
                group.arrive(number, is_lost=how == "l", is_doubled=how == "d")
            case ("lie", str() as whom, int() as choice):
                group.lie(ParticipantId(whom), choice)
            case ("ask", str() as who):
                group.ask(ParticipantId(who))
            case _:
                raise AssertionError(step)
    group.deliver_all()
    states = [member.state for member in group.honest]
    assert all(state == states[0] for state in states)
    void = [
        void_messages(state.last_messages, state.roles.keys(), member.read.values())
        for state, member in zip(states, group.honest, strict=True)
    ]
    assert all(one == void[0] for one in void)
    # Whoever is a member can write, and is read by all honest members.
    for member in group.honest:
        if member.name in states[0].roles:
            group.speak(member.name)
            group.deliver_all()
            for other in group.honest:
                group.ask(other.name)
    left = [member for member in group.honest if member.name in member.state.roles]
    sent_in = {
        step_to_send(
            member.state.epochs,
            members=member.state.roles.keys(),
            own_id=member.name,
            held=member.held,
        )
        for member in left
    }
    assert len(sent_in) == 1
    (last,) = sent_in
    assert isinstance(last, SendIn)
    assert all(last.epoch.commitment in member.held for member in left)
