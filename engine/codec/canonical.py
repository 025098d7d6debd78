"""One form for one meaning: what else a Protocol Buffer could be written as is refused.

A parser takes fields in any order, twice, in longer varints, and fields that it does not know; a
signature or a seal over the meaning covers none of that.  So whoever passes a message on could add
to somebody else's, and a copy could look new for ever.  Whoever decodes compares with ``one_form``.
"""

from google.protobuf.message import Message


def one_form(wire: Message) -> bytes:
    """How we write what was read: known fields only, ascending, each once, defaults left out.

    Takes the unknown fields out of ``wire``.
    """
    wire.DiscardUnknownFields()
    return wire.SerializeToString(deterministic=True)
