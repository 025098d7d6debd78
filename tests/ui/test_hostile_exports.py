"""Names that try to do harm, in each file that the delivery view writes; real files are read."""

import csv
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog

from tests.ui.driving import Stage, heard, stage, until
from tests.ui.driving import play as played
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.scripted_inspection import page_of
from tests.ui.test_window_delivery import message, opened
from tests.ui.test_window_live import answer, contents
from ui.menu import Menu

pytestmark = pytest.mark.usefixtures("qapp")

NAMES = {
    "turned": "\u202e\u2066gpj.ssen\u2069raH",
    "controls": "a\x00b\x07c\x1b[31md\x9be\u2028f\ufffeg",
    "markup": "<b>&amp;</b>]]><script>alert(1)</script>",
    "formula": "=cmd|' /C calc'!A0",
    "endless": "W" * 10_000,
}
TAMED = dict(zip(NAMES, ("Turned", "Controls", "Markup", "Formula", "Endless"), strict=True))
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufffe\uffff]"
)
KINDS = ("png", "svg", "csv")


@pytest.fixture(scope="module")
def hostile(qapp: object, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001
    """A folder with what the two cards wrote: "graph.png", "matrix.csv" and so on."""
    return written(tmp_path_factory.mktemp("hostile"), NAMES)


@pytest.fixture(scope="module")
def tame(qapp: object, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001
    return written(tmp_path_factory.mktemp("tame"), TAMED)


def written(folder: Path, names: dict[str, str]) -> Path:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group(names["markup"], tuple(names.values()))
        engine.receive(group, names["markup"], "hello", minute=0)
        senders = [*names.values(), "Ines"]
        messages = [message(at + 1, sender=name) for at, name in enumerate(senders)]
        engine.inspected.pages[group] = page_of(group, messages)
        async with stage(engine, opening=group, size=(1280, 820)) as it:
            await until(lambda: it.window.pane.timeline.scene.loaded.total == 1)
            sampled = heard(it.window.delivery.live.sampled)
            await opened(it)
            await sampled
            await until(lambda: len(contents(it).holders.matrix.matrix.columns) == len(messages))
            await save_all(it, folder)

    played(scenario)
    return folder


async def save_all(it: Stage, folder: Path) -> None:
    assert it.window.delivery.page is not None
    menu = it.window.delivery.page.graph_card.export.menu()
    assert isinstance(menu, Menu)
    export = contents(it).holders.buttons.export_wanted.emit
    for kind, action in zip(KINDS, menu.actions(), strict=True):
        await save(it, folder / f"graph.{kind}", action.trigger)
        await save(it, folder / f"matrix.{kind}", partial(export, kind))


async def save(it: Stage, place: Path, ask: Callable[[], object]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(QFileDialog, "open", lambda dialog: answer(dialog, place))
        saved = heard(it.window.delivery.live.saved)
        ask()
        await saved


@pytest.mark.parametrize("card", ["graph", "matrix"])
def test_a_picture_is_not_blown_up_and_holds_no_text(hostile: Path, tame: Path, card: str) -> None:
    data = (hostile / f"{card}.png").read_bytes()
    image, usual = QImage.fromData(data), QImage(str(tame / f"{card}.png"))
    assert not image.isNull()
    assert image.height() == usual.height()
    assert image.width() < 1.5 * usual.width(), "its column of names has a bound"
    assert not {b"tEXt", b"iTXt", b"zTXt"} & {*re.findall(rb"[a-z]TXt|tEXt", data)}


@pytest.mark.parametrize("card", ["graph", "matrix"])
def test_a_drawing_is_sound_and_has_no_element_of_a_name(
    hostile: Path, tame: Path, card: str
) -> None:
    drawing = ET.fromstring((hostile / f"{card}.svg").read_bytes())  # noqa: S314 - our own
    usual = ET.fromstring((tame / f"{card}.svg").read_bytes())  # noqa: S314 - our own
    assert {each.tag for each in drawing.iter()} == {each.tag for each in usual.iter()}
    said = "".join(drawing.itertext())
    assert FORBIDDEN.search(said) is None
    assert "W" * 100 not in said
    for name in ("<b>&amp", "=cmd"):
        assert name in said, "it is shown as it is written"


@pytest.mark.parametrize("card", ["graph", "matrix"])
def test_a_table_has_the_same_cells_and_none_is_a_formula(
    hostile: Path, tame: Path, card: str
) -> None:
    rows, usual = (read_table(folder / f"{card}.csv") for folder in (hostile, tame))
    assert [len(row) for row in rows] == [len(row) for row in usual]
    cells = [cell for row in rows for cell in row]
    assert any(cell.startswith("'=cmd|' /C calc'!A0") for cell in cells)
    assert any("<script>" in cell or cell.startswith("<b>") for cell in cells), "a table is no page"
    for cell in cells:
        assert not cell.startswith(("=", "+", "@", "\t", "\r"))
        assert FORBIDDEN.search(cell) is None
        assert len(cell) <= 10_000


def read_table(place: Path) -> list[list[str]]:
    with place.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, strict=True))
