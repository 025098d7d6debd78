"""What both stores promise about joining: our invitations, who asks, and where we asked."""

from dataclasses import replace

from engine.core.admin_log.acts import EntryId
from engine.core.ids import ConversationId, UnixMs
from engine.core.joining import (
    Asking,
    OwnInvitation,
    PendingJoin,
    PutAsking,
    PutInvitation,
    PutJoin,
    Reason,
    RemoveAsking,
    RemoveInvitation,
    RemoveJoin,
)
from engine.core.ports import ProfileStore, PutGroup, RemoveGroup, StoreWrite
from tests.persistence.store_examples import ALICE, BOB, GROUP, NOW, group

ELSEWHERE = ConversationId("E" * 43)
INVITATION = OwnInvitation(
    conversation_id=GROUP,
    token=b"t" * 16,
    needs_approval=True,
    earlier="days_30",
    made_ms=NOW,
    expires_ms=UnixMs(NOW + 5),
    uses=3,
)
ASKING = Asking(
    conversation_id=GROUP,
    participant_id=BOB,
    invitation_id=EntryId("I" * 43),
    statement=b"of Bob",
    answer_key=b"k" * 32,
    asked_ms=NOW,
)
JOIN = PendingJoin(
    conversation_id=ELSEWHERE, link="causerie:join/x", answer_key=b"p" * 32, asked_ms=NOW
)


def test_all_of_it_comes_back_and_the_newest_word_counts(store: ProfileStore) -> None:
    of_alice = replace(ASKING, participant_id=ALICE, statement=b"of Alice")
    store.apply([PutGroup(group=group()), PutInvitation(invitation=INVITATION)])
    store.apply([PutAsking(asking=ASKING), PutAsking(asking=of_alice), PutJoin(join=JOIN)])
    assert store.joining.invitations() == [INVITATION]
    assert store.joining.asking() == [ASKING, of_alice]
    assert store.joining.joins() == [JOIN]
    named = replace(INVITATION, invitation_id=EntryId("I" * 43))
    later = replace(ASKING, answer_key=b"q" * 32, is_refused=True)
    declined = replace(JOIN, reason=Reason.REFUSED)
    store.apply([PutInvitation(invitation=named), PutAsking(asking=later), PutJoin(join=declined)])
    assert store.joining.invitations() == [named]
    assert store.joining.asking() == [later, of_alice]
    assert store.joining.joins() == [declined]
    store.apply(
        [
            RemoveInvitation(conversation_id=GROUP, token=INVITATION.token),
            RemoveAsking(conversation_id=GROUP, participant_id=BOB),
            RemoveJoin(conversation_id=ELSEWHERE),
        ]
    )
    assert store.joining.invitations() == []
    assert store.joining.asking() == [of_alice]
    assert store.joining.joins() == []


def test_what_is_of_a_group_goes_with_it_and_is_not_kept_without_it(store: ProfileStore) -> None:
    of_group: list[StoreWrite] = [PutInvitation(invitation=INVITATION), PutAsking(asking=ASKING)]
    store.apply([*of_group, PutGroup(group=group()), PutJoin(join=JOIN)])
    assert store.joining.invitations() == []
    assert store.joining.asking() == []
    store.apply([*of_group])
    assert len(store.joining.asking()) == 1
    store.apply([RemoveGroup(conversation_id=GROUP)])
    store.apply([PutGroup(group=group())])
    assert store.joining.invitations() == []
    assert store.joining.asking() == []
    assert store.joining.joins() == [JOIN]
