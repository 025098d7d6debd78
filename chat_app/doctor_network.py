"""The network's part of ``causerie doctor``: the role, each service node and Store, asked just now.

A node is dialled, pinged and asked for its cluster; nothing is subscribed and nothing published.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from chat_app.effective_network import proxy_of
from chat_app.settings import Settings
from ui.problem_words import checked_problem_words, store_problem_words

if TYPE_CHECKING:
    from engine.core.history.progress import StoreRecord
    from engine.core.ids import ContentTopic
    from engine.network.edge.check import Checked
    from engine.network.stores.port import TestedStore

PATIENCE_S = 10.0
STORE_CLOCK_OFF_MS = 15_000
"""At 20 s Stores refuse."""


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
        "problem": _node_words(checked) or "none",
        "protocols": ", ".join(checked.protocols) or "none",
        "cluster": "not said" if checked.cluster is None else checked.cluster,
        "round_trip_ms": checked.round_trip_ms,
        "agent": checked.agent or "not said",
    }


def _node_words(checked: "Checked") -> str:
    return "" if checked.problem is None else checked_problem_words(checked.problem)


def node_complaints(settings: Settings, checked: "Sequence[Checked]") -> Iterator[str]:
    for node in checked:
        if node.problem:
            yield f"Service node {node.address}: {_node_words(node)}."
    usable = sum(not node.problem for node in checked)
    network = settings.network
    if network.role == "edge" or network.cluster == 1:
        if not checked:
            yield "The role is edge, and no service node is set: nothing can be sent or received."
        elif usable == 1:
            yield "Only one service node is usable: everything depends on it. Name a second."


# --- Stores -------------------------------------------------------------------------------------


def ask_stores(
    settings: Settings,
    addresses: Sequence[str],
    content_topics: "Sequence[ContentTopic]",
    *,
    timeout_s: float = 2 * PATIENCE_S,
) -> "dict[str, TestedStore]":
    """By address, as the page of the Stores tests one."""
    if not addresses:
        return {}
    from engine.network.stores.check import check_stores  # noqa: PLC0415 - only here
    from engine.network.waku.topics import Sharding  # noqa: PLC0415 - likewise

    network = settings.network
    tested = asyncio.run(
        check_stores(
            addresses,
            content_topics,
            sharding=Sharding(cluster_id=network.cluster, shard_count=network.shards),
            proxy=proxy_of(settings),
            timeout_s=timeout_s,
        )
    )
    return dict(zip(addresses, tested, strict=True))


def shown_store(record: "StoreRecord", tested: "TestedStore | None") -> dict[str, object]:
    """``tested`` is None for one that is off: it is not asked."""
    kept: dict[str, object] = {
        "address": record.store,
        "on": record.enabled,
        "queries": record.queries,
        "answered_to_the_end": record.complete,
        "messages": record.messages,
        "omitted": record.omitted,
    }
    if tested is None:
        return kept
    works = tested.reachable and not tested.problem
    return {
        **kept,
        "reachable": tested.reachable,
        "problem": store_problem_words(tested.problem) or "none",
        "versions": ", ".join(tested.versions) or "none",
        "cluster": "not said" if tested.cluster is None else tested.cluster,
        "round_trip_ms": tested.round_trip_ms,
        "clock_ahead_ms": "not said" if tested.clock_ahead_ms is None else tested.clock_ahead_ms,
        "oldest_message": _day_of(tested.oldest_ms) if works else "not known",
    }


def _day_of(at_ms: int | None) -> str:
    """Of your groups; a Store may say any time."""
    if at_ms is None:
        return "none of your groups"
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_ms / 1_000))
    except (OverflowError, ValueError, OSError):
        return "at an impossible time"


def store_complaints(tested: "Mapping[str, TestedStore]") -> Iterator[str]:
    for address, store in tested.items():
        if store.problem:
            yield f"Store {address}: {store_problem_words(store.problem)}."
        elif store.clock_ahead_ms is not None and abs(store.clock_ahead_ms) > STORE_CLOCK_OFF_MS:
            yield (
                f"Store {address}: its clock differs from the messages' times by "
                f"{round(abs(store.clock_ahead_ms) / 1_000)} s; it may refuse what you send."
            )
    if tested and all(store.problem for store in tested.values()):
        yield "No Store that is on can be used: what was said while you were away may be missing."
