"""Logs as tests write them: five people, and entries that know what they are told they know."""

from engine.core.admin_log.acts import Act, Add, Create, EndLink, Entry, EntryId, Left, Promote
from engine.core.admin_log.judging import Verdict
from engine.core.admin_log.log import AdminLog
from engine.core.ids import ParticipantId, UnixMs

OWNER, ANNA, BEN, CEM, DORA = (ParticipantId(name) for name in "OABCD")
PEOPLE = (OWNER, ANNA, BEN, CEM, DORA)
FIRST = EntryId("first")
LINK = b"l" * 32


def link_end(*members: ParticipantId, left: tuple[Left, ...] = ()) -> EndLink:
    return EndLink(
        name="Walks",
        members=frozenset(members),
        left=left,
        topic_name=bytes(16),
        create_signature=bytes(64),
        key_commitment=LINK,
    )


class Writing:
    """Entries as they are written; each knows all before it unless ``after`` says what."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.by(OWNER, Create(name="Walks"), name=FIRST, after=())

    def by(  # noqa: PLR0913 -- an entry has as many parts
        self,
        author: ParticipantId,
        act: Act,
        *,
        after: tuple[EntryId, ...] | None = None,
        name: EntryId | None = None,
        lamport: int | None = None,
        sent_ms: int = 0,
    ) -> EntryId:
        heads = AdminLog(FIRST, self.entries).heads if after is None else after
        known = {entry.entry_id: entry.lamport_timestamp for entry in self.entries}
        entry_id = name or EntryId(f"e{len(self.entries):03}")
        entry = Entry(
            entry_id=entry_id,
            author=author,
            lamport_timestamp=lamport or 1 + max((known[head] for head in heads), default=0),
            sent_ms=UnixMs(sent_ms),
            heads=heads,
            act=act,
        )
        self.entries.append(entry)
        return entry_id

    @property
    def base(self) -> tuple[EntryId, ...]:
        """The end of what ``begun`` wrote."""
        return (self.entries[3].entry_id,)

    @property
    def log(self) -> AdminLog:
        return AdminLog(FIRST, self.entries)

    def verdict(self, entry_id: EntryId) -> Verdict:
        return self.log.state.verdicts[entry_id]


def begun() -> Writing:
    """The owner made Anna and then Ben admins, and added Cem."""
    writing = Writing()
    for act in (Promote(member=ANNA), Promote(member=BEN), Add(member=CEM)):
        writing.by(OWNER, act)
    return writing
