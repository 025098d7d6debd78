"""What there is of a profile once it has an identity: groups, people, pages, an inbox."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.core.ports import ProfileRecord
from engine.crypto.identity import Identity
from engine.runtime.conversations import Conversations
from engine.runtime.groups import Groups
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    groups: Groups
    people: People
    pages: Pages
    inbox: RequestInbox
    around: Surroundings

    async def load(self) -> None:
        """Bring up every conversation, and listen to those who ask for one."""
        around = self.around
        for group in await around.storage.run(around.store.groups):
            self.groups.bring_up(group)
        for contact in await around.storage.run(around.store.contacts):
            self.people.bring_up(contact)
        around.transport.subscribe(self.people.book.inbox_topic, self.inbox.on_message)

    def change_profile(self, profile: ProfileRecord, picture: bytes) -> None:
        """From now on; groups that are joined already know the name of before."""
        self.people.book.own = OwnProfile(name=profile.name, picture=picture)
        self.groups.book = replace(self.groups.book, profile=profile)


def make_up(begin: Beginning, conversations: Conversations, around: Surroundings) -> Up:
    groups = GroupBook(
        store=around.store,
        identity=begin.identity,
        profile=begin.profile,
        chance=begin.chance,
        counters=around.counters,
        now_ms=around.now_ms,
        online=begin.online,
    )
    contacts = ContactBook(
        store=around.store,
        identity=begin.identity,
        instance_id=begin.profile.instance_id,
        own=OwnProfile(name=begin.profile.name, picture=begin.picture),
        chance=begin.chance,
        counters=around.counters,
        now_ms=around.now_ms,
        online=begin.online,
        config=PAIR_CONFIG,
    )
    people = People(contacts, conversations, around)
    return Up(
        groups=Groups(groups, conversations, around),
        people=people,
        pages=Pages(around.store, around.storage, conversations, own_id=around.own_id),
        inbox=RequestInbox(people, begin.identity, around.counters),
        around=around,
    )
