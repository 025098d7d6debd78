"""Mutants: a module's source with one small change each, as a slip of the hand would make it.

Each mutant has a name that says where it is and what changes, and that stays the same while its
function does.  A sample is the mutants whose names hash lowest with a seed; so a change of one
function changes only that function's share of it.  Annotations, decorators, docstrings and
sentences are left as they are: they say nothing at run time, or only to people.
"""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import NamedTuple, TypeAlias

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
CODE = re.compile(r"[a-z][a-z0-9_.-]*")
"""A text that a program reads: a reason, a counter, a stored word.  Sentences are for people."""

NOT_RUN = {
    "annotation",  # of arguments and variables
    "returns",
    "decorator_list",
    "bases",
    "keywords",  # of classes: what kind of Struct it is
    "type_params",
}
"""Fields of functions and classes that say what a thing is, not what it does."""

Parent: TypeAlias = ast.AST | list[ast.AST]


class Mutant(NamedTuple):
    """``module`` is its path; ``name`` has no line number, and is unique within the module."""

    module: str
    name: str
    line: int
    function: str
    """The outermost function that it is in; "" if it is run while the module is imported."""

    @property
    def key(self) -> str:
        return f"{self.module} {self.name}"


class _Scope(NamedTuple):
    name: str = ""
    function: str = ""

    def enter(self, node: ast.AST, field: str) -> "_Scope":
        """The scope of a field of a node."""
        match node:
            case ast.ClassDef(name=name):
                return self._replace(name=self._within(name))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                inner = self._within(name)
                # Defaults of arguments are computed outside.
                is_run_within = field == "body" and not self.function
                return _Scope(inner, inner if is_run_within else self.function)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                return self._replace(name=self._within(name))
            case _:
                return self

    def _within(self, name: str) -> str:
        return f"{self.name}.{name}" if self.name else name


class _Change(NamedTuple):
    """Put ``new`` at a place: an attribute of a node, or an item of a list."""

    parent: Parent
    place: str | int
    new: ast.AST
    line: int
    text: str
    scope: str
    function: str

    def make(self) -> None:
        match self.parent, self.place:
            case list(), int(index):
                self.parent[index] = self.new
            case ast.AST(), str(field):
                setattr(self.parent, field, self.new)
            case place:
                raise TypeError(f"no place in a tree: {place}")


def mutants_of(module: str, source: str) -> Iterator[Mutant]:
    """All mutants of a module, in the order of its source."""
    for name, change in _named_changes(ast.parse(source)):
        yield Mutant(module, name, change.line, change.function)


def compiled(mutant: Mutant, source: str, path: str) -> CodeType:
    """The code of the mutant's module, given its source."""
    tree = ast.parse(source)
    change = next(change for name, change in _named_changes(tree) if name == mutant.name)
    change.make()
    return compile(ast.fix_missing_locations(tree), path, "exec")


def _named_changes(tree: ast.AST) -> Iterator[tuple[str, _Change]]:
    seen = Counter[str]()
    for change in _changes(tree, _Scope()):
        name = f"{change.scope}: {change.text}"
        seen[name] += 1
        yield f"{name} #{seen[name]}" if seen[name] > 1 else name, change


def sample(mutants: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """``size`` of the mutants, by chance but always the same ones; the rest comes in the rest."""

    def rank(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.key}".encode()).digest()

    return sorted(mutants, key=rank)[:size]


def _changes(node: ast.AST, scope: _Scope) -> Iterator[_Change]:
    """Every change within a node."""
    for field, value in ast.iter_fields(node):
        if _is_not_run(node, field):
            continue
        inner = scope.enter(node, field)
        if isinstance(value, ast.AST):
            yield from _changes_of(node, field, value, inner)
            yield from _changes(value, inner)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, ast.AST) and not _is_said_only(item):
                    yield from _changes_of(value, index, item, inner)
                    yield from _changes(item, inner)


def _is_not_run(node: ast.AST, field: str) -> bool:
    if isinstance(node, ast.Call):
        return False
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
        return True
    return field in NOT_RUN


def _is_said_only(item: ast.AST) -> bool:
    """Docstrings, ``assert_never``, ``__slots__``, imports, and ``strict`` of ``zip``."""
    if isinstance(item, ast.Expr):
        is_docstring = isinstance(item.value, ast.Constant)
        return is_docstring or ast.unparse(item).startswith("assert_never(")
    if isinstance(item, ast.Assign):
        return any(isinstance(to, ast.Name) and to.id == "__slots__" for to in item.targets)
    if isinstance(item, ast.keyword):
        return item.arg == "strict"
    return isinstance(item, (ast.Import, ast.ImportFrom))


def _changes_of(
    parent: Parent, place: str | int, node: ast.AST, scope: _Scope
) -> Iterator[_Change]:
    """The changes of one node as such, not of what is within it."""
    line = getattr(node, "lineno", 0)
    for new, text in _replacements(node):
        yield _Change(parent, place, new, line, text, *scope)
    if place == "test" and isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        negated = ast.UnaryOp(ast.Not(), node)
        yield _Change(parent, place, negated, line, _said(node, negated), *scope)


def _replacements(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """What may stand in place of a node, and how that reads."""
    if isinstance(node, ast.expr):
        for new in _other_expressions(node):
            yield new, _said(node, new)
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        turned = ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)
        yield turned, _said(node, turned)
        yield ast.Pass(), _without(node)
    elif isinstance(node, ast.Break):
        yield ast.Continue(), "break → continue"
    elif isinstance(node, ast.Continue):
        yield ast.Break(), "continue → break"
    elif _can_be_left_out(node):
        yield ast.Pass(), _without(node)


def _other_expressions(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left=left, ops=operators, comparators=others):
            for index, operator in enumerate(operators):
                other = COMPARISONS[type(operator)]()
                changed = [*operators[:index], other, *operators[index + 1 :]]
                yield ast.Compare(left, changed, others)
        case ast.BoolOp(op=joined, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(joined, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
            yield ast.BinOp(left, OPERATORS[type(sign)](), right)
        case ast.Constant(value=value):
            for literal in _other_literals(value):
                yield ast.Constant(literal)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords) if (
            name in FUNCTIONS
        ):
            yield ast.Call(ast.Name(FUNCTIONS[name], ast.Load()), arguments, keywords)
        case _:
            pass


def _can_be_left_out(node: ast.AST) -> bool:
    """Calls for their effect, and what is done to an object."""
    match node:
        case ast.Expr(value=ast.Call()) | ast.Delete():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
        case _:
            return False


def _other_literals(value: object) -> Iterator[bool | int | float | str]:
    match value:
        case bool():
            yield not value
        case int():
            yield value + 1
        case float():
            yield value + 1.0
        case str() if CODE.fullmatch(value):
            yield value + "_"
        case _:
            pass


def _without(node: ast.AST) -> str:
    return f"{_short(node)} → nothing"


def _said(old: ast.AST, new: ast.AST) -> str:
    return f"{_short(old)} → {_short(new)}"


def _short(node: ast.AST, most: int = 60) -> str:
    text = re.sub(r"\s+", " ", ast.unparse(ast.fix_missing_locations(node)))
    return text if len(text) <= most else text[: most - 1] + "…"
