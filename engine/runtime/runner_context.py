"""What all runners of a profile share: disk, network, clock and event sink."""

from collections.abc import Callable

from msgspec import Struct, field

from engine.core.counters import Counters
from engine.core.ids import ConversationId, ParticipantId
from engine.core.ports import ProfileStore
from engine.core.sds.vocabulary import AskStore
from engine.events import EngineEvent
from engine.network.transport import Transport
from engine.persistence.storage_thread import StorageThread
from engine.runtime.fault_bench import FaultBench
from engine.runtime.files.book import FileBook
from engine.runtime.inspection.copies import CopyNotes
from engine.runtime.inspection.live import Taps
from engine.runtime.load_order import LoadOrder
from engine.runtime.own_clock import OwnClock
from engine.runtime.recorded_queries import Recording
from engine.session.transitions import EchoHeard


class RunnerContext(Struct, frozen=True, kw_only=True):
    """Dependencies that all runners of a profile share."""

    store: ProfileStore
    storage: StorageThread
    transport: Transport
    own_id: ParticipantId
    clock: OwnClock
    publish: Callable[[EngineEvent], None]
    counters: Counters
    copies: CopyNotes
    """Which copies were handed to the network, for whoever looks into a message."""
    faults: FaultBench | None = None
    """Makes the network bad on purpose; None: it cannot be made so."""
    taps: Taps = field(default_factory=Taps)
    """What passes in the conversations that somebody watches."""
    load_order: LoadOrder = field(default_factory=LoadOrder)
    stores_reachable: Callable[[], bool] = lambda: False
    """Whether any Store can be asked."""
    ask_store: Callable[[ConversationId, AskStore], None] = lambda _conversation, _ask: None
    """Starts a Store request.  Returns immediately; the messages are fed later."""
    hear_echo: Callable[[EchoHeard, str], None] = lambda _heard, _name: None
    """Receives clock echoes, with the member's name."""
    mentions_when_muted: Callable[[], bool] = lambda: True
    """Whether a message that mentions us rings in a muted conversation, too."""
    tell_governance: Callable[[ConversationId], None] = lambda _conversation: None
    """Publishes what is in force in a governed group; ignored for any other conversation."""
    files: FileBook = field(default_factory=FileBook)
    """How far the files are that travel apart from their messages."""
    recording: Recording = field(default_factory=Recording)
    """Whether the user records deliveries."""
