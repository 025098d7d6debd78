"""The network settings taken together: where to listen, whether to be discovered, which proxy.

A user behind a proxy does not want to be located.  So the node then listens nowhere unless told to,
and discovery is off even if its own setting is on.
"""

from typing import Final

from chat_app.settings import Settings
from chat_app.settings_rules import AUTOMATIC
from engine.network.libp2p.proxy import Proxy, parse_proxy

EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - or the local network could not reach us


def listen_host(settings: Settings) -> str | None:
    """None: nowhere."""
    chosen = settings.network.listen_host
    if chosen != AUTOMATIC:
        return chosen
    return None if settings.network.proxy else EVERYWHERE


def discovers(settings: Settings) -> bool:
    return settings.network.discovery and not settings.network.proxy


def proxy_of(settings: Settings) -> Proxy | None:
    return parse_proxy(settings.network.proxy) if settings.network.proxy else None
