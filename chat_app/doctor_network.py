"""The network's part of ``causerie doctor``: the role, each service node and Store, asked just now.

A node is dialled, pinged and asked for its cluster; nothing is subscribed and nothing published.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from chat_app.network_choices import proxy_of
from chat_app.settings import Settings

if TYPE_CHECKING:
    from engine.core.history.kept import StoreRecord
    from engine.network.edge.check import Checked

PATIENCE_S = 10.0


def asked_nodes(
    settings: Settings, addresses: Sequence[str], *, timeout_s: float = PATIENCE_S
) -> "list[Checked]":
    if not addresses:
        return []
    from engine.network.edge.check import check_service_nodes  # noqa: PLC0415 - only here

    return asyncio.run(
        check_service_nodes(
            addresses,
            cluster=settings.network.cluster,
            proxy=proxy_of(settings),
            timeout_s=timeout_s,
        )
    )


def shown_node(checked: "Checked") -> dict[str, object]:
    return {
        "address": checked.address,
        "reachable": checked.reachable,
        "problem": checked.problem or "none",
        "protocols": ", ".join(checked.protocols) or "none",
        "cluster": "not said" if checked.cluster is None else checked.cluster,
        "round_trip_ms": checked.round_trip_ms,
        "agent": checked.agent or "not said",
    }


def node_complaints(settings: Settings, checked: "Sequence[Checked]") -> Iterator[str]:
    for node in checked:
        if node.problem:
            yield f"Service node {node.address}: {node.problem}."
    usable = sum(not node.problem for node in checked)
    network = settings.network
    if network.role == "edge" or network.cluster == 1:
        if not checked:
            yield "The role is edge, and no service node is set: nothing can be sent or received."
        elif usable == 1:
            yield "Only one service node is usable: everything depends on it. Name a second."


# --- Stores -------------------------------------------------------------------------------------


def shown_store(
    record: "StoreRecord", checked: "Checked | None", cluster: int
) -> dict[str, object]:
    """``checked`` is None for one that is off: it is not asked."""
    kept: dict[str, object] = {
        "address": record.store,
        "on": record.enabled,
        "queries": record.queries,
        "answered_to_the_end": record.complete,
        "messages": record.messages,
        "omitted": record.omitted,
    }
    if checked is None:
        return kept
    return {
        **kept,
        "reachable": checked.reachable,
        "problem": _store_problem(checked, cluster) or "none",
        "versions": ", ".join(_versions(checked)) or "none",
        "cluster": "not said" if checked.cluster is None else checked.cluster,
        "round_trip_ms": checked.round_trip_ms,
    }


def store_complaints(checked: "Sequence[Checked]", cluster: int) -> Iterator[str]:
    problems = [(store.address, _store_problem(store, cluster)) for store in checked]
    for address, problem in problems:
        if problem:
            yield f"Store {address}: {problem}."
    if problems and all(problem for _, problem in problems):
        yield "No Store that is on can be used: what was said while you were away may be missing."


def _versions(checked: "Checked") -> list[str]:
    names = {"store": "3.0.0", "store (2.0.0-beta4)": "2.0.0-beta4"}
    return [version for name, version in names.items() if name in checked.protocols]


def _store_problem(checked: "Checked", cluster: int) -> str:
    if not checked.reachable:
        return checked.problem
    if checked.cluster is not None and checked.cluster != cluster:
        return f"it is in cluster {checked.cluster}, this device in cluster {cluster}"
    return "" if _versions(checked) else "it keeps no messages for others"
