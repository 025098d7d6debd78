from enum import Enum
from typing import Any

class MessageType(Enum):
    method_call = 1
    method_return = 2
    error = 3
    signal = 4

class HeaderFields(Enum):
    path = 1
    interface = 2
    member = 3
    error_name = 4
    reply_serial = 5
    destination = 6
    sender = 7
    signature = 8

class Header:
    message_type: MessageType
    serial: int
    fields: dict[HeaderFields, Any]

class Message:
    header: Header
    body: tuple[object, ...]
    def serialise(self, serial: int | None = ...) -> bytes: ...

class DBusAddress:
    def __init__(
        self, object_path: str, bus_name: str | None = ..., interface: str | None = ...
    ) -> None: ...

class MatchRule:
    def __init__(self, *, type: str | None = ..., interface: str | None = ...) -> None: ...
    def serialise(self) -> str: ...

class SizeLimitError(ValueError): ...

class Parser:
    def __init__(self) -> None: ...
    def add_data(self, data: bytes) -> None: ...
    def get_next_message(self) -> Message | None: ...

def new_method_call(
    remote_obj: DBusAddress,
    method: str,
    signature: str | None = ...,
    body: tuple[object, ...] = ...,
) -> Message: ...
def new_method_return(
    parent_msg: Message, signature: str | None = ..., body: tuple[object, ...] = ...
) -> Message: ...
def new_error(
    parent_msg: Message,
    error_name: str,
    signature: str | None = ...,
    body: tuple[object, ...] = ...,
) -> Message: ...
def new_signal(
    emitter: DBusAddress, signal: str, signature: str | None = ..., body: tuple[object, ...] = ...
) -> Message: ...
