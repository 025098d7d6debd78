"""The text of a ``causerie:`` link: a prefix, then base64url of a 4-byte checksum and the content.

The checksum distinguishes a damaged link from one that was never ours or is of a newer version.  It
protects only against accidents, since anyone who can change a link can make another.  Reading is
strict about content and lenient about what mail programs add: spaces, line breaks, angle brackets.
Every refusal has a code.  ``engine.codec.invite`` and ``engine.codec.contact_link`` define the
content.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, MutableSequence, Sequence
from hashlib import sha256

from msgspec import Struct

from engine.codec.tuples import tuple_bytes
from engine.core.errors import InviteError, LinkFlaw, LinkKind
from engine.core.invite import (
    MAX_LINK_CHARACTERS,
    MAX_NODE_ADDRESS_CHARACTERS,
    MAX_NODE_ADDRESSES,
    MAX_SERVICE_NODES,
)

MAX_PASTED_CHARACTERS = 16 * 1024
_CHECKSUM_BYTES = 4
_ADDRESS = re.compile(r"/[A-Za-z0-9./:_%+=-]+", re.ASCII)
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_AROUND = "<>()[]\"'`.,;:!?="
_INVISIBLE = str.maketrans(dict.fromkeys("\u200b\u00ad\u2060\ufeff"))


class LinkForm(Struct, frozen=True, kw_only=True):
    """One kind of link."""

    kind: LinkKind
    prefix: str
    domain: str
    """The checksum's domain."""
    other_prefixes: tuple[str, ...]
    """Those of the kinds that are mistaken for this one."""

    def write(self, encoded: bytes) -> str:
        """The link, of any length."""
        return f"{self.prefix}{_base64url(self._checksum(encoded) + encoded)}"

    def read(self, text: str) -> bytes:
        """The content, never empty.  Raises InviteError."""
        return self._unpack(self._packed_in(text))

    def _packed_in(self, text: str) -> str:
        """The base64url text after the prefix, without a mail program's additions."""
        if len(text) > MAX_PASTED_CHARACTERS:
            raise self._error(LinkFlaw.FAR_TOO_LONG)
        compact = "".join(text.translate(_INVISIBLE).split()).strip(_AROUND)
        if not compact:
            raise self._error(LinkFlaw.EMPTY)
        lowered = compact[: len(self.prefix)].lower()
        if lowered != self.prefix:
            raise self._error(self._about_foreign(compact.lower()))
        if len(compact) > MAX_LINK_CHARACTERS:
            raise self._error(LinkFlaw.TOO_LONG)
        return compact[len(self.prefix) :]

    def _about_foreign(self, compact: str) -> LinkFlaw:
        if self.prefix.startswith(compact):
            return LinkFlaw.CUT_OFF
        is_other = compact.startswith(self.other_prefixes)
        return LinkFlaw.OTHER_KIND if is_other else LinkFlaw.FOREIGN

    def _error(self, flaw: LinkFlaw) -> InviteError:
        return InviteError(flaw, self.kind)

    def _unpack(self, packed: str) -> bytes:
        changed = self._error(LinkFlaw.CHANGED)
        if not _BASE64URL.fullmatch(packed):
            raise changed
        try:
            unpacked = urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        except ValueError as error:
            raise changed from error
        if _base64url(unpacked) != packed:  # Unused bits are set.
            raise changed
        checksum, encoded = unpacked[:_CHECKSUM_BYTES], unpacked[_CHECKSUM_BYTES:]
        if not encoded or checksum != self._checksum(encoded):
            raise changed
        return encoded

    def _checksum(self, encoded: bytes) -> bytes:
        return sha256(tuple_bytes(self.domain, encoded)).digest()[:_CHECKSUM_BYTES]


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def is_address(text: str) -> bool:
    """Whether it could be a multiaddr, by length and characters only."""
    return len(text) <= MAX_NODE_ADDRESS_CHARACTERS and _ADDRESS.fullmatch(text) is not None


def is_service_node(address: str) -> bool:
    """It must contain the peer id, or any node could answer in its place."""
    return is_address(address) and "/p2p/" in address


def fill_addresses(
    service_nodes: MutableSequence[str],
    node_addresses: MutableSequence[str],
    *,
    nodes: Iterable[str],
    addresses: Iterable[str],
    link: Callable[[], str],
) -> None:
    """Append what is usable of ``nodes`` and ``addresses``, as long as ``link()`` has room.

    Service nodes first: members who cannot be dialled are found only through them.
    """
    for part, wanted, max_count in (
        (service_nodes, filter(is_service_node, nodes), MAX_SERVICE_NODES),
        (node_addresses, filter(is_address, addresses), MAX_NODE_ADDRESSES),
    ):
        for address in dict.fromkeys(wanted):
            if len(part) == max_count:
                break
            part.append(address)
            if len(link()) > MAX_LINK_CHARACTERS:
                part.pop()


def check_addresses(kind: LinkKind, nodes: Sequence[str], addresses: Sequence[str]) -> None:
    """Raises InviteError."""
    if len(addresses) > MAX_NODE_ADDRESSES or not all(map(is_address, addresses)):
        raise InviteError(LinkFlaw.BAD_ADDRESS, kind)
    if len(nodes) > MAX_SERVICE_NODES or not all(map(is_service_node, nodes)):
        raise InviteError(LinkFlaw.BAD_SERVICE_NODE, kind)
