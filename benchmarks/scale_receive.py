"""What receiving one message costs with this log: ``… scale_receive DIR GROUP MESSAGES``.

Checked, opened, put in its place by the session, and made durable by the store, one by one, as it
is with a message that comes alone.  Prints one line of JSON: milliseconds of processor time each.
The profile has the messages afterwards.
"""

import gc
import json
import sys
import time
from pathlib import Path
from typing import Final

from benchmarks.scale_twin import load_session, read_messages
from chat_app.compose import open_store, unix_now_ms
from engine.core.ports import PutMessage
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import Sharding
from engine.persistence.profile_directory import open_profile_directory
from engine.session.inputs import MessageArrived

WARM: Final = 50
"""The first ones are not counted."""


def receive(place: Path, conversation_id: str, messages: Path) -> dict[str, list[float]]:
    store = open_store(open_profile_directory(place), force_key_file=True).store
    session = load_session(store, conversation_id)
    gc.collect()
    gc.freeze()
    handled: list[float] = []
    durable: list[float] = []
    for message in read_messages(messages):
        topic = Sharding().pubsub_topic(message.content_topic)
        began = time.process_time()
        arrived = MessageArrived(message, message_hash(topic, message))
        told = session.handle(arrived, now_ms=unix_now_ms())
        now = time.process_time()
        store.apply(told.writes)
        handled.append(1_000 * (now - began))
        durable.append(1_000 * (time.process_time() - began))
        if not any(isinstance(write, PutMessage) for write in told.writes):
            raise ValueError("it was not shown")
    store.close()
    if session.forks():
        raise ValueError("somebody said two things with one number")
    return {"handled_ms": handled[WARM:], "durable_ms": durable[WARM:]}


if __name__ == "__main__":
    print(json.dumps(receive(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))))
