"""Collects the effects of one step of the gossipsub router and groups them by peer.

All control for one peer goes into one RPC, however many rules asked for it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.codec.gossipsub import IHave, Prune, Rpc, Subscription
from engine.core.ids import PubsubTopic
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.vocabulary import (
    MessageDelivered,
    SendControl,
    SendMessage,
    Transition,
)


@dataclass(slots=True)
class _Control:
    subscriptions: list[Subscription] = field(default_factory=list)
    graft: list[PubsubTopic] = field(default_factory=list)
    prune: list[Prune] = field(default_factory=list)
    ihave: list[IHave] = field(default_factory=list)
    iwant: list[bytes] = field(default_factory=list)

    def rpc(self) -> Rpc:
        return Rpc(
            subscriptions=tuple(self.subscriptions),
            graft=tuple(self.graft),
            prune=tuple(self.prune),
            ihave=tuple(self.ihave),
            iwant=tuple(self.iwant),
        )


class Effects:
    """The effects of one step."""

    __slots__ = ("_control", "_delivered", "_messages", "membership_changed")

    def __init__(self) -> None:
        self.membership_changed = False
        self._control: dict[PeerId, _Control] = {}
        self._messages: list[SendMessage] = []
        self._delivered: list[MessageDelivered] = []

    def send(self, send: SendMessage) -> None:
        self._messages.append(send)

    def deliver(self, delivered: MessageDelivered) -> None:
        self._delivered.append(delivered)

    def subscribe(self, peer_id: PeerId, subscription: Subscription) -> None:
        self._for(peer_id).subscriptions.append(subscription)

    def graft(self, peer_id: PeerId, topic: PubsubTopic) -> None:
        if topic not in (control := self._for(peer_id)).graft:
            control.graft.append(topic)

    def prune(self, peer_id: PeerId, prune: Prune) -> None:
        control = self._for(peer_id)
        if prune not in control.prune:
            control.prune.append(prune)
        if prune.topic in control.graft:
            control.graft.remove(prune.topic)

    def ihave(self, peer_id: PeerId, ihave: IHave) -> None:
        self._for(peer_id).ihave.append(ihave)

    def iwant(self, peer_id: PeerId, message_ids: Iterable[bytes]) -> None:
        self._for(peer_id).iwant.extend(message_ids)

    def transition(self) -> Transition:
        control = tuple(
            SendControl(peer_id=peer_id, rpc=parts.rpc())
            for peer_id, parts in self._control.items()
        )
        return Transition(
            sends=(*control, *self._messages),
            delivered=tuple(self._delivered),
            membership_changed=self.membership_changed,
        )

    def _for(self, peer_id: PeerId) -> _Control:
        return self._control.setdefault(peer_id, _Control())
