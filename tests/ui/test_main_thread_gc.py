"""Rubbish with Qt objects in it is destroyed on the main thread, whoever makes more rubbish."""

import gc
import threading

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from chat_app.main_thread_gc import EVERY_MS, MainThreadCollector
from tests.patience import PATIENCE_S

PATIENCE_MS = PATIENCE_S * 1_000


class Cycle(QObject):
    """Holds itself, and tells which thread it was destroyed on."""

    def __init__(self, ended_on: list[int]) -> None:
        super().__init__()
        self.itself = self
        self._ended_on = ended_on

    def __del__(self) -> None:
        self._ended_on.append(threading.get_ident())


def make_rubbish() -> None:
    for _ in range(20_000):
        cell: list[object] = []
        cell.append(cell)


@pytest.mark.usefixtures("qtbot")
def test_another_threads_rubbish_does_not_destroy_ours() -> None:
    ended_on: list[int] = []
    collector = MainThreadCollector()
    try:
        Cycle(ended_on)
        thread = threading.Thread(target=make_rubbish)
        thread.start()
        thread.join()
        assert ended_on == []
        collector.collect_due()
        assert ended_on == [threading.get_ident()]
    finally:
        collector.stop()


def test_the_timer_collects_by_itself(qtbot: QtBot) -> None:
    ended_on: list[int] = []
    collector = MainThreadCollector()
    try:
        Cycle(ended_on)
        make_rubbish()
        qtbot.waitUntil(lambda: ended_on == [threading.get_ident()], timeout=PATIENCE_MS)
    finally:
        collector.stop()


def test_it_looks_ever_less_often_until_there_is_rubbish_again(qtbot: QtBot) -> None:
    before, collector = gc.get_threshold(), MainThreadCollector()
    try:
        gc.set_threshold(1_000_000_000)
        qtbot.waitUntil(lambda: collector.interval_ms > EVERY_MS, timeout=PATIENCE_MS)
        gc.set_threshold(1)
        qtbot.waitUntil(lambda: collector.interval_ms == EVERY_MS, timeout=PATIENCE_MS)
    finally:
        gc.set_threshold(*before)
        collector.stop()


@pytest.mark.usefixtures("qtbot")
def test_stopping_gives_the_work_back() -> None:
    gc.enable()
    try:
        collector = MainThreadCollector()
        assert not gc.isenabled()
        collector.stop()
        assert gc.isenabled()
    finally:
        gc.disable()
