"""An open channel's session over a real store, and strangers who send it what they like."""

from collections.abc import Sequence
from random import Random

from msgspec.structs import replace

from engine.codec.open_content import message_id_of_content
from engine.codec.sds import encode_message
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.ids import ChannelId, ContentTopic, MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.records import ChannelName, MessageRecord, OpenFormat, OpenPace
from engine.core.sds.config import FloodLimits
from engine.core.sds.vocabulary import HistoryEntry, Message
from engine.core.waku import WakuMessage
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import Sharding
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.session.inputs import EnvelopeArrived, MessageArrived, SessionInput
from engine.session.loading import read
from engine.session.open.factory import OpenFactory
from engine.session.open.session import OpenSession
from engine.session.transitions import Load, LoadForRepair, LoadSetAside, Publish, SessionTransition

NOW = UnixMs(1_790_000_000_000)
TOPIC = ContentTopic("/my-app/1/room/proto")
NAME = ChannelName(channel_id=ChannelId("general"), content_topic=TOPIC, cluster_id=42)


class OpenStage:
    """We are Ines; time is what the test says."""

    def __init__(
        self,
        *,
        format_: OpenFormat = OpenFormat.AUTO,
        pace: OpenPace = OpenPace.JS_WAKU,
        flood: FloodLimits | None = None,
        key: bytes = b"",
    ) -> None:
        self.now_ms = NOW
        self.store = SqliteProfileStore.in_memory()
        self.counters = Counters()
        random = Random(7)
        self._factory = OpenFactory(
            store=self.store,
            entropy=Entropy(random_bytes=random.randbytes, random_unit=random.random),
            counters=self.counters,
            now_ms=lambda: self.now_ms,
            online=lambda: True,
            flood=flood or FloodLimits(),
        )
        self.record, writes = self._factory.joined(
            replace(NAME, key=key), label="Everybody", nick="Ines", format_=format_, pace=pace
        )
        self.store.apply(writes)
        self.session = self._load()
        self.published: list[Publish] = []

    def _load(self) -> OpenSession:
        (self.record,) = self.store.open_channels()
        return self._factory.load(self.record)

    def restart(self) -> None:
        self.session = self._load()

    def handle(self, input_: SessionInput) -> SessionTransition:
        """Writes first, then sends, like the runner; what is loaded is handed back."""
        transition = self.session.handle(input_, now_ms=self.now_ms)
        self.store.apply(transition.writes)
        loads: list[Load] = []
        for send in transition.sends:
            if isinstance(send, Publish):
                self.published.append(send)
            elif isinstance(send, LoadForRepair | LoadSetAside):
                loads.append(send)
        for load in loads:
            loaded = read(self.store, self.record.conversation_id, load)
            if loaded is not None:
                self.handle(loaded)
        return transition

    def hear(self, payload: bytes, *, at_ns: int | None = None, version: int | None = None) -> bool:
        """Live, from the network; whether it passed the precheck."""
        at_ns = self.now_ms * 1_000_000 if at_ns is None else at_ns
        waku = waku_of(payload, at_ns=at_ns, version=version)
        envelope = self.session.precheck(*waku)
        if envelope is not None:
            self.handle(EnvelopeArrived(envelope))
        return envelope is not None

    def fetch(self, payload: bytes, *, version: int | None = None) -> None:
        """From a Store."""
        message, waku_hash = waku_of(payload, at_ns=self.now_ms * 1_000_000, version=version)
        self.handle(MessageArrived(message, waku_hash, stored=True))

    def rows(self) -> list[MessageRecord]:
        page = self.store.latest_page(self.record.conversation_id, limit=1_000)
        return [stored.record for stored in page.messages]

    def texts(self) -> list[str]:
        return [row.text for row in self.rows()]


def waku_of(
    payload: bytes, *, at_ns: int, version: int | None = None
) -> tuple[WakuMessage, WakuHash]:
    message = WakuMessage(payload=payload, content_topic=TOPIC, timestamp_ns=at_ns, version=version)
    return message, message_hash(Sharding().pubsub_topic(TOPIC), message)


def said(  # noqa: PLR0913 - keyword-only: what a stranger may choose
    content: bytes | str,
    *after: bytes | str,
    sender: str = "Mallory",
    lamport: int = NOW,
    channel_id: str = "general",
    message_id: str | None = None,
    bloom_filter: bytes | None = None,
) -> bytes:
    """The SDS bytes of a content message."""
    data = _bytes(content)
    return encode_message(
        Message(
            sender_id=ParticipantId(sender),
            message_id=message_id_of_content(data) if message_id is None else MessageId(message_id),
            channel_id=ChannelId(channel_id),
            lamport_timestamp=lamport,
            causal_history=_history(after),
            bloom_filter=bloom_filter,
            content=data,
        )
    )


def sync(
    *after: bytes | str,
    sender: str = "Mallory",
    lamport: int = NOW,
    bloom_filter: bytes | None = None,
    requests: Sequence[bytes | str] = (),
) -> bytes:
    return encode_message(
        Message(
            sender_id=ParticipantId(sender),
            message_id=MessageId(f"sync-{sender}-{lamport}"),
            channel_id=NAME.channel_id,
            lamport_timestamp=lamport,
            causal_history=_history(after),
            bloom_filter=bloom_filter,
            repair_request=_history(requests),
        )
    )


def _history(contents: Sequence[bytes | str]) -> tuple[HistoryEntry, ...]:
    return tuple(HistoryEntry(message_id_of_content(_bytes(each)), None, None) for each in contents)


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content
