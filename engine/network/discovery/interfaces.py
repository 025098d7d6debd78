"""The machine's own addresses on local networks, as the system lists them.

Imported when discovery begins, with the library that lists them.
"""

import ipaddress
from collections.abc import Sequence
from typing import Final

import ifaddr

MAX_INTERFACES: Final = 8


def local_network_addresses() -> tuple[str, ...]:
    """IPv4 only: what mDNS is spoken on, and what is announced.  Sorted; empty if there is none."""
    found: set[ipaddress.IPv4Address] = set()
    for adapter in ifaddr.get_adapters():
        for each in adapter.ips:
            if isinstance(each.ip, str):
                ip = ipaddress.IPv4Address(each.ip)
                if not ip.is_loopback and (ip.is_private or ip.is_link_local):
                    found.add(ip)
    return tuple(str(ip) for ip in sorted(found)[:MAX_INTERFACES])


def interfaces_for(listen_host: str) -> Sequence[str]:
    """Where a node that listens on ``listen_host`` can be met."""
    host = ipaddress.ip_address(listen_host)
    if host.is_unspecified:
        return local_network_addresses()
    return (listen_host,) if host.version == 4 else ()  # noqa: PLR2004 - IPv4
