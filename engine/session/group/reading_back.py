"""What a group's session does with messages of its log that it asked the store for.

They are shown after all, sent to somebody who lacks them, or said again.  Memory has no content of
what is in the log, so each of these takes a look at the disk (``engine.session.loading``).
"""

from msgspec import Struct
from msgspec.structs import replace

from engine.core.content import Body
from engine.core.ids import MessageId, UnixMs
from engine.core.sds.channel import SdsChannel
from engine.session.group.outbox import GroupOutbox
from engine.session.group.own_messages import OwnMessages
from engine.session.group.projector import GroupProjector
from engine.session.group.wire import GroupWire
from engine.session.transitions import (
    LoadForRepair,
    LoadToSayAgain,
    LoadToShow,
    RawLoaded,
    TransitionBuilder,
)


class ToSayAgain(Struct, frozen=True):
    body: Body
    replaces: MessageId


class ReadingBack:
    def __init__(
        self,
        channel: SdsChannel,
        wire: GroupWire,
        projector: GroupProjector,
        outbox: GroupOutbox,
        own: OwnMessages,
    ) -> None:
        self._channel = channel
        self._wire = wire
        self._projector = projector
        self._outbox = outbox
        self._own = own

    def take(
        self, loaded: RawLoaded, builder: TransitionBuilder, *, now_ms: UnixMs, may_speak: bool
    ) -> ToSayAgain | None:
        """Returns what is to be said now; nothing is sent unless we ``may_speak``."""
        match loaded.load:
            case LoadToShow(position=position):
                message = self._wire.reopen(loaded.raw, None).message
                self._projector.show_again(message, position, builder, now_ms=now_ms)
            case LoadForRepair(message_id=message_id) if may_speak:
                repair = self._outbox.repair(message_id, loaded.raw, now_ms=now_ms)
                if repair is not None:
                    builder.sends.append(replace(repair, repairs=message_id))
            case LoadToSayAgain(message_id=message_id) if may_speak:
                # Sent when our clock was ahead, and perhaps replaced since.
                if self._channel.has_logged(message_id):
                    body = self._own.to_say_again(self._wire.body_of(loaded.raw))
                    return ToSayAgain(body, message_id)
            case _:
                pass
        return None
