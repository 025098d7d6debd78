"""Exports what was recorded of deliveries: which time, which format, where to, how far it is.

Closing the sheet, or Stop, ends the work, and nothing is left behind then.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QUrl
from PySide6.QtWidgets import QWidget

from engine.core.errors import ChatError
from ui.choice import Choice
from ui.controls import Text
from ui.dialogs.sheet import Sheet, field_label, problem_line, say_problem
from ui.error_words import error_words
from ui.foreign_text import breaking, one_line
from ui.problem_words import sentence
from ui.progress_line import ProgressLine
from ui.recording_port import (
    ExportedLog,
    ExportStoppedError,
    ExportWish,
    LogFormat,
    RecordingPort,
    UnreadableLog,
)
from ui.regional import grouped
from ui.speaking import announce
from ui.tasks import Tasks
from ui.translate import tr

if TYPE_CHECKING:
    import asyncio

_HOUR_MS: Final = 3_600_000
_MOST_NAMED: Final = 5
"""Logs that cannot be read."""


def _spans() -> tuple[tuple[str, int | None], ...]:
    return (
        (tr("The last 20 minutes"), _HOUR_MS // 3),
        (tr("The last hour"), _HOUR_MS),
        (tr("The last day"), 24 * _HOUR_MS),
        (tr("Everything that was recorded"), None),
    )


class ExportLog(Sheet):
    def __init__(  # noqa: PLR0913 - what it shows, asks and does
        self,
        port: RecordingPort,
        tasks: Tasks,
        parent: QWidget | None = None,
        *,
        choose_folder: Callable[[QWidget], Awaitable[Path | None]],
        open_url: Callable[[QUrl], bool],
        now_ms: Callable[[], int],
    ) -> None:
        words = tr(
            "A folder with a file for each table: events, final orders, messages, members. It holds"
            " no text and no names, but whoever has the key can find out whose the pseudonyms are."
        )
        super().__init__(tr("Export recorded deliveries"), words, parent=parent)
        self._port, self._tasks, self._now_ms = port, tasks, now_ms
        self._choose_folder, self._open_url = choose_folder, open_url
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._made: Path | None = None
        self.span, self.format = Choice(), Choice()
        self._spans, self._formats = _spans(), port.formats()
        self.span.addItems([label for label, _ in self._spans])
        self.span.setCurrentIndex(1)
        self.format.addItems([_format_words(each) for each in self._formats])
        self.line = ProgressLine(tr("How far it is"))
        self.state = Text(face="label", colour="ink2", wrap=True)
        self.problem = problem_line()
        self._lay_out()
        self.cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.confirm = self.add_button(tr("Choose a folder…"), kind="primary")
        self.cancel.clicked.connect(self._leave)
        self.confirm.clicked.connect(self._go_on)
        self.finished.connect(self._stop)
        self.span.setFocus()

    def _lay_out(self) -> None:
        note = Text(
            tr(
                "The time chooses events. Final orders, messages and members are always whole:"
                " without them nobody can say what is missing."
            ),
            face="small",
            colour="ink2",
            wrap=True,
        )
        self._form = (
            field_label(tr("Time range"), self.span),
            self.span,
            field_label(tr("Format"), self.format),
            self.format,
            note,
        )
        for part in (*self._form, self.line, self.state, self.problem):
            self.body.addWidget(part)
        self.line.hide()
        self.state.hide()

    # --- the work ---------------------------------------------------------------------------------

    def _leave(self) -> None:
        """Stop what is under way, else close."""
        if self._task is not None and not self._task.done():
            self._stop()
        else:
            self.reject()

    def _stop(self) -> None:
        self._is_stopped = True

    def _go_on(self) -> None:
        if self._made is not None:
            self._open_url(QUrl.fromLocalFile(str(self._made)))
            self.accept()
            return
        say_problem(self.problem, "")
        self._is_stopped = False
        self._task = self._tasks.spawn(self._export, purpose=tr("export"), retry=False)

    async def _export(self) -> None:
        self._set_working(is_working=True)
        try:
            place = await self._choose_folder(self)
            if place is not None and not self._is_stopped:
                self.line.show_fraction(None)
                self.line.show()
                self._done(
                    await self._port.export(
                        self._wish(place), self.line.show_fraction, lambda: not self._is_stopped
                    )
                )
        except ExportStoppedError:
            self._say(tr("Stopped. Nothing was left behind."))
        except ChatError as error:
            words = tr("{problem} Nothing was left behind.")
            say_problem(self.problem, words.format(problem=sentence(error_words(error))))
        self.line.hide()
        self._set_working(is_working=False)

    def _set_working(self, *, is_working: bool) -> None:
        self.confirm.setEnabled(not is_working)
        for part in (self.span, self.format):
            part.setEnabled(not is_working)
        self.cancel.rename(tr("Stop") if is_working else tr("Close"))

    def _wish(self, place: Path) -> ExportWish:
        span_ms = self._spans[self.span.currentIndex()][1]
        return ExportWish(
            folder=place,
            log_format=self._formats[self.format.currentIndex()],
            since_ms=None if span_ms is None else self._now_ms() - span_ms,
        )

    # --- what came of it --------------------------------------------------------------------------

    def _done(self, made: ExportedLog) -> None:
        self._made = made.folder
        self._say("\n".join(exported_words(made)))
        if made.folder is not None:
            for part in self._form:
                part.hide()
            self.confirm.rename(tr("Open the folder"))

    def _say(self, words: str) -> None:
        self.state.setText(words)
        self.state.show()
        announce(self, words)


def _format_words(log_format: LogFormat) -> str:
    match log_format:
        case LogFormat.PARQUET:
            return tr("Parquet, for Spark and tables")
        case LogFormat.JSON_LINES:
            return tr("JSON lines, readable everywhere")


def exported_words(made: ExportedLog) -> list[str]:
    """What was written, and what could not be read."""
    if made.folder is not None:
        words = tr("Written: %n events, {folder}", "Written: %n event, {folder}", made.events)
        said = [words.format(folder=breaking(str(made.folder)))]
    elif made.unreadable:
        said = [tr("Nothing of what was recorded can be read.")]
    else:
        said = [tr("No deliveries were recorded yet.")]
    for log in made.unreadable[:_MOST_NAMED]:
        said.append(_unreadable_words(log))
    more = len(made.unreadable) - _MOST_NAMED
    if more > 0:
        said.append(tr("So are %n more.", "So is %n more.", more))
    if made.bad_rows:
        words = tr(
            "{number} rows are not as they should be, and were left out.",
            "{number} row is not as it should be, and was left out.",
            made.bad_rows,
        )
        said.append(words.format(number=grouped(made.bad_rows)))
    return said


def _unreadable_words(log: UnreadableLog) -> str:
    reasons = {
        "locked": tr("another program has locked it"),
        "version": tr("another version of Causerie wrote it"),
        "not_a_log": tr("it is no delivery log"),
        "unreadable": tr("it cannot be opened"),
        "absent": tr("it is gone"),
    }
    reason = reasons.get(log.reason, tr("it is damaged"))
    return tr("{file} was left out, in whole or in part: {reason}.").format(
        file=one_line(log.name, 80), reason=reason
    )
