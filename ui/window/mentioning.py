"""Mentions in the composer: "@" offers the members, and the chosen ones are remembered.

A mention is sealed as a participant id with its place in the text.  So long as "@Name" stands in
the text as it was completed, it means that person, also after a cut and paste.  Of several people
of that name each mention means who was chosen there: the text box remembers it with the characters,
where nothing shows it.  A name that came back by a paste means the last one chosen.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from PySide6.QtGui import QTextCharFormat, QTextCursor, QTextFormat

from engine.api import Mention
from engine.core.content import MAX_MENTIONS
from engine.core.ids import ParticipantId
from engine.events import ConversationView, MemberView, MessageView
from engine.text_spans import SpanKind
from ui.avatar import draw_avatar
from ui.completion import Candidate, Completion, best_matches, folded
from ui.conversation_words import present_members
from ui.foreign_text import one_line
from ui.marked_text import utf16_length, utf16_slice
from ui.namesakes import look_of
from ui.translate import tr
from ui.window.composer import Composer
from ui.window.unsent import Draft

_QUERY = re.compile(r"[^@\n]{0,32}")
_MAX_NAME = 64
_TOLD_APART = 11
"""Characters of a fingerprint: two groups of five digits."""
_WHO: Final = int(QTextFormat.Property.UserProperty)
"""Of the characters of a name in the text box: the id of whom it means."""


class Mentioning:
    def __init__(self, composer: Composer) -> None:
        self._composer = composer
        self._box = composer.box
        self._people: dict[str, tuple[ParticipantId, ...]] = {}
        """By what stands in the text, "@" and the name: who was chosen, the last of them last."""
        self._order: tuple[str, ...] = ()
        """Whom the names mean in the text that is going out, one after the other."""
        self._members: tuple[MemberView, ...] = ()
        self._names: frozenset[str] = frozenset()
        """Of all members, as they would stand in the text."""
        popup = composer.completions
        popup.add(
            Completion(
                trigger="@",
                name=tr("People to mention"),
                query=_QUERY,
                find=self._find,
                accept=_insert,
            )
        )
        popup.accepted.connect(self._accepted)
        composer.submitting.connect(self._note)

    def offer(self, conversation: ConversationView) -> None:
        """These members."""
        present = present_members(conversation)
        self._members = tuple(m for m in present if not m.is_self)
        self._names = frozenset(map(_written, present))
        known = self._known()
        left = {
            text: tuple(who for who in people if who in known)
            for text, people in self._people.items()
        }
        self._people = {text: people for text, people in left.items() if people}

    def _known(self) -> set[ParticipantId]:
        return {member.participant_id for member in self._members}

    # --- who is meant where -----------------------------------------------------------------------

    def forget(self) -> None:
        """Another conversation is written in."""
        self._people = {}

    def written(self) -> Draft:
        """What stands in the box now."""
        text = self._composer.text()
        return Draft(text=text, mentions=self._mentions(text, self._whom(text)))

    def write(self, draft: Draft) -> None:
        """Put it into the box, where its names mean whom they meant."""
        self._composer.set_text(draft.text)
        known = self._known()
        mentions = [each for each in draft.mentions if each.participant_id in known]
        self._box.blockSignals(True)
        cursor = QTextCursor(self._box.document())
        for each in mentions:
            end = each.start + each.length
            name = utf16_slice(draft.text, each.start, end)
            if name.startswith("@") and utf16_length(name) == each.length:
                self._choose(name, each.participant_id)
                cursor.setPosition(each.start)
                cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
                cursor.mergeCharFormat(_format(each.participant_id))
        if mentions:
            self._box.document().clearUndoRedoStacks()
        self._box.blockSignals(False)

    def in_text(self, text: str) -> tuple[Mention, ...]:
        """In the text that goes out, though lines that were empty may have gone from it."""
        return self._mentions(text, self._order)

    def _mentions(self, text: str, order: Sequence[str]) -> tuple[Mention, ...]:
        return mentions_in(text, self._people, order, self._names)

    def _note(self) -> None:
        self._order = self._whom(self._composer.text())

    def _whom(self, text: str) -> tuple[str, ...]:
        """Whom the names in the box mean; "" where a paste forgot it."""
        cursor, order = QTextCursor(self._box.document()), []
        for start, _ in _places(text, self._people, self._names):
            cursor.setPosition(start + 1)
            who = cursor.charFormat().property(_WHO)
            order.append(who if isinstance(who, str) else "")
        return tuple(order)

    def _choose(self, name: str, who: ParticipantId) -> None:
        others = (each for each in self._people.get(name, ()) if each != who)
        self._people[name] = (*others, who)

    # --- completing -------------------------------------------------------------------------------

    def _find(self, query: str) -> list[Candidate]:
        looks = Counter(look_of(member.name) for member in self._members)
        named = [(m, m.fingerprint if looks[look_of(m.name)] > 1 else "") for m in self._members]
        return best_matches(query, [(folded(m.name), _candidate(m, key)) for m, key in named])

    def _accepted(self, key: str) -> None:
        for member in self._members:
            if member.participant_id == key:
                self._choose(_written(member), member.participant_id)


def _insert(cursor: QTextCursor, candidate: Candidate) -> None:
    """What is written behind the name does not belong to it."""
    cursor.insertText(candidate.text.rstrip(" "), _format(candidate.key))
    cursor.insertText(" ", QTextCharFormat())


def _format(who: str) -> QTextCharFormat:
    result = QTextCharFormat()
    result.setProperty(_WHO, who)
    return result


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


def _places(
    text: str, names: Mapping[str, object], others: Collection[str]
) -> list[tuple[int, str]]:
    """Where one of the names begins, in UTF-16 units; of two that fit, the longer one.

    A name that begins one of ``others`` is not meant there.
    """
    if not names or "@" not in text:
        return []
    longer = sorted({*names, *others}, key=len, reverse=True)
    found = re.compile("|".join(map(re.escape, longer))).finditer(text)
    return [(utf16_length(text[: at.start()]), at.group()) for at in found if at.group() in names]


def mentions_in(
    text: str,
    people: Mapping[str, tuple[ParticipantId, ...]],
    order: Sequence[str],
    others: Collection[str] = (),
) -> tuple[Mention, ...]:
    """Where ``people`` are mentioned, each whom ``order`` says or else the last of that name.

    ``others``: names that mean nobody here, and may be longer ones.
    """
    places = _places(text, people, others)
    said = order if len(order) == len(places) else [""] * len(places)
    return tuple(
        Mention(
            participant_id=next((who for who in people[name] if who == meant), people[name][-1]),
            start=start,
            length=utf16_length(name),
        )
        for (start, name), meant in zip(places[:MAX_MENTIONS], said, strict=False)
    )


def draft_of(message: MessageView) -> Draft:
    """The text of a message that is edited, with those whom it mentions."""
    mentions = (
        Mention(participant_id=ParticipantId(span.target), start=span.start, length=span.length)
        for span in message.spans
        if span.kind is SpanKind.MENTION
    )
    return Draft(text=message.text, mentions=tuple(mentions))
