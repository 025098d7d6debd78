"""A conforming model's traces, repeated epoch by epoch: what is sent, delivered and kept.

Policies of the traces that our defaults differ from, all switched by ``MvdsConfig.spec_model``:
"epoch + 2*count" as back-off, a new record waits for the next epoch, pure modes, and a repeated
OFFER does not hasten our REQUEST.  The two traces of ephemeral messages are of 4/MVDS-META, which
we do not speak (ephemeral content travels beside MVDS).
"""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from engine.codec.mvds_id import mvds_id_of
from engine.core.ids import ParticipantId
from engine.core.mvds.config import Mode, MvdsConfig
from engine.core.mvds.vocabulary import MvdsId, MvdsMessage
from engine.sim.mvds.epochs import GROUP, A, B, Lockstep

Scenario = dict[str, Any]
TRACES = cast(
    "dict[str, Any]",
    json.loads(
        (Path(__file__).parents[2] / "vectors" / "mvds" / "traces_spec_model.json").read_text(
            encoding="utf-8"
        )
    ),
)
SCENARIOS: list[Scenario] = TRACES["scenarios"]


def _is_meta(scenario: Scenario) -> bool:
    return any(event["ephemeral"] for event in scenario["events"])


def _id(name: str) -> MvdsId:
    return mvds_id_of(MvdsMessage(GROUP, 0, name.encode()))


def _state(pair: Lockstep, name: ParticipantId, names: dict[MvdsId, str]) -> list[Scenario]:
    return [
        {
            "type": record.type.name,
            "id": names[record.message_id],
            "send_count": record.send_count,
            "send_epoch": record.send_epoch,
        }
        for record in pair.nodes[name].snapshot().records
    ]


def _dropped(expected: Scenario, sender: ParticipantId) -> bool:
    return bool(expected.get(f"{sender}->", {}).get("dropped", False))


@pytest.mark.parametrize(
    "scenario",
    [scenario for scenario in SCENARIOS if not _is_meta(scenario)],
    ids=lambda scenario: f"{scenario['mode']}: {scenario['title']}",
)
def test_the_trace_is_repeated(scenario: Scenario) -> None:
    assert scenario["next_epoch"] == "epoch + 2*count"
    pair = Lockstep(MvdsConfig.spec_model(Mode(scenario["mode"])), mvds_id_of)
    names = {_id(event["append"]): event["append"] for event in scenario["events"]}
    for expected in scenario["epochs"]:
        epoch = expected["epoch"]
        sends = pair.send(epoch)
        for event in scenario["events"]:
            if event["epoch"] == epoch:
                pair.append(ParticipantId(event["node"]), event["append"].encode(), epoch)
        found: Scenario = {"epoch": epoch}
        for send in sends:
            sender = B if send.peer_id == A else A
            dropped = _dropped(expected, sender)
            lists = {
                "acks": send.acks,
                "offers": send.offers,
                "requests": send.requests,
                "messages": send.message_ids,
            }
            found[f"{sender}->"] = {
                kind: [names[message_id] for message_id in ids] for kind, ids in lists.items()
            } | {"dropped": dropped}
            if not dropped and (delivered := pair.receive(send, epoch)):
                found[f"{send.peer_id}_delivered_to_app"] = [names[item] for item in delivered]
        for name in (A, B):
            found[f"{name}_state_after"] = _state(pair, name, names)
        assert found == expected


def test_only_the_traces_of_ephemeral_messages_are_left_out() -> None:
    left_out = [scenario["title"] for scenario in SCENARIOS if _is_meta(scenario)]
    assert left_out == ["ephemeral, lossless"] * 2
    assert len(SCENARIOS) == 7


def test_the_policies_of_the_traces_are_those_that_we_know() -> None:
    """A trace file with other policies would need another reading."""
    assert TRACES["policies"] == [
        "OFFER is replaced by MESSAGE on REQUEST",
        "REQUEST never inserted twice",
        "offer of a held message is acked",
        "duplicate message is acked, delivered once",
        "ephemeral sent once in batch, not acked",
        "empty payload never sent",
        "send_epoch of a new record = current+1",
        "acks processed first, then requests, offers, messages",
    ]
