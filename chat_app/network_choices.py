"""What the settings of the network mean together: where to listen, whether to be found, and how.

Behind a proxy nothing may give away where one is: then the node listens nowhere unless it is told
to, and discovery is off whatever its own setting says.
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
