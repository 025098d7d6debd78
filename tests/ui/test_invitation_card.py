"""What an invitation shows before one agrees: also through whom the group is reached."""

from collections.abc import Sequence

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from engine.answers import InvitePreview
from engine.core.ids import ConversationId
from ui.dialogs.join import InviteCard

NODES = ("/dns4/a.example/tcp/443/wss/p2p/16Uiu2A", "/dns4/b.example/tcp/443/wss/p2p/16Uiu2B")


def words_of(card: InviteCard) -> list[str]:
    labels = card.findChildren(QLabel)
    return [label.text().replace("\u200b", "") for label in labels]  # places to break a line


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ((), None),
        (NODES[:1], "and 1 service node of the group"),
        (NODES, "and 2 service nodes of the group"),
    ],
)
def test_service_nodes_are_counted_and_named(
    qtbot: QtBot, nodes: Sequence[str], said: str | None
) -> None:
    card = InviteCard()
    qtbot.addWidget(card)
    card.show_preview(
        InvitePreview(
            conversation_id=ConversationId("group"),
            group_name="Tide",
            inviter_name="Maya",
            admin_fingerprint="12345",
            node_addresses=(),
            already_joined=False,
            service_nodes=tuple(nodes),
        )
    )
    words = words_of(card)
    assert [text for text in words if "service node" in text] == ([said] if said else [])
    for node in nodes:
        assert any(node in text for text in words)
