"""Mentions in the composer: "@" offers the members, and the chosen ones are remembered.

A mention is sealed as a participant id with its place in the text.  So long as "@Name" stands in
the text as it was completed, it means that person, also after a cut and paste.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from engine.api import Mention
from engine.core.content import MAX_MENTIONS
from engine.core.ids import ConversationId, ParticipantId
from engine.events import ConversationView, MemberView, MessageView
from engine.text_spans import SpanKind
from ui.avatar import draw_avatar
from ui.completion import Candidate, Completion, best_matches, folded
from ui.conversation_words import present_members
from ui.foreign_text import one_line
from ui.marked_text import utf16, utf16_slice
from ui.namesakes import look_of
from ui.translate import tr
from ui.window.composer import Composer

_QUERY = re.compile(r"[^@\n]{0,32}")
MAX_ELSEWHERE: Final = 64
"""Conversations of which it is remembered who was mentioned there; of more the oldest are not."""
_MAX_NAME = 64
_TOLD_APART = 11
"""Characters of a fingerprint: two groups of five digits."""


class Mentioning:
    def __init__(self, composer: Composer) -> None:
        self._open_id: ConversationId | None = None
        self._people: dict[str, ParticipantId] = {}
        """By what stands in the text: "@" and the name."""
        self._elsewhere: dict[ConversationId, dict[str, ParticipantId]] = {}
        """In conversations that one left; drafts of theirs may wait.  The last of them last."""
        self._members: tuple[MemberView, ...] = ()
        popup = composer.completions
        popup.add(
            Completion(trigger="@", name=tr("People to mention"), query=_QUERY, find=self._find)
        )
        popup.accepted.connect(self._accepted)

    def offer(self, conversation: ConversationView) -> None:
        """These members; what was mentioned in another conversation waits there."""
        if conversation.conversation_id != self._open_id:
            self._go_to(conversation.conversation_id)
        members = tuple(m for m in present_members(conversation) if not m.is_self)
        known = {member.participant_id for member in members}
        self._people = {text: who for text, who in self._people.items() if who in known}
        self._members = members

    def _go_to(self, conversation_id: ConversationId) -> None:
        if self._open_id is not None and self._people:
            self._elsewhere[self._open_id] = self._people
            if len(self._elsewhere) > MAX_ELSEWHERE:
                del self._elsewhere[next(iter(self._elsewhere))]
        self._open_id, self._people = conversation_id, self._elsewhere.pop(conversation_id, {})

    def remember(self, message: MessageView) -> None:
        """The mentions of a message that is edited."""
        self._people |= mentions_of(message)

    def _find(self, query: str) -> list[Candidate]:
        looks = Counter(look_of(member.name) for member in self._members)
        named = [(m, m.fingerprint if looks[look_of(m.name)] > 1 else "") for m in self._members]
        return best_matches(query, [(folded(m.name), _candidate(m, key)) for m, key in named])

    def _accepted(self, key: str) -> None:
        for member in self._members:
            if member.participant_id == key:
                self._people[_written(member)] = member.participant_id

    def in_text(self, text: str) -> tuple[Mention, ...]:
        return mentions_in(text, self._people)


def _written(member: MemberView) -> str:
    return f"@{one_line(member.name, _MAX_NAME)}"


def _candidate(member: MemberView, fingerprint: str) -> Candidate:
    """``fingerprint``: what tells the member from another one of that name; "" if nobody has it."""
    name = one_line(member.name, _MAX_NAME)
    return Candidate(
        text=f"{_written(member)} ",
        words=name,
        detail=fingerprint[:_TOLD_APART],
        key=member.participant_id,
        draw=lambda painter, rect: draw_avatar(
            painter, rect, stable_id=member.participant_id, name=name, is_group=False
        ),
    )


def mentions_in(text: str, people: Mapping[str, ParticipantId]) -> tuple[Mention, ...]:
    """Where ``people`` are mentioned, in UTF-16 units; of two that fit, the longer name."""
    if not people or "@" not in text:
        return ()
    longest_first = sorted(people, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    found = []
    for match in pattern.finditer(text):
        start = len(utf16(text[: match.start()])) // 2
        length = len(utf16(match.group())) // 2
        participant_id = people[match.group()]
        found.append(Mention(participant_id=participant_id, start=start, length=length))
    return tuple(found[:MAX_MENTIONS])


def mentions_of(message: MessageView) -> dict[str, ParticipantId]:
    """The people whom a message mentions, by what stands in its text."""
    return {
        utf16_slice(message.text, span.start, span.start + span.length): ParticipantId(span.target)
        for span in message.spans
        if span.kind is SpanKind.MENTION
    }
