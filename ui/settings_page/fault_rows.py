"""The fault bench on the settings page: makes the network of this device bad, for testers.

Its rows are bound to no setting: nothing of it is kept.  What is wrong with a number stands below
its field, and nothing is switched on until all are right.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from msgspec.structs import replace
from PySide6.QtCore import QSignalBlocker, QSize, Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QLineEdit, QSizePolicy

from engine.core.errors import ChatError
from engine.core.fault_bench import EVERYTHING, FaultRule, FaultTarget, Preset
from engine.core.faults import MAX_DELAY_MS, FaultSpec
from engine.core.ids import ParticipantId
from engine.events import ConversationView, MemberView
from engine.fault_views import Faults
from ui.choice import Choice
from ui.controls import Button
from ui.error_words import error_words
from ui.fault_words import overview_words, preset_words
from ui.foreign_text import one_line, short_peer
from ui.problem_words import sentence
from ui.settings_page.rows import ActionRow, SettingRow
from ui.settings_page.section import SettingsSection
from ui.theme import current_theme
from ui.translate import tr

_FIELD_WIDTH = 96
_LEAST_NAME_WIDTH = 120
_DIGITS = 6
_AGAIN_MS = 1_000
_DAY_MIN = 24 * 60
_MAX_LINE_KB = 100_000
_SHORT_CUT_MS = 30_000


class AmountRow(SettingRow):
    """A whole number between two bounds."""

    def __init__(self, label: str, hint: str, least: int, most: int, *, given: int = 0) -> None:
        self.field = QLineEdit(str(given))
        self.field.setMaxLength(_DIGITS)
        self.field.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.field.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._least, self._most = least, most
        super().__init__(label, hint, self.field)
        self.field.textEdited.connect(self.amount)

    def amount(self) -> int | None:
        """None if it is wrong, which is said."""
        try:
            number = int(self.field.text().strip() or "0")
        except ValueError:
            number = self._least - 1
        if self._least <= number <= self._most:
            self.say("")
            return number
        words = tr("Allowed: {least} to {most}.")
        self.say(words.format(least=self._least, most=self._most))
        return None

    def _dress(self) -> None:
        super()._dress()
        self.field.setFixedWidth(current_theme().metrics.scaled(_FIELD_WIDTH))


class _NameChoice(Choice):
    """Of names, which may be long: it gives way where there is little room."""

    def show_names(self, names: Sequence[str], chosen: int) -> None:
        """Nothing else is chosen in between, so whoever depends on it keeps theirs."""
        with QSignalBlocker(self):
            self.clear()
            self.addItems(list(names))
            self.setCurrentIndex(chosen)
        self.currentIndexChanged.emit(chosen)

    def minimumSizeHint(self) -> QSize:
        whole = super().minimumSizeHint()
        room = current_theme().metrics.scaled(_LEAST_NAME_WIDTH)
        return QSize(min(whole.width(), room), whole.height())


class _WhereRow(SettingRow):
    """All conversations, one, or one peer."""

    def __init__(
        self,
        conversations: Callable[[], Sequence[ConversationView]],
        peers: Callable[[], Sequence[str]],
    ) -> None:
        self.choice = _NameChoice()
        self._conversations = conversations
        self._peers = peers
        self._targets: tuple[FaultTarget, ...] = (EVERYTHING,)
        words = tr(
            "A conversation with faults of its own does not share in those of all. Those of a peer"
            " come on top: messages to it, and from it, whatever the conversation."
        )
        super().__init__(tr("For"), words, self.choice)
        self.refresh()

    @property
    def target(self) -> FaultTarget:
        return self._targets[max(0, self.choice.currentIndex())]

    def refresh(self) -> None:
        chosen = self.target
        views, peers = self._conversations(), self._peers()
        self._targets = (
            EVERYTHING,
            *(FaultTarget(conversation_id=view.conversation_id) for view in views),
            *(FaultTarget(peer_id=peer_id) for peer_id in peers),
        )
        names = [tr("All conversations"), *(one_line(view.name, 30) for view in views)]
        names += [tr("Peer {name}").format(name=short_peer(peer_id)) for peer_id in peers]
        self.choice.show_names(names, self._targets.index(chosen) if chosen in self._targets else 0)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()


class _MemberRow(SettingRow):
    """Everybody, or one member of the group that is chosen."""

    def __init__(self) -> None:
        self.choice = _NameChoice()
        self._ids: tuple[ParticipantId | None, ...] = (None,)
        words = tr(
            "What one member sends, repairs by them too. What you send goes to everybody, so it"
            " cannot be spoiled for one; but their peer can be chosen above."
        )
        super().__init__(tr("From"), words, self.choice)
        self.show_members(None)

    @property
    def participant_id(self) -> ParticipantId | None:
        """None: everybody, both ways."""
        return self._ids[max(0, self.choice.currentIndex())]

    def show_members(self, view: ConversationView | None) -> None:
        chosen, members = self.participant_id, list[MemberView]()
        if view is not None and view.contact is None and view.open_channel is None:
            members = [each for each in view.members if not (each.is_self or each.has_left)]
        self._ids = (None, *(each.participant_id for each in members))
        names = [tr("Everybody"), *(one_line(each.name, 30) for each in members)]
        self.choice.show_names(names, self._ids.index(chosen) if chosen in self._ids else 0)
        self.choice.setEnabled(bool(members))


class _PeerRow(SettingRow):
    """A peer of this device: connected, or cut off."""

    def __init__(self, peers: Callable[[], Sequence[str]]) -> None:
        self.choice = _NameChoice()
        self._peers = peers
        self._ids: tuple[str, ...] = ()
        words = tr("A device with which this one is connected. The network view says more of each.")
        super().__init__(tr("Peer"), words, self.choice)

    @property
    def peer_id(self) -> str | None:
        """None: there is none."""
        return self._ids[max(0, self.choice.currentIndex())] if self._ids else None

    def refresh(self) -> None:
        chosen, self._ids = self.peer_id, tuple(self._peers())
        names = [short_peer(each) for each in self._ids] or [tr("None is connected")]
        self.choice.show_names(names, self._ids.index(chosen) if chosen in self._ids else 0)
        self.choice.setEnabled(bool(self._ids))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()


class OverviewRow(ActionRow):
    """What is on, and the button that ends it; it counts on while it is looked at."""

    def __init__(self, words: Callable[[], str], stop: Callable[[], None]) -> None:
        self._words = words
        button = Button(tr("Stop all faults"), kind="danger")
        super().__init__(tr("Faults that are on"), "", button, stop)
        self._again = QTimer(self)
        self._again.setInterval(_AGAIN_MS)
        self._again.timeout.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        words = self._words()
        if words != self.hint.text():
            self.show_hint(words)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()
        self._again.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._again.stop()


class FaultRows:
    """The rows, and what they do."""

    def __init__(
        self,
        faults: Callable[[], Faults],
        conversations: Callable[[], Sequence[ConversationView]],
        now: Callable[[], datetime],
        *,
        peers: Callable[[], Sequence[str]],
    ) -> None:
        """``peers``: the ids of those that are connected."""
        self._faults = faults
        self._connected = peers
        self._conversations = conversations
        self._now = now
        self.overview = OverviewRow(self._overview, self._stop_all)
        self.where = _WhereRow(conversations, self._peers)
        self.member = _MemberRow()
        self.where.choice.currentIndexChanged.connect(lambda _index: self._show_members())
        self._show_members()
        self.peer = _PeerRow(self._peers)
        self._make_cuts()
        self._make_presets()
        self._make_numbers()
        self._make_clock()

    def _make_cuts(self) -> None:
        self.cuts = {
            for_ms: ActionRow(title, hint, Button(tr("Cut off")), partial(self._cut_off, for_ms))
            for for_ms, title, hint in (
                (_SHORT_CUT_MS, tr("Cut off for 30 s"), tr("Then it may come back by itself.")),
                (None, tr("Cut off"), tr("No connection with it, until you let it back.")),
            )
        }
        for row in self.cuts.values():
            row.button.setAccessibleName(row.label.text())
        self.back = ActionRow(
            tr("Let back"),
            tr("It is dialled again if it is one to be kept."),
            Button(tr("Let back")),
            self._let_back,
        )

    def _make_presets(self) -> None:
        self.presets = {
            preset: ActionRow(
                preset_words(preset),
                hint,
                Button(tr("Start")),
                partial(self._do, partial(self._start, preset)),
            )
            for preset, hint in (
                (Preset.TRAIN, tr("Slow, with nothing at all in tunnels; three minutes.")),
                (Preset.HOTEL, tr("A narrow line, and a tenth is lost; five minutes.")),
                (Preset.PARTITION, tr("Nothing goes out or comes in.")),
            )
        }
        for preset, row in self.presets.items():
            words = tr("Start: {name}").format(name=preset_words(preset))
            row.button.setAccessibleName(words)
        self.pause = ActionRow(
            tr("Pause"),
            tr("Everything is held, both ways, until you stop it."),
            Button(tr("Pause")),
            partial(self._do, lambda: self._set(FaultRule(paused=True))),
        )

    def _make_numbers(self) -> None:
        self.loss = AmountRow(tr("Loss"), tr("Percent of all copies."), 0, 100)
        self.delay = AmountRow(tr("Delay"), tr("Milliseconds, at least."), 0, MAX_DELAY_MS)
        self.longest = AmountRow(tr("Longest delay"), tr("Milliseconds."), 0, MAX_DELAY_MS)
        self.doubled = AmountRow(tr("Duplicates"), tr("Percent of what comes in."), 0, 100)
        self.overtaken = AmountRow(
            tr("Reordering"), tr("Percent that later ones overtake."), 0, 100
        )
        self.line = AmountRow(
            tr("Bandwidth"), tr("Kilobytes a second; 0: as it is."), 0, _MAX_LINE_KB
        )
        self.own = ActionRow(
            tr("With these numbers"),
            tr("Until you stop it."),
            Button(tr("Start")),
            partial(self._do, self._set_own),
        )
        self.own.button.setAccessibleName(tr("Start with these numbers"))

    def _make_clock(self) -> None:
        self.skew = AmountRow(
            tr("Put the clock ahead"),
            tr("By so many minutes; below 0: back. Others see the wrong time."),
            -_DAY_MIN,
            _DAY_MIN,
        )
        self.clock = ActionRow(
            tr("With this clock"),
            tr("Until you stop it."),
            Button(tr("Apply")),
            partial(self._do, self._skew),
        )

    def add_to(self, section: SettingsSection) -> None:
        section.add_rows(self.overview, heading=tr("Fault bench"))
        section.add_rows(self.where, self.member, *self.presets.values(), self.pause)
        section.add_rows(
            self.loss,
            self.delay,
            self.longest,
            self.doubled,
            self.overtaken,
            self.line,
            self.own,
            heading=tr("By numbers"),
        )
        section.add_rows(self.peer, *self.cuts.values(), self.back, heading=tr("One peer"))
        section.add_rows(self.skew, self.clock, heading=tr("A wrong clock"))

    def _overview(self) -> str:
        said = overview_words(self._faults().view(), self._now(), self._conversations())
        always = tr(
            "Makes the network bad on purpose, for tests. Nothing you say is lost for good, and a"
            " restart ends all of it."
        )
        return f"{always}\n{said}"

    def _show_members(self) -> None:
        chosen = self.where.target.conversation_id
        views = (each for each in self._conversations() if each.conversation_id == chosen)
        self.member.show_members(next(views, None))

    def _peers(self) -> Sequence[str]:
        """Those that are connected, and those to which something is done."""
        faults = self._faults().view()
        cut_off = [each.peer_id for each in faults.cut_off]
        spoiled = [each.target.peer_id for each in faults.of_peers if each.target.peer_id]
        return list(dict.fromkeys((*self._connected(), *spoiled, *cut_off)))

    @property
    def _target(self) -> FaultTarget:
        return replace(self.where.target, participant_id=self.member.participant_id)

    def _cut_off(self, for_ms: int | None) -> None:
        peer_id = self.peer.peer_id
        if peer_id is not None:
            self._do(lambda: self._faults().cut_off(peer_id, for_ms))

    def _let_back(self) -> None:
        peer_id = self.peer.peer_id
        if peer_id is not None:
            self._do(lambda: self._faults().let_back(peer_id))

    def _do(self, act: Callable[[], None]) -> None:
        try:
            act()
        except ChatError as error:
            self.where.say(sentence(error_words(error)))
        else:
            self.where.say("")
        self.overview.refresh()

    def _start(self, preset: Preset) -> None:
        self._faults().start(self._target, preset)

    def _set(self, rule: FaultRule) -> None:
        self._faults().set(self._target, rule)

    def _set_own(self) -> None:
        rows = (self.loss, self.delay, self.longest, self.doubled, self.overtaken, self.line)
        amounts = [row.amount() for row in rows]
        if any(amount is None for amount in amounts):
            return
        loss, delay, longest, doubled, overtaken, line = (amount or 0 for amount in amounts)
        self._set(
            FaultRule(
                spec=FaultSpec(
                    loss=loss / 100,
                    delay_ms=(delay, max(delay, longest)),
                    dup=doubled / 100,
                    reorder=overtaken / 100,
                ),
                bytes_per_s=line * 1_000,
            )
        )

    def _skew(self) -> None:
        minutes = self.skew.amount()
        if minutes is not None:
            self._faults().skew(minutes * 60_000)

    def _stop_all(self) -> None:
        self._faults().stop_all()
        self.overview.refresh()
