"""What there is of a profile once it has an identity: groups, people, pages, an inbox."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.core.ports import ProfileRecord
from engine.core.sds.config import FloodLimits
from engine.crypto.identity import Identity
from engine.runtime.conversations import Conversations
from engine.runtime.groups import Groups
from engine.runtime.history.history import History
from engine.runtime.pages import Pages
from engine.runtime.people import People
from engine.runtime.request_inbox import RequestInbox
from engine.runtime.surroundings import Surroundings
from engine.session.chance import Chance
from engine.session.groups import GroupBook
from engine.session.pair_seed import OwnProfile
from engine.session.people import PAIR_CONFIG, ContactBook


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Whose it is; ``picture`` is b"" if there is none."""

    identity: Identity
    profile: ProfileRecord
    picture: bytes
    chance: Chance
    online: Callable[[], bool]
    service_nodes: Callable[[], Sequence[str]] = tuple
    flood: FloodLimits = field(default_factory=FloodLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    groups: Groups
    people: People
    pages: Pages
    inbox: RequestInbox
    around: Surroundings

    async def load(self, history: History | None = None) -> None:
        """Bring up every conversation, and listen to those who ask for one."""
        around = self.around
        for group in await around.storage.run(around.store.groups):
            self.groups.bring_up(group)
        for contact in await around.storage.run(around.store.contacts):
            self.people.bring_up(contact)
        inbox_topic = self.people.book.inbox_topic
        around.transport.subscribe(inbox_topic, self.inbox.on_message)
        if history is not None:
            history.begin_inbox(self.inbox, inbox_topic)

    def change_profile(self, profile: ProfileRecord, picture: bytes) -> None:
        """From now on, and in the groups that are joined already."""
        self.people.book.own = OwnProfile(name=profile.name, picture=picture)
        self.groups.book.profile = profile
        self.groups.tell_name()


def make_up(begin: Beginning, conversations: Conversations, around: Surroundings) -> Up:
    groups = GroupBook(
        store=around.store,
        identity=begin.identity,
        profile=begin.profile,
        chance=begin.chance,
        counters=around.counters,
        now_ms=around.clock.steady_ms,
        clock_offset_ms=around.clock.offset_ms,
        online=begin.online,
        service_nodes=begin.service_nodes,
        flood=begin.flood,
    )
    contacts = ContactBook(
        store=around.store,
        identity=begin.identity,
        instance_id=begin.profile.instance_id,
        own=OwnProfile(name=begin.profile.name, picture=begin.picture),
        chance=begin.chance,
        counters=around.counters,
        now_ms=around.clock.steady_ms,
        clock_offset_ms=around.clock.offset_ms,
        online=begin.online,
        config=PAIR_CONFIG,
        contacts=lambda: len(conversations.pairs()),
    )
    people = People(contacts, conversations, around)
    return Up(
        groups=Groups(groups, conversations, around),
        people=people,
        pages=Pages(around.store, around.storage, conversations, own_id=around.own_id),
        inbox=RequestInbox(people, begin.identity, around.counters),
        around=around,
    )
