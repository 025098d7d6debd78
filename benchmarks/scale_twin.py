"""What the other member of a profile's group says next: ``… scale_twin DIR GROUP N OUT``.

He knows what the profile's owner knows, for he reads her log; his key is made as ``scale_profile``
made it.  So his messages name what a member would name who has heard everything.  N texts since her
newest message, spread over the time until now, are written to a file.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from benchmarks.scale_profile import Clock, Member
from chat_app.compose import open_store, system_entropy, unix_now_ms
from engine.codec.waku import decode_waku_message, encode_waku_message
from engine.core.content import Text
from engine.core.counters import Counters
from engine.core.ids import ConversationId, InstanceId, UnixMs
from engine.core.ports import ProfileStore
from engine.core.records import GroupRecord
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.persistence.profile_directory import open_profile_directory
from engine.session.contract import Session
from engine.session.group.factory import GroupFactory
from engine.session.inputs import Say
from engine.session.transitions import Publish

NAME: Final = "Max"
LENGTH_BYTES: Final = 4
OTHER_DEVICE: Final = InstanceId(bytes(16))
"""Else he would use his numbers a second time, which is a fork."""
AGO_MS: Final = 5_000
"""The last one was said this long ago."""


def said_next(store: ProfileStore, group: GroupRecord, count: int) -> Iterator[WakuMessage]:
    """Writes nothing to ``store``."""
    newest = store.latest_page(group.conversation_id, limit=1).messages[-1].record.sent_ms
    now_ms = time.time_ns() // 1_000_000 - AGO_MS
    step_ms = (now_ms - newest) // (count + 1)
    clock = Clock(newest)
    book = Member(NAME, clock, store).book
    book.profile = replace(book.profile, instance_id=OTHER_DEVICE)
    session = book.load(group)
    for number in range(count):
        clock.now_ms = UnixMs(clock.now_ms + step_ms)
        told = session.handle(Say(Text(text=f"next {number}")), now_ms=clock.now_ms)
        yield from (send.message for send in told.sends if isinstance(send, Publish))


def group_of(store: ProfileStore, conversation_id: str) -> GroupRecord:
    return next(each for each in store.groups() if each.conversation_id == conversation_id)


def load_session(store: ProfileStore, conversation_id: str) -> Session:
    """A group's session, with its log."""
    profile = store.profile()
    if profile is None:
        raise ValueError("nobody's profile")
    factory = GroupFactory(
        store=store,
        identity=Identity(signing_key=profile.signing_key, encryption_key=profile.encryption_key),
        profile=profile,
        entropy=system_entropy(),
        counters=Counters(),
        now_ms=unix_now_ms,
        online=lambda: True,
    )
    return factory.load(group_of(store, conversation_id))


def read_messages(path: Path) -> Sequence[WakuMessage]:
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        end = at + LENGTH_BYTES + int.from_bytes(data[at : at + LENGTH_BYTES])
        found.append(decode_waku_message(data[at + LENGTH_BYTES : end]))
        at = end
    return found


def write_messages(path: Path, messages: Iterator[WakuMessage]) -> None:
    with path.open("wb") as file:
        for message in messages:
            encoded = encode_waku_message(message)
            file.write(len(encoded).to_bytes(LENGTH_BYTES) + encoded)


def main(place: Path, group: ConversationId, count: int, out: Path) -> None:
    store = open_store(open_profile_directory(place), force_key_file=True).store
    write_messages(out, said_next(store, group_of(store, group), count))
    store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), ConversationId(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
