"""What a person reads goes through ``tr``, and the translators' tool finds all of it."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from xml.etree import ElementTree as ET

import pytest

from ui.chat_export import POLICY, STYLE

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for path in (ROOT / "ui").rglob("*.py") if path.parent.name != "theme")

HAS_LETTERS = re.compile(r"[^\W\d_]{2}")
LOOKS_LIKE_WORDS = re.compile(r"[^\W\d_]{2,}[.,:;?!…]? | [^\W\d_]{2,}|^[A-Z][a-z]+…?$")
MARKUP = re.compile(r"<[a-z!/][^>]*(>|$)|^[^<>]*\">")
"""Of a page: what stands between its tags is checked all the same."""
NOT_FOR_PEOPLE = {
    # Of an exported page.
    *(POLICY, STYLE, ' class="own"', '" alt="'),
    # Names of things: the program, a key storage as the engine calls it, a notice, a row.
    *("Causerie", "system keyring", "key file", "earlier profile", "TimelineAccessible"),
    *("message ", "day ", "lost ", "gap ", "held ", "delete "),
    *(
        "/dns4/node.example.org/tcp/60000/p2p/16Uiu2…",
        "/dns4/store.example.org/tcp/60000/p2p/16Uiu2…",
    ),
    # Keys, which Qt reads.
    *("\tAlt+Up", "\tAlt+Down", "\tDel", "Return", "Up", "Down", "PgUp", "PgDown", "Home", "End"),
    *("Escape", "Del", "Menu"),
    # For Qt's rich text.
    "<div style='white-space:pre'>",
    # For developers.
    *(
        "ui: ",
        "task: ",
        "a window needs a QApplication",
        "a language needs a QApplication",
        "A translation is missing.",
        "page not loaded: %s",
        " failed",
    ),
}
SHOWN_BY = {
    *(
        "setText",
        "setWindowTitle",
        "setToolTip",
        "set_tip",
        "setPlaceholderText",
        "setAccessibleName",
    ),
    *("setAccessibleDescription", "setStatusTip", "setWhatsThis", "setTitle", "setLabelText"),
    *("QLabel", "QPushButton", "QAction", "QMenu", "QCheckBox", "QRadioButton", "QGroupBox"),
    *("addAction", "addMenu", "addItem", "addTab", "rename", "say", "show_hint", "block"),
    *("Text", "ElidedText", "Button", "Pill", "Switch", "Segments", "Notice"),
}
"""Qt's functions and ours that show their text."""


def parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def called(node: ast.AST | None) -> str:
    """The last part of the name of what is called; empty if nothing is."""
    if not isinstance(node, ast.Call):
        return ""
    return ast.unparse(node.func).rpartition(".")[2]


def tr_calls() -> Iterator[tuple[str, ast.Call, ast.AST]]:
    """Where it is, the call, and what stands around it."""
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        around = parents(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and called(node) == "tr":
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node, around[node]


def untranslated(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each literal that looks like words, or is shown, outside of ``tr``."""
    tree = ast.parse(source)
    around = parents(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if isinstance(around[node], ast.Expr):  # a docstring
            continue
        argument: ast.AST = node
        while (above := around.get(argument)) is not None and not isinstance(above, ast.Call):
            argument = above
        if above is not None and called(above) == "tr":
            continue
        is_first = isinstance(above, ast.Call) and above.args[:1] == [argument]
        shown = called(above) in SHOWN_BY and is_first
        if (HAS_LETTERS if shown else LOOKS_LIKE_WORDS).search(MARKUP.sub("", node.value)):
            yield node.lineno, node.value


def test_no_visible_text_bypasses_tr() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in MODULES
        for line, text in untranslated(path.read_text(encoding="utf-8"))
        if text not in NOT_FOR_PEOPLE
    ] == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('label.setText("ready")', "ready"),
        ('label.setText(f"ready {count}")', "ready "),
        ('Button("ready" if done else "", kind="plain")', "ready"),
        ('return "Not ready yet."', "Not ready yet."),
        ('return f"{name} is ready"', " is ready"),
        ('return "Ready"', "Ready"),
    ],
)
def test_a_text_that_bypasses_tr_is_found(line: str, text: str) -> None:
    assert list(untranslated(f"def said():\n    {line}")) == [(2, text)]


@pytest.mark.parametrize("line", ['tr("Not ready")', 'tr("%n bits", "%n bit", n).format(n="x")'])
def test_what_goes_through_tr_is_not(line: str) -> None:
    assert list(untranslated(f"label.setText({line})")) == []


def test_texts_are_literals_and_not_translated_while_a_module_is_imported() -> None:
    wrong, found = [], 0
    for place, call, _ in tr_calls():
        found += 1
        texts = call.args[:2]
        if not all(isinstance(text, ast.Constant) for text in texts) or call.keywords:
            wrong.append(place)
    assert found > 800
    assert wrong == []
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        around = parents(tree)
        for node in ast.walk(tree):
            if called(node) == "tr":
                above: ast.AST | None = node
                while above is not None and not isinstance(
                    above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
                ):
                    above = around.get(above)
                assert above is not None, f"{path}:{getattr(node, 'lineno', 0)}"


def names_in(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_values_have_names_and_one_has_those_of_many() -> None:
    """A translator moves ``{name}`` about, and a positional ``{}`` says nothing."""
    wrong = []
    for place, call, around in tr_calls():
        texts = [text.value for text in call.args[:2] if isinstance(text, ast.Constant)]
        names = [names_in(str(text)) for text in texts]
        if any(not name.isidentifier() for group in names for name in group):
            wrong.append(f"{place}: a value without a name")
        if len(call.args) == len(("text", "one", "n")) and names[0] != names[1]:
            wrong.append(f"{place}: one and many differ in their values")
        if isinstance(around, ast.Attribute) and not names[0]:
            wrong.append(f"{place}: nothing to format")
    assert wrong == []


def test_the_translators_tool_finds_every_text(tmp_path: Path) -> None:
    ours = {
        (call.args[0].value, len(call.args) == len(("text", "one", "n")))
        for _, call, _ in tr_calls()
        if isinstance(call.args[0], ast.Constant)
    }
    tool = Path(sys.executable).parent / "pyside6-lupdate"
    made = tmp_path / "causerie.ts"
    subprocess.run(
        [tool, *map(str, MODULES), "-ts", made], cwd=ROOT, check=True, capture_output=True
    )
    messages = list(ET.parse(made).getroot().iter("message"))  # noqa: S314 -- made just now
    found = {(one.findtext("source"), one.get("numerus") == "yes") for one in messages}
    assert found == ours
