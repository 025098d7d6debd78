"""The list stays sorted, tells Qt the truth about every move, and never loses a conversation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtCore import QModelIndex, Qt

from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.events import ConversationView
from tests.ui.driving import NOW
from tests.ui.scripted_engine import START_MS, ScriptedEngine, member
from ui.list.model import CONVERSATION_ROLE, ConversationModel, Listed
from ui.list.preview import row_sentence

pytestmark = pytest.mark.usefixtures("qapp")
ENGINE = ScriptedEngine()
VIEWS = [ENGINE.views[ENGINE.add_group(name)] for name in ("Tide", "Rowing", "Books", "Tides")]


class Mirror:
    """Keeps a copy of the rows by listening only, as a view does."""

    def __init__(self, model: ConversationModel) -> None:
        self._model = model
        self.rows: list[str] = []
        model.rowsInserted.connect(self._inserted)
        model.rowsRemoved.connect(self._removed)
        model.rowsMoved.connect(self._moved)
        model.modelReset.connect(self._reset)

    def _inserted(self, _parent: QModelIndex, first: int, _last: int) -> None:
        self.rows.insert(first, self._at(first))

    def _removed(self, _parent: QModelIndex, first: int, _last: int) -> None:
        del self.rows[first]

    def _moved(
        self, _parent: QModelIndex, start: int, _end: int, _to: QModelIndex, row: int
    ) -> None:
        moved = self.rows.pop(start)
        self.rows.insert(row - 1 if row > start else row, moved)

    def _reset(self) -> None:
        self.rows = [self._at(row) for row in range(self._model.rowCount())]

    def _at(self, row: int) -> str:
        view = self._model.at(row)
        return "" if view is None else view.conversation_id


def step() -> st.SearchStrategy[tuple[str, int, int]]:
    return st.tuples(
        st.sampled_from(["put", "rename", "remove", "filter", "clear"]),
        st.integers(0, len(VIEWS) - 1),
        st.integers(0, 50),
    )


@given(st.lists(step(), max_size=25))
def test_any_order_of_changes_keeps_rows_sorted_and_signals_true(
    steps: list[tuple[str, int, int]],
) -> None:
    model = ConversationModel(lambda: NOW)
    mirror = Mirror(model)
    known = {view.conversation_id: view for view in VIEWS[:0]}
    wanted = ""
    for action, which, moment in steps:
        view = VIEWS[which]
        match action:
            case "put":
                known[view.conversation_id] = replace(view, created_ms=UnixMs(START_MS + moment))
                model.put(known[view.conversation_id])
            case "rename":
                if view.conversation_id in known:
                    changed = replace(known[view.conversation_id], name=f"New {moment}")
                    known[view.conversation_id] = changed
                    model.put(changed)
            case "remove":
                known.pop(view.conversation_id, None)
                model.remove(view.conversation_id)
            case "filter":
                wanted = "tide"
                model.set_filter("TÍDE ")
            case _:
                wanted = ""
                model.set_filter("")
        expected = sorted(
            (v for v in known.values() if wanted in v.name.lower()),
            key=lambda v: (-v.created_ms, v.conversation_id),
        )
        assert mirror.rows == [v.conversation_id for v in expected]
        assert model.rowCount() == len(expected)
    assert set(model.conversations()) == set(known.values())


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["arrives", "read", "open", "pin", *Listed]), st.sampled_from(VIEWS)
        ),
        max_size=25,
    )
)
def test_pins_come_first_and_only_what_is_wanted_is_listed_with_the_open_one(
    steps: list[tuple[str | Listed, ConversationView]],
) -> None:
    model = ConversationModel(lambda: NOW)
    mirror = Mirror(model)
    known = {view.conversation_id: view for view in VIEWS}
    model.reset(VIEWS)
    listed, opened, pinned = Listed.ALL, ConversationId(""), frozenset[str]()
    for action, view in steps:
        this = view.conversation_id
        if isinstance(action, Listed):
            listed = action
            model.set_listed(listed)
        elif action == "open":
            opened = this
            model.set_open(this)
        elif action == "pin":
            pinned ^= {this}
            model.set_pinned(pinned)
        else:
            known[this] = replace(known[this], unread=int(action == "arrives"))
            model.put(known[this])
        wanted = {Listed.ALL: known.values(), Listed.GROUPS: known.values(), Listed.PEOPLE: ()}
        some = wanted.get(listed, [each for each in known.values() if each.unread])
        ids = {each.conversation_id for each in some} | ({opened} if opened else set())
        expected = sorted(ids, key=lambda i: (i not in pinned, -known[i].created_ms, i))
        assert mirror.rows == expected


def test_what_is_no_news_paints_nothing() -> None:
    """As when each of many logs has been read."""
    model = ConversationModel(lambda: NOW)
    told: list[str] = []
    model.dataChanged.connect(lambda *_: told.append("row"))
    model.totals_changed.connect(lambda: told.append("totals"))
    model.put(VIEWS[0])
    told.clear()
    model.put(replace(VIEWS[0]))
    assert told == []
    model.put(replace(VIEWS[0], name="Another"))
    assert told == ["row", "totals"]


def test_who_is_verified_is_news_for_all_rows_at_once() -> None:
    model = ConversationModel(lambda: NOW)
    told: list[tuple[int, int]] = []
    model.dataChanged.connect(lambda first, last, *_: told.append((first.row(), last.row())))
    model.set_verified(frozenset({ParticipantId("somebody")}))
    assert told == [], "there is no row"
    model.reset(VIEWS)
    model.set_verified(frozenset({ParticipantId("somebody")}))
    assert told == [], "no news"
    model.set_verified(frozenset())
    assert told == [(0, len(VIEWS) - 1)]


def test_a_row_gives_its_view_and_its_sentence() -> None:
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge", others=("Maya",))
    row = engine.row(group, member("Maya"), "low water")
    view = replace(engine.views[group], last_message=row, unread=2, missing=3, muted=True)
    model = ConversationModel(lambda: NOW)
    model.put(view)
    assert model.index(0).data(CONVERSATION_ROLE) == view
    said = model.index(0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert str(said).startswith("Tide Gauge, 2 unread, Maya: low water, ")
    sentence = row_sentence(view, NOW, typing=("Maya",))
    assert "Maya is typing…" in sentence
    assert sentence.endswith("3 messages missing, muted")


def test_an_index_from_before_a_removal_answers_nothing() -> None:
    model = ConversationModel(lambda: NOW)
    model.put(VIEWS[0])
    index = model.index(0)
    model.remove(VIEWS[0].conversation_id)
    assert model.data(index, CONVERSATION_ROLE) is None
    model.remove(ConversationId("never there"))
    assert model.rowCount() == 0
