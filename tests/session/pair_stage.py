"""Two people one to one without a network: sessions, stores, and what each of them sends."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from random import Random

from msgspec.structs import replace

from engine.core.agreement import Agreement
from engine.core.content import Text
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.ids import ConversationId, DeliveryState, InstanceId, UnixMs, WakuHash
from engine.core.mvds.config import MvdsConfig
from engine.core.ports import ProfileStore, PutContact, RemoveGroup, SaveValue
from engine.core.records import ContactRecord
from engine.core.sds.inputs import DeadlineReached
from engine.core.sds.vocabulary import AskStore
from engine.core.stored import StoredMessage
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.crypto.links import parse_contact_link
from engine.crypto.pair import KeysPart, open_from_anybody
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.runtime.request_inbox import request_in
from engine.session.inputs import AcceptContact, AskToTalk, MessageArrived, Say
from engine.session.loading import read
from engine.session.pair.factory import PAIR_CONFIG, PairFactory
from engine.session.pair.saved import KeptAgreement, OwnProfile, agreement_key
from engine.session.pair.session import PairSession
from engine.session.transitions import Note, Publish, SessionTransition
from engine.sim.session_participant import seeded_bytes

NOW = UnixMs(1_800_000_000_000)
HASH = WakuHash(bytes(32))


class PairPerson:
    """One profile and its conversation with one other; ``reopen`` finds what was written."""

    def __init__(
        self,
        name: str,
        *,
        reopen: Callable[[], ProfileStore] | None = None,
        config: MvdsConfig = PAIR_CONFIG,
        olm: bool = True,
    ) -> None:
        """``olm``: False for a program of before, which does not know it."""
        memory = SqliteProfileStore.in_memory()
        self.reopen = reopen or (lambda: memory)
        self.name = name
        self.now_ms = NOW
        self.online = True
        self.announces = True
        self.config = config
        self.olm = olm
        self.random_bytes = seeded_bytes(3, name)
        self.identity = Identity.generate(self.random_bytes)
        self.instance_id = InstanceId(sha256(name.encode()).digest()[:16])
        self.counters = Counters()
        self.strangers_keys: tuple[WakuMessage, ...] = ()
        self.notes: list[Note] = []
        self.store = self.reopen()
        self.book = self._book()
        self.contact: ContactRecord | None = None
        self._session: PairSession | None = None

    def _book(self) -> PairFactory:
        return PairFactory(
            store=self.store,
            identity=self.identity,
            instance_id=self.instance_id,
            own=OwnProfile(name=self.name),
            entropy=Entropy(random_bytes=self.random_bytes, random_unit=Random(1).random),
            counters=self.counters,
            now_ms=lambda: self.now_ms,
            online=lambda: self.online,
            config=self.config,
            announces=lambda: self.announces,
            olm=self.olm,
        )

    @property
    def session(self) -> PairSession:
        assert self._session is not None
        return self._session

    @property
    def knows_the_other(self) -> bool:
        return self._session is not None

    @property
    def conversation_id(self) -> ConversationId:
        assert self.contact is not None
        return self.contact.conversation_id

    # --- life ---------------------------------------------------------------------------------

    def link(self) -> str:
        return self.book.contact_link(())

    def ask(self, link: str) -> list[WakuMessage]:
        self._begin(self.book.asked(parse_contact_link(link, now_ms=self.now_ms)))
        return self.perform(self.session.handle(AskToTalk(), now_ms=self.now_ms))

    def _begin(self, contact: ContactRecord) -> None:
        self.store.apply(self.book.beginning(contact))
        self.contact = contact
        self._session = self.book.load(contact)

    def note(self, request: WakuMessage) -> None:
        """Know that a stranger asks, and not yet in which statement, as after a crash."""
        opened = open_from_anybody(self.identity, request.payload)
        self._begin(self.book.asking(opened, request_in(self.identity, opened)))

    def remove(self) -> None:
        assert self.contact is not None
        writes = (
            RemoveGroup(conversation_id=self.conversation_id),
            *self.book.ending(self.contact),
        )
        self.store.apply(writes)
        self.contact = self._session = None

    def restart(self) -> None:
        """The process died; only what was written is left."""
        self.store = self.reopen()
        self.book = self._book()
        (self.contact,) = self.store.contacts()
        self._session = self.book.load(self.contact)

    def believe(self, agreement: Agreement) -> None:
        """As if this were what the two had said to each other last."""
        assert self.contact is not None
        self.contact = replace(self.contact, state=agreement.state)
        kept = KeptAgreement(
            round=agreement.round,
            peer_instance=agreement.peer_instance,
            passed_over=agreement.passed_over,
        )
        text = SaveValue(key=agreement_key(self.contact), value=kept.text())
        self.store.apply([PutContact(contact=self.contact), text])
        self.restart()

    def perform(self, transition: SessionTransition) -> list[WakuMessage]:
        """Write, then give back what goes out; what has to be read first is read."""
        self.store.apply(transition.writes)
        self.notes += transition.notes
        out: list[WakuMessage] = []
        for send in transition.sends:
            if isinstance(send, Publish):
                out.append(send.message)
                continue
            assert not isinstance(send, AskStore), "a pair has no dependencies to ask Stores for"
            loaded = read(self.store, self.conversation_id, send)
            if loaded is not None:
                out += self.perform(self.session.handle(loaded, now_ms=self.now_ms))
        return out

    # --- doing --------------------------------------------------------------------------------

    def say(self, text: str) -> list[WakuMessage]:
        return self.perform(self.saying(text))

    def saying(self, text: str) -> SessionTransition:
        return self.session.handle(Say(Text(text=text)), now_ms=self.now_ms)

    def hear(self, *messages: WakuMessage) -> list[WakuMessage]:
        out: list[WakuMessage] = []
        for message in messages:
            if self._session is None:
                opened = open_from_anybody(self.identity, message.payload)
                if isinstance(opened.body, KeysPart):
                    self.strangers_keys = (message,)
                    continue
                self.note(message)
                out += self.hear(message, *self.strangers_keys)
                self.strangers_keys = ()
                continue
            out += self.perform(
                self.session.handle(MessageArrived(message, HASH), now_ms=self.now_ms)
            )
        return out

    def advance(self, by_ms: int = 0) -> list[WakuMessage]:
        self.now_ms = UnixMs(self.now_ms + by_ms)
        return self.perform(self.advancing())

    def advancing(self) -> SessionTransition:
        return self.session.handle(DeadlineReached(), now_ms=self.now_ms)

    # --- looking ------------------------------------------------------------------------------

    def rows(self) -> list[StoredMessage]:
        return list(self.store.latest_page(self.conversation_id, limit=5_000).messages)

    def texts(self, *, waiting: bool = False) -> list[str]:
        return [
            row.record.text
            for row in self.rows()
            if row.record.kind == "text" and row.record.waiting == waiting
        ]

    def delivery(self, text: str) -> DeliveryState | None:
        (row,) = (row for row in self.rows() if row.record.text == text)
        return row.delivery.state if row.delivery else None


def exchange(one: PairPerson, other: PairPerson, sent: Sequence[WakuMessage]) -> None:
    """Everything arrives, and so does what each says to it, until nobody has to say anything."""
    waiting = list(sent)
    receiver, sender = other, one
    while waiting:
        waiting = receiver.hear(*waiting)
        receiver, sender = sender, receiver


def live(one: PairPerson, other: PairPerson, seconds: int) -> None:
    """Let the time pass for both, without loss."""
    for _ in range(seconds):
        for person, peer in ((one, other), (other, one)):
            exchange(person, peer, person.advance(by_ms=1_000))


def friends(*, olm: bool = True) -> tuple[PairPerson, PairPerson]:
    """Alice asked, Bob accepted, and both know."""
    alice, bob = PairPerson("Alice", olm=olm), PairPerson("Bob", olm=olm)
    exchange(alice, bob, alice.ask(bob.link()))
    exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=NOW)))
    for person, peer in ((alice, bob), (bob, alice)):
        exchange(person, peer, person.advance())
    return alice, bob


def with_payload(message: WakuMessage, payload: bytes) -> WakuMessage:
    return replace(message, payload=payload)
