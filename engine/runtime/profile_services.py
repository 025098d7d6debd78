"""The services of a profile that has an identity: its conversations, timeline pages and inbox."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct, field

from engine.core.entropy import Entropy
from engine.core.errors import StorageError
from engine.core.ids import ConversationId
from engine.core.mvds.config import MvdsConfig
from engine.core.ports import ProfileStore
from engine.core.records import ContactRecord, GroupRecord, OpenChannelRecord, ProfileRecord
from engine.core.sds.config import FloodLimits
from engine.core.stored import Listed
from engine.crypto.identity import Identity
from engine.runtime.conversations import Conversations
from engine.runtime.files.disk import FilesSettings
from engine.runtime.files.service import Files
from engine.runtime.governing.admitting import Admitting
from engine.runtime.governing.commands import Governing
from engine.runtime.governing.joins import Joins
from engine.runtime.governing.mail import JoiningMail
from engine.runtime.groups import Groups
from engine.runtime.history.service import HistoryService
from engine.runtime.inspection.service import Inspection
from engine.runtime.maintenance import Maintenance
from engine.runtime.open_channels import OpenChannels
from engine.runtime.people import People
from engine.runtime.request_inbox import RequestInbox
from engine.runtime.runner_context import RunnerContext
from engine.runtime.search import Search
from engine.runtime.timeline import Timeline
from engine.session.group.factory import GroupFactory
from engine.session.open.factory import OpenFactory
from engine.session.pair.factory import PAIR_CONFIG, PairFactory
from engine.session.pair.saved import OwnProfile


class ProfileStart(Struct, frozen=True, kw_only=True):
    """The services are made from this; ``picture`` is b"" if there is none."""

    identity: Identity
    profile: ProfileRecord
    picture: bytes
    entropy: Entropy
    online: Callable[[], bool]
    service_nodes: Callable[[], Sequence[str]] = tuple
    flood: FloodLimits = field(default_factory=FloodLimits)
    announces_presence: Callable[[], bool] = lambda: True
    mvds: MvdsConfig = PAIR_CONFIG
    pairs_by_olm: bool = True
    files: FilesSettings | None = None


class _SavedConversations(NamedTuple):
    groups: Sequence[GroupRecord]
    channels: Sequence[OpenChannelRecord]
    contacts: Sequence[ContactRecord]
    listed: Mapping[ConversationId, Listed]


def _read_conversations(store: ProfileStore) -> _SavedConversations:
    """On the storage thread, all at once: the window waits for the whole list."""
    groups, channels, contacts = store.groups(), store.open_channels(), store.contacts()
    ids = [each.conversation_id for each in groups]
    ids += [each.conversation_id for each in channels]
    ids += [each.conversation_id for each in contacts]
    try:
        listed = store.listed(ids)
    except StorageError:
        listed = {}  # Each reads its own, so that what is damaged of one hides no other.
    return _SavedConversations(groups, channels, contacts, listed)


class ProfileServices(Struct, frozen=True, kw_only=True):
    """The running services of one profile."""

    groups: Groups
    governing: Governing
    admitting: Admitting
    joins: Joins
    open_channels: OpenChannels
    people: People
    timeline: Timeline
    files: Files
    history: HistoryService
    search: Search
    inspection: Inspection
    inbox: RequestInbox
    context: RunnerContext

    async def load(self) -> None:
        """Start all conversations, and listen to requests to talk."""
        context = self.context
        await self.people.load_verified()
        await self.admitting.load()
        await self.joins.load()
        saved = await context.storage.run(_read_conversations, context.store)
        for group in saved.groups:
            self.groups.bring_up(group, saved.listed.get(group.conversation_id))
        for channel in saved.channels:
            self.open_channels.bring_up(channel, saved.listed.get(channel.conversation_id))
        for contact in saved.contacts:
            self.people.bring_up(contact, saved.listed.get(contact.conversation_id))
        inbox_topic = self.people.book.inbox_topic
        context.transport.subscribe(inbox_topic, self.inbox.on_message)
        self.history.begin_inbox(self.inbox, inbox_topic)

    def change_profile(self, profile: ProfileRecord, picture: bytes) -> None:
        """Use the new name and picture from now on, and announce the name in all groups."""
        self.people.book.own = OwnProfile(name=profile.name, picture=picture)
        self.groups.book.profile = profile
        self.groups.tell_name()


def make_profile_services(
    begin: ProfileStart,
    conversations: Conversations,
    context: RunnerContext,
    history: HistoryService,
    maintenance: Maintenance,
) -> ProfileServices:
    groups = _group_factory(begin, context)
    contacts = _pair_factory(begin, context, conversations)
    files = Files(
        context,
        conversations,
        book=context.files,
        settings=begin.files,
        entropy=begin.entropy,
        online=begin.online,
        is_cut_off=partial(_is_cut_off, context),
        service_nodes=begin.service_nodes,
    )
    people = People(contacts, conversations, context, maintenance)
    of_groups = Groups(groups, conversations, context, maintenance)
    mail = JoiningMail(begin.identity, context, begin.entropy.random_bytes)
    own_name = partial(_own_name, groups)
    joins = Joins(mail, context, own_name=own_name, online=begin.online, take_in=of_groups.take_in)
    of_groups.ask_to_join = joins.begin
    admitting = Admitting(mail, conversations, context, own_name=own_name)
    governing = Governing(of_groups, admitting, joins, conversations, context)
    admitting.changed = governing.tell
    of_groups.left = admitting.forget
    return ProfileServices(
        groups=of_groups,
        governing=governing,
        admitting=admitting,
        joins=joins,
        open_channels=OpenChannels(
            _open_factory(begin, context), conversations, context, maintenance
        ),
        people=people,
        timeline=Timeline(context, conversations, people, history, files.look_at),
        files=files,
        history=history,
        search=Search(context, conversations),
        inspection=Inspection(
            context,
            conversations,
            stores=history.stores,
            returned_by=history.returned_by,
            counters=partial(maintenance.all_counters, context.transport),
        ),
        inbox=RequestInbox(people, governing, begin.identity, context.counters),
        context=context,
    )


def _group_factory(begin: ProfileStart, context: RunnerContext) -> GroupFactory:
    return GroupFactory(
        store=context.store,
        identity=begin.identity,
        profile=begin.profile,
        entropy=begin.entropy,
        counters=context.counters,
        now_ms=context.clock.steady_ms,
        clock_offset_ms=context.clock.offset_ms,
        online=begin.online,
        service_nodes=begin.service_nodes,
        flood=begin.flood,
    )


def _open_factory(begin: ProfileStart, context: RunnerContext) -> OpenFactory:
    return OpenFactory(
        store=context.store,
        entropy=begin.entropy,
        counters=context.counters,
        now_ms=context.clock.steady_ms,
        clock_offset_ms=context.clock.offset_ms,
        online=begin.online,
        flood=begin.flood,
    )


def _pair_factory(
    begin: ProfileStart, context: RunnerContext, conversations: Conversations
) -> PairFactory:
    return PairFactory(
        store=context.store,
        identity=begin.identity,
        instance_id=begin.profile.instance_id,
        own=OwnProfile(name=begin.profile.name, picture=begin.picture),
        entropy=begin.entropy,
        counters=context.counters,
        now_ms=context.clock.steady_ms,
        clock_offset_ms=context.clock.offset_ms,
        online=begin.online,
        config=begin.mvds,
        contacts=lambda: len(conversations.pairs()),
        announces=begin.announces_presence,
        olm=begin.pairs_by_olm,
    )


def _own_name(groups: GroupFactory) -> str:
    return groups.profile.name


def _is_cut_off(context: RunnerContext) -> bool:
    """On purpose, from everybody."""
    return context.faults is not None and context.faults.cuts_off_everything
