"""Refuses encodings of a Protocol Buffer other than the canonical one.

A parser accepts fields in any order, repeated fields, longer varints, and unknown fields; a
signature or a seal over the meaning covers none of that.  A peer that forwards a message could
therefore add to it, and a copy could always look new.  Decoders compare with ``one_form``.
"""

from google.protobuf.message import Message


def one_form(wire: Message) -> bytes:
    """The canonical encoding: known fields only, ascending, each once, defaults left out.

    Removes the unknown fields from ``wire``.
    """
    wire.DiscardUnknownFields()
    return wire.SerializeToString(deterministic=True)
