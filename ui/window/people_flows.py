"""Flows about people: add somebody, rename, compare, block, remove, and one's own profile."""

from datetime import timedelta

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from engine.api import ChatEngine
from engine.core.contacts import CONTACT_LINK_DAYS
from engine.core.errors import ChatError
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.events import ConversationView, MemberView
from ui.dialogs.code_reader import PictureSources
from ui.dialogs.contact import (
    RenamePerson,
    SafetyNumber,
    ask_confirm,
    block_confirm,
    cannot_ask,
    remove_confirm,
)
from ui.dialogs.person import AddPerson, OwnLink
from ui.dialogs.profile import Profile, ProfileFields
from ui.error_words import error_words
from ui.foreign_text import one_line
from ui.people import cannot_ask_words, only_opens, short_name
from ui.tasks import Tasks
from ui.times import date_words, moment
from ui.translate import tr
from ui.window.one_sheet import OneSheet
from ui.window.window_context import WindowContext


class PeopleFlows(QObject):
    open_requested = Signal(str)
    """A conversation id that should be shown now."""
    profile_changed = Signal()
    verified_changed = Signal()
    """Somebody was compared, or is not verified any more."""

    def __init__(
        self,
        engine: ChatEngine,
        tasks: Tasks,
        window: QWidget,
        one_sheet: OneSheet,
        surroundings: WindowContext,
    ) -> None:
        super().__init__(window)
        self._engine = engine
        self._tasks = tasks
        self._window = window
        self._one = one_sheet
        self._now = surroundings.now
        self._sources = PictureSources(
            choose_picture=surroundings.choose_picture, grab_screens=surroundings.grab_screens
        )

    def add_person(self) -> None:
        self.show_contact_link("")

    def show_contact_link(self, given: str) -> None:
        """Whose link it is, and the choice to ask them; "" lets one paste or read one."""
        added: list[ConversationId] = []

        async def add(link: str) -> None:
            preview = self._engine.people.preview_contact(link)
            if only_opens(preview):
                added.append(preview.conversation_id)
            else:
                added.append(await self._engine.people.add(link))

        async def flow() -> None:
            own = await self._own_link()
            preview = self._engine.people.preview_contact
            sheet = AddPerson(
                own, preview, add, self._tasks, sources=self._sources, parent=self._window
            )
            if given:
                sheet.show_link(given)
            if await self._one.ask(sheet):
                self.open_requested.emit(added[-1])

        self._one.start(tr("add a person"), flow)

    def ask_member(self, group: ConversationView, member: MemberView) -> None:
        """Whether somebody of a group wants to talk alone; or why they cannot be asked."""

        async def flow() -> None:
            if reason := cannot_ask_words(member, group):
                await self._one.ask(cannot_ask(member, reason, self._window))
            elif await self._one.ask(ask_confirm(member, self._window)):
                people = self._engine.people
                asked = await people.ask_member(group.conversation_id, member.participant_id)
                self.open_requested.emit(asked)

        self._one.start(tr("ask them to talk"), flow)

    async def _own_link(self) -> OwnLink:
        """Pasting a link works even if one's own link cannot be made."""
        try:
            link = await self._engine.people.make_contact_link()
        except ChatError as error:
            return OwnLink(
                problem=tr("Your link could not be made: {error}").format(error=error_words(error))
            )
        until = self._now() + timedelta(days=CONTACT_LINK_DAYS)
        at_ms = UnixMs(int(until.timestamp() * 1000))
        return OwnLink(link=link, expires=date_words(moment(at_ms).astimezone(self._now().tzinfo)))

    def profile(self) -> None:
        """In a sheet: for a window that has no settings page."""

        async def flow() -> None:
            identity = self._engine.identity()
            if identity is not None:
                await self._one.ask(Profile(identity, self.profile_fields(), self._window))

        self._one.start(tr("show your profile"), flow)

    def profile_fields(self) -> ProfileFields:
        async def save(name: str, picture: bytes) -> None:
            await self._engine.set_profile(name=name, picture=picture)

        choose = self._sources.choose_picture
        fields = ProfileFields(self._engine.identity, save, choose, self._tasks)
        fields.saved.connect(self.profile_changed)
        return fields

    def rename(self, conversation: ConversationView) -> None:
        contact = conversation.contact
        if contact is None:
            return

        async def rename(name: str) -> None:
            await self._engine.people.rename(conversation.conversation_id, name)

        async def flow() -> None:
            await self._one.ask(RenamePerson(contact, rename, self._tasks, self._window))

        self._one.start(tr("rename the person"), flow)

    def safety_number(self, conversation: ConversationView) -> None:
        contact = conversation.contact
        if contact is None:
            return

        async def flow() -> None:
            who = contact.participant_id
            known = who in self._engine.people.verified()
            sheet = SafetyNumber(
                short_name(conversation),
                contact.safety_number,
                contact.fingerprint,
                self._window,
                own_name=contact.name,
                is_verified=known,
            )
            if await self._one.ask(sheet):
                await self._verify(who, verified=not known)

        self._one.start(tr("show the safety number"), flow)

    def compare(
        self,
        member: MemberView | None,
        conversation: ConversationView | None,
    ) -> None:
        """By the safety number, with a contact or a member of a group who is none."""
        if conversation is not None and conversation.contact is not None:
            self.safety_number(conversation)
            return
        if member is None:
            return

        async def flow() -> None:
            name = one_line(member.name, 120) or "?"
            number = member.safety_number
            if await self._one.ask(SafetyNumber(name, number, member.fingerprint, self._window)):
                await self._verify(member.participant_id, verified=True)

        self._one.start(tr("show the safety number"), flow)

    def set_verified(self, participant_id: ParticipantId, *, verified: bool) -> None:
        async def work() -> None:
            await self._verify(participant_id, verified=verified)

        self._tasks.spawn(work, purpose=tr("remember whom you compared"))

    async def _verify(self, participant_id: ParticipantId, *, verified: bool) -> None:
        await self._engine.people.set_verified(participant_id, verified=verified)
        self.verified_changed.emit()

    def unblock(self, conversation: ConversationView) -> None:
        async def work() -> None:
            await self._engine.people.set_blocked(conversation.conversation_id, blocked=False)

        self._tasks.spawn(work, purpose=tr("unblock the person"))

    def block(self, conversation: ConversationView) -> None:
        async def flow() -> None:
            if await self._one.ask(block_confirm(conversation, self._window)):
                await self._engine.people.set_blocked(conversation.conversation_id, blocked=True)

        self._one.start(tr("block the person"), flow)

    def remove(self, conversation: ConversationView) -> None:
        async def flow() -> None:
            if await self._one.ask(remove_confirm(conversation, self._window)):
                await self._engine.people.remove(conversation.conversation_id)

        self._one.start(tr("remove the person"), flow)
