"""Faults made on purpose, in words: what is done to a conversation, until when, and so far."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from engine.core.fault_bench import FaultRule, Preset
from engine.events import ConversationView, MemberView
from engine.fault_views import CutOffView, FaultsView, FaultView
from ui.foreign_text import one_line, short_peer
from ui.regional import clock_with_seconds, decimal, grouped
from ui.times import off_words
from ui.translate import tr

_NAME = 30


def preset_words(preset: Preset) -> str:
    match preset:
        case Preset.TRAIN:
            return tr("Train")
        case Preset.HOTEL:
            return tr("Hotel")
        case Preset.PARTITION:
            return tr("Partition of 30 s")


def rule_words(rule: FaultRule) -> str:
    """`"30 % lost, up to 1.5 s late"`."""
    if rule.cuts_off:
        return tr("paused") if rule.paused else tr("cut off")
    spec, said = rule.spec, list[str]()
    for share, words in (
        (spec.loss, tr("{percent} % lost")),
        (spec.dup, tr("{percent} % doubled")),
        (spec.reorder, tr("{percent} % overtaken")),
    ):
        if share:
            said.append(words.format(percent=round(100 * share)))
    if spec.delay_ms[1]:
        said.append(tr("up to {seconds} s late").format(seconds=decimal(spec.delay_ms[1] / 1_000)))
    if rule.bytes_per_s:
        said.append(tr("{number} kB/s").format(number=decimal(rule.bytes_per_s / 1_000)))
    return ", ".join(said) or tr("nothing just now")


def fault_words(fault: FaultView, faults: FaultsView, now: datetime) -> str:
    """`"Hotel: 10 % lost, 20 kB/s, until 14:08:31"`."""
    words = rule_words(fault.rule)
    if fault.preset is not None:
        words = tr("{name}: {what}").format(name=preset_words(fault.preset), what=words)
    if fault.ends_ms is not None:
        end = now + timedelta(milliseconds=fault.ends_ms - faults.now_ms)
        words = tr("{what}, until {time}").format(what=words, time=clock_with_seconds(end))
    return words


def skew_words(skew_ms: int) -> str:
    if skew_ms > 0:
        return tr("the clock is {time} ahead").format(time=off_words(skew_ms))
    return tr("the clock is {time} behind").format(time=off_words(skew_ms))


def member_words(fault: FaultView, members: Sequence[MemberView]) -> str:
    """Whose copies a fault is about; "" for everybody's."""
    participant_id = fault.target.participant_id
    if participant_id is None:
        return ""
    names = (each.name for each in members if each.participant_id == participant_id)
    return one_line(next(names, ""), _NAME) or tr("somebody who left")


def peers_words(faults: FaultsView, now: datetime) -> list[str]:
    """What is done to single peers: `"Peer …3kQ9xZaB: 30 % lost"`."""
    said = [
        tr("Peer {peer}: {what}").format(
            peer=short_peer(fault.target.peer_id or ""), what=fault_words(fault, faults, now)
        )
        for fault in faults.of_peers
    ]
    return said + [cut_off_words(peer, faults, now) for peer in faults.cut_off]


def cut_off_words(peer: CutOffView, faults: FaultsView, now: datetime) -> str:
    """`"Peer …3kQ9xZaB: cut off, until 14:08:31"`."""
    what = tr("cut off")
    if peer.ends_ms is not None:
        end = now + timedelta(milliseconds=peer.ends_ms - faults.now_ms)
        what = tr("{what}, until {time}").format(what=what, time=clock_with_seconds(end))
    return tr("Peer {peer}: {what}").format(peer=short_peer(peer.peer_id), what=what)


def said_of(faults: FaultsView, conversation: ConversationView, now: datetime) -> list[str]:
    """Each fault that touches this conversation."""
    said = []
    for fault in faults.about(conversation.conversation_id):
        who = member_words(fault, conversation.members)
        words = fault_words(fault, faults, now)
        said.append(tr("from {name}: {what}").format(name=who, what=words) if who else words)
    return said


def overview_words(
    faults: FaultsView, now: datetime, conversations: Sequence[ConversationView]
) -> str:
    """All that is on and what it did, for the settings page; a line each."""
    if not faults.is_on:
        return tr("No faults are on.")
    known = {view.conversation_id: view for view in conversations}
    lines = []
    for fault in faults.faults:
        if fault.target.peer_id is not None:
            continue
        where = tr("All conversations")
        if fault.target.conversation_id is not None:
            view = known.get(fault.target.conversation_id)
            where = "?" if view is None else one_line(view.name, _NAME)
            who = "" if view is None else member_words(fault, view.members)
            if who:
                where = tr("{conversation}, from {name}").format(conversation=where, name=who)
        what = fault_words(fault, faults, now)
        lines.append(tr("{where}: {what}").format(where=where, what=what))
    lines += peers_words(faults, now)
    if faults.skew_ms:
        lines.append(skew_words(faults.skew_ms))
    counts = counted_words(faults)
    return "\n".join((*lines, counts) if counts else lines)


def counted_words(faults: FaultsView) -> str:
    """`"So far: 12 lost, 3 late"`; "" for nothing."""
    said = []
    for fate, words in (
        ("lost", tr("{number} lost")),
        ("delayed", tr("{number} late")),
        ("doubled", tr("{number} doubled")),
        ("held", tr("{number} held")),
        ("overflowed", tr("{number} lost because too much waited")),
    ):
        number = faults.counts.get(f"{fate}_out", 0) + faults.counts.get(f"{fate}_in", 0)
        if number:
            said.append(words.format(number=grouped(number)))
    return tr("So far: {what}").format(what=", ".join(said)) if said else ""
