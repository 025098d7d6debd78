"""Cutting RPCs: nothing is lost, nothing is turned round, and no part is long."""

from hypothesis import given
from hypothesis import strategies as st

from engine.codec.gossipsub import DecodedRpc, IHave, Prune, PublishedMessage, Rpc, Subscription
from engine.core.ids import PubsubTopic
from engine.network.waku.rpc_slices import PUBLISHED_PER_SLICE, WANTED_PER_SLICE, rpc_slices

TOPIC = PubsubTopic("/waku/2/rs/42/4")


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_parts_are_the_whole(published: int, wanted: int) -> None:
    rpc = Rpc(
        subscriptions=(Subscription(topic=TOPIC, subscribe=True),),
        publish=tuple(PublishedMessage(topic=TOPIC, data=b"%d" % n) for n in range(published)),
        graft=(TOPIC,),
        prune=(Prune(topic=TOPIC),),
        ihave=(IHave(topic=TOPIC, message_ids=(b"i" * 32,)),),
        iwant=tuple(n.to_bytes(32, "big") for n in range(wanted)),
        idontwant=(b"d" * 32,),
    )
    parts = list(rpc_slices(DecodedRpc(rpc=rpc, refused=("reason",))))
    assert parts[0].rpc.subscriptions == rpc.subscriptions
    assert [reason for part in parts for reason in part.refused] == ["reason"]
    assert max(len(part.rpc.publish) for part in parts) <= PUBLISHED_PER_SLICE
    assert max(len(part.rpc.iwant) for part in parts) <= WANTED_PER_SLICE
    joined = Rpc(
        subscriptions=sum((part.rpc.subscriptions for part in parts), ()),
        publish=sum((part.rpc.publish for part in parts), ()),
        graft=sum((part.rpc.graft for part in parts), ()),
        prune=sum((part.rpc.prune for part in parts), ()),
        ihave=sum((part.rpc.ihave for part in parts), ()),
        iwant=sum((part.rpc.iwant for part in parts), ()),
        idontwant=sum((part.rpc.idontwant for part in parts), ()),
    )
    assert joined == rpc
