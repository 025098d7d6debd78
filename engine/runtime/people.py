"""Implements the commands about people of ``engine.api``, and handles requests of strangers.

It starts and ends one-to-one conversations.  The agreement between two people is handled in their
session.
"""

import logging
from collections.abc import Sequence

from engine.answers import ContactPreview
from engine.core.contacts import ContactLink, ContactState
from engine.core.content import ContactRequest
from engine.core.errors import (
    ChatError,
    CommandError,
    CommandRefusal,
    InviteError,
    LinkFlaw,
    LinkKind,
    LocalProtocolError,
)
from engine.core.ids import (
    ConversationId,
    DeliveryState,
    MessageId,
    ParticipantId,
    WakuHash,
)
from engine.core.ports import PutNodeAddress, RemoveGroup, SaveValue, StoreWrite
from engine.core.records import ContactRecord, MemberRecord
from engine.core.sds.inputs import ResendRequested
from engine.core.sds.log_table import LogTable
from engine.core.stored import Listed
from engine.core.waku import WakuMessage
from engine.crypto.identity import fingerprint_of, participant_id_of
from engine.crypto.links import parse_contact_link
from engine.crypto.pair import OpenedPair
from engine.events import ConversationAdded, ConversationRemoved
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.conversations import Conversations
from engine.runtime.input_checks import usable_name
from engine.runtime.maintenance import Maintenance
from engine.runtime.runner_context import RunnerContext
from engine.runtime.views import Members
from engine.session.contract import ConversationRecord
from engine.session.inputs import (
    AcceptContact,
    AskToTalk,
    DeclineContact,
    MessageArrived,
    ProfileChanged,
    SetBlocked,
    SetLocalName,
    WithdrawRequest,
)
from engine.session.pair.factory import PairFactory
from engine.session.pair.session import PairSession

MAX_OPEN_REQUESTS = 50
"""Maximum number of unanswered requests to us."""
MAX_OPEN_OF_STRANGERS = 30
"""Of those, from people with whom we share no group.  Keys are free, so all count as one source."""
MAX_OPEN_OF_A_GROUP = 10
"""Of those, from members of one group: anyone with its link can join many times."""
UNTOLD_KEY = "profile.untold"
"""Set while some contacts may not have received our newest name and picture."""
VERIFIED_KEY = "people.verified"
"""Ids of people whose key the user compared, with spaces between."""

logger = logging.getLogger(__name__)


def _contact(record: ConversationRecord) -> ContactRecord:
    if not isinstance(record, ContactRecord):
        raise LocalProtocolError("not a contact")
    return record


def _is_in(members: Members, who: ParticipantId) -> bool:
    """Whether they are in the group now: who was removed or left is a stranger again."""
    member = members.get(who)
    return member is not None and member.left_ms is None


class People:
    """``engine.api.People``, and what requests to talk and a new profile need."""

    def __init__(
        self,
        book: PairFactory,
        conversations: Conversations,
        context: RunnerContext,
        maintenance: Maintenance,
    ) -> None:
        self._maintenance = maintenance
        self._book = book
        self._conversations = conversations
        self._context = context
        self._loaded: set[ConversationId] = set()
        self._verified: frozenset[ParticipantId] = frozenset()

    @property
    def book(self) -> PairFactory:
        return self._book

    def bring_up(self, contact: ContactRecord, listed: Listed | None = None) -> ConversationRunner:
        """``listed``: what the store says of the conversation, if that was read already."""
        runner = ConversationRunner(
            contact, load=self._load, people=self._both, context=self._context, listed=listed
        )
        topic = self._book.content_topic(contact)
        self._conversations.run_pair(runner, topic, self._context.transport)
        return runner

    def _both(self, record: ConversationRecord, _members: Sequence[MemberRecord]) -> Members:
        return self._book.people(_contact(record))

    def _load(self, record: ConversationRecord, _log: LogTable) -> PairSession:
        """Load a session.  After a failure, the record is read from the disk again first."""
        record = _contact(record)
        if record.conversation_id in self._loaded:
            record = self._book.read_again(record)
        self._loaded.add(record.conversation_id)
        return self._book.load(record)

    # --- links --------------------------------------------------------------------------------

    async def make_contact_link(self) -> str:
        return self._book.contact_link(self._context.transport.addresses())

    def preview_contact(self, link: str) -> ContactPreview:
        said = self._parse(link)
        conversation_id = self._book.conversation_id(said.public_key)
        contact = self._contact(conversation_id)
        return ContactPreview(
            conversation_id=conversation_id,
            participant_id=participant_id_of(said.public_key),
            name=said.name,
            fingerprint=fingerprint_of(said.public_key),
            node_addresses=said.node_addresses,
            known=contact.state if contact else None,
        )

    def _parse(self, link: str) -> ContactLink:
        said = parse_contact_link(link, now_ms=self._context.clock.clock_ms())
        if said.public_key == self._book.identity.public_key:
            raise InviteError(LinkFlaw.OWN, LinkKind.CONTACT)
        return said

    def _contact(self, conversation_id: ConversationId) -> ContactRecord | None:
        if conversation_id not in self._conversations:
            return None
        record = self._conversations.pair(conversation_id).record
        return record if isinstance(record, ContactRecord) else None

    # --- commands -----------------------------------------------------------------------------

    async def add(self, link: str) -> ConversationId:
        said = self._parse(link)
        conversation_id = self._book.conversation_id(said.public_key)
        async with self._conversations.turn:
            known = self._contact(conversation_id)
            if known is not None and known.state is ContactState.BLOCKED:
                name = known.local_name or known.name
                raise InviteError(LinkFlaw.BLOCKED, LinkKind.CONTACT, name=name)
            self._context.transport.add_peers(said.node_addresses)
            if known is None:
                await self._begin(self._book.asked(said), said.node_addresses)
            else:
                await self._conversations.pair(conversation_id).do(AskToTalk())
        return conversation_id

    async def ask_member(
        self, group_id: ConversationId, participant_id: ParticipantId
    ) -> ConversationId:
        runner = self._conversations.group(group_id)
        await runner.shown()
        async with self._conversations.turn:
            member = self._other_member(runner, participant_id)
            conversation_id = self._book.conversation_id(member.public_key)
            known = self._contact(conversation_id)
            if known is None:
                self._require_askable(runner.members, member)
                await self._begin(self._book.asked_member(member))
            elif known.state is ContactState.ASKING:
                await self._conversations.pair(conversation_id).do(AskToTalk())
        return conversation_id

    def _other_member(self, runner: ConversationRunner, who: ParticipantId) -> MemberRecord:
        """Somebody who is, or was, in the group with us.  Raises CommandError."""
        if not runner.members:
            raise CommandError(CommandRefusal.STILL_LOADING)
        member = runner.members.get(who)
        if member is None or who == self._context.own_id:
            raise CommandError(CommandRefusal.NO_MEMBER)
        return member

    def _require_askable(self, members: Members, member: MemberRecord) -> None:
        """Both are in the group now, and there is a key to seal the request for them."""
        if not _is_in(members, self._context.own_id):
            raise CommandError(CommandRefusal.NOT_IN_GROUP)
        if not _is_in(members, member.participant_id):
            raise CommandError(CommandRefusal.LEFT_GROUP)
        if not member.encryption_key:
            raise CommandError(CommandRefusal.KEYS_NOT_HERE)

    async def _begin(self, contact: ContactRecord, node_addresses: Sequence[str] = ()) -> None:
        seen_ms = self._context.clock.clock_ms()
        addresses = (
            PutNodeAddress(multiaddr=address, seen_ms=seen_ms) for address in node_addresses
        )
        await self._apply(*self._book.beginning(contact), *addresses)
        await self._bring_up_with(contact, AskToTalk())

    async def accept(self, conversation_id: ConversationId) -> None:
        await self._conversations.pair(conversation_id).do(AcceptContact())

    async def decline(self, conversation_id: ConversationId) -> None:
        await self._conversations.pair(conversation_id).do(DeclineContact())

    async def withdraw(self, conversation_id: ConversationId) -> None:
        await self._conversations.pair(conversation_id).do(WithdrawRequest())

    async def set_blocked(self, conversation_id: ConversationId, *, blocked: bool) -> None:
        await self._conversations.pair(conversation_id).do(SetBlocked(blocked=blocked))

    async def rename(self, conversation_id: ConversationId, name: str) -> None:
        usable = usable_name(name) if name.strip() else ""
        await self._conversations.pair(conversation_id).do(SetLocalName(usable))

    async def load_verified(self) -> None:
        stored = await self._context.storage.run(self._context.store.value, VERIFIED_KEY)
        self._verified = frozenset(map(ParticipantId, (stored or "").split()))

    def verified(self) -> frozenset[ParticipantId]:
        return self._verified

    async def set_verified(self, participant_id: ParticipantId, *, verified: bool) -> None:
        async with self._conversations.turn:
            this = frozenset((participant_id,))
            after = self._verified | this if verified else self._verified - this
            await self._apply(SaveValue(key=VERIFIED_KEY, value=" ".join(sorted(after))))
            self._verified = after

    async def remove(self, conversation_id: ConversationId) -> None:
        async with self._conversations.turn:
            self._conversations.pair(conversation_id)
            contact = self._contact(conversation_id)
            await self._conversations.end(conversation_id)
            kept = self._book.ending(contact) if contact else ()
            await self._apply(RemoveGroup(conversation_id=conversation_id), *kept)
        self._context.publish(ConversationRemoved(conversation_id=conversation_id))
        self._maintenance.clear_removed(self._context.store)

    async def resend(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        """Send again what a message shows.  Raises LocalProtocolError unless it was given up."""
        message = await self._context.storage.run(
            self._context.store.message, conversation_id, message_id
        )
        delivery = message.delivery if message else None
        if delivery is None or delivery.state is not DeliveryState.FAILED:
            raise LocalProtocolError("this message needs no resending")
        shown_id = (message and message.shown_id) or message_id
        with self._context.copies.asking_again(conversation_id, shown_id):
            await self._conversations.pair(conversation_id).do(ResendRequested(message_id=shown_id))

    async def tell_profile(self) -> None:
        """Send our name and picture to all contacts, including those an earlier crash left out."""
        for runner in self._conversations.pairs():
            await runner.ready()
            try:
                await runner.do(ProfileChanged())
            except LocalProtocolError:
                if runner.conversation_id in self._conversations:
                    raise  # Else the contact was removed in the meantime; continue with the others.
        await self._apply(SaveValue(key=UNTOLD_KEY, value=""))

    async def tell_untold(self) -> None:
        """``tell_profile`` in the background; what fails is retried at the next start."""
        try:
            await self.tell_profile()
        except ChatError as error:
            self._context.counters.add("engine.profile_not_told")
            logger.warning("a profile was not told", extra={"error": type(error).__name__})

    # --- strangers ----------------------------------------------------------------------------

    async def asked_by(
        self, opened: OpenedPair, request: ContactRequest, message: WakuMessage, waku_hash: WakuHash
    ) -> None:
        """Take the request of a stranger."""
        async with self._conversations.turn:
            contact = self._book.asking(opened, request)
            if contact.conversation_id in self._conversations:
                self._conversations.pair(contact.conversation_id).on_message(message, waku_hash)
                return
            refusal = self._refusal(contact.participant_id)
            if refusal is not None:
                self._context.counters.add(f"inbox.{refusal}")
                return
            await self._apply(*self._book.beginning(contact))
            await self._bring_up_with(contact, MessageArrived(message, waku_hash))

    def known(self, public_key: bytes) -> ConversationRunner | None:
        conversation_id = self._book.conversation_id(public_key)
        if conversation_id not in self._conversations:
            return None
        return self._conversations.pair(conversation_id)

    def is_blocked(self, public_key: bytes) -> bool:
        contact = self._contact(self._book.conversation_id(public_key))
        return contact is not None and contact.state is ContactState.BLOCKED

    def _refusal(self, asking: ParticipantId) -> str | None:
        """Why there is no room for this request, as a counter's name.  It will be sent again."""
        waiting = self._waiting_for_an_answer()
        if len(waiting) >= MAX_OPEN_REQUESTS:
            return "too_many_requests"
        groups = [runner.members for runner in self._conversations.groups()]
        shared = [members for members in groups if _is_in(members, asking)]
        if not shared:
            strangers = sum(not any(_is_in(each, who) for each in groups) for who in waiting)
            return "too_many_of_strangers" if strangers >= MAX_OPEN_OF_STRANGERS else None
        fewest = min(sum(_is_in(members, who) for who in waiting) for members in shared)
        return "too_many_of_a_group" if fewest >= MAX_OPEN_OF_A_GROUP else None

    def _waiting_for_an_answer(self) -> list[ParticipantId]:
        records = (runner.record for runner in self._conversations.pairs())
        return [
            record.participant_id
            for record in records
            if isinstance(record, ContactRecord) and record.state is ContactState.ASKING
        ]

    # --- helpers ------------------------------------------------------------------------------

    async def _bring_up_with(
        self, contact: ContactRecord, first: AskToTalk | MessageArrived
    ) -> None:
        """Begin a conversation with ``first``.

        The window may list it before its session is loaded, and the user decide at once.  ``first``
        is asked before anything else can be, so that each decision is about it.
        """
        runner = self.bring_up(contact)
        await runner.do(first)
        self._tell_added(runner)

    def _tell_added(self, runner: ConversationRunner) -> None:
        view = runner.view()
        if view is not None:
            self._context.publish(ConversationAdded(conversation=view))

    async def _apply(self, *writes: StoreWrite) -> None:
        await self._context.storage.run(self._context.store.apply, writes)
