"""The machine's own addresses on local networks, as reported by the system.

Imported when discovery begins, together with the library that lists them.
"""

import ipaddress
from collections.abc import Sequence
from typing import Final

import ifaddr

MAX_INTERFACES: Final = 8


def local_network_addresses(*, with_ipv6: bool = False) -> tuple[str, ...]:
    """Addresses for mDNS and announcements: IPv4 sorted, then IPv6; empty if there are none.

    Of IPv6 only the ULA: a link-local address cannot be dialled without an interface name.
    """
    found: dict[bool, set[ipaddress.IPv4Address | ipaddress.IPv6Address]] = {
        False: set(),
        True: set(),
    }
    for adapter in ifaddr.get_adapters():
        for each in adapter.ips:
            ip = ipaddress.ip_address(each.ip if isinstance(each.ip, str) else each.ip[0])
            is_v6 = isinstance(ip, ipaddress.IPv6Address)
            if ip.is_loopback or not (ip.is_private or ip.is_link_local):
                continue
            if not is_v6 or (with_ipv6 and not ip.is_link_local):
                found[is_v6].add(ip)
    ordered = [*sorted(map(str, found[False])), *sorted(map(str, found[True]))]
    return tuple(ordered[:MAX_INTERFACES])


def interfaces_for(listen_host: str) -> Sequence[str]:
    """The addresses at which a node listening on ``listen_host`` can be reached."""
    host = ipaddress.ip_address(listen_host)
    if host.is_unspecified:
        return local_network_addresses(with_ipv6=host.version == 6)  # noqa: PLR2004 - IPv6
    # IPv6 multicast does not come back on loopback.
    return () if host.version == 6 and host.is_loopback else (listen_host,)  # noqa: PLR2004 - IPv6
