"""Why the network failed: a dial, a listener, a request to a peer, or the proxy between.

Without capital and full stop, and without the address or the peer, which the sentence around it
names.  Only the system's, the TLS library's and a web server's own words are not translated.
"""

from collections.abc import Callable, Mapping
from typing import Final

from engine.core.errors import TransportFault
from ui.foreign_text import one_line
from ui.translate import tr

_LONGEST: Final = 300
_WORDS: Final[Mapping[TransportFault, Callable[[], str]]] = {
    TransportFault.FAILED: lambda: tr("the network failed"),
    TransportFault.SYSTEM: lambda: "{detail}",
    TransportFault.CERTIFICATE: lambda: tr("its certificate is not valid ({detail})"),
    TransportFault.TLS: lambda: tr("TLS failed ({detail})"),
    TransportFault.CLOSED: lambda: tr("the other side closed the connection"),
    TransportFault.NO_ANSWER: lambda: tr("it does not answer in time"),
    TransportFault.LOST: lambda: tr("the connection was lost"),
    TransportFault.NOT_CONNECTED: lambda: tr("it is not connected"),
    TransportFault.WRONG_PEER: lambda: tr("the peer is {found}, expected was {expected}"),
    TransportFault.BROKEN_PROTOCOL: lambda: tr("it breaks the protocol ({detail})"),
    TransportFault.NO_PROTOCOL: lambda: tr("it speaks none of the protocols that are needed"),
    TransportFault.BAD_ADDRESS: lambda: tr("its address cannot be used"),
    TransportFault.OURSELVES: lambda: tr("that is this device itself"),
    TransportFault.CUT_OFF: lambda: tr("it is cut off on purpose, by the fault bench"),
    TransportFault.FULL: lambda: tr("too many connections are open already"),
    TransportFault.STOPPED: lambda: tr("this device is not connected to the network"),
    TransportFault.NO_WEBSOCKET: lambda: tr(
        "a web server answers {detail} there and opens no WebSocket"
    ),
    TransportFault.NOT_PUBLISHABLE: lambda: tr("this message cannot be published"),
    TransportFault.CANNOT_LISTEN: lambda: tr("this device cannot listen on {detail}"),
    TransportFault.CANNOT_LISTEN_TLS: lambda: tr(
        "this device cannot listen on {detail}: use /ws, and a proxy before it for TLS"
    ),
    TransportFault.PROXY_UNREACHABLE: lambda: tr("the proxy cannot be reached: {detail}"),
    TransportFault.PROXY_HUNG_UP: lambda: tr("the proxy hung up"),
    TransportFault.PROXY_NOT_SOCKS: lambda: tr("what answers there is no SOCKS5 proxy"),
    TransportFault.PROXY_BROKEN: lambda: tr("the proxy answers wrongly"),
    TransportFault.PROXY_WANTS_LOGIN: lambda: tr(
        "the proxy wants a user: set it as socks5://USER:PASSWORD@HOST:PORT"
    ),
    TransportFault.PROXY_WANTS_OTHER_LOGIN: lambda: tr(
        "the proxy wants another user or another way to log in: set it as"
        " socks5://USER:PASSWORD@HOST:PORT"
    ),
    TransportFault.PROXY_LOGIN_REFUSED: lambda: tr("the proxy refuses this user and password"),
    TransportFault.PROXY_NAME_TOO_LONG: lambda: tr("its name is too long for a proxy"),
    TransportFault.PROXY_SAYS_NOT_WHY: lambda: tr(
        "the proxy could not connect and does not say why"
    ),
    TransportFault.PROXY_FORBIDS: lambda: tr("the proxy does not allow this connection"),
    TransportFault.PROXY_NO_NETWORK: lambda: tr("the proxy cannot reach that network"),
    TransportFault.PROXY_NO_HOST: lambda: tr("the proxy cannot reach that host"),
    TransportFault.PROXY_REFUSED_BY_HOST: lambda: tr("the host refused the proxy's connection"),
    TransportFault.PROXY_TOO_SLOW: lambda: tr("the connection took the proxy too long"),
    TransportFault.PROXY_CANNOT_CONNECT: lambda: tr(
        "the proxy cannot open connections (it knows no CONNECT)"
    ),
    TransportFault.PROXY_KIND_UNSUPPORTED: lambda: tr(
        "the proxy does not support this kind of address"
    ),
    TransportFault.PROXY_REFUSES: lambda: tr("the proxy refuses with the unknown number {detail}"),
    TransportFault.ONION_UNKNOWN: lambda: tr("the onion service is not known"),
    TransportFault.ONION_NOT_VALID: lambda: tr("the onion service's description is not valid"),
    TransportFault.ONION_NOT_INTRODUCED: lambda: tr("the onion service could not be introduced to"),
    TransportFault.ONION_NO_ANSWER: lambda: tr("the onion service did not answer"),
    TransportFault.ONION_NEEDS_KEY: lambda: tr("the onion service needs a key"),
    TransportFault.ONION_REFUSED_KEY: lambda: tr("the onion service refused the key"),
    TransportFault.ONION_BAD_ADDRESS: lambda: tr("this is no onion address"),
    TransportFault.ONION_TOO_SLOW: lambda: tr("the onion service's introduction took too long"),
}


def transport_words(fault: TransportFault, detail: str) -> str:
    """A clause; ``detail`` as that of a ``TransportError``."""
    shown = one_line(detail, _LONGEST)
    found, _, expected = shown.partition(" ")  # of a wrong peer
    return _WORDS[fault]().format(detail=shown, found=found, expected=expected)
