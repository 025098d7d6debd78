"""Mutants of the pure state machines: how they are made, and whether the tests notice them."""

import ast
from types import FunctionType

import pytest

from scripts import mutations
from scripts.mutants import Mutant, compiled, mutants_of, sample
from scripts.mutation_tests import Calls, put_in_place

SOURCE = '''
"""A module."""

from somewhere import something

LIMIT = 10
Number: TypeAlias = int | float


class Thing(Struct, frozen=True):
    __slots__ = ("a",)
    size: int | None = 3

    def grow(self, by: int = 1) -> str:
        """Make it larger."""
        if self.size < LIMIT and by:
            self.size += by
        else:
            raise ValueError("it is as large as it may be")
        return "grown"
'''


def names(source: str = SOURCE) -> set[str]:
    return {mutant.name for mutant in mutants_of("thing.py", source)}


def test_each_slip_is_one_mutant() -> None:
    assert names() == {
        "LIMIT: 10 → 11",
        "Thing.size: 3 → 4",
        "Thing.grow: 1 → 2",
        "Thing.grow: self.size < LIMIT and by → self.size < LIMIT or by",
        "Thing.grow: self.size < LIMIT → self.size <= LIMIT",
        "Thing.grow: self.size += by → self.size -= by",
        "Thing.grow: self.size += by → nothing",
        "Thing.grow: 'grown' → 'grown_'",
    }


def test_a_mutant_differs_from_its_module_in_one_place() -> None:
    for mutant in mutants_of("thing.py", SOURCE):
        changed = compiled(mutant, SOURCE, "thing.py")
        assert changed != compile(SOURCE, "thing.py", "exec"), mutant.name
    before = ast.dump(ast.parse(SOURCE))
    list(mutants_of("thing.py", SOURCE))
    assert ast.dump(ast.parse(SOURCE)) == before


def test_what_is_run_on_import_is_in_no_function() -> None:
    found = {mutant.name: mutant.function for mutant in mutants_of("thing.py", SOURCE)}
    assert found["Thing.grow: 1 → 2"] == ""
    assert found["Thing.size: 3 → 4"] == ""
    assert found["Thing.grow: 'grown' → 'grown_'"] == "Thing.grow"


def test_equal_changes_of_one_function_have_numbers() -> None:
    source = "def double(a):\n    return a + a + a\n"
    assert {"double: a + a → a - a", "double: a + a + a → a + a - a"} <= names(source)
    assert "f: 1 → 2 #2" in names("def f(a):\n    return a[1] - a[1]\n")


def test_a_sample_changes_no_more_than_its_modules() -> None:
    mutants = list(mutants_of("thing.py", SOURCE))
    assert sample(mutants, 4, 1) == sample(reversed(mutants), 4, 1)
    assert sample(mutants, 4, 1) != sample(mutants, 4, 2)
    rest = [mutant for mutant in mutants if "LIMIT: " not in mutant.name]
    assert set(sample(mutants, 4, 1)) - set(sample(rest, 4, 1)) <= {mutants[0]}


def test_a_function_is_changed_where_it_is() -> None:
    module = "scripts/mutations.py"
    source = (mutations.ROOT / module).read_text(encoding="utf-8")
    (mutant,) = (one for one in mutants_of(module, source) if "<= ALLOWED_SHARE" in one.name)
    is_good = vars(mutations.Outcome)["is_good"].fget
    assert isinstance(is_good, FunctionType)
    nothing = mutations.Outcome({}, set())
    original = is_good.__code__
    assert nothing.is_good
    try:
        assert put_in_place(mutant)
        assert not nothing.is_good
    finally:
        is_good.__code__ = original


def test_unknown_tests_may_notice_anything() -> None:
    calls = Calls({"known": (0.5, ["a.py f"])})
    assert calls.may_notice("known", "a.py f")
    assert not calls.may_notice("known", "a.py g")
    assert calls.may_notice("new", "a.py g")
    assert (calls.seconds("known"), calls.seconds("new")) == (0.5, 0.0)


def test_a_survivor_counts_unless_it_is_equivalent() -> None:
    dead, same, alive = (Mutant("a.py", name, 1, "f") for name in ("dead", "same", "alive"))
    outcome = mutations.Outcome({dead: "a test", same: "", alive: ""}, {same.key})
    assert outcome.survivors == [alive]
    assert not outcome.is_good
    assert outcome.summary() == "mutations: 3 tried, 1 noticed, 1 equivalent, 1 survived"


def test_what_is_called_equivalent_is_a_mutant_still() -> None:
    known = {mutant.key for mutant in mutations.all_mutants()}
    assert mutations.equivalent()
    assert mutations.equivalent() - known == set()


@pytest.mark.long
def test_a_sample_of_mutants_is_noticed() -> None:
    outcome = mutations.run(mutations.SIZE, mutations.SEED)
    assert len(outcome.noticed_by) == mutations.SIZE
    assert outcome.is_good, [mutant.key for mutant in outcome.survivors]
