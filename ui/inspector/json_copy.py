"""An inspection as JSON, for a report: all but what people wrote.

The names of fields are those of ``engine.inspection_views``; times are Unix milliseconds.
"""

import msgspec
from msgspec import structs

from engine.inspection_views import MessageInspection


def as_json(found: MessageInspection) -> str:
    """Without the message's text, its file, quote and reactions."""
    fields = structs.asdict(found)
    message = fields.pop("message")
    if message is not None:
        fields["row"] = {
            "position": message.position,
            "kind": message.kind,
            "sent_ms": message.sent_ms,
            "waiting": message.waiting,
            "late": message.late,
            "edited_ms": message.edited_ms,
            "retracted": message.retracted,
            "delivery": message.delivery,
        }
    return msgspec.json.format(msgspec.json.encode(fields), indent=2).decode()
