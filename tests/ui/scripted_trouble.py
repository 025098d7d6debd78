"""What the scripted engine says of members who told two stories, or who say too much."""

from collections.abc import Sequence
from functools import cached_property

from engine.answers import ForkProof
from engine.core.ids import ConversationId, MessageId, ParticipantId
from engine.events import EngineEvent, FloodsChanged, FloodView, ForksFound, ForkView, MessageView


class ScriptedTrouble:
    rows: dict[ConversationId, dict[MessageId, MessageView]]

    @cached_property
    def fork_views(self) -> dict[ConversationId, tuple[ForkView, ...]]:
        return {}

    @cached_property
    def flood_views(self) -> dict[ConversationId, tuple[FloodView, ...]]:
        return {}

    def _enter(self, method: str, argument: object) -> None:
        raise NotImplementedError

    def tell(self, event: EngineEvent) -> None:
        raise NotImplementedError

    def find_forks(self, *forks: ForkView) -> None:
        conversation_id = forks[0].conversation_id
        self.fork_views[conversation_id] = forks
        self.tell(ForksFound(conversation_id=conversation_id, forks=forks))

    async def forks(self, conversation_id: ConversationId) -> Sequence[ForkView]:
        return self.fork_views.get(conversation_id, ())

    async def fork_proof(self, fork: ForkView) -> ForkProof:
        self._enter("fork_proof", fork)
        rows = self.rows[fork.conversation_id]
        return ForkProof(
            messages=(rows.get(fork.first_id), rows.get(fork.second_id)), text='{"proves": "it"}'
        )

    def flood(self, conversation_id: ConversationId, *floods: FloodView) -> None:
        self.flood_views[conversation_id] = floods
        self.tell(FloodsChanged(conversation_id=conversation_id, floods=floods))

    async def floods(self, conversation_id: ConversationId) -> Sequence[FloodView]:
        return self.flood_views.get(conversation_id, ())

    async def show_flood(
        self, conversation_id: ConversationId, participant_id: ParticipantId
    ) -> None:
        self._enter("show_flood", participant_id)
        left = (
            one for one in self.flood_views[conversation_id] if one.participant_id != participant_id
        )
        self.flood(conversation_id, *left)
