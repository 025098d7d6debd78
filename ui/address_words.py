"""Says what is wrong with an address that the user typed: a multiaddr, or a proxy's.

Without capital and full stop: the settings file's complaints and the window's sentences both use
them.
"""

from collections.abc import Callable, Mapping
from typing import Final

from engine.core.errors import AddressError, AddressFlaw, ProxyFlaw
from ui.foreign_text import one_line
from ui.translate import tr

_ADDRESS: Final[Mapping[AddressFlaw, Callable[[], str]]] = {
    AddressFlaw.TOO_LONG: lambda: tr("the address is longer than {allowed} characters"),
    AddressFlaw.NO_SLASH: lambda: tr('address "{shown}": it must start with "/", as in {allowed}'),
    AddressFlaw.TOO_MANY_PARTS: lambda: tr(
        'address "{shown}": it has too many parts ({allowed} at most)'
    ),
    AddressFlaw.BAD_KIND: lambda: tr('address "{shown}": "{part}" is not one of {allowed}'),
    AddressFlaw.ENDS_WITH_SLASH: lambda: tr('address "{shown}": it must not end in "/"'),
    AddressFlaw.NO_TCP: lambda: tr(
        'address "{shown}": "/{part}" is unsupported after the host, where /tcp/PORT is needed'
    ),
    AddressFlaw.NO_PORT: lambda: tr('address "{shown}": after the host /tcp/PORT is needed'),
    AddressFlaw.BAD_IP: lambda: tr('address "{shown}": "{part}" is no {allowed} address'),
    AddressFlaw.ZONE: lambda: tr(
        'address "{shown}": "{part}": an address with a zone is unsupported'
    ),
    AddressFlaw.BAD_HOST: lambda: tr('address "{shown}": "{part}" is no host name'),
    AddressFlaw.BAD_PORT: lambda: tr('address "{shown}": "{part}" is no port (0 to {allowed})'),
    AddressFlaw.BARE_TLS: lambda: tr(
        'address "{shown}": /tls is supported only in /tls/ws, which is the same as /wss'
    ),
    AddressFlaw.UNSUPPORTED: lambda: tr(
        'address "{shown}": "/{part}" is unsupported: after the port there may be one of /ws, /wss'
        " and /tls/ws, and then /p2p/PEER"
    ),
    AddressFlaw.NO_PEER_ID: lambda: tr('address "{shown}": /{part} needs a peer id'),
    AddressFlaw.BAD_PEER_ID: lambda: tr('address "{shown}": "{part}" is no peer id'),
    AddressFlaw.AFTER_PEER_ID: lambda: tr(
        'address "{shown}": "/{part}" is unsupported: nothing may follow the peer id'
    ),
    AddressFlaw.PEER_NOT_NAMED: lambda: tr('address "{shown}": /p2p/ and the peer id are missing'),
    AddressFlaw.TOO_MANY: lambda: tr("there can be at most {allowed} addresses"),
}

_PROXY: Final[Mapping[ProxyFlaw, Callable[[], str]]] = {
    ProxyFlaw.TOO_LONG: lambda: tr('proxy "{shown}": it is longer than {allowed} characters'),
    ProxyFlaw.SHAPE: lambda: tr(
        'proxy "{shown}": it must look like {allowed} or socks5://USER:PASSWORD@127.0.0.1:9050'
        " (in a name or password write @ as %40, : as %3A and / as %2F)"
    ),
    ProxyFlaw.SCHEME: lambda: tr(
        'proxy "{shown}": "{part}" is no kind of proxy known here, only socks5'
    ),
    ProxyFlaw.HOST: lambda: tr(
        'proxy "{shown}": "{part}" is no IP address; a name would have to be looked up beside the'
        " proxy"
    ),
    ProxyFlaw.NO_PORT: lambda: tr('proxy "{shown}": the port is missing, as in :9050'),
    ProxyFlaw.BAD_PORT: lambda: tr('proxy "{shown}": "{part}" is no port (1 to {allowed})'),
    ProxyFlaw.CREDENTIALS: lambda: tr(
        'proxy "{shown}": user and password must both be there, with 1 to {allowed} bytes each'
    ),
}


def address_words(error: AddressError) -> str:
    """A clause that quotes the address."""
    flaw = error.flaw
    words = _ADDRESS[flaw] if isinstance(flaw, AddressFlaw) else _PROXY[flaw]
    return words().format(
        shown=one_line(error.shown), part=one_line(error.part), allowed=error.allowed
    )
